r"""Linear attention (arXiv 2006.16236): a matrix of written values, read through a positive feature map.

    φ(u) = elu(u) + 1 ,   S_t = S_{t-1} + φ(k_t) v_tᵀ ,   z_t = z_{t-1} + φ(k_t) ,
    y_t = W_o [ S_tᵀ φ(q_t) / (z_t · φ(q_t) + 1e-6) ]

State: H (d_k d_v + d_k) numbers, S and z. In rounded arithmetic φ(u) is exactly 0 for u ≤ -40, so that a token with
such a key writes nothing at all.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import elu

from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.mixer import accumulator, split_heads, unmasked
from hopbound.mixers.recurrence import Recurrence

EPSILON = 1e-6


@dataclass(frozen=True)
class Memory:
    """What was written: value sums and key sums, in the accumulator's precision."""

    matrix: Float[Tensor, "batch heads key_dim value_dim"]
    normaliser: Float[Tensor, "batch heads key_dim"]


class _Normalised(Function):
    """n / (z + 1e-6) for n and z side by side; the gradient, written out, takes the quotient and not n."""

    @staticmethod
    def forward(ctx: Any, read: Tensor) -> Tensor:
        inverse = (read[..., -1:] + EPSILON).reciprocal_()
        quotient = read[..., :-1] * inverse
        ctx.save_for_backward(quotient, inverse)
        return quotient

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        quotient, inverse = ctx.saved_tensors
        numerator = grads[0] * inverse
        return torch.cat([numerator, -(numerator * quotient).sum(dim=-1, keepdim=True)], dim=-1)


class _Positive(Function):
    """elu + 1; its derivative is the smaller of itself and 1."""

    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        feature = elu(u).add_(1)
        ctx.save_for_backward(feature)
        return feature

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (feature,) = ctx.saved_tensors
        return feature.clamp(max=1) * grads[0]


def positive(u: Float[Tensor, "*some dim"]) -> Float[Tensor, "*some dim"]:
    """The feature map elu + 1."""
    return _Positive.apply(u)  # pyright: ignore[reportReturnType]


def normalised_attention(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    memory: Memory,
    *,
    chunk: int,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Memory]:
    """The recurrence above for queries and keys after the feature map: z is one more column of values, all ones."""
    ones = torch.ones_like(values[..., :1])
    matrix = torch.cat([memory.matrix, memory.normaliser[..., None]], dim=-1)
    read, matrix = decayed_attention(
        queries, keys, torch.cat([values, ones], dim=-1), None, matrix, chunk=chunk, dtype=dtype
    )
    return _Normalised.apply(read), Memory(matrix[..., :-1], matrix[..., -1])  # pyright: ignore[reportReturnType]


class NormalisedRecurrence(Recurrence[Memory]):
    """Linear attention with a normaliser; subclasses give the feature map."""

    @abstractmethod
    def features(self, u: Float[Tensor, "batch heads time dim"]) -> Float[Tensor, "batch heads time features"]:
        """The feature map of queries and keys."""

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: Memory | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], Memory]:
        """Write each token, then read."""
        if state is None:
            matrix = self.empty_matrix(x)
            state = Memory(matrix, matrix.new_zeros(matrix.shape[:3]))
        written = unmasked(self.features(keys), mask)
        return normalised_attention(self.features(queries), written, values, state, chunk=self.chunk, dtype=x.dtype)

    def writers(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token whose key features are all zero adds zero to S and z."""
        keys = split_heads(self.key(x).to(accumulator(x.dtype)), self.spec.heads)
        return self.features(keys).ne(0).any(dim=-1).any(dim=1)


class LinearAttention(NormalisedRecurrence):
    """Linear attention with the feature map elu + 1."""

    def features(self, u: Float[Tensor, "batch heads time dim"]) -> Float[Tensor, "batch heads time dim"]:
        """φ = elu + 1."""
        return positive(u)
