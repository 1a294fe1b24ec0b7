"""Multi-query associative recall: pairs of key and value, then the keys again, at gaps that follow a power law.

Source of the task: Zoology: Measuring and Improving Recall in Efficient Language Models (arXiv 2312.04927). A sequence
starts with P pairs, key and value, the keys distinct. In the slots after them each key stands once more, and there its
value is asked; the other slots hold filler. Nothing else is asked.

Tokens `0 .. filler - 1` are filler, as many again as half of the rest are keys, and all others values, so that a token
says what it is. Filler is neither key nor value: whatever it is, no key stands before another value than its own.

The slots after the pairs are numbered from 1. The keys, in the order of their pairs, take slots one after the other,
each a slot g that is still free with a probability proportional to `g^(alpha - 1)`: with a small alpha most are asked
soon and a few after a long gap; with alpha = 1 all slots are alike. Weights are whole numbers, `floor(W g^(alpha - 1))`
and at least 1, computed exactly, where W is 2^24 or, for more than 256 slots, the largest power of two with which all
of them add up to at most 2^32.

What makes it harder: more pairs, more values, a larger alpha or more slots (longer gaps), more kinds of filler.

A worked example, one token of filler (0), four keys (1 to 4), five values (5 to 9):

>>> import numpy as np
>>> task = MultiQueryRecall(vocabulary=10, length=8, pairs=2)
>>> task.keys, task.answers
(4, 5)
>>> task.labels(np.array([[3, 9, 1, 6, 1, 0, 3, 0]])).tolist()
[[-1, -1, -1, -1, 1, -1, 4, -1]]

Key 1 is bound to token 6, which is value 1; key 3 to token 9, which is value 4.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sequence import NOT_ASKED, LabelFunction, Labelled
from hopbound.tasks.sizes import Sized, check_shape, check_tokens, check_whole, distinct, have_repeats

MAX_VOCABULARY = 2**22
MAX_LENGTH = 2**16
_AT_ONCE = 2**17  # tokens made at a time: the temporaries stay in the cache


@final
@dataclass(frozen=True)
class MultiQueryRecall(Sized):
    """Recall of several keys (see the module's text).

    Args:
        vocabulary: V, number of tokens.
        length: T, at least three times the pairs: each key needs a slot.
        pairs: P, at least 1.
        alpha: exponent of the gaps, in steps of 0.01 from 0 to 1.
        filler: how many tokens are filler, at least 1.

    Raises:
        InputError: a size is out of range, or the pairs do not fit into the keys or into the length.
    """

    name: ClassVar[str] = "mqar"

    vocabulary: int
    length: int
    pairs: int
    alpha: float = 0.01
    filler: int = 1

    def __post_init__(self) -> None:
        check_whole("vocabulary", self.vocabulary, 5, MAX_VOCABULARY)
        check_whole("length", self.length, 3, MAX_LENGTH)
        check_whole("pairs", self.pairs, 1, self.length // 3)
        check_whole("filler", self.filler, 1, self.vocabulary - 4)
        if type(self.alpha) not in (int, float) or not 0 <= self.alpha <= 1 or self.alpha != round(self.alpha, 2):
            raise InputError("alpha", self.alpha, "a number from 0 to 1 in steps of 0.01")
        object.__setattr__(self, "alpha", float(self.alpha))
        if self.pairs > self.keys:
            raise InputError("pairs", self.pairs, f"at most {self.keys}, the keys of so small a vocabulary")

    @property
    def keys(self) -> int:
        """How many keys there are: half of the tokens that are no filler, rounded down."""
        return (self.vocabulary - self.filler) // 2

    @property
    def slots(self) -> int:
        """T - 2 P."""
        return self.length - 2 * self.pairs

    @property
    def vocabulary_size(self) -> int:
        """V."""
        return self.vocabulary

    @property
    def prompt_length(self) -> int:
        """T."""
        return self.length

    @property
    def answers(self) -> int:
        """The values."""
        return self.vocabulary - self.filler - self.keys

    @property
    def log2_instances(self) -> float:
        """Of the choices of distinct keys in order, values, distinct slots, and filler for the others."""
        orders = math.log2(math.perm(self.keys, self.pairs)) + math.log2(math.perm(self.slots, self.pairs))
        return orders + self.pairs * math.log2(self.answers) + (self.slots - self.pairs) * math.log2(self.filler)

    @property
    def chance(self) -> float:
        """One in `answers`."""
        return 1 / self.answers

    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """Random keys, values and filler; the slots by the power law.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        stream.check_range(start, count)
        tokens = np.empty((count, self.length), dtype=np.int64)
        labels = np.full_like(tokens, NOT_ASKED)
        size = max(1, _AT_ONCE // self.length)
        for done in range(0, count, size):
            part = slice(done, min(done + size, count))
            self._draw(seed, split, start + done, tokens[part], labels[part])
        return Labelled(tokens, labels)

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values of the keys in the slots, found by looking for each key among the pairs.

        Raises:
            InputError: these are not sequences of this task: a token in a wrong place, a key that is bound twice or
                that is not asked exactly once.
        """
        check_shape(tokens, self.length)
        pairs = tokens[:, : 2 * self.pairs]
        bound, values, slots = pairs[:, 0::2], pairs[:, 1::2], tokens[:, 2 * self.pairs :]
        check_tokens("keys", bound, self.keys, self.filler)
        check_tokens("values", values, self.answers, self.filler + self.keys)
        check_tokens("slots", slots, self.filler + self.keys)
        rows, columns = np.nonzero(slots >= self.filler)
        asked = slots[rows, columns]
        once = np.array_equal(rows, np.repeat(np.arange(len(tokens)), self.pairs))
        if have_repeats(bound).any() or not once:
            raise InputError("keys", "one bound twice or not asked once", "distinct keys, each asked once")
        # Both sides in the order of the keys, row by row: then they agree, or a key is asked that is not bound.
        order, found = np.argsort(bound, axis=1), np.argsort(asked.reshape(-1, self.pairs), axis=1)
        same = np.take_along_axis(bound, order, 1) == np.take_along_axis(asked.reshape(-1, self.pairs), found, 1)
        if not same.all():
            raise InputError("keys", "one that is asked but not bound", "each key of the pairs asked once")
        labels = np.full_like(tokens, NOT_ASKED)
        places = np.take_along_axis(columns.reshape(-1, self.pairs), found, 1) + 2 * self.pairs
        right = np.take_along_axis(values, order, 1) - self.filler - self.keys
        np.put_along_axis(labels, places, right, axis=1)
        return labels

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model that does not find the pair would answer.

        - constant: value 0;
        - first value, last value: of the pairs;
        - value before: of the pair before the right one, the last pair's for the first.
        """
        first = self.filler + self.keys

        def at(column: int) -> LabelFunction:
            return lambda tokens: np.repeat(tokens[:, [column]] - first, self.length, axis=1)

        def value_before(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            moved = tokens.copy()
            moved[:, 1 : 2 * self.pairs : 2] = np.roll(tokens[:, 1 : 2 * self.pairs : 2], 1, axis=1)
            return self.labels(moved)

        return {
            "constant": np.zeros_like,
            "first value": at(1),
            "last value": at(2 * self.pairs - 1),
            "value before": value_before,
        }

    def _draw(self, seed: int, split: str, start: int, tokens: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
        """Fill in examples [N, T]; labels are NOT_ASKED before."""
        P, rows = self.pairs, np.arange(len(tokens))[:, None]
        columns = 3 * P + (self.slots if self.filler > 1 else 0)
        drawn = stream.words(seed, self.identity, split, start, len(tokens), columns)
        left = self.keys - np.arange(P, dtype=np.int64)
        keys = distinct(stream.below(drawn[:, :P], left), self.keys)
        values = stream.below(drawn[:, P : 2 * P], np.full(P, self.answers, dtype=np.int64))
        slots = _free_slots(drawn[:, 2 * P : 3 * P], _weights(self.slots, round(100 * self.alpha)))
        tokens[:, 0 : 2 * P : 2] = keys + self.filler
        tokens[:, 1 : 2 * P : 2] = values + self.filler + self.keys
        filler = np.full(self.slots, self.filler, dtype=np.int64)
        tokens[:, 2 * P :] = stream.below(drawn[:, 3 * P :], filler) if self.filler > 1 else 0
        tokens[rows, 2 * P + slots] = keys + self.filler
        labels[rows, 2 * P + slots] = values


def _free_slots(drawn: NDArray[np.uint64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Distinct slots [N, P] from words [N, P]: one by one, each by the weights [S] of those that are free."""
    ends = np.cumsum(weights)
    starts = ends - weights
    count, picks = drawn.shape
    slots = np.empty((picks, count), dtype=np.int64)
    taken = np.empty((0, count), dtype=np.int64)
    free = np.full(count, ends[-1], dtype=np.int64)
    for pick in range(picks):
        # A number among what is free becomes one among all by stepping over the taken slots, from the left.
        number = stream.below(drawn[:, pick], free)
        for slot in taken:
            number += np.where(number >= starts[slot], weights[slot], 0)
        slots[pick] = np.searchsorted(ends, number, side="right")
        free -= weights[slots[pick]]
        taken = np.sort(slots[: pick + 1], axis=0)
    return slots.T


@cache
def _weights(slots: int, hundredths: int) -> NDArray[np.int64]:
    """`floor(W g^(hundredths / 100 - 1))`, at least 1, for g = 1 .. slots, in whole numbers: int64 [slots].

    The floor w is the largest with `w^100 g^(100 - hundredths) <= W^100`; a float says where to look.
    """
    largest = 2 ** min(24, 32 - (slots - 1).bit_length())
    weights = np.empty(slots, dtype=np.int64)
    for g in range(1, slots + 1):
        power = g ** (100 - hundredths)
        weight = max(1, int(largest * g ** (hundredths / 100 - 1)))
        while (weight + 1) ** 100 * power <= largest**100:
            weight += 1
        while weight > 1 and weight**100 * power > largest**100:
            weight -= 1
        weights[g - 1] = weight
    weights.flags.writeable = False
    return weights
