"""What recurrences with a matrix state share: projections, the short convolution, and what their outputs depend on.

q_t, k_t, v_t = W_q x_t, W_k x_t, W_v x_t ,     with `conv` taps a causal convolution and silu after each

With fewer `key_heads` than heads each group of heads has the same queries and keys (as in Qwen3-Next).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.conv import ShortConvolution
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    Sight,
    State,
    accumulator,
    columns_read,
    linear,
    merge_heads,
    rows_written,
    split_heads,
)


@dataclass(frozen=True)
class Convolved(Generic[State]):
    """The state of a recurrence behind a short convolution.

    Attributes:
        held: of the recurrence itself.
        columns: the last columns of what is convolved.
    """

    held: State
    columns: Float[Tensor, "batch past channels"]


class Recurrence(Mixer[MatrixState, State | Convolved[State]], Generic[State]):
    """A matrix state for each head, written with keys and values and read with queries.

    Its outputs depend on the positions that change the state (`changes_state`), wherever they stand; behind a short
    convolution every position may.
    """

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        keys, values = spec.key_heads * spec.head_dim, spec.heads * spec.value_dim
        inner = (keys, spec.steps * keys, spec.steps * values)
        self.query, self.key, self.value = (linear(width, size) for size in inner)
        self.short = ShortConvolution(sum(inner), spec.conv) if spec.conv else None
        self.out = linear(spec.heads * spec.value_dim, width)

    @abstractmethod
    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: State | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], State]:
        """What each token reads, and the state after the last, for projected tokens in the accumulator's precision."""

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """The projections that decide whether a token changes the state: the keys, where there are no others."""
        return (self.key.weight,)

    def query_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """The projections that are read at the token itself: the queries, where there are no others."""
        return (self.query.weight,)

    def writers(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """`changes_state` where there is no short convolution: all may."""
        return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """As `writers`; behind a convolution a token writes what those before it held."""
        return Recurrence.writers(self, x) if self.short else self.writers(x)

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
        queries, keys, values, columns = self.projected(x, columns, mask)
        output, held = self.recur(x, queries, keys, values, state, mask)
        return self.out(merge_heads(output).to(x.dtype)), held if columns is None else Convolved(held, columns)

    def projected(
        self,
        x: Float[Tensor, "batch time width"],
        columns: Float[Tensor, "batch past channels"] | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[
        Float[Tensor, "batch heads time key_dim"],
        Float[Tensor, "batch heads time written_dim"],
        Float[Tensor, "batch heads time value_dim"],
        Float[Tensor, "batch past channels"] | None,
    ]:
        """Queries, keys and values of each head, in the accumulator's precision, and the columns to keep."""
        parts = [self.query(x), self.key(x), self.value(x)]
        if self.short is not None:
            convolved, columns = self.short(torch.cat(parts, dim=-1), columns, mask)
            parts = convolved.split([part.shape[-1] for part in parts], dim=-1)
        spec, wide = self.spec, accumulator(x.dtype)
        queries, keys = (self.of_each_head(split_heads(part, spec.key_heads).to(wide), dim=1) for part in parts[:2])
        return queries, keys, split_heads(parts[2], spec.heads).to(wide), columns

    def of_each_head(self, of_groups: Tensor, dim: int) -> Tensor:
        """What all heads of a group share, for each of them: `key_heads` entries along `dim` become `heads`."""
        group = self.spec.heads // self.spec.key_heads
        return of_groups if group == 1 else of_groups.repeat_interleave(group, dim=dim)

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
        query, gate = columns_read(*self.query_weights()), columns_read(*self.gate_weights())
        memory = gate | columns_read(self.value.weight)
        if self.short is not None:  # all of it is mixed with what stood before, so that all of it is past
            gate = memory = memory | query
        return Reads(query, memory, gate)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)

    def empty_matrix(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch heads key_dim value_dim"]:
        """The state before the first token, in the accumulator's precision."""
        shape = (x.shape[0], self.spec.heads, self.spec.features, self.spec.value_dim)
        return torch.zeros(shape, dtype=accumulator(x.dtype), device=x.device)
