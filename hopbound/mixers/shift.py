r"""Token shift (RWKV-4, arXiv 2305.13048): each channel between the token and the one before it.

    u_t = W_in x_t ,   y_t = W_out [ (1 - μ) ⊙ u_t + μ ⊙ u_{t-1} ]  (u_{-1} = 0)

A causal convolution with two taps that add up to 1. State: the last column of u.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopbound.architecture.sizes import Columns
from hopbound.mixers.conv import Convolution


class TokenShift(Convolution):
    """A mix of each token with the one before; `share` is μ."""

    def __init__(self, spec: Columns, width: int) -> None:
        super().__init__(spec, width)
        self.share = nn.Parameter(torch.zeros(spec.channels))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Half of each."""
        return {"share": 0.5}

    def taps(self) -> Float[Tensor, "kernel channels"]:
        """1 - μ and μ."""
        return torch.stack([1 - self.share, self.share])
