r"""Gated DeltaNet (arXiv 2412.06464): the delta rule with a decay for each head.

    α_t = exp(-exp(a) · softplus(w_α · x_t + b)) ,   q_t, k_t, v_t, β_t as in the delta rule
    S_t = α_t S_{t-1} - β_t k_t (α_t S_{t-1}ᵀ k_t - v_t)ᵀ ,    y_t = W_o [ S_tᵀ q_t ]

The decay comes before the error, as in the paper's equation (10). State: H d_k d_v numbers.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.delta import delta_rule
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
)


class GatedDeltaNet(Mixer[MatrixState, Tensor]):
    """The delta rule with unit keys, a strength in (0, 1) and a decay in (0, 1)."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.heads * spec.head_dim)
        self.value = linear(width, spec.heads * spec.value_dim)
        self.strength = linear(width, spec.heads)
        self.rate = linear(width, spec.heads)
        self.rate_bias = nn.Parameter(torch.zeros(spec.heads))
        self.log_rate_scale = nn.Parameter(torch.zeros(spec.heads))
        self.out = linear(spec.heads * spec.value_dim, width)

    def decay(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time heads"]:
        """The factor α_t of each head."""
        wide = accumulator(x.dtype)
        rate = softplus(self.rate(x).to(wide) + self.rate_bias.to(wide))
        return torch.exp(-self.log_rate_scale.to(wide).exp() * rate)

    def forward(
        self, x: Float[Tensor, "batch time width"], state: Float[Tensor, "batch heads key_dim value_dim"] | None = None
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """Decay, overwrite, then read."""
        heads, wide = self.spec.heads, accumulator(x.dtype)
        if state is None:
            shape = (x.shape[0], heads, self.spec.head_dim, self.spec.value_dim)
            state = torch.zeros(shape, dtype=wide, device=x.device)
        output, state = delta_rule(
            normalize(split_heads(self.query(x), heads).to(wide), dim=-1),
            normalize(split_heads(self.key(x), heads).to(wide), dim=-1),
            split_heads(self.value(x), heads).to(wide),
            self.strength(x).to(wide).sigmoid().transpose(1, 2),
            self.decay(x).transpose(1, 2),
            state,
        )
        return self.out(merge_heads(output).to(x.dtype)), state

    @property
    def sight(self) -> Sight:
        """The tokens that write or decay."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Queries where the output is wanted; keys, strengths, rates and values of the writers."""
        gate = columns_read(self.key.weight, self.strength.weight, self.rate.weight)
        return Reads(columns_read(self.query.weight), gate | columns_read(self.value.weight), gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token leaves the state as it is if no head writes and every head's decay is exactly 1."""
        keys = self.key(x).unflatten(-1, (self.spec.heads, self.spec.head_dim)).ne(0).any(dim=-1)
        strength = self.strength(x).to(accumulator(x.dtype)).sigmoid().ne(0)
        return ((keys & strength) | self.decay(x).ne(1)).any(dim=-1)

    def carried_elements(self, state: Float[Tensor, "batch heads key_dim value_dim"]) -> int:
        """The matrix S."""
        return state[0].numel()
