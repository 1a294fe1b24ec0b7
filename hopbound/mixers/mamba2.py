r"""Mamba-2 (state space duality, arXiv 2405.21060): one decay a head, inputs and outputs shared by groups of heads.

    Δ_t = softplus(w_Δ · x_t + b) ,   a_t = exp(-exp(A) Δ_t)                                       (one each a head)
    S_t = a_t S_{t-1} + B_t (Δ_t u_t)ᵀ ,   y_t = W_o [ S_tᵀ C_t + D u_t ]

u_t = W_u x_t are the channels, B_t and C_t have N numbers for each group of heads, D is one number a head. The gate and
norm of the published block are position-wise and stand outside. State: H d_head N numbers.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from hopbound.architecture.sizes import GroupedState
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
    split_heads,
    unmasked,
)


class Mamba2(Mixer[GroupedState, Tensor]):
    """A selective state space with a scalar decay for each head."""

    def __init__(self, spec: GroupedState, width: int) -> None:
        super().__init__(spec, width)
        self.channel = linear(width, spec.heads * spec.head_dim)
        self.write = linear(width, spec.groups * spec.state)
        self.read = linear(width, spec.groups * spec.state)
        self.step = linear(width, spec.heads)
        self.step_bias = nn.Parameter(torch.zeros(spec.heads))
        self.log_rate = nn.Parameter(torch.zeros(spec.heads))
        self.skip = nn.Parameter(torch.ones(spec.heads))
        self.out = linear(spec.heads * spec.head_dim, width)

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: Float[Tensor, "batch heads state head_dim"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch heads state head_dim"]]:
        """Decay, write, read; each head's own channels pass by the state."""
        spec, wide = self.spec, accumulator(x.dtype)
        shared = spec.heads // spec.groups
        channels = split_heads(self.channel(x), spec.heads).to(wide)
        writes, reads = (
            split_heads(part(x), spec.groups).to(wide).repeat_interleave(shared, dim=1)
            for part in (self.write, self.read)
        )
        step = softplus(self.step(x).to(wide) + self.step_bias.to(wide)).transpose(1, 2)
        decay = -self.log_rate.to(wide).exp()[:, None] * step
        if state is None:
            state = channels.new_zeros(x.shape[0], spec.heads, spec.state, spec.head_dim)
        output, state = decayed_attention(
            reads,
            unmasked(writes, mask),
            step[..., None] * channels,
            unmasked(decay, mask),
            state,
            chunk=self.chunk,
        )
        output = output + self.skip.to(wide)[:, None, None] * channels
        return self.out(merge_heads(output).to(x.dtype)), state

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
        return Reads(columns_read(self.read.weight) | channel, gate | channel, gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)

    def carried_elements(self, state: Float[Tensor, "batch heads state head_dim"]) -> int:
        """The matrix S."""
        return state[0].numel()
