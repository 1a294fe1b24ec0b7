"""Masked recall: the key that is asked is the last token XOR a mask, which stands first, far away from the pairs.

The prompt is the mask h, a gap of tokens that mean nothing, then key, value, key, value, .., then a token q. Mask, gap,
keys and q are numbers below K = 2^bits; keys are distinct. The answer is the value that stands after the key q XOR h.
So two things must come together: what stands far away (one number) and what stands near (many values), which is what a
hybrid of a recurrence and a window can do while neither can do it alone (the idea of arXiv 2603.08859: a hybrid of
small size and small memory).

A worked example with two pairs, keys of two bits and a gap of two tokens:

>>> import numpy as np
>>> task = MaskedRecall(pairs=2, bits=2, values=5, gap=2)
>>> task.prompt_length
8
>>> task.oracle(np.array([[3, 0, 1, 1, 4, 0, 2, 2]])).tolist()
[4]

2 XOR 3 is 1; the key 1 stands at position 3, and the value after it is 4.
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

MASKED_FAMILIES = ("no mask", "all bits", "one bit", "first pair", "last pair", "echo")
"""The families of `MaskedRecall.adversarial`, in the order in which they take turns."""

MAX_GAP = 2**24


@final
@dataclass(frozen=True)
class MaskedRecall(SizedTask):
    """Recall of a key that a far mask changes (see the module's text).

    Args:
        pairs: P, at least 1.
        bits: of keys, mask and gap, 1 to 20; there are K = 2^bits keys, at least P.
        values: V, how many different values, at least 2.
        gap: tokens between the mask and the pairs.

    Raises:
        InputError: a size is out of range, or there are fewer keys than pairs.
    """

    name: ClassVar[str] = "masked_recall"

    pairs: int
    bits: int
    values: int
    gap: int = 0

    def __post_init__(self) -> None:
        check_whole("bits", self.bits, 1, 20)
        check_whole("pairs", self.pairs, 1, self.keys)
        check_whole("values", self.values, 2, 2**22)
        check_whole("gap", self.gap, 0, MAX_GAP)

    @property
    def keys(self) -> int:
        """K."""
        return 2**self.bits

    @property
    def first_key(self) -> int:
        """The position of the first key."""
        return 1 + self.gap

    @property
    def vocabulary_size(self) -> int:
        """Keys and values share the numbers from 0 on."""
        return max(self.keys, self.values)

    @property
    def prompt_length(self) -> int:
        """2 P + 2 and the gap."""
        return 2 * self.pairs + 2 + self.gap

    @property
    def answers(self) -> int:
        """V."""
        return self.values

    @property
    def instances(self) -> int:
        """K^(gap + 1) K (K - 1) .. (K - P + 1) V^P P."""
        return self.keys ** (self.gap + 1) * math.perm(self.keys, self.pairs) * self.values**self.pairs * self.pairs

    @property
    def log2_instances(self) -> float:
        """Without that number: it can have millions of digits."""
        orders = (math.lgamma(self.keys + 1) - math.lgamma(self.keys - self.pairs + 1)) / math.log(2)
        return (self.gap + 1) * self.bits + orders + self.pairs * math.log2(self.values) + math.log2(self.pairs)

    @property
    def chance(self) -> float:
        """1 / V."""
        return 1 / self.values

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Uniform examples.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        return self._of_choices(stream.integers(seed, self.identity, split, start, count, self._ranges()))

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number: mask, gap, choices of keys, values and the pair that is asked as digits, the last
        one fastest.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        return self._of_choices(instance_digits(start, count, self._ranges(), self.instances))

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most others; they take turns one by one.

        - no mask, all bits: the mask is 0, or K - 1;
        - one bit: the mask is a power of two;
        - first pair, last pair: that pair is asked;
        - echo: all tokens of the gap are the complement of the mask.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        identity = f"{self.identity} adversarial"
        choices = stream.integers(seed, identity, "adversarial", start, count, self._ranges())
        families = (start + np.arange(count)) % len(MASKED_FAMILIES)
        masks, asked = choices[:, 0], choices[:, -1]
        masks[families == 0] = 0
        masks[families == 1] = self.keys - 1
        masks[families == 2] = 1 << masks[families == 2] % self.bits
        asked[families == 3] = 0
        asked[families == 4] = self.pairs - 1
        echo = np.flatnonzero(families == 5)
        choices[echo, 1 : self.first_key] = masks[echo, np.newaxis] ^ (self.keys - 1)
        return self._of_choices(choices)

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return MASKED_FAMILIES[number % len(MASKED_FAMILIES)]

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N].

        Raises:
            InputError: these are not prompts of this task: a number is out of range, a key is bound twice, or the key
                that is asked is not there.
        """
        check_shape(prompts, self.prompt_length)
        keys, values = self._pairs(prompts)
        for field, tokens in (("mask and gap", prompts[:, : self.first_key]), ("keys", keys), ("q", prompts[:, -1:])):
            check_tokens(field, tokens, self.keys)
        check_tokens("values", values, self.values)
        if have_repeats(keys).any():
            raise InputError("keys", "a key that is bound twice", "distinct keys")
        found = keys == self._wanted(prompts)
        if not found.any(axis=1).all():
            raise InputError("key that is asked", "one that is not there", "a key of the prompt")
        return values[np.arange(len(prompts)), found.argmax(axis=1)]

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of tokens are prompts of this task."""
        keys, values = self._pairs(prompts)
        numbers = np.concatenate([prompts[:, : self.first_key], keys, prompts[:, -1:]], axis=1)
        within = ((numbers >= 0) & (numbers < self.keys)).all(axis=1) & ((values >= 0) & (values < self.values)).all(
            axis=1
        )
        return within & ~have_repeats(keys) & (keys == self._wanted(prompts)).any(axis=1)

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: what a model that does without the mask or the pairs would answer.

        - constant: 0;
        - last value: of the last pair;
        - without the mask: the value of the key q, the last pair's where there is none.
        """

        def unmasked(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
            keys, values = self._pairs(prompts)
            found = keys == prompts[:, -1:]
            place = np.where(found.any(axis=1), found.argmax(axis=1), self.pairs - 1)
            return values[np.arange(len(prompts)), place]

        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "last value": lambda prompts: prompts[:, -2].copy(),
            "without the mask": unmasked,
        }

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs of prompts: the mask changes so that another pair is asked, then the value that is asked for."""
        rows = np.arange(len(batch))
        keys, _ = self._pairs(batch.prompts)
        changed = batch.prompts.copy()
        changed[:, 0] = keys[rows, (start + rows) % self.pairs] ^ batch.prompts[:, -1]
        differs = self.oracle(changed) != batch.answers
        if differs.any():
            yield np.stack([batch.prompts, changed], axis=1)[differs]
        asked = (keys == self._wanted(batch.prompts)).argmax(axis=1)
        changed = batch.prompts.copy()
        shift = 1 + (start + rows) % (self.values - 1)
        changed[rows, self.first_key + 2 * asked + 1] = (batch.answers + shift) % self.values
        yield np.stack([batch.prompts, changed], axis=1)

    def place(self, position: int) -> tuple[str, int]:
        """Mask, gap, a key, a value, or q."""
        if position == 0:
            return "mask", 0
        if position < self.first_key:
            return "gap", position - 1
        if position == self.prompt_length - 1:
            return "query", 0
        pair, part = divmod(position - self.first_key, 2)
        return ("key", "value")[part], pair

    def path(self, prompts: NDArray[np.int64]) -> list[list[int]]:
        """Mask, q, the key that is asked, its value."""
        wanted = self._wanted(prompts)[:, 0]
        return np.stack([prompts[:, 0], prompts[:, -1], wanted, self.oracle(prompts)], axis=1).tolist()

    def smaller(self) -> Iterator[Task]:
        """Fewer pairs and no gap."""
        for pairs in range(1, min(self.pairs, 4) + 1):
            if 2 * pairs + 2 < self.prompt_length:
                yield MaskedRecall(pairs, self.bits, self.values)

    def _pairs(self, prompts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return prompts[:, self.first_key : -1 : 2], prompts[:, self.first_key + 1 : -1 : 2]

    def _wanted(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        return prompts[:, :1] ^ prompts[:, -1:]

    def _ranges(self) -> NDArray[np.int64]:
        """Ranges of an instance's choices: mask, gap, each key among those left, values, the pair that is asked."""
        far = np.full(self.first_key, self.keys, dtype=np.int64)
        left = self.keys - np.arange(self.pairs, dtype=np.int64)
        return np.concatenate([far, left, np.full(self.pairs, self.values, dtype=np.int64), [self.pairs]])

    def _of_choices(self, choices: NDArray[np.int64]) -> Batch:
        prompts = np.empty((len(choices), self.prompt_length), dtype=np.int64)
        prompts[:, : self.first_key] = choices[:, : self.first_key]
        keys, values = self._pairs(prompts)  # views
        keys[:] = distinct(choices[:, self.first_key : self.first_key + self.pairs], self.keys)
        values[:] = choices[:, self.first_key + self.pairs : -1]
        rows, asked = np.arange(len(choices)), choices[:, -1]
        prompts[:, -1] = keys[rows, asked] ^ prompts[:, 0]
        return Batch(prompts, values[rows, asked].copy())
