r"""The delta rule (DeltaNet, arXiv 2406.06484): a write first takes away what its key holds.

    q_t = u/|u| with u = W_q x_t,  k_t likewise,  v_t = W_v x_t,  β_t = sigmoid(w_β · x_t)          (one β a head)
    S_t = S_{t-1} - β_t k_t (S_{t-1}ᵀ k_t - v_t)ᵀ ,    y_t = W_o [ S_tᵀ q_t ]

State: H d_k d_v numbers. A zero key stays zero under the normalisation and writes nothing.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.architecture.sizes import MatrixState
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


def delta_rule(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    strength: Float[Tensor, "batch heads time"],
    decay: Float[Tensor, "batch heads time"] | None,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The recurrence above, step by step; `decay` (None: 1) multiplies the state before the token is written."""
    decays = [None] * queries.shape[2] if decay is None else decay.unbind(2)
    steps = zip(queries.unbind(2), keys.unbind(2), values.unbind(2), strength.unbind(2), decays, strict=True)
    outputs = []
    for q, k, v, beta, alpha in steps:
        if alpha is not None:
            matrix = alpha[..., None, None] * matrix
        error = v - (k[..., None, :] @ matrix)[..., 0, :]
        matrix = matrix + k[..., :, None] * (beta[..., None] * error)[..., None, :]
        outputs.append((q[..., None, :] @ matrix)[..., 0, :])
    return torch.stack(outputs, dim=2), matrix


class DeltaNet(Mixer[MatrixState, Tensor]):
    """The delta rule with unit keys and a strength in (0, 1)."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.heads * spec.head_dim)
        self.value = linear(width, spec.heads * spec.value_dim)
        self.strength = linear(width, spec.heads)
        self.out = linear(spec.heads * spec.value_dim, width)

    def forward(
        self, x: Float[Tensor, "batch time width"], state: Float[Tensor, "batch heads key_dim value_dim"] | None = None
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """Overwrite, then read."""
        heads, wide = self.spec.heads, accumulator(x.dtype)
        if state is None:
            shape = (x.shape[0], heads, self.spec.head_dim, self.spec.value_dim)
            state = torch.zeros(shape, dtype=wide, device=x.device)
        output, state = delta_rule(
            normalize(split_heads(self.query(x), heads).to(wide), dim=-1),
            normalize(split_heads(self.key(x), heads).to(wide), dim=-1),
            split_heads(self.value(x), heads).to(wide),
            self.strength(x).to(wide).sigmoid().transpose(1, 2),
            None,
            state,
        )
        return self.out(merge_heads(output).to(x.dtype)), state

    @property
    def sight(self) -> Sight:
        """The tokens with a key and a strength that are not zero."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Queries where the output is wanted; keys, strengths and values of the writers."""
        gate = columns_read(self.key.weight, self.strength.weight)
        return Reads(columns_read(self.query.weight), gate | columns_read(self.value.weight), gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token whose key or strength is zero in every head leaves the state as it is."""
        keys = self.key(x).unflatten(-1, (self.spec.heads, self.spec.head_dim)).ne(0).any(dim=-1)
        strength = self.strength(x).to(accumulator(x.dtype)).sigmoid().ne(0)
        return (keys & strength).any(dim=-1)

    def carried_elements(self, state: Float[Tensor, "batch heads key_dim value_dim"]) -> int:
        """The matrix S."""
        return state[0].numel()
