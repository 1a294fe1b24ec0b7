r"""Mamba-2 (state space duality, arXiv 2405.21060): one decay a head, inputs and outputs shared by groups of heads.

    Δ_t = softplus(w_Δ · x_t + b) ,   a_t = exp(-exp(A) Δ_t)                                       (one each a head)
    S_t = a_t S_{t-1} + B_t (Δ_t u_t)ᵀ ,   y_t = W_o [ S_tᵀ C_t + D u_t ]

u_t = W_u x_t are the channels, B_t and C_t have N numbers for each group of heads, D is one number a head. With `conv`
taps u, B and C pass through a causal convolution and silu. The gate and norm of the published block are position-wise
and stand outside. State: H d_head N numbers, and the convolution's columns.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from hopbound.architecture.sizes import GroupedState
from hopbound.mixers.conv import ShortConvolution
from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    Sight,
    accumulator,
    columns_read,
    linear,
    merge_heads,
    rows_written,
    spaced_steps,
    split_heads,
    unmasked,
)
from hopbound.mixers.recurrence import Convolved


class Mamba2(Mixer[GroupedState, Tensor | Convolved[Tensor]]):
    """A selective state space with a scalar decay for each head."""

    def __init__(self, spec: GroupedState, width: int) -> None:
        super().__init__(spec, width)
        self.channel = linear(width, spec.heads * spec.head_dim)
        self.write = linear(width, spec.groups * spec.state)
        self.read = linear(width, spec.groups * spec.state)
        self.step = linear(width, spec.heads)
        self.step_bias = nn.Parameter(torch.zeros(spec.heads))
        self.log_rate = nn.Parameter(torch.zeros(spec.heads))
        self.skip = nn.Parameter(torch.zeros(spec.heads))
        self.short = (
            ShortConvolution(spec.heads * spec.head_dim + 2 * spec.groups * spec.state, spec.conv)
            if spec.conv
            else None
        )
        self.out = linear(spec.heads * spec.head_dim, width)
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Steps and rates spread over the ranges of the published code; channels pass by the state as they are."""
        rates = torch.linspace(1, 16, self.spec.heads, dtype=torch.float64, device="cpu")
        return {"log_rate": rates.log(), "step_bias": spaced_steps(self.spec.heads), "skip": 1.0}

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: Float[Tensor, "batch heads state head_dim"] | Convolved[Tensor] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch heads state head_dim"] | Convolved[Tensor]]:
        """Decay, write, read; each head's own channels pass by the state."""
        spec, wide = self.spec, accumulator(x.dtype)
        shared = spec.heads // spec.groups
        columns = None
        if isinstance(state, Convolved):
            state, columns = state.held, state.columns
        parts = [self.channel(x), self.write(x), self.read(x)]
        if self.short is not None:
            convolved, columns = self.short(torch.cat(parts, dim=-1), columns, mask)
            parts = convolved.split([part.shape[-1] for part in parts], dim=-1)
        channels = split_heads(parts[0], spec.heads).to(wide)
        writes, reads = (split_heads(part, spec.groups).to(wide).repeat_interleave(shared, dim=1) for part in parts[1:])
        step = softplus(self.step(x).to(wide) + self.step_bias.to(wide)).transpose(1, 2)
        decay = -self.log_rate.to(wide).exp()[:, None] * step
        if state is None:
            state = channels.new_zeros(x.shape[0], spec.heads, spec.state, spec.head_dim)
        output, held = decayed_attention(
            reads,
            unmasked(writes, mask),
            step[..., None] * channels,
            unmasked(decay, mask),
            state,
            chunk=self.chunk,
            dtype=x.dtype,
        )
        output = output + self.skip.to(wide)[:, None, None] * channels
        return self.out(merge_heads(output).to(x.dtype)), held if columns is None else Convolved(held, columns)

    @property
    def sight(self) -> Sight:
        """The tokens that change the state: all."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Reads and channels where the output is wanted; of the past what is written and how it fades."""
        gate = columns_read(self.write.weight, self.step.weight)
        channel = columns_read(self.channel.weight)
        query, memory = columns_read(self.read.weight) | channel, gate | channel
        if self.short is not None:  # all of it is mixed with what stood before, so that all of it is past
            gate = memory = memory | query
        return Reads(query, memory, gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
