"""Tasks whose tokens are independent: each is uniform over a range of its own, whatever the others are.

Most tasks about words are of this kind. A prompt is then a number in mixed radix, so that sampling, enumeration and
counting are the same for all of them; a task says only which ranges its tokens have. Kinds of tokens have ranges that
do not meet, so that a token says what it is, where the task does not say that its position does.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sequence import Labelled
from hopbound.tasks.sizes import Sized, SizedTask, check_shape, made_in_pairs
from hopbound.tasks.task import Batch, instance_digits

Stretch = tuple[str, int, int, int]
"""A part of a prompt: its name, how many tokens it has, their least value, how many values they have."""


class UniformTokens(Sized):
    """A task of any kind whose sequences are all sequences of tokens from given ranges, uniform and independent.

    Subclasses have sizes as their fields.
    """

    @property
    @abstractmethod
    def stretches(self) -> Sequence[Stretch]:
        """The parts of the sequence, from left to right."""

    @property
    def prompt_length(self) -> int:
        """All stretches together."""
        return sum(length for _, length, _, _ in self.stretches)

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token."""
        return max(least + values for _, _, least, values in self.stretches)

    @property
    def log2_instances(self) -> float:
        """The logarithm of the number of sequences, without that number."""
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

    def check_prompts(self, prompts: NDArray[np.int64]) -> None:
        """Refuse what are no sequences of this task.

        Raises:
            InputError: another shape or type, or a token out of its range.
        """
        check_shape(prompts, self.prompt_length)
        for name, _, least, values in self.stretches:
            part = prompts[:, self.span(name)]
            if part.size and not least <= part.min() <= part.max() < least + values:
                raise InputError(name, f"{part.min()} to {part.max()}", f"values from {least} to {least + values - 1}")

    def draw(self, seed: int, split: str, start: int, count: int) -> NDArray[np.int64]:
        """Uniform sequences [count, n].

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        return self._least() + stream.integers(seed, self.identity, split, start, count, self._ranges())

    def _ranges(self) -> NDArray[np.int64]:
        return np.concatenate([np.full(length, values, dtype=np.int64) for _, length, _, values in self.stretches])

    def _least(self) -> NDArray[np.int64]:
        return np.concatenate([np.full(length, least, dtype=np.int64) for _, length, least, _ in self.stretches])


class UniformSequence(UniformTokens):
    """A task that asks at several tokens of such sequences."""

    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """Uniform examples, labelled by the oracle.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        tokens = self.draw(seed, split, start, count)
        return Labelled(tokens, self.labels(tokens))


class IndependentTokens(UniformTokens, SizedTask):
    """Such a task with one answer: its prompts are all of the sequences. Subclasses have sizes as their fields."""

    families: ClassVar[Sequence[str]]
    """The adversarial families; they take turns, two examples each."""

    @abstractmethod
    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Uniform prompts [K, n], examples `numbers` [K] of the adversarial ones, made into prompts of a family.

        Examples come in pairs: rows 2i and 2i + 1 belong together.
        """

    @property
    def instances(self) -> int:
        """The product of the ranges of all tokens."""
        return math.prod(values**length for _, length, _, values in self.stretches)

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
        return self._labelled(self.draw(seed, split, start, count))

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
        prompts = made_in_pairs(partial(self._adversarial_pairs, seed), self.prompt_length, start, count)
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

    def _labelled(self, prompts: NDArray[np.int64]) -> Batch:
        return Batch(prompts, self.oracle(prompts))

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
