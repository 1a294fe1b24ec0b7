r"""Causal convolution: each channel a weighted sum of its last k values.

    u_t = W_in x_t ,   c_t = Σ_{j=0}^{k-1} w_j ⊙ u_{t-j}  (u_s = 0 for s < 0) ,   y_t = W_out c_t

State: the last k - 1 columns of u, (k-1) channels.
"""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import silu

from hopbound.architecture.sizes import Columns
from hopbound.mixers.mixer import Mixer, Reads, Sight, columns_read, linear, rows_written


def causal_convolution(
    u: Float[Tensor, "batch time channels"],
    filter: Float[Tensor, "kernel channels"],
    past: Float[Tensor, "batch past channels"] | None,
    mask: Bool[Tensor, "batch time"] | None,
) -> tuple[Float[Tensor, "batch time channels"], Float[Tensor, "batch past channels"]]:
    """The sum above for the columns `u` after the columns `past` (None: zeros), and the columns to keep.

    Tokens that do not count are taken out before and put back after: the taps weigh those that count.
    """
    kept, time = filter.shape[0] - 1, u.shape[1]
    if past is None:
        past = u.new_zeros(u.shape[0], kept, u.shape[2])
    order = None
    if mask is not None:
        order = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[..., None]
        u = u.gather(1, order.expand_as(u))
    columns = torch.cat([past, u], dim=1)
    output = torch.stack([filter[j] * columns[:, kept - j : kept - j + time] for j in range(kept + 1)]).sum(dim=0)
    if mask is None or order is None:
        return output, columns[:, time:].clone()  # a view would keep all columns alive
    last = mask.sum(dim=1)[:, None] + torch.arange(kept, device=u.device)
    output = torch.zeros_like(output).scatter(1, order.expand_as(output), output)
    return output, columns.gather(1, last[..., None].expand(-1, -1, u.shape[2]))


class ShortConvolution(nn.Module):
    """A causal convolution inside another mixer, then, unless said otherwise, silu: c_t = silu(Σ_j w_j ⊙ u_{t-j})."""

    def __init__(self, channels: int, kernel: int, *, activated: bool = True) -> None:
        super().__init__()
        self.activated = activated
        self.filter = nn.Parameter(torch.randn(kernel, channels) * kernel**-0.5)

    def forward(
        self,
        u: Float[Tensor, "batch time channels"],
        past: Float[Tensor, "batch past channels"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time channels"], Float[Tensor, "batch past channels"]]:
        """As `causal_convolution`, activated."""
        convolved, past = causal_convolution(u, self.filter, past, mask)
        return silu(convolved) if self.activated else convolved, past


class Convolution(Mixer[Columns, Tensor]):
    """Each channel a weighted sum of its last values; subclasses give the weights."""

    def __init__(self, spec: Columns, width: int) -> None:
        super().__init__(spec, width)
        self.inner = linear(width, spec.channels)
        self.out = linear(spec.channels, width)

    @abstractmethod
    def taps(self) -> Float[Tensor, "kernel channels"]:
        """The weights: `taps()[j]` weighs the token j positions back."""

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: Float[Tensor, "batch past channels"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch past channels"]]:
        """Convolve the kept columns and the new ones."""
        output, state = causal_convolution(self.inner(x), self.taps(), state, mask)
        return self.out(output), state

    @property
    def sight(self) -> Sight:
        """The last few tokens."""
        return Sight.NEAR

    @property
    def reach(self) -> int:
        """One less than the number of taps."""
        return self.spec.kernel - 1

    def reads(self) -> Reads:
        """The same columns at the position itself and at those before it."""
        memory = columns_read(self.inner.weight)
        return Reads(query=torch.zeros_like(memory), memory=memory, gate=torch.zeros_like(memory))

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)


class CausalConvolution(Convolution):
    """A filter of `kernel` free taps for each channel."""

    def __init__(self, spec: Columns, width: int) -> None:
        super().__init__(spec, width)
        self.filter = nn.Parameter(torch.randn(spec.kernel, spec.channels) * spec.kernel**-0.5)

    def taps(self) -> Float[Tensor, "kernel channels"]:
        """The filter."""
        return self.filter
