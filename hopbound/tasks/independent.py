"""Tasks whose tokens are independent: each is uniform over a range of its own, whatever the others are.

Most tasks about words are of this kind. A prompt is then a number in mixed radix, so that sampling, enumeration and
counting are the same for all of them; a task says only which ranges its tokens have. Kinds of tokens have ranges that
do not meet, so that a token says what it is.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.task import Batch, Task, instance_digits

Stretch = tuple[str, int, int, int]
"""A part of a prompt: its name, how many tokens it has, their least value, how many values they have."""

_DRAWN_AT_ONCE = 2**21  # adversarial tokens made at a time: bounds the temporaries, not the result


class IndependentTokens(Task):
    """A task whose prompts are all sequences of tokens from given ranges. Subclasses have sizes as their fields."""

    families: ClassVar[Sequence[str]]
    """The adversarial families; they take turns, two examples each."""

    @property
    @abstractmethod
    def stretches(self) -> Sequence[Stretch]:
        """The parts of the prompt, from left to right; the last token is the one at which the answer is read."""

    @abstractmethod
    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Uniform prompts [K, n], examples `numbers` [K] of the adversarial ones, made into prompts of a family.

        Examples come in pairs: rows 2i and 2i + 1 belong together.
        """

    @property
    def prompt_length(self) -> int:
        """All stretches together."""
        return sum(length for _, length, _, _ in self.stretches)

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token."""
        return max(least + values for _, _, least, values in self.stretches)

    @property
    def instances(self) -> int:
        """The product of the ranges of all tokens."""
        return math.prod(values**length for _, length, _, values in self.stretches)

    @property
    def log2_instances(self) -> float:
        """The logarithm of `instances`, without that number."""
        return sum(length * math.log2(values) for _, length, _, values in self.stretches)

    @property
    def chance(self) -> float:
        """One in `answers`."""
        return 1 / self.answers

    def span(self, name: str) -> slice:
        """The columns of a stretch."""
        start = 0
        for other, length, _, _ in self.stretches:
            if other == name:
                return slice(start, start + length)
            start += length
        raise KeyError(name)

    def place(self, position: int) -> tuple[str, int]:
        """The stretch that a token belongs to, and its number in it."""
        for name, length, _, _ in self.stretches:
            if position < length:
                return name, position
            position -= length
        raise IndexError(position)

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Uniform examples.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        return self._labelled(self._least() + stream.integers(seed, self.identity, split, start, count, self._ranges()))

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number: the tokens are its digits in mixed radix, the last token fastest.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        return self._labelled(self._least() + instance_digits(start, count, self._ranges(), self.instances))

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples of `families`, made from uniform ones.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        stream.check_range(start, count)
        prompts = np.empty((count, self.prompt_length), dtype=np.int64)
        end, step = start + count, 2 * max(1, _DRAWN_AT_ONCE // (2 * self.prompt_length))
        for low in range(start - start % 2, end, step):
            high = min(low + step, end + end % 2)
            first, last = max(low, start), min(high, end)
            prompts[first - start : last - start] = self._adversarial_pairs(seed, low, high)[first - low : last - low]
        return self._labelled(prompts)

    def adversarial_family(self, number: int) -> str:
        """The family of the adversarial example with this number."""
        return self.families[number // 2 % len(self.families)]

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of N rows of tokens are prompts of this task: bool [N]."""
        places = prompts - self._least()
        return np.all((places >= 0) & (places < self._ranges()), axis=1)

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs of prompts that differ in one token and have different right answers: the last tokens first.

        Each token in turn, from the right, becomes the next of its range; see `Task.changes`.
        """
        least, ranges = self._least(), self._ranges()
        for position in reversed(range(self.prompt_length)):
            if ranges[position] == 1:
                continue
            changed = batch.prompts.copy()
            shift = 1 + start % (ranges[position] - 1)
            changed[:, position] = least[position] + (changed[:, position] - least[position] + shift) % ranges[position]
            keep = self.oracle(changed) != batch.answers
            if keep.any():
                yield np.stack([batch.prompts, changed], axis=1)[keep]

    def to_json(self) -> dict[str, object]:
        """A JSON object with every size written out."""
        return {"task": self.name, **sizes_of(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The task that `to_json` wrote.

        Raises:
            InputError: a key is missing or unknown, or a value does not fit.
        """
        return cls(**read_sizes(cls, value))

    def check_prompts(self, prompts: NDArray[np.int64]) -> None:
        """Refuse what are no prompts of this task.

        Raises:
            InputError: another shape or type, or a token out of its range.
        """
        if prompts.dtype != np.int64 or prompts.ndim != 2 or prompts.shape[1] != self.prompt_length:
            expected = f"int64 of shape (N, {self.prompt_length})"
            raise InputError("prompts", (str(prompts.dtype), prompts.shape), expected)
        for name, _, least, values in self.stretches:
            part = prompts[:, self.span(name)]
            if part.size and not least <= part.min() <= part.max() < least + values:
                raise InputError(name, f"{part.min()} to {part.max()}", f"values from {least} to {least + values - 1}")

    def _labelled(self, prompts: NDArray[np.int64]) -> Batch:
        return Batch(prompts, self.oracle(prompts))

    def _ranges(self) -> NDArray[np.int64]:
        return np.concatenate([np.full(length, values, dtype=np.int64) for _, length, _, values in self.stretches])

    def _least(self) -> NDArray[np.int64]:
        return np.concatenate([np.full(length, least, dtype=np.int64) for _, length, least, _ in self.stretches])

    def _adversarial_pairs(self, seed: int, low: int, high: int) -> NDArray[np.int64]:
        """Adversarial prompts number `low .. high - 1`; both are even, so that no pair is cut."""
        # Another identity than the sampler's: these words belong to no split that a caller can name.
        identity = f"{self.identity} adversarial"
        drawn = stream.integers(seed, identity, "adversarial", low, high - low, self._ranges())
        prompts = self._least() + drawn
        numbers = np.arange(low, high)
        turns = numbers // 2 % len(self.families)
        for turn, family in enumerate(self.families):
            rows = turns == turn
            if rows.any():
                prompts[rows] = self.make_family(family, prompts[rows], numbers[rows])
        return prompts


def sizes_of(task: Task) -> dict[str, object]:
    """The sizes of a task whose fields are numbers and words, by name."""
    return {field.name: getattr(task, field.name) for field in fields(cast(Any, task))}


def read_sizes(kind: type[Task], value: Mapping[str, object]) -> dict[str, Any]:
    """The sizes of a task from its JSON object; its constructor checks them.

    Raises:
        InputError: a key is missing or unknown, or it is another task's object.
    """
    sizes = [field.name for field in fields(cast(Any, kind))]
    if set(value) != {"task", *sizes}:
        raise InputError("task keys", sorted(value), f"exactly {', '.join(('task', *sizes))}")
    if value["task"] != kind.name:
        raise InputError("task", value["task"], kind.name)
    return {size: value[size] for size in sizes}


def check_whole(field: str, value: object, least: int, most: int) -> None:
    """Refuse a size that is no whole number of a range.

    Raises:
        InputError: it is none.
    """
    if type(value) is not int or not least <= value <= most:
        raise InputError(field, value, f"a whole number from {least} to {most}")
