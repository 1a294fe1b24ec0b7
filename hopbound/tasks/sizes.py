"""What tasks with whole-number sizes share: checks of sizes and prompts, JSON, distinct numbers from a stream."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError

_SHUFFLED_AT_ONCE = 2**22  # entries of the decks that are held at a time


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


def read_sizes(value: Mapping[str, object], task: str, names: Sequence[str]) -> dict[str, Any]:
    """The sizes in a JSON object that holds exactly these and the task's name; their values are not checked.

    Raises:
        InputError: a key is missing or unknown, or it is another task.
    """
    keys = ("task", *names)
    if set(value) != set(keys):
        raise InputError("task keys", sorted(value), f"exactly {', '.join(keys)}")
    if value["task"] != task:
        raise InputError("task", value["task"], task)
    return {name: value[name] for name in names}


def distinct(choices: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Distinct numbers [N, P] below `count` from choices [N, P], the choice in column c below `count - c`.

    The first P steps of a Fisher-Yates shuffle: each sequence of distinct numbers has exactly one sequence of choices.
    """
    rows, columns = choices.shape
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


def have_repeats(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of numbers [N, P] hold a number twice: bool [N]."""
    ordered = np.sort(numbers, axis=1)
    return (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
