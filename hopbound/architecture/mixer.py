"""What every mixer states about itself: what crosses a cut, what one query learns, what one token leaves behind.

A *mixer* is the part of a layer that moves information between positions. The theory (arXiv 2602.01763, Section 2)
needs two numbers of it, and a serving engine three:

- a *bounded* mixer hands over a state of fixed size: recurrent state, the last columns of a short convolution, the
  cached keys and values of a window;
- a *full* mixer tells each query a summary of its far past, and caches keys and values for every token.

All sizes count elements for one sequence; bits follow from the `Precisions` of the architecture.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from hopbound.errors import InputError

MAX_BITS = 4096


class Kind(Enum):
    """How a mixer sees its past."""

    FULL = "full"
    """Unrestricted: each query gets a summary of everything to its left."""
    BOUNDED = "bounded"
    """Through a state of fixed size."""
    POINTWISE = "pointwise"
    """Not at all: a position-wise layer."""


def _check_bits(field: str, bits: object) -> None:
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MAX_BITS:
        raise InputError(field, bits, f"a whole number from 1 to {MAX_BITS}")


@dataclass(frozen=True, kw_only=True)
class Precisions:
    """Bits an element, by what the element is for.

    Attributes:
        activation: activations, and the columns that a short convolution keeps.
        kv: cached keys and values.
        state: recurrent state.
        summary: the accumulator in which attention sums (32 in common kernels).
    """

    activation: int = 16
    kv: int = 16
    state: int = 32
    summary: int = 32

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_bits(f"{field.name} bits", getattr(self, field.name))

    @classmethod
    def uniform(cls, bits: int) -> "Precisions":
        """The same number of bits for everything, as the papers count."""
        _check_bits("bits", bits)
        return cls(activation=bits, kv=bits, state=bits, summary=bits)


@dataclass(frozen=True, kw_only=True)
class Elements:
    """What one mixer holds, in elements a sequence.

    Attributes:
        state: recurrent state that crosses a cut.
        conv: the (k-1) columns that causal convolutions of width k keep.
        window: cached keys and values of the earlier tokens that a window or chunk can still see, at most.
        summary: what one query learns of the far past in a full mixer.
        kv_per_token: what each token adds to the cache for ever.
        kv_every: it is added once for so many tokens.
        length_limit: the longest prompt for which these hold; None for every length.
    """

    state: int = 0
    conv: int = 0
    window: int = 0
    summary: int = 0
    kv_per_token: int = 0
    kv_every: int = 1
    length_limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class MixerSpec(ABC):
    """Name and sizes of one mixer. Subclasses are the size families of `sizes.py`; none is subclassed further.

    Which fields are keys of the schedule grammar, and how the others follow from them, is said in `specs.py`.

    Attributes:
        name: in the schedule grammar.
        kind: whether the past is seen in full, through a state, or not at all; each family says.
    """

    kind: ClassVar[Kind]

    name: str

    @property
    @abstractmethod
    def width(self) -> int:
        """Heads times head dimension (or channels): the `H·d` of the papers' thresholds."""

    @property
    @abstractmethod
    def elements(self) -> Elements:
        """What the mixer holds, in elements a sequence."""

    def state_bits(self, precisions: Precisions) -> int:
        """Bits that cross a cut in this mixer, the keys and values of a full mixer not counted."""
        held = self.elements
        return held.state * precisions.state + held.conv * precisions.activation + held.window * precisions.kv

    def summary_bits(self, precisions: Precisions) -> int:
        """Bits that one query learns of the far past (0 for mixers that are not full)."""
        return self.elements.summary * precisions.summary

    def kv_bits_per_token(self, precisions: Precisions) -> Fraction:
        """Bits that each token adds to the cache for ever."""
        return Fraction(self.elements.kv_per_token * precisions.kv, self.elements.kv_every)
