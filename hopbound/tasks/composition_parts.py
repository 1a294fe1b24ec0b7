"""What an instance of function composition is made of, and checks of its sizes (see `hopbound.tasks.composition`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError


@dataclass(frozen=True)
class Segment:
    """A stretch of the prompt: the tokens of one function, of the start, or of the query.

    Attributes:
        name: `z_l`, `z_0`, `w` or `ask`.
        function: l for `z_l`, 0 for `z_0`, -1 for `w`, -2 for `ask`.
        start: position of its first token.
        length: number of its tokens, at least 1.
    """

    name: str
    function: int
    start: int
    length: int

    @property
    def span(self) -> slice:
        """Its columns of a prompt array."""
        return slice(self.start, self.start + self.length)


@dataclass(frozen=True, eq=False)
class Parts:
    """N instances as functions, instead of as prompts.

    Attributes:
        functions: z_1 .. z_L, int64 [N, D_l] each: row r holds the values z_l(0), z_l(1), ..
        start: z_0, int64 [N].
        query: w_1 .. w_{L-1}, int64 [N, L-1].
    """

    functions: tuple[NDArray[np.int64], ...]
    start: NDArray[np.int64]
    query: NDArray[np.int64]

    def rows(self, rows: NDArray[np.intp]) -> "Parts":
        """The instances with these row numbers."""
        return Parts(tuple(values[rows] for values in self.functions), self.start[rows], self.query[rows])


@dataclass(frozen=True, eq=False)
class HopPath:
    """What the right way through N instances visits.

    Attributes:
        values: i_0 .. i_L, int64 [N, L+1].
        addresses: the address read in z_1 .. z_L, int64 [N, L].
    """

    values: NDArray[np.int64]
    addresses: NDArray[np.int64]


def check_least(field: str, value: object, least: int) -> None:
    """Refuse a size that is no whole number of at least `least`."""
    if type(value) is not int or value < least:
        raise InputError(field, value, f"a whole number of at least {least}")


def check_array(field: str, array: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    """Refuse an array of another type or shape."""
    if array.shape != shape or array.dtype != np.int64:
        raise InputError(field, (str(array.dtype), array.shape), f"int64 of shape {shape}")


def check_values(field: str, tokens: NDArray[np.int64], alphabet: int | tuple[int, ...]) -> None:
    """Refuse tokens outside `0 .. alphabet - 1`; a tuple has one alphabet a column."""
    if tokens.size and (tokens.min() < 0 or np.any(tokens.max(axis=0) >= alphabet)):
        raise InputError(field, f"{tokens.min()} to {tokens.max()}", f"values from 0, below {alphabet}")


def check_part(field: str, array: NDArray[np.int64], shape: tuple[int, ...], alphabet: int | tuple[int, ...]) -> None:
    """Refuse a part of the wrong shape or with values outside its alphabet, or alphabets a column."""
    check_array(field, array, shape)
    check_values(field, array, alphabet)


def numbers_text(count: int) -> str:
    """So many numbers, in words."""
    return "no numbers" if count == 0 else "1 number" if count == 1 else f"{count} numbers"


def hops_text(count: int) -> str:
    """So many hops, in words."""
    return "1 hop" if count == 1 else f"{count} hops"


def value_sizes(hops: int, m: int, n: tuple[int, ...], given: Sequence[int] | None) -> tuple[int, ...]:
    """M_1 .. M_L: what was given, or the paper's sizes.

    Raises:
        InputError: a wrong number of sizes, a size below 2, or M_L that is not D_L.
    """
    if given is not None:
        given = tuple(given)
        if len(given) not in (hops - 1, hops):
            raise InputError(
                "values", given, f"{numbers_text(hops - 1)}, or {hops} with the last, for {hops_text(hops)}"
            )
        for number in given:
            check_least("values", number, 2)
    sizes: list[int] = []
    for hop in range(hops):
        domain = m if hop == 0 else n[hop - 1] * sizes[-1]
        size = domain if given is None or hop >= len(given) else given[hop]
        if hop == hops - 1 and size != domain:
            raise InputError(
                "values", given, f"{domain} as the last number (M_L = D_L), or only {numbers_text(hops - 1)}"
            )
        sizes.append(size)
    return tuple(sizes)
