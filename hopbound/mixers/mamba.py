r"""Mamba (selective state spaces, arXiv 2312.00752): N numbers a channel, written and read through B_t and C_t.

    u_t = W_u x_t ,   B_t = W_B u_t ,   C_t = W_C u_t ,   Δ_t = softplus(W_Δ u_t + b)         (one Δ a channel)
    h_t = exp(-exp(A) Δ_t) ⊙ h_{t-1} + Δ_t u_t B_tᵀ ,   y_t = W_o [ h_t C_t + D ⊙ u_t ]

With `conv` taps u passes through a causal convolution and silu. The paper's W_Δ is thin, here it is any matrix; the
gate of the published block is position-wise and stands outside. State: N numbers for each of the channels, and the
convolution's columns.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from hopbound.architecture.sizes import ChannelState
from hopbound.mixers.channels import ChannelRecurrence
from hopbound.mixers.elementwise import scan
from hopbound.mixers.mixer import linear, spaced_steps


class Mamba(ChannelRecurrence[Tensor]):
    """A selective state space with a decay for each channel and state number."""

    def __init__(self, spec: ChannelState, width: int) -> None:
        super().__init__(spec, width)
        self.write = linear(spec.channels, spec.state)
        self.read = linear(spec.channels, spec.state)
        self.step = nn.Linear(spec.channels, spec.channels)
        self.log_rate = nn.Parameter(torch.zeros(spec.channels, spec.state))
        self.skip = nn.Parameter(torch.zeros(spec.channels))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Rates 1 to N in each channel, steps spread over the paper's range; channels pass by the state as they are."""
        rates = torch.arange(1, self.spec.state + 1, dtype=torch.float64, device="cpu")
        return {"log_rate": rates.log(), "step.bias": spaced_steps(self.spec.channels), "skip": 1.0}

    def recur(
        self,
        u: Float[Tensor, "batch time channels"],
        state: Float[Tensor, "batch channels state"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time channels"], Float[Tensor, "batch channels state"]]:
        """Decay, write, read; the channels pass by the state."""
        wide = u.dtype
        writes, reads = (nn.functional.linear(u, part.weight.to(wide)) for part in (self.write, self.read))
        step = softplus(nn.functional.linear(u, self.step.weight.to(wide), self.step.bias.to(wide)))
        if mask is not None:
            step = step.masked_fill(~mask[..., None], 0)
        decay = (-self.log_rate.to(wide).exp() * step[..., None]).exp()
        added = (step * u)[..., None] * writes[..., None, :]
        if state is None:
            state = u.new_zeros(u.shape[0], self.spec.channels, self.spec.state)
        states = scan(decay, added, state, chunk=self.chunk)
        output = (states @ reads[..., None])[..., 0] + self.skip.to(wide) * u
        return output, states[:, -1].clone()
