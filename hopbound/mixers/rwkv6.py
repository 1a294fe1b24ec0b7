r"""RWKV-6 (Finch, arXiv 2404.05892): a decay for each key channel by the token, and a bonus for the token itself.

    w_t = exp(-exp(W_w x_t + b)) ,   S_t = diag(w_t) S_{t-1} + k_t v_tᵀ
    y_t = W_o [ (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ r_t ]

`query` makes r. The token reads the state before it is decayed and written, and itself with the weight u. Token shifts,
gate and group norm of the published block stand outside (`shift` is a mixer of its own). State: H d_k d_v numbers.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.chunks import GONE
from hopbound.mixers.gated import DecayedRecurrence, Inputs
from hopbound.mixers.mixer import accumulator, linear, split_heads


class Rwkv6(DecayedRecurrence):
    """A matrix state read before it is written."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.rate = linear(width, spec.heads * spec.head_dim)
        self.rate_bias = nn.Parameter(torch.zeros(spec.heads * spec.head_dim))
        self.boost = nn.Parameter(torch.zeros(spec.heads, spec.head_dim))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Rates spread from e^-6 to e^-1 over the channels."""
        return {"rate_bias": torch.linspace(-6, -1, self.spec.heads * self.spec.head_dim, device="cpu")}

    def inputs(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
    ) -> Inputs:
        """As projected, with the rates."""
        wide = accumulator(x.dtype)
        rates = -(self.rate(x).to(wide) + self.rate_bias.to(wide)).clamp(max=math.log(-GONE)).exp()
        return Inputs(queries, keys, values, split_heads(rates, self.spec.heads))

    def bonus(self) -> Float[Tensor, "heads key_dim"]:
        """The weight u."""
        return self.boost.to(accumulator(self.boost.dtype))

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and rates."""
        return self.key.weight, self.rate.weight
