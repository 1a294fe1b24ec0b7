r"""Retention (RetNet, arXiv 2307.08621): a fixed decay for each head.

    S_t = γ_h S_{t-1} + k_t v_tᵀ ,   y_t = W_o [ S_tᵀ q_t / √d_k ] ,   γ_h = 1 - 2^{-5-h},  h = 0, 1, …

Here is the retention itself; the paper's rotation of queries and keys is a positional encoding, its group norm and gate
are position-wise. State: H d_k d_v numbers.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.gated import DecayedRecurrence, Inputs, head_constants


class Retention(DecayedRecurrence):
    """Linear attention, without a normaliser, whose state fades at a fixed rate."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        # No buffer, which casts of the module would round: float64 wherever the weights are.
        heads = torch.arange(spec.heads, dtype=torch.float64, device="cpu")
        self.log_rates = torch.log1p(-torch.exp2(-5 - heads))

    def inputs(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
    ) -> Inputs:
        """As projected; the same decay at every token."""
        return Inputs(queries * self.spec.head_dim**-0.5, keys, values, head_constants(self.log_rates, keys))
