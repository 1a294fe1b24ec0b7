"""What tasks share: JSON of their sizes, checks of sizes and prompts, examples in pairs, distinct numbers."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sequence import SequenceTask
from hopbound.tasks.task import Task

_SHUFFLED_AT_ONCE = 2**22  # entries of the decks that are held at a time
DRAWN_AT_ONCE = 2**21  # tokens that are made at a time: bounds the temporaries, not the result


class Sized(SequenceTask):
    """A task of any kind whose fields are its sizes, numbers and words, which its constructor checks."""

    def to_json(self) -> dict[str, object]:
        """A JSON object with every size written out."""
        return {"task": self.name, **{size: getattr(self, size) for size in self._sizes()}}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The task that `to_json` wrote.

        Raises:
            InputError: a key is missing or unknown, or a value does not fit.
        """
        sizes = cls._sizes()
        if set(value) != {"task", *sizes}:
            raise InputError("task keys", sorted(value), f"exactly {', '.join(('task', *sizes))}")
        if value["task"] != cls.name:
            raise InputError("task", value["task"], cls.name)
        return cls(**{size: value[size] for size in sizes})

    @classmethod
    def _sizes(cls) -> list[str]:
        return [field.name for field in fields(cast(Any, cls))]


class SizedTask(Sized, Task):
    """A task with one answer whose fields are its sizes."""


def made_in_pairs(
    make: Callable[[int, int], NDArray[np.int64]], length: int, start: int, count: int
) -> NDArray[np.int64]:
    """Prompts [count, length] of the examples from `start` on, of which 2i and 2i + 1 are made together.

    Args:
        make: the prompts number low .. high - 1, for even low and high.
        length: tokens of a prompt.
        start: number of the first example.
        count: how many.

    Raises:
        InputError: the range is not valid (see `hopbound.tasks.stream`).
    """
    stream.check_range(start, count)
    prompts = np.empty((count, length), dtype=np.int64)
    end, step = start + count, 2 * max(1, DRAWN_AT_ONCE // (2 * length))
    for low in range(start - start % 2, end, step):
        high = min(low + step, end + end % 2)
        first, last = max(low, start), min(high, end)
        prompts[first - start : last - start] = make(low, high)[first - low : last - low]
    return prompts


def check_whole(field: str, value: object, least: int, most: int) -> None:
    """Check a size.

    Raises:
        InputError: it is no whole number from `least` to `most`.
    """
    if type(value) is not int or not least <= value <= most:
        raise InputError(field, value, f"a whole number from {least} to {most}")


def check_shape(prompts: NDArray[np.int64], length: int) -> None:
    """Check that these can be prompts of so many tokens.

    Raises:
        InputError: another shape or type.
    """
    if prompts.ndim != 2 or prompts.shape[1] != length or prompts.dtype != np.int64:
        raise InputError("prompts", (str(prompts.dtype), prompts.shape), f"int64 of shape (N, {length})")


def check_tokens(field: str, tokens: NDArray[np.int64], count: int, first: int = 0) -> None:
    """Check the tokens of one part of the prompts.

    Raises:
        InputError: one is outside `first .. first + count - 1`.
    """
    if tokens.size and not (tokens.min() >= first and tokens.max() < first + count):
        raise InputError(field, f"{tokens.min()} to {tokens.max()}", f"values from {first}, below {first + count}")


def distinct(choices: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Distinct numbers [N, P] below `count` from choices [N, P], the choice in column c below `count - c`.

    The first P steps of a Fisher-Yates shuffle: each sequence of distinct numbers has exactly one sequence of choices.
    """
    rows, columns = choices.shape
    if columns * columns < count:
        return _few_distinct(choices)
    drawn = np.empty_like(choices)
    size = max(1, _SHUFFLED_AT_ONCE // count)
    for start in range(0, rows, size):
        part = choices[start : start + size]
        deck = np.tile(np.arange(count, dtype=np.int64), (len(part), 1))
        each = np.arange(len(part))
        for column in range(columns):
            taken = part[:, column] + column
            drawn[start : start + size, column] = deck[each, taken]
            deck[each, taken] = deck[:, column]
    return drawn


def _few_distinct(choices: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same shuffle with the places alone that were written to: a deck of many cards is hardly touched."""
    drawn = np.empty((choices.shape[1], len(choices)), dtype=np.int64)
    places: list[NDArray[np.int64]] = []
    cards: list[NDArray[np.int64]] = []
    for column, choice in enumerate(choices.T):
        taken = choice + column
        first = np.full_like(taken, column)
        drawn[column] = taken
        for place, card in zip(places, cards, strict=True):  # what was written last counts
            np.copyto(drawn[column], card, where=place == taken)
            np.copyto(first, card, where=place == column)
        places.append(taken)
        cards.append(first)
    return np.ascontiguousarray(drawn.T)


def have_repeats(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of numbers [N, P] hold a number twice: bool [N]."""
    ordered = np.sort(numbers, axis=1)
    return (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
