"""What recurrences with a matrix state share: projections, and which positions and columns their outputs depend on."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    Sight,
    State,
    accumulator,
    columns_read,
    linear,
    rows_written,
    split_heads,
)


class Recurrence(Mixer[MatrixState, State]):
    """A matrix state for each head, written with keys and values and read with queries.

    Its outputs depend on the positions that change the state (`changes_state`), wherever they stand.
    """

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.heads * spec.head_dim)
        self.value = linear(width, spec.heads * spec.value_dim)
        self.out = linear(spec.heads * spec.value_dim, width)

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """The projections that decide whether a token changes the state: the keys, where there are no others."""
        return (self.key.weight,)

    @property
    def sight(self) -> Sight:
        """The tokens that change the state."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Queries where the output is wanted; of the writers what decides that they write, and their values."""
        gate = columns_read(*self.gate_weights())
        return Reads(columns_read(self.query.weight), gate | columns_read(self.value.weight), gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)

    def projected(
        self, x: Float[Tensor, "batch time width"]
    ) -> tuple[
        Float[Tensor, "batch heads time key_dim"],
        Float[Tensor, "batch heads time key_dim"],
        Float[Tensor, "batch heads time value_dim"],
    ]:
        """Queries, keys and values of each head, in the accumulator's precision."""
        wide, heads = accumulator(x.dtype), self.spec.heads
        queries, keys = split_heads(self.query(x), heads), split_heads(self.key(x), heads)
        return queries.to(wide), keys.to(wide), split_heads(self.value(x), heads).to(wide)

    def empty_matrix(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch heads key_dim value_dim"]:
        """The state before the first token, in the accumulator's precision."""
        shape = (x.shape[0], self.spec.heads, self.spec.features, self.spec.value_dim)
        return torch.zeros(shape, dtype=accumulator(x.dtype), device=x.device)
