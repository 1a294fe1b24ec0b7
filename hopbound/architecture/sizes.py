"""The few size families: every mixer of the field has the sizes of one of these.

| family | state that crosses a cut | summary of one query | cache a token |
|---|---|---|---|
| `Attention` | - | H (d_v + 2) | H_kv (d_k + d_v) |
| `LatentAttention` | - | H (d_v + 2) | latent + rotary part |
| `SelectiveAttention` | - | k (s + H (d_v + 2)), s selections | H_kv (d_k + d_v) [+ d_I] |
| `NativeSparseAttention` | - | k (H + H (d_v + 2)) + H (3 d_v + 5) | H_kv (d_k + d_v) |
| `SearchRetrieval` | - | S (R d_v + 2) | S d_k + R d_v |
| `WindowAttention` | H_kv (d_k + d_v) (W - 1) | - | - |
| `GlobalWindowAttention` | H_kv (d_k + d_v) (W - 1 + g), g global tokens | - | - |
| `BlockSparseAttention` | - | H (d_v + 2) | H_kv (d_k + d_v) |
| `TransientGlobalAttention` | H_kv (d_k + d_v) W | H (d_v + 2) + H_kv (d_k + d_v) | H_kv (d_k + d_v) a block |
| `EvictingAttention` | H_kv budget (d_k + d_v + 1) [+ H_kv] | - | - |
| `MatrixState` | levels · H (features d_v [+ features] [+ 1]) + convolution | - | - |
| `GroupedState` | H d_head N + convolution | - | - |
| `ChannelState` | c N + convolution | - | - |
| `Columns` | (k - 1) channels | - | - |
| `Pointwise` | - | - | - |

The summary of softmax attention accumulated left to right is a running maximum, a normaliser and a weighted value sum
for each query head, hence H (d_v + 2); each selection of k blocks adds the k scores. A window of W tokens holds the
token itself, so W - 1 earlier ones.
"""

from dataclasses import dataclass
from typing import ClassVar

from hopbound.architecture.mixer import Elements, Kind, MixerSpec

MAX_LEVELS = 64  # of log-linear attention, for the length that they suffice for; more of them are as good


