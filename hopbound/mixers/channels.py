"""What recurrences over single channels share: projections, the short convolution, what they read and write."""

from abc import abstractmethod
from typing import Generic

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.architecture.sizes import ChannelState
from hopbound.mixers.conv import ShortConvolution
from hopbound.mixers.mixer import Mixer, Reads, Sight, State, accumulator, columns_read, linear, rows_written
from hopbound.mixers.recurrence import Convolved


class ChannelRecurrence(Mixer[ChannelState, State | Convolved[State]], Generic[State]):
    """Channels u_t = W_u x_t, behind a short convolution if there is one; everything else is made from them.

    Attributes:
        activated: whether the convolution is followed by silu.
    """

    activated = True

    def __init__(self, spec: ChannelState, width: int) -> None:
        super().__init__(spec, width)
        self.channel = linear(width, spec.channels)
        self.short = ShortConvolution(spec.channels, spec.conv, activated=self.activated) if spec.conv else None
        self.out = linear(spec.channels, width)

    @abstractmethod
    def recur(
        self,
        u: Float[Tensor, "batch time channels"],
        state: State | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time channels"], State]:
        """What each token reads, and the state after the last, for channels in the accumulator's precision."""

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: State | Convolved[State] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], State | Convolved[State]]:
        """Project, convolve, recur."""
        columns = None
        if isinstance(state, Convolved):
            state, columns = state.held, state.columns
        u = self.channel(x)
        if self.short is not None:
            u, columns = self.short(u, columns, mask)
        output, held = self.recur(u.to(accumulator(x.dtype)), state, mask)
        return self.out(output.to(x.dtype)), held if columns is None else Convolved(held, columns)

    @property
    def sight(self) -> Sight:
        """The tokens that change the state: all."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """The columns that the channels are made from."""
        memory = columns_read(self.channel.weight)
        return Reads(query=torch.zeros_like(memory), memory=memory, gate=memory)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
