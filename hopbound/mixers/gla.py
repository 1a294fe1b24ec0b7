r"""Gated linear attention (GLA, arXiv 2312.06635): a decay for each key channel, chosen by the token.

    α_t = sigmoid(W_α x_t + b)^{1/16} ,   S_t = diag(α_t) S_{t-1} + k_t v_tᵀ ,   y_t = W_o [ S_tᵀ q_t / √d_k ]

The paper's W_α is a product of two thin matrices; here it is any matrix. State: H d_k d_v numbers.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.gated import DecayedRecurrence, Inputs
from hopbound.mixers.mixer import accumulator, linear, split_heads

TEMPERATURE = 16


class GatedLinearAttention(DecayedRecurrence):
    """Linear attention, without a normaliser, whose channels fade as the token says."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.gate = linear(width, spec.heads * spec.head_dim)
        self.gate_bias = nn.Parameter(torch.zeros(spec.heads * spec.head_dim))

    def inputs(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
    ) -> Inputs:
        """As projected, with the gates."""
        wide = accumulator(x.dtype)
        gates = split_heads(logsigmoid(self.gate(x).to(wide) + self.gate_bias.to(wide)), self.spec.heads)
        return Inputs(queries * self.spec.head_dim**-0.5, keys, values, gates / TEMPERATURE)

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and gates."""
        return self.key.weight, self.gate.weight
