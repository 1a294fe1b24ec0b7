r"""RG-LRU, the real-gated linear recurrent unit of Griffin (arXiv 2402.19427).

    u_t = W_u x_t ,   r_t = sigmoid(W_r u_t + b_r) ,   i_t = sigmoid(W_i u_t + b_i)            (for each channel)
    a_t = exp(-8 softplus(Λ) ⊙ r_t) ,   h_t = a_t ⊙ h_{t-1} + √(1 - a_t²) ⊙ (i_t ⊙ u_t) ,   y_t = W_o h_t

With `conv` taps u passes through a causal convolution, as in Griffin without an activation. The paper's gates are
block-diagonal, here they are any matrix; its gated branch is position-wise and stands outside. Every token is weighed
by √(1 - a_t²), also the first one, which transformers' code takes as it is. State: one number a channel.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from hopbound.architecture.sizes import ChannelState
from hopbound.mixers.channels import ChannelRecurrence
from hopbound.mixers.elementwise import scan
from hopbound.mixers.mixer import inverse_softplus

RATE = 8.0  # the paper's c


class RgLru(ChannelRecurrence[Tensor]):
    """A decay for each channel, and inputs scaled so that the state keeps its size."""

    activated = False

    def __init__(self, spec: ChannelState, width: int) -> None:
        super().__init__(spec, width)
        self.forget = nn.Linear(spec.channels, spec.channels)
        self.admit = nn.Linear(spec.channels, spec.channels)
        self.rate = nn.Parameter(torch.zeros(spec.channels))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Decays of open gates from 0.9 to 0.999, the paper's range."""
        decays = torch.linspace(0.9, 0.999, self.spec.channels, dtype=torch.float64, device="cpu")
        return {"rate": inverse_softplus(-decays.log() / RATE)}

    def recur(
        self,
        u: Float[Tensor, "batch time channels"],
        state: Float[Tensor, "batch channels"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time channels"], Float[Tensor, "batch channels"]]:
        """Decay, add."""
        rate = softplus(self.rate.to(u.dtype)) * _gate(self.forget, u)
        if mask is not None:
            rate = rate.masked_fill(~mask[..., None], 0)
        decay = (-RATE * rate).exp()
        # 1 - a² without loss, and bounded away from 0, where the root has no gradient.
        share = (-torch.expm1(-2 * RATE * rate)).clamp(min=torch.finfo(u.dtype).tiny).sqrt()
        added = share * _gate(self.admit, u) * u
        if mask is not None:
            added = added.masked_fill(~mask[..., None], 0)
        states = scan(decay, added, torch.zeros_like(u[:, 0]) if state is None else state, chunk=self.chunk)
        return states, states[:, -1].clone()


def _gate(projection: nn.Linear, u: Float[Tensor, "batch time channels"]) -> Float[Tensor, "batch time channels"]:
    """A gate in (0, 1), in the precision of the channels."""
    return nn.functional.linear(u, projection.weight.to(u.dtype), projection.bias.to(u.dtype)).sigmoid()