@dataclass(frozen=True, kw_only=True)
class GroupedHeads(MixerSpec):
    """Softmax attention of heads that share keys and values in groups: what several families have in common.

    Attributes:
        heads: query heads H.
        kv_heads: heads of keys and values H_kv, a divisor of H.
        head_dim: key dimension d_k of a head.
        value_dim: value dimension d_v of a head.
        gate: 1 if the heads' outputs are gated by the token itself; it changes no size.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    gate: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)


@dataclass(frozen=True, kw_only=True)
class Attention(GroupedHeads):
    """Softmax attention over the whole past; `kv_heads` < `heads` is grouped-query attention."""

    kind: ClassVar[Kind] = Kind.FULL

    @property
    def elements(self) -> Elements:
        """Summary H (d_v + 2), cache H_kv (d_k + d_v) a token."""
        return Elements(
            summary=self.heads * (self.value_dim + 2),
            kv_per_token=self.kv_heads * (self.head_dim + self.value_dim),
        )


@dataclass(frozen=True, kw_only=True)
class LatentAttention(MixerSpec):
    """Multi-head latent attention (arXiv 2405.04434): one latent and one rotary key a token, values up-projected."""

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    latent: int
    rope_dim: int
    value_dim: int

    @property
    def width(self) -> int:
        """Heads times value dimension after up-projection."""
        return self.heads * self.value_dim

    @property
    def elements(self) -> Elements:
        """Summary H (d_v + 2) with d_v after up-projection, cache latent + rotary part a token."""
        return Elements(summary=self.heads * (self.value_dim + 2), kv_per_token=self.latent + self.rope_dim)


@dataclass(frozen=True, kw_only=True)
class SearchRetrieval(MixerSpec):
    """Compositional attention (arXiv 2110.09419): `heads` searches, each of which chooses among `retrievals` values."""

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    retrievals: int
    head_dim: int
    value_dim: int
    select_dim: int

    @property
    def width(self) -> int:
        """Searches times the larger of key dimension and what a search retrieves."""
        return self.heads * max(self.head_dim, self.retrievals * self.value_dim)

    @property
    def elements(self) -> Elements:
        """Summary: each search with all retrievals, as it chooses after the sums. Cache: keys and values of either."""
        return Elements(
            summary=self.heads * (self.retrievals * self.value_dim + 2),
            kv_per_token=self.heads * self.head_dim + self.retrievals * self.value_dim,
        )


@dataclass(frozen=True, kw_only=True)
class SelectiveAttention(MixerSpec):
    """Attention over the k best of all past blocks of `block` tokens, chosen by the query; for claims a full layer.

    Attributes:
        k: how many blocks; where a block is longer than a token, the query's own is always one of them.
        block: tokens a block.
        selections: how many selections a query makes: 1 for all heads together, or one a head.
        index_heads: index queries of a query, where the score is one of its own; else 0.
        index_dim: numbers of the index key of a token; else 0.
    """

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    k: int
    block: int
    selections: int
    index_heads: int
    index_dim: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)

    @property
    def elements(self) -> Elements:
        """Summary: the k best scores of each selection, and the partial sums of what is selected.

        A block that a boundary cuts in two has its final score only on the right, so its left part is in the summary
        beside the best whole blocks: with the query's own block among the k that makes k entries, not more.
        """
        return Elements(
            summary=self.k * (self.selections + self.heads * (self.value_dim + 2)),
            kv_per_token=self.kv_heads * (self.head_dim + self.value_dim) + self.index_dim,
        )


@dataclass(frozen=True, kw_only=True)
class NativeSparseAttention(MixerSpec):
    """Native sparse attention (arXiv 2502.11089): compressed, selected and window branches over one cache.

    Attributes:
        k: how many blocks are selected, the first and the query's own and the one before it among them.
        block: tokens a block, which are compressed to their mean.
        w: tokens of the window, the token itself included.
    """

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    k: int
    block: int
    w: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)

    @property
    def elements(self) -> Elements:
        """Summary: k selected blocks as in `SelectiveAttention`; partial sums of the compressed and the window branch;
        the share of a block that a boundary cuts in two, its score and its value sum.

        It suffices where each query head has a key-value head of its own. Otherwise blocks are ranked by sums of shares
        of a whole that lies on both sides of a boundary, and nothing of this size decides which of the left are best.
        """
        partial = self.heads * (self.value_dim + 2)
        return Elements(
            summary=self.k * (self.heads + partial) + 2 * partial + self.heads * (self.value_dim + 1),
            kv_per_token=self.kv_heads * (self.head_dim + self.value_dim),
        )


@dataclass(frozen=True, kw_only=True)
class WindowAttention(GroupedHeads):
    """Softmax attention over a window, chunk or block of `w` tokens, the token itself included."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    w: int

    @property
    def elements(self) -> Elements:
        """Keys and values of at most W - 1 earlier tokens."""
        return Elements(window=self.kv_heads * (self.head_dim + self.value_dim) * (self.w - 1))


@dataclass(frozen=True, kw_only=True)
class EvictingAttention(MixerSpec):
    """Softmax attention over a cache of fixed size: when it is full, entries with the smallest scores are evicted.

    Attributes:
        budget: entries a key-value head; where the heads share, on average over them.
        recent: the newest tokens, which are never evicted.
        floor: entries that each head keeps at least; `budget`: the heads do not share.
        shared: 1 if the heads share one budget, so that the state says how many entries each holds; else 0.
    """

    kind: ClassVar[Kind] = Kind.BOUNDED

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    budget: int
    recent: int
    floor: int
    shared: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)

    @property
    def elements(self) -> Elements:
        """Keys, values and a score for each entry; with a shared budget the number of entries of each head."""
        return Elements(
            state=self.kv_heads * (self.budget + self.shared),
            window=self.kv_heads * self.budget * (self.head_dim + self.value_dim),
        )


