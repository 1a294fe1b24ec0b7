"""What decayed recurrences without the delta rule share: RetNet, GLA, HGRN2, Lightning, RWKV-6.

Each is `decayed_attention` with queries, keys, values and decays of its own; the state is the matrix S alone.
"""

from abc import abstractmethod
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.mixers.chunks import Decays
from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.mixer import unmasked
from hopbound.mixers.recurrence import Recurrence


class Inputs(NamedTuple):
    """What the recurrence takes, in the accumulator's precision; decays as logarithms."""

    queries: Float[Tensor, "batch heads time key_dim"]
    keys: Float[Tensor, "batch heads time key_dim"]
    values: Float[Tensor, "batch heads time value_dim"]
    log_decay: Decays


class DecayedRecurrence(Recurrence[Tensor]):
    """S_t = diag(a_t) S_{t-1} + k_t v_tᵀ, y_t = W_o [S_tᵀ q_t]."""

    @abstractmethod
    def inputs(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
    ) -> Inputs:
        """Queries, keys and values from the projected ones, and decays."""

    def bonus(self) -> Float[Tensor, "heads key_dim"] | None:
        """The weight with which a token reads itself, where it reads the state before it; None: it reads its own."""
        return None

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: Float[Tensor, "batch heads key_dim value_dim"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """Decay, write, read."""
        queries, keys, values, decay = self.inputs(x, queries, keys, values)
        return decayed_attention(
            queries,
            unmasked(keys, mask),
            values,
            None if decay is None else unmasked(decay, mask),
            self.empty_matrix(x) if state is None else state,
            self.bonus(),
            chunk=self.chunk,
            dtype=x.dtype,
        )


def head_constants(
    rates: Float[Tensor, " heads"], like: Float[Tensor, "batch heads time dim"]
) -> Float[Tensor, "1 heads time"]:
    """A constant for each head, at every token, for all examples."""
    return rates.to(like)[None, :, None].expand(1, *like.shape[1:3])
