r"""Linear attention (arXiv 2006.16236): a matrix of written values, read through a positive feature map.

    φ(u) = elu(u) + 1 ,   S_t = S_{t-1} + φ(k_t) v_tᵀ ,   z_t = z_{t-1} + φ(k_t) ,
    y_t = W_o [ S_tᵀ φ(q_t) / (z_t · φ(q_t) + 1e-6) ]

State: H (d_k d_v + d_k) numbers, S and z. In rounded arithmetic φ(u) is exactly 0 for u ≤ -40, so that a token with
such a key writes nothing at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import elu

from hopbound.mixers.mixer import accumulator, merge_heads
from hopbound.mixers.recurrence import Recurrence

EPSILON = 1e-6
CHUNK = 64


@dataclass(frozen=True)
class Memory:
    """What was written: value sums and key sums, in the accumulator's precision."""

    matrix: Float[Tensor, "batch heads key_dim value_dim"]
    normaliser: Float[Tensor, "batch heads key_dim"]


def features(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The feature map φ = elu + 1."""
    return elu(u) + 1


def linear_attention_by_steps(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    memory: Memory,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Memory]:
    """The definition: the recurrence above, a token at a time; `queries` and `keys` are after the feature map."""
    matrix, normaliser = memory.matrix, memory.normaliser
    outputs = []
    for q, k, v in zip(queries.unbind(2), keys.unbind(2), values.unbind(2), strict=True):
        matrix = matrix + k[..., :, None] * v[..., None, :]
        normaliser = normaliser + k
        read = (q[..., None, :] @ matrix)[..., 0, :]
        outputs.append(read / ((normaliser * q).sum(-1, keepdim=True) + EPSILON))
    return torch.stack(outputs, dim=2), Memory(matrix, normaliser)


def linear_attention(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    memory: Memory,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Memory]:
    """The same by chunks: inside a chunk tril(φ(Q) φ(K)ᵀ) V, between chunks the state."""
    matrix, normaliser = memory.matrix, memory.normaliser
    outputs = []
    chunks = (part.split(CHUNK, dim=2) for part in (queries, keys, values))
    for q, k, v in zip(*chunks, strict=True):
        inside = (q @ k.transpose(2, 3)).tril()
        read = inside @ v + q @ matrix
        scale = inside.sum(-1, keepdim=True) + q @ normaliser[..., None]
        outputs.append(read / (scale + EPSILON))
        matrix = matrix + k.transpose(2, 3) @ v
        normaliser = normaliser + k.sum(dim=2)
    return torch.cat(outputs, dim=2), Memory(matrix, normaliser)


class LinearAttention(Recurrence[Memory]):
    """Linear attention with the normaliser."""

    def forward(
        self, x: Float[Tensor, "batch time width"], state: Memory | None = None
    ) -> tuple[Float[Tensor, "batch time width"], Memory]:
        """Write each token, then read."""
        queries, keys, values = self.projected(x)
        if state is None:
            matrix = self.empty_matrix(x)
            state = Memory(matrix, matrix.new_zeros(matrix.shape[:3]))
        output, state = linear_attention(features(queries), features(keys), values, state)
        return self.out(merge_heads(output).to(x.dtype)), state

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """The keys."""
        return (self.key.weight,)

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token whose key features are all zero adds zero to S and z."""
        return features(self.key(x).to(accumulator(x.dtype))).ne(0).any(dim=-1)

    def carried_elements(self, state: Memory) -> int:
        """S and z."""
        return state.matrix[0].numel() + state.normaliser[0].numel()
