"""The few size families: every mixer of the field has the sizes of one of these.

| family | state that crosses a cut | summary of one query | cache a token |
|---|---|---|---|
| `Attention` | - | H (d_v + 2) | H_kv (d_k + d_v) |
| `LatentAttention` | - | H (d_v + 2) | latent + rotary part |
| `SelectiveAttention` | - | k (s + H (d_v + 2)), s selections | H_kv (d_k + d_v) [+ d_I] |
| `NativeSparseAttention` | - | k (H + H (d_v + 2)) + H (3 d_v + 5) | H_kv (d_k + d_v) |
| `ForgettingAttention` | - | H (d_v + 2) | H_kv (d_k + d_v) + H |
| `SelectiveLatentAttention` | - | k (1 + H (d_v + 2)) | latent + rotary part + d_I |
| `CompressedAttention` | - | see there | (d + d_I) a block |
| `SearchRetrieval` | - | S (R d_v + 2) | S d_k + R d_v |
| `WindowAttention` | H_kv (d_k + d_v) (W - 1) | - | - |
| `GlobalWindowAttention` | H_kv (d_k + d_v) (W - 1 + g), g global tokens | - | - |
| `BlockSparseAttention` | - | H (d_v + 2) | H_kv (d_k + d_v) |
| `TransientGlobalAttention` | H_kv (d_k + d_v) W | H (d_v + 2) + H_kv (d_k + d_v) | H_kv (d_k + d_v) a block |
| `EvictingAttention` | H_kv budget (d_k + d_v + 1) [+ H_kv] | - | - |
| `MatrixState` | levels · H (features d_v [+ features] [+ 1]) + convolution | - | - |
| `GroupedState` | H d_head N + convolution | - | - |
| `ChannelState` | c N + convolution | - | - |
| `OpenState` | as given | - | - |
| `Columns` | (k - 1) channels | - | - |
| `Pointwise` | - | - | - |

The summary of softmax attention accumulated left to right is a running maximum, a normaliser and a weighted value sum
for each query head, hence H (d_v + 2); each selection of k blocks adds the k scores. A window of W tokens holds the
token itself, so W - 1 earlier ones.
"""

from hopbound.architecture.sizes.softmax import (
    Attention,
    EvictingAttention,
    ForgettingAttention,
    GatedHeads,
    GlobalWindowAttention,
    GroupedHeads,
    LatentAttention,
    SearchRetrieval,
    WindowAttention,
)
from hopbound.architecture.sizes.sparse import (
    BlockSparseAttention,
    CompressedAttention,
    NativeSparseAttention,
    SelectiveAttention,
    SelectiveLatentAttention,
    TransientGlobalAttention,
)
from hopbound.architecture.sizes.state import (
    MAX_LEVELS,
    ChannelState,
    Columns,
    GroupedState,
    MatrixState,
    OpenState,
    Pointwise,
)

__all__ = [
    "MAX_LEVELS",
    "Attention",
    "BlockSparseAttention",
    "ChannelState",
    "Columns",
    "CompressedAttention",
    "EvictingAttention",
    "ForgettingAttention",
    "GatedHeads",
    "GlobalWindowAttention",
    "GroupedHeads",
    "GroupedState",
    "LatentAttention",
    "MatrixState",
    "NativeSparseAttention",
    "OpenState",
    "Pointwise",
    "SearchRetrieval",
    "SelectiveAttention",
    "SelectiveLatentAttention",
    "TransientGlobalAttention",
    "WindowAttention",
]
