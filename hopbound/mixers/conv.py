r"""Causal convolution: each channel a weighted sum of its last k values.

    u_t = W_in x_t ,   c_t = Σ_{j=0}^{k-1} w_j ⊙ u_{t-j}  (u_s = 0 for s < 0) ,   y_t = W_out c_t

State: the last k - 1 columns of u, (k-1) channels.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hopbound.architecture.sizes import Columns
from hopbound.mixers.mixer import Mixer, Reads, Sight, columns_read, linear, rows_written


class CausalConvolution(Mixer[Columns, Tensor]):
    """A filter of `kernel` taps for each channel; `filter[j]` weighs the token j positions back."""

    def __init__(self, spec: Columns, width: int) -> None:
        super().__init__(spec, width)
        self.inner = linear(width, spec.channels)
        self.filter = nn.Parameter(torch.randn(spec.kernel, spec.channels) * spec.kernel**-0.5)
        self.out = linear(spec.channels, width)

    def forward(
        self, x: Float[Tensor, "batch time width"], state: Float[Tensor, "batch past channels"] | None = None
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch past channels"]]:
        """Convolve the kept columns and the new ones."""
        past = self.spec.kernel - 1
        u = self.inner(x)
        if state is None:
            state = torch.zeros(x.shape[0], past, self.spec.channels, dtype=u.dtype, device=x.device)
        columns = torch.cat([state, u], dim=1)
        time = x.shape[1]
        taps = [self.filter[j] * columns[:, past - j : past - j + time] for j in range(self.spec.kernel)]
        return self.out(torch.stack(taps).sum(dim=0)), columns[:, time:]

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

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """Every token is kept for a while."""
        return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)

    def carried_elements(self, state: Float[Tensor, "batch past channels"]) -> int:
        """The kept columns."""
        return state[0].numel()
