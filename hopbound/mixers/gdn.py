r"""Gated DeltaNet (arXiv 2412.06464): the delta rule with a decay for each head.

    α_t = exp(-exp(a) · softplus(w_α · x_t + b)) ,   q_t, k_t, v_t, β_t as in the delta rule
    S_t = α_t S_{t-1} - β_t k_t (α_t S_{t-1}ᵀ k_t - v_t)ᵀ ,    y_t = W_o [ S_tᵀ q_t ]

The decay comes before the error, as in the paper's equation (10). State: H d_k d_v numbers.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.mixer import accumulator, linear, spaced_steps


class GatedDeltaNet(DeltaRecurrence):
    """The delta rule with a decay in (0, 1) for each head."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.rate = linear(width, spec.heads)
        self.rate_bias = nn.Parameter(torch.zeros(spec.heads))
        self.log_rate_scale = nn.Parameter(torch.zeros(spec.heads))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Steps and rates spread over the ranges of the published code."""
        rates = torch.linspace(1, 16, self.spec.heads, dtype=torch.float64, device="cpu")
        return {"log_rate_scale": rates.log(), "rate_bias": spaced_steps(self.spec.heads)}

    def log_decay(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch heads time"]:
        """log α_t of each head."""
        wide = accumulator(x.dtype)
        rate = softplus(self.rate(x).to(wide) + self.rate_bias.to(wide))
        return (-self.log_rate_scale.to(wide).exp() * rate).transpose(1, 2)

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys, strengths and rates."""
        return self.key.weight, self.strength.weight, self.rate.weight
