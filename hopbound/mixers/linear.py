r"""Linear attention (arXiv 2006.16236): a matrix of written values, read through a positive feature map.

    φ(u) = elu(u) + 1 ,   S_t = S_{t-1} + φ(k_t) v_tᵀ ,   z_t = z_{t-1} + φ(k_t) ,
    y_t = W_o [ S_tᵀ φ(q_t) / (z_t · φ(q_t) + 1e-6) ]

State: H (d_k d_v + d_k) numbers, S and z. In rounded arithmetic φ(u) is exactly 0 for u ≤ -40, so that a token with
such a key writes nothing at all.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import elu

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    Sight,
    accumulator,
    columns_read,
    linear,
    merge_heads,
    rows_written,
    split_heads,
)

EPSILON = 1e-6
CHUNK = 64


@dataclass(frozen=True)
class Memory:
    """What was written: value sums and key sums, in the accumulator's precision."""

    matrix: Float[Tensor, "batch heads key_dim value_dim"]
    normaliser: Float[Tensor, "batch heads key_dim"]


def features(u: Tensor) -> Tensor:
    """The feature map φ = elu + 1, in the accumulator's precision."""
    return elu(u.to(accumulator(u.dtype))) + 1


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


class LinearAttention(Mixer[MatrixState, Memory]):
    """Linear attention with the normaliser."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.heads * spec.head_dim)
        self.value = linear(width, spec.heads * spec.value_dim)
        self.out = linear(spec.heads * spec.value_dim, width)

    def forward(
        self, x: Float[Tensor, "batch time width"], state: Memory | None = None
    ) -> tuple[Float[Tensor, "batch time width"], Memory]:
        """Write each token, then read."""
        heads, wide = self.spec.heads, accumulator(x.dtype)
        queries = features(split_heads(self.query(x), heads))
        keys = features(split_heads(self.key(x), heads))
        values = split_heads(self.value(x), heads).to(wide)
        if state is None:
            shape = (x.shape[0], heads, self.spec.head_dim)
            matrix = torch.zeros(*shape, self.spec.value_dim, dtype=wide, device=x.device)
            state = Memory(matrix, torch.zeros(shape, dtype=wide, device=x.device))
        output, state = linear_attention(queries, keys, values, state)
        return self.out(merge_heads(output).to(x.dtype)), state

    @property
    def sight(self) -> Sight:
        """The tokens whose key features are not all zero."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Queries where the output is wanted; keys and values of the writers, keys to know who writes."""
        gate = columns_read(self.key.weight)
        return Reads(columns_read(self.query.weight), gate | columns_read(self.value.weight), gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token whose key features are all zero adds zero to S and z."""
        return features(self.key(x)).ne(0).any(dim=-1)

    def carried_elements(self, state: Memory) -> int:
        """S and z."""
        return state.matrix[0].numel() + state.normaliser[0].numel()
