r"""RWKV-4 (arXiv 2305.13048): an average of values with exponential weights that fade, and an extra weight for oneself.

    r_t = sigmoid(W_r x_t) ,   k_t = W_k x_t ,   v_t = W_v x_t ,   w = exp(ω)                  (for each channel)
    y_t = W_o [ r_t ⊙ Σ_{s≤t} e_ts v_s / Σ_{s≤t} e_ts ] ,   e_ts = e^{k_s - (t-1-s) w} for s < t ,   e_tt = e^{u + k_t}

Kept so that nothing overflows: with p_t = max(p_{t-1} - w, k_t),

    n_t = e^{p_{t-1} - w - p_t} n_{t-1} + e^{k_t - p_t} v_t ,   d_t likewise with 1 for v_t

Token shifts are mixers of their own (`shift`). State: n, d and p for each channel.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hopbound.architecture.sizes import ChannelState
from hopbound.mixers.elementwise import scan
from hopbound.mixers.mixer import Mixer, Reads, Sight, accumulator, columns_read, linear, rows_written

LEAST = -1e38  # the maximum of nothing


@dataclass(frozen=True)
class Average:
    """Numerator and denominator, divided by the exponential of the maximum."""

    numerator: Float[Tensor, "batch channels"]
    denominator: Float[Tensor, "batch channels"]
    maximum: Float[Tensor, "batch channels"]


def running_maximum(
    first: Float[Tensor, "batch *rest"],
    losses: Float[Tensor, "batch time *rest"],
    candidates: Float[Tensor, "batch time *rest"],
) -> Float[Tensor, "batch time *rest"]:
    """p_t = max(p_{t-1} + loss_t, candidate_t), without a gradient: what is divided by it does not depend on it.

    With L the sum of the losses, p_t = L_t + max(p_0, max_{s ≤ t} candidate_s - L_s), in float64.
    """
    with torch.no_grad():
        sums = losses.double().cumsum(dim=1)
        best = torch.cat([first[:, None].double(), candidates.double() - sums], dim=1).cummax(dim=1).values[:, 1:]
        return (sums + best).to(candidates.dtype)


class Rwkv4(Mixer[ChannelState, Average]):
    """An average whose weights fade at a fixed rate for each channel."""

    def __init__(self, spec: ChannelState, width: int) -> None:
        super().__init__(spec, width)
        self.receptance, self.key, self.value = (linear(width, spec.channels) for _ in range(3))
        self.log_rate = nn.Parameter(torch.zeros(spec.channels))
        self.boost = nn.Parameter(torch.zeros(spec.channels))
        self.out = linear(spec.channels, width)

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: Average | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], Average]:
        """Read what is kept and oneself, then fade and add."""
        wide = accumulator(x.dtype)
        keys, values = self.key(x).to(wide), self.value(x).to(wide)
        if state is None:
            nothing = torch.zeros_like(keys[:, 0])
            state = Average(nothing, nothing, torch.full_like(nothing, LEAST))
        losses, weighed = (-self.log_rate.to(wide).exp()).expand_as(keys), keys
        if mask is not None:
            losses, weighed = losses.masked_fill(~mask[..., None], 0), keys.masked_fill(~mask[..., None], LEAST)
        maxima = running_maximum(state.maximum, losses, weighed)
        before = torch.cat([state.maximum[:, None], maxima[:, :-1]], dim=1)
        decay, weight = (before + losses - maxima).exp(), (weighed - maxima).exp()
        if mask is not None:
            weight = weight.masked_fill(~mask[..., None], 0)
        added = torch.stack([weight * values, weight], dim=2)
        held = torch.stack([state.numerator, state.denominator], dim=1)
        states = scan(decay[:, :, None].expand_as(added), added, held, chunk=self.chunk)
        own = self.boost.to(wide) + keys
        most = torch.maximum(before, own).detach()
        kept, mine = (before - most).exp(), (own - most).exp()
        numerator, denominator = torch.cat([held[:, None], states[:, :-1]], dim=1).unbind(2)
        average = (kept * numerator + mine * values) / (kept * denominator + mine)
        output = self.out(self.receptance(x).sigmoid() * average.to(x.dtype))
        return output, Average(*(part.clone() for part in (*states[:, -1].unbind(1), maxima[:, -1])))

    @property
    def sight(self) -> Sight:
        """The tokens that change the state: all."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """The receptance where the output is wanted; of the past keys and values."""
        gate = columns_read(self.key.weight)
        return Reads(
            query=columns_read(self.receptance.weight), memory=gate | columns_read(self.value.weight), gate=gate
        )

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
