r"""Lightning attention (arXiv 2401.04658): activated queries, keys and values, and a fixed decay for each head.

    q_t = silu(W_q x_t),  k_t and v_t likewise ,   S_t = e^{-s_h} S_{t-1} + k_t v_tᵀ ,   y_t = W_o [ S_tᵀ q_t ]
    s_h = 2^{-8h/H},  h = 1 .. H     (the slopes of ALiBi, arXiv 2108.12409; MiniMax scales them by the layer too)

State: H d_k d_v numbers.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import silu

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.gated import DecayedRecurrence, Inputs, head_constants


class LightningAttention(DecayedRecurrence):
    """Linear attention, without a normaliser, with activations and a fixed decay."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        # No buffer, which casts of the module would round: float64 wherever the weights are.
        heads = torch.arange(1, spec.heads + 1, dtype=torch.float64, device="cpu")
        self.slopes = torch.exp2(-8 * heads / spec.heads)

    def inputs(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
    ) -> Inputs:
        """Activated; the same decay at every token."""
        return Inputs(silu(queries), silu(keys), silu(values), head_constants(-self.slopes, keys))