@dataclass(frozen=True, kw_only=True)
class GlobalWindowAttention(GroupedHeads):
    """A window of `w` tokens, and the first `global_tokens` of all, which every later token sees."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    w: int
    global_tokens: int

    @property
    def elements(self) -> Elements:
        """Keys and values of at most W - 1 earlier tokens and of the global ones."""
        one = self.kv_heads * (self.head_dim + self.value_dim)
        return Elements(window=one * (self.w - 1 + self.global_tokens))


@dataclass(frozen=True, kw_only=True)
class BlockSparseAttention(GroupedHeads):
    """A window, the first tokens, and `random` earlier blocks of `block` tokens, drawn once for all inputs.

    A drawn block may lie anywhere in the past, so that this is a full layer: every token is kept.
    """

    kind: ClassVar[Kind] = Kind.FULL

    w: int
    global_tokens: int
    block: int
    random: int

    @property
    def elements(self) -> Elements:
        """As full attention."""
        return Elements(
            summary=self.heads * (self.value_dim + 2),
            kv_per_token=self.kv_heads * (self.head_dim + self.value_dim),
        )


@dataclass(frozen=True, kw_only=True)
class TransientGlobalAttention(GroupedHeads):
    """A window of `w` tokens, and one summary of each completed block of `block` tokens."""

    kind: ClassVar[Kind] = Kind.FULL

    w: int
    block: int

    @property
    def elements(self) -> Elements:
        """Keys and values of the window, the sums of the block that is not complete, one key and value a block.

        A block that a boundary cuts in two is summed up on the right: its left part is in the summary.
        """
        one = self.kv_heads * (self.head_dim + self.value_dim)
        return Elements(
            state=one,
            window=one * (self.w - 1),
            summary=self.heads * (self.value_dim + 2) + one,
            kv_per_token=one,
            kv_every=self.block,
        )


@dataclass(frozen=True, kw_only=True)
class MatrixState(MixerSpec):
    """A matrix of `features` × `value_dim` for each head, written and read by every token.

    Attributes:
        head_dim: key dimension d_k of a head.
        features: rows of the matrix: d_k itself, or the dimension of its feature map.
        value_dim: columns of the matrix, d_v.
        normaliser: 1 if a vector of `features` is kept beside the matrix, as in linear attention.
        scalars: further scalars a head (the running maximum of mLSTM).
        levels: how many such states are kept (log-linear attention: one a level); 1 otherwise.
        conv: width of the short convolution over queries, keys and values; 0 if there is none.
        beta: the largest strength of a write by the delta rule.
        steps: how many keys and values a token writes one after the other (DeltaProduct).
    """

    kind: ClassVar[Kind] = Kind.BOUNDED

    heads: int
    head_dim: int
    features: int
    value_dim: int
    conv: int
    levels: int
    normaliser: int
    scalars: int
    beta: int
    steps: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)

    @property
    def elements(self) -> Elements:
        """The state matrices with their normalisers; log-linear attention has levels for prompts up to a length."""
        one = self.features * self.value_dim + self.normaliser * self.features + self.scalars
        return Elements(
            state=self.levels * self.heads * one,
            conv=max(self.conv - 1, 0) * self.heads * (self.head_dim + self.steps * (self.head_dim + self.value_dim)),
            length_limit=2 ** (min(self.levels, MAX_LEVELS) - 1) if self.name == "loglinear" else None,
        )


@dataclass(frozen=True, kw_only=True)
class GroupedState(MixerSpec):
    """Mamba-2 (arXiv 2405.21060): `state` numbers for each channel of a head, B and C shared by `groups`."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    heads: int
    head_dim: int
    state: int
    groups: int
    conv: int

    @property
    def width(self) -> int:
        """Heads times channels a head."""
        return self.heads * self.head_dim

    @property
    def elements(self) -> Elements:
        """H d_head N, and the columns of the convolution over x, B and C."""
        return Elements(
            state=self.heads * self.head_dim * self.state,
            conv=max(self.conv - 1, 0) * (self.heads * self.head_dim + 2 * self.groups * self.state),
        )


@dataclass(frozen=True, kw_only=True)
class ChannelState(MixerSpec):
    """`state` numbers a channel: Mamba (arXiv 2312.00752), RG-LRU (one), RWKV-4 (numerator, denominator, maximum)."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    channels: int
    state: int
    conv: int

    @property
    def width(self) -> int:
        """The channels."""
        return self.channels

    @property
    def elements(self) -> Elements:
        """`state` numbers a channel, and the columns of the convolution."""
        return Elements(state=self.channels * self.state, conv=max(self.conv - 1, 0) * self.channels)


@dataclass(frozen=True, kw_only=True)
class Columns(MixerSpec):
    """The last `kernel` - 1 columns of `channels`: a causal convolution, or a token shift (`kernel` = 2)."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    channels: int
    kernel: int

    @property
    def width(self) -> int:
        """The channels."""
        return self.channels

    @property
    def elements(self) -> Elements:
        """(k - 1) columns."""
        return Elements(conv=(self.kernel - 1) * self.channels)


@dataclass(frozen=True, kw_only=True)
class Pointwise(MixerSpec):
    """A layer that moves nothing between positions; it has no size that matters here."""

    kind: ClassVar[Kind] = Kind.POINTWISE

    @property
    def width(self) -> int:
        """None: nothing crosses positions."""
        return 0

    @property
    def elements(self) -> Elements:
        """Nothing."""
        return Elements()
