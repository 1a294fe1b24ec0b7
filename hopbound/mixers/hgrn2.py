r"""HGRN2 (arXiv 2404.07904): what a channel forgets is what it is open for.

    f_t = sigmoid(W_f x_t) ,   S_t = diag(f_t) S_{t-1} + (1 - f_t) v_tᵀ ,   y_t = W_o [ S_tᵀ silu(W_q x_t) ]

`key` is W_f. The paper bounds f from below by a learned number for each layer; here the bound is 0. State: H d_k d_v
numbers.
"""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid, silu

from hopbound.mixers.gated import DecayedRecurrence, Inputs


class Hgrn2(DecayedRecurrence):
    """A gated recurrence whose keys are the complements of its decays."""

    def inputs(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
    ) -> Inputs:
        """Keys are what the decays leave."""
        return Inputs(silu(queries), (-keys).sigmoid(), values, logsigmoid(keys))
