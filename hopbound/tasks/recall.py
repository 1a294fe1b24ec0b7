"""Associative recall: key, value, key, value, .., then a key; the answer is the value that stands after it.

Keys are distinct, so that no key is bound twice (multi-query recall, arXiv 2312.04927, asks several keys; one prompt
here asks one). A token carries its number only; whether it is a key or a value its position says, and the same number
may be both.

A worked example with three pairs, five keys and four values:

>>> import numpy as np
>>> task = Recall(pairs=3, keys=5, values=4)
>>> task.prompt_length
7
>>> task.oracle(np.array([[4, 1, 0, 3, 2, 1, 0]])).tolist()
[3]

The last token is 0; the key 0 stands at position 2 and the value after it is 3. The number 1 at position 1 is a value,
not a key: no prompt of this task may ask for the key 1 here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sizes import SizedTask, check_shape, check_tokens, check_whole, distinct, have_repeats
from hopbound.tasks.task import AnswerFunction, Batch, Task, instance_digits

RECALL_FAMILIES = ("permutation", "near keys", "first pair", "last pair", "echo")
"""The families of `Recall.adversarial`, in the order in which they take turns."""

MAX_PAIRS = 2**22
MAX_SYMBOLS = 2**22
_ROWS_AT_ONCE = 2**21  # tokens of adversarial prompts made at a time


@final
@dataclass(frozen=True)
class Recall(SizedTask):
    """Associative recall of one key (see the module's text).

    Args:
        pairs: P, how many pairs, at least 1.
        keys: K, how many different keys there are, at least P.
        values: V, how many different values, at least 2.

    Raises:
        InputError: a size is out of range, or there are fewer keys than pairs.
    """

    name: ClassVar[str] = "recall"

    pairs: int
    keys: int
    values: int

    def __post_init__(self) -> None:
        check_whole("pairs", self.pairs, 1, MAX_PAIRS)
        check_whole("keys", self.keys, self.pairs, MAX_SYMBOLS)
        check_whole("values", self.values, 2, MAX_SYMBOLS)

    @property
    def vocabulary_size(self) -> int:
        """Keys and values share the numbers from 0 on."""
        return max(self.keys, self.values)

    @property
    def prompt_length(self) -> int:
        """2 P + 1."""
        return 2 * self.pairs + 1

    @property
    def answers(self) -> int:
        """V."""
        return self.values

    @property
    def instances(self) -> int:
        """K (K - 1) .. (K - P + 1) V^P P."""
        return math.perm(self.keys, self.pairs) * self.values**self.pairs * self.pairs

    @property
    def log2_instances(self) -> float:
        """Without that number: it can have millions of digits."""
        orders = (math.lgamma(self.keys + 1) - math.lgamma(self.keys - self.pairs + 1)) / math.log(2)
        return orders + self.pairs * math.log2(self.values) + math.log2(self.pairs)

    @property
    def chance(self) -> float:
        """1 / V."""
        return 1 / self.values

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Uniform examples: a random sequence of distinct keys, independent values, a random pair that is asked.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        return self._of_choices(stream.integers(seed, self.identity, split, start, count, self._ranges()))

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number: choices of keys, values and the pair that is asked as digits, the last one fastest.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        return self._of_choices(instance_digits(start, count, self._ranges(), self.instances))

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most others; they take turns one by one.

        - permutation: values take every number equally often up to one, in a random order;
        - near keys: as many keys as there are that differ from the asked one in a single binary digit stand in the
          prompt, all with another value than the asked one;
        - first pair, last pair: that pair is asked;
        - echo: every value but the right one is the number of the asked key, modulo V.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        stream.check_range(start, count)
        prompts = np.empty((count, self.prompt_length), dtype=np.int64)
        size = max(1, _ROWS_AT_ONCE // self.prompt_length)
        for done in range(0, count, size):
            prompts[done : done + size] = self._adversarial(seed, start + done, min(size, count - done))
        return Batch(prompts, self.oracle(prompts))

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return RECALL_FAMILIES[number % len(RECALL_FAMILIES)]

    def _adversarial(self, seed: int, start: int, count: int) -> NDArray[np.int64]:
        drawn = stream.words(seed, f"{self.identity} adversarial", "adversarial", start, count, 2 * self.pairs + 1)
        choices = stream.below(drawn, self._ranges())
        for row in range(count):
            family = self.adversarial_family(start + row)
            if family in ("first pair", "last pair"):
                choices[row, -1] = 0 if family == "first pair" else self.pairs - 1
        prompts = self._of_choices(choices).prompts
        for row in range(count):
            self._harden(prompts[row], int(choices[row, -1]), drawn[row], self.adversarial_family(start + row))
        return prompts

    def _harden(self, prompt: NDArray[np.int64], asked: int, drawn: NDArray[np.uint64], family: str) -> None:
        """Change one prompt into one of a family, in place."""
        keys, values = prompt[0:-1:2], prompt[1:-1:2]
        right = int(values[asked])
        if family == "permutation":
            ranks = np.argsort(drawn[self.pairs : 2 * self.pairs], kind="stable")
            values[:] = ranks * self.values // self.pairs if self.values > self.pairs else ranks % self.values
        elif family == "near keys":
            near = [int(keys[asked]) ^ 1 << digit for digit in range((self.keys - 1).bit_length())]
            missing = iter(set(near).intersection(range(self.keys)).difference(keys.tolist()))
            free = np.flatnonzero(~np.isin(keys, [*near, keys[asked]]))
            for place, key in zip(free, missing, strict=False):
                keys[place] = key
            values[:] = np.where(values == right, (right + 1) % self.values, values)
            values[asked] = right
        elif family == "echo":
            values[:] = keys[asked] % self.values
            values[asked] = right

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N].

        Raises:
            InputError: these are not prompts of this task: a number is out of range, a key is bound twice, or the key
                that is asked is not there.
        """
        check_shape(prompts, self.prompt_length)
        check_tokens("keys", prompts[:, 0::2], self.keys)
        check_tokens("values", prompts[:, 1::2], self.values)
        if have_repeats(prompts[:, 0:-1:2]).any():
            raise InputError("keys", "a key that is bound twice", "distinct keys")
        found = prompts[:, 0:-1:2] == prompts[:, -1:]
        if not found.any(axis=1).all():
            raise InputError("key that is asked", "one that is not there", "a key of the prompt")
        return prompts[np.arange(len(prompts)), 2 * found.argmax(axis=1) + 1]

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of tokens are prompts of this task."""
        keys, values = prompts[:, 0:-1:2], prompts[:, 1::2]
        within = ((keys >= 0) & (keys < self.keys)).all(axis=1) & ((values >= 0) & (values < self.values)).all(axis=1)
        return within & ~have_repeats(keys) & (keys == prompts[:, -1:]).any(axis=1)

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: what a model that does not find the pair would answer.

        - constant: 0;
        - most common value: of the prompt, the smallest such;
        - last value: of the last pair;
        - value before: the value of the pair before the right one (the last pair's for the first).
        """
        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "most common value": lambda prompts: np.array(
                [np.bincount(row).argmax() for row in prompts[:, 1::2]], dtype=np.int64
            ),
            "last value": lambda prompts: prompts[:, -2].copy(),
            "value before": lambda prompts: (
                prompts[np.arange(len(prompts)), 2 * (self.asked(prompts) - 1) + 1]
                if self.pairs > 1
                else prompts[:, 1].copy()
            ),
        }

    def asked(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which pair each prompt asks for, from 0; P places further is the same, so that -1 is the last."""
        return (prompts[:, 0:-1:2] == prompts[:, -1:]).argmax(axis=1) % self.pairs

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs of prompts: the value that is asked for changes, then the key that is asked."""
        rows = np.arange(len(batch))
        asked = self.asked(batch.prompts)
        changed = batch.prompts.copy()
        shift = 1 + (start + rows) % (self.values - 1)
        changed[rows, 2 * asked + 1] = (batch.answers + shift) % self.values
        yield np.stack([batch.prompts, changed], axis=1)
        changed = batch.prompts.copy()
        changed[:, -1] = changed[rows, 2 * ((asked + 1 + start) % self.pairs)]
        differs = self.oracle(changed) != batch.answers
        if differs.any():
            yield np.stack([batch.prompts, changed], axis=1)[differs]

    def place(self, position: int) -> tuple[str, int]:
        """A key, a value, or what is asked."""
        if position == self.prompt_length - 1:
            return "query", 0
        return ("key", "value")[position % 2], position // 2

    def path(self, prompts: NDArray[np.int64]) -> list[list[int]]:
        """The key that is asked, the pair's number, its value."""
        return np.stack([prompts[:, -1], self.asked(prompts), self.oracle(prompts)], axis=1).tolist()

    def smaller(self) -> Iterator[Task]:
        """Fewer pairs with as many keys and values."""
        for pairs in range(1, min(self.pairs, 5)):
            yield Recall(pairs, self.keys, self.values)

    def _ranges(self) -> NDArray[np.int64]:
        """Ranges of an instance's choices: of each key among those left, of each value, of the pair that is asked."""
        left = self.keys - np.arange(self.pairs, dtype=np.int64)
        return np.concatenate([left, np.full(self.pairs, self.values, dtype=np.int64), [self.pairs]])

    def _of_choices(self, choices: NDArray[np.int64]) -> Batch:
        prompts = np.empty((len(choices), self.prompt_length), dtype=np.int64)
        prompts[:, 0:-1:2] = distinct(choices[:, : self.pairs], self.keys)
        prompts[:, 1:-1:2] = choices[:, self.pairs : -1]
        rows, asked = np.arange(len(choices)), choices[:, -1]
        prompts[:, -1] = prompts[rows, 2 * asked]
        return Batch(prompts, prompts[rows, 2 * asked + 1])
