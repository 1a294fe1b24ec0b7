"""The answer of an explicit bound other than the theorems on composition: a ceiling on what a stack can do.

Each of `reach`, `recall`, `copying`, `rank`, `two_functions` and `sparse_two_sum` states one bound, proves or cites it,
and has a function `ceiling(architecture, question)` that says what it comes to for a stack, or why it is silent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hopbound.architecture import Architecture
from hopbound.errors import InputError


@dataclass(frozen=True)
class Question:
    """What the ceilings are asked about.

    Attributes:
        values: how many values an answer can have: V of a recall, symbols of a string, size of both functions of a
            composition, modulus of 2-Sum.
        pairs: pairs that are to be recalled; None to ask only for how many can be.
        accuracy: the mean accuracy that is wanted, above 0 and at most 1.

    Raises:
        InputError: fewer than two values, no pairs, an accuracy out of range.
    """

    values: int = 8192
    pairs: int | None = None
    accuracy: float = 1.0

    def __post_init__(self) -> None:
        whole_number("values", self.values, 2)
        if self.pairs is not None:
            whole_number("pairs", self.pairs, 1)
        if isinstance(self.accuracy, bool) or not isinstance(self.accuracy, int | float) or not 0 < self.accuracy <= 1:
            raise InputError("accuracy", self.accuracy, "a number above 0, at most 1")


@dataclass(frozen=True)
class Ceiling:
    """What one bound says of a stack.

    Attributes:
        name: of the bound; also its module.
        numbers: the limits by name, as far as there are any.
        case: whether it speaks of the worst input or of the average over random ones.
        statement: the limit in one sentence.
        validity: what it asks of the stack and of the inputs.
        source: where it is proved.
    """

    name: str
    numbers: Mapping[str, int | float]
    case: Literal["worst", "average"]
    statement: str
    validity: str
    source: str


@dataclass(frozen=True)
class Silence:
    """Why a bound says nothing of a stack."""

    name: str
    reason: str


def whole_number(field: str, value: object, least: int) -> None:
    """Check a number that was given.

    Raises:
        InputError: it is no whole number of at least `least`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(field, value, f"a whole number of at least {least}")


def held_bits(architecture: Architecture) -> int | None:
    """Bits that cross a cut in a stack without full layers; None for a stack that has some.

    Recurrent states, convolution columns and windows all count: together they are all that later tokens learn.
    """
    return None if architecture.full_layers else architecture.state_bits


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
