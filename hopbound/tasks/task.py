"""What is asked: a task makes prompts and knows their right answers.

A task owns everything about itself: its sizes, how examples are drawn, how all instances are enumerated, the oracle
that gives the right answers, the chance level and the shortcuts a model may take instead of solving it.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks.sequence import NOT_ASKED, LabelFunction, Labelled, SequenceTask
from hopbound.tasks.stream import check_range

AnswerFunction = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""Prompts [N, n] to answers [N]."""

MAX_INSTANCE_NUMBER = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Batch:
    """Prompts and their right answers.

    Attributes:
        prompts: int64 [N, n], one token a column.
        answers: int64 [N].

    Raises:
        InputError: shapes or types are others.
    """

    prompts: NDArray[np.int64]
    answers: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.prompts.dtype != np.int64 or self.prompts.ndim != 2:
            raise InputError("prompts", (str(self.prompts.dtype), self.prompts.shape), "int64 of shape (N, n)")
        if self.answers.dtype != np.int64 or self.answers.shape != self.prompts.shape[:1]:
            given = (str(self.answers.dtype), self.answers.shape)
            raise InputError("answers", given, f"int64 of shape ({len(self.prompts)},)")

    def __len__(self) -> int:
        return len(self.prompts)


class Task(SequenceTask):
    """A family of prompts of one length, each with one right answer, read at the last token.

    Subclasses are final frozen dataclasses that are equal exactly when their `identity` is.
    """

    @property
    @abstractmethod
    def instances(self) -> int:
        """The exact number of different prompts (it may have millions of digits)."""

    @property
    def log2_instances(self) -> float:
        """The logarithm of their number; a task whose number is too long to be written out computes it directly."""
        return math.log2(self.instances)

    @abstractmethod
    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """The examples `start .. start + count - 1` of a split: the same bytes whatever the batches they come in.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """

    @abstractmethod
    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """The examples `start .. start + count - 1` of families that trip a solver which is right on most others.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """

    @abstractmethod
    def enumerate(self, start: int, count: int) -> Batch:
        """The instances number `start .. start + count - 1`, in an order in which each prompt occurs exactly once.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """

    @abstractmethod
    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N] to prompts [N, n], read from the tokens alone.

        Raises:
            InputError: these are not prompts of this task.
        """

    @abstractmethod
    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts that do not solve the task, by name; a model's accuracy is read against theirs."""

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs of prompts that differ in one token and have different right answers: structured places first.

        As given here, each token in turn gets the next value that it can have; a task that knows which tokens matter
        does better.

        Args:
            batch: N instances.
            start: number of the batch's first instance, so that values go on from batch to batch.

        Yields:
            int64 [at most N, 2, n].
        """
        for position in range(self.prompt_length):
            changed = batch.prompts.copy()
            changed[:, position] = (changed[:, position] + 1 + start % max(1, self.vocabulary_size - 1)) % (
                self.vocabulary_size
            )
            valid = self.valid(changed)
            answers = np.full(len(batch), -1, dtype=np.int64)
            if valid.any():
                answers[valid] = self.oracle(changed[valid])
            keep = valid & (answers != batch.answers)
            if keep.any():
                yield np.stack([batch.prompts, changed], axis=1)[keep]

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of N rows of tokens are prompts of this task: bool [N]. Here, the oracle is asked one by one."""

        def is_prompt(prompt: NDArray[np.int64]) -> bool:
            try:
                self.oracle(prompt[None])
            except InputError:
                return False
            return True

        return np.fromiter((is_prompt(prompt) for prompt in prompts), dtype=np.bool_, count=len(prompts))

    def place(self, position: int) -> tuple[str, int]:
        """What a token is: the name of its part of the prompt, and its number in it."""
        return "token", position

    def path(self, prompts: NDArray[np.int64]) -> list[list[int]]:
        """For each prompt the values that the right way through it visits; empty lists where there is no such way."""
        return [[] for _ in prompts]

    def smaller(self) -> Iterator["Task"]:
        """Tasks of the same kind with shorter prompts and no further symbols, shortest first; none as given here."""
        return iter(())

    @final
    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """The examples of a split, asked at their last token alone.

        Raises:
            InputError: as `sample`.
        """
        batch = self.sample(seed, split, start, count)
        return Labelled(batch.prompts, _at_the_end(batch.prompts, batch.answers))

    @final
    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers at the last tokens.

        Raises:
            InputError: as `oracle`.
        """
        return _at_the_end(tokens, self.oracle(tokens))

    @final
    def shortcuts(self) -> dict[str, LabelFunction]:
        """The baselines, at the last tokens."""

        def at_the_end(function: AnswerFunction) -> LabelFunction:
            return lambda tokens: _at_the_end(tokens, function(tokens))

        return {name: at_the_end(function) for name, function in self.baselines().items()}


def _at_the_end(prompts: NDArray[np.int64], answers: NDArray[np.int64]) -> NDArray[np.int64]:
    labels = np.full(prompts.shape, NOT_ASKED, dtype=np.int64)
    labels[:, -1] = answers
    return labels


def instance_digits(start: int, count: int, ranges: NDArray[np.int64], instances: int) -> NDArray[np.int64]:
    """Instance numbers as digits [count, columns] in mixed radix, column `c` below `ranges[c]`, last column fastest.

    `instances` is the product of the ranges, which the caller knows without multiplying them one by one.

    Raises:
        InputError: the numbers go beyond the instances or beyond 2^63 - 1.
    """
    check_range(start, count)
    end = start + count
    if end > MAX_INSTANCE_NUMBER:
        raise InputError("start + count", end, f"at most {MAX_INSTANCE_NUMBER} (larger numbers are not enumerated)")
    if end > instances:
        raise InputError("start + count", end, f"at most the {instances} instances there are")
    digits = np.zeros((count, ranges.size), dtype=np.int64)
    rest = np.arange(start, end, dtype=np.int64)
    for column in range(ranges.size - 1, -1, -1):
        if not rest.any():  # all columns further left are 0; a long prompt has thousands of them
            break
        rest, digits[:, column] = np.divmod(rest, ranges[column])
    return digits
