r"""Kimi Delta Attention (KDA, arXiv 2510.26692): the delta rule with a decay for each key channel.

    α_t = exp(-exp(a) ⊙ softplus(W_α x_t + b)) ,   q_t, k_t, v_t, β_t as in the delta rule         (a: one a head)
    S_t = (I - β_t k_t k_tᵀ) diag(α_t) S_{t-1} + β_t k_t v_tᵀ ,    y_t = W_o [ S_tᵀ q_t ]

State: H d_k d_v numbers.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.mixer import accumulator, linear, spaced_steps, split_heads


class KimiDeltaAttention(DeltaRecurrence):
    """The delta rule with a decay in (0, 1) for each key channel."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.rate = linear(width, spec.heads * spec.head_dim)
        self.rate_bias = nn.Parameter(torch.zeros(spec.heads * spec.head_dim))
        self.log_rate_scale = nn.Parameter(torch.zeros(spec.heads))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Steps and rates spread over the ranges of the published code."""
        rates = torch.linspace(1, 16, self.spec.heads, dtype=torch.float64, device="cpu")
        return {"log_rate_scale": rates.log(), "rate_bias": spaced_steps(self.spec.heads * self.spec.head_dim)}

    def log_decay(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch heads time key_dim"]:
        """log α_t of each head and key channel."""
        wide = accumulator(x.dtype)
        rate = split_heads(softplus(self.rate(x).to(wide) + self.rate_bias.to(wide)), self.spec.heads)
        return -self.log_rate_scale.to(wide).exp()[:, None, None] * rate

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys, strengths and rates."""
        return self.key.weight, self.strength.weight, self.rate.weight
