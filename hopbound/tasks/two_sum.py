"""2-Sum (Match2): is there a token that adds up to 0 with the last one?

The prompt is n numbers x_1 .. x_n below M; the answer is 1 if some j ≤ n has `x_j + x_n ≡ 0 mod M`, else 0. The last
token may pair with itself, as in the bounds (`hopbound.bounds.sparse_two_sum`): 0 always has a partner, and M/2 where M
is even. Full attention answers in one layer with codes of ⌈log₂ M⌉ digits; a layer that sees blocks through codes that
are too short cannot (arXiv 2602.01763, Theorem 1.2).

A worked example:

>>> import numpy as np
>>> task = TwoSum(n=4, modulus=10)
>>> task.oracle(np.array([[7, 2, 5, 3], [8, 2, 5, 3], [1, 2, 3, 5]])).tolist()
[1, 0, 1]

7 + 3 is 10; nothing in the second prompt adds up with 3; 5 pairs with itself.

Uniform prompts would nearly all have the same answer: 0 where M is much larger than n, 1 where it is much smaller. So
half of the examples get the partner planted at one uniform place, and the others none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sizes import SizedTask, check_shape
from hopbound.tasks.task import AnswerFunction, Batch, Task, instance_digits

TWO_SUM_FAMILIES = ("off by one", "one digit off", "zeros", "first place", "last place", "duplicates", "itself")
"""The families of `TwoSum.adversarial`, in the order in which they take turns."""

MAX_MODULUS = 2**26
MAX_LENGTH = 2**24
_PLACES_CHANGED = 4  # of each instance, by `changes`


@final
@dataclass(frozen=True)
class TwoSum(SizedTask):
    """2-Sum with the last token (see the module's text).

    Args:
        n: numbers in the prompt, at least 2.
        modulus: M, at least 3 (below, every number would be its own partner).

    Raises:
        InputError: a size is out of range.
    """

    name: ClassVar[str] = "two_sum"

    n: int
    modulus: int

    def __post_init__(self) -> None:
        for field, value, least, most in (("n", self.n, 2, MAX_LENGTH), ("modulus", self.modulus, 3, MAX_MODULUS)):
            if type(value) is not int or not least <= value <= most:
                raise InputError(field, value, f"a whole number from {least} to {most}")

    @property
    def vocabulary_size(self) -> int:
        """M."""
        return self.modulus

    @property
    def prompt_length(self) -> int:
        """n."""
        return self.n

    @property
    def answers(self) -> int:
        """No and yes."""
        return 2

    @property
    def instances(self) -> int:
        """M^n."""
        return self.modulus**self.n

    @property
    def log2_instances(self) -> float:
        """n log₂ M."""
        return self.n * float(np.log2(self.modulus))

    @property
    def chance(self) -> float:
        """1 / 2."""
        return 0.5

    def partner(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """What adds up to 0 with the last token of each prompt [N, n]: int64 [N]."""
        return -prompts[:, -1] % self.modulus

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Uniform numbers; in every other example, by a coin, the partner stands at a uniform place, else nowhere.

        The answer is 1 in half of the examples and where the last token pairs with itself.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        # Numbers are uniform among the M - 1 that are no partners: the places after it move up by one.
        ranges = np.full(self.n + 2, self.modulus - 1, dtype=np.int64)
        ranges[self.n - 1 :] = (self.modulus, 2, self.n - 1)
        drawn = stream.integers(seed, self.identity, split, start, count, ranges)
        prompts, coin, place = drawn[:, : self.n].copy(), drawn[:, self.n], drawn[:, self.n + 1]
        partner = self.partner(prompts)
        prompts[:, :-1] += prompts[:, :-1] >= partner[:, None]
        planted = np.flatnonzero(coin)
        prompts[planted, place[planted]] = partner[planted]
        return Batch(prompts, self.oracle(prompts))

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number: the tokens are its digits to the base M, the last token fastest.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        ranges = np.full(self.n, self.modulus, dtype=np.int64)
        prompts = instance_digits(start, count, ranges, self.instances)
        return Batch(prompts, self.oracle(prompts))

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most others.

        The families of `TWO_SUM_FAMILIES` take turns, two examples each (see `adversarial_family`): 2i has the answer 0
        and 2i + 1 is the same with the partner planted, at one place if nothing else is said. Elsewhere stand

        - off by one: numbers one above or one below the partner;
        - one digit off: numbers that differ from the partner in one binary digit, where these are below M;
        - zeros: zeros;
        - first place, last place: uniform numbers that are no partners; planted first, or right before the last token;
        - duplicates: the last token's own number; planted at every other place, from a place that is drawn;
        - itself: numbers that are no partners; 2i ends with a number without partner, 2i + 1 with 0, which pairs with
          itself, and is not planted at all.

        The last token pairs with itself in no other family.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        stream.check_range(start, count)
        numbers = np.arange(start, start + count) // 2  # both examples of a pair come from the same words
        first = start // 2
        pairs = (start + count + 1) // 2 - first
        ranges = np.full(self.n + 1, self.modulus - 1, dtype=np.int64)
        ranges[self.n - 1 :] = (self.modulus, self.n - 1)
        drawn = stream.integers(seed, f"{self.identity} adversarial", "adversarial", first, pairs, ranges)
        drawn = drawn[numbers - first]
        turn = numbers % len(TWO_SUM_FAMILIES)
        right = np.arange(start, start + count) % 2 == 1
        prompts = np.empty((count, self.n), dtype=np.int64)
        for index, family in enumerate(TWO_SUM_FAMILIES):
            rows = np.flatnonzero(turn == index)
            if len(rows):
                prompts[rows] = self._family(family, drawn[rows], right[rows])
        return Batch(prompts, self.oracle(prompts))

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return TWO_SUM_FAMILIES[number // 2 % len(TWO_SUM_FAMILIES)]

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs from a batch: a token becomes the partner, or the only partner becomes another number.

        Instances with the answer 0 get the partner at the first place, in the middle, right before the last token, and
        at a place that goes on from instance to instance.
        """
        rows = np.arange(len(batch))
        partner = self.partner(batch.prompts)
        before_last = self.n - 1
        no = np.flatnonzero(batch.answers == 0)
        for places in (0 * rows, 0 * rows + before_last // 2, 0 * rows + before_last - 1, (start + rows) % before_last):
            if len(no):
                changed = batch.prompts[no].copy()
                changed[np.arange(len(no)), places[no]] = partner[no]
                yield np.stack([batch.prompts[no], changed], axis=1)
        hits = batch.prompts == partner[:, None]
        single = np.flatnonzero((hits.sum(axis=1) == 1) & ~hits[:, -1])
        if len(single):
            changed = batch.prompts[single].copy()
            changed[hits[single]] = (partner[single] + 1 + (start + single) % (self.modulus - 1)) % self.modulus
            yield np.stack([batch.prompts[single], changed], axis=1)

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Every row of n numbers below M is a prompt."""
        return (prompts.min(axis=1, initial=0) >= 0) & (prompts.max(axis=1, initial=0) < self.modulus)

    def smaller(self) -> Iterator[Task]:
        """Fewer numbers, the same modulus."""
        n = 2
        while n < self.n:
            yield TwoSum(n, self.modulus)
            n += max(1, n // 2)

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N] to prompts [N, n], read from the tokens alone.

        Raises:
            InputError: these are not prompts of this task.
        """
        self._check(prompts)
        return (prompts == self.partner(prompts)[:, None]).any(axis=1).astype(np.int64)

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: what a model that looks for something else would answer.

        - never: 0;
        - always: 1;
        - equal: whether the last token's own number stands before it;
        - the token before: whether that one is the partner;
        - off by one: whether a number within one of the partner stands anywhere;
        - low digits: whether a number agrees with the partner in the lower half of the binary digits.
        """
        bits = (self.modulus - 1).bit_length()

        def near(prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
            apart = (prompts - self.partner(prompts)[:, None]) % self.modulus
            return ((apart <= 1) | (apart == self.modulus - 1)).any(axis=1)

        def low(prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
            mask = 2 ** ((bits + 1) // 2) - 1
            return ((prompts & mask) == (self.partner(prompts) & mask)[:, None]).any(axis=1)

        return {
            "never": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "always": lambda prompts: np.ones(len(prompts), dtype=np.int64),
            "equal": lambda prompts: (prompts[:, :-1] == prompts[:, -1:]).any(axis=1).astype(np.int64),
            "the token before": lambda prompts: (prompts[:, -2] == self.partner(prompts)).astype(np.int64),
            "off by one": lambda prompts: near(prompts).astype(np.int64),
            "low digits": lambda prompts: low(prompts).astype(np.int64),
        }

    def _check(self, prompts: NDArray[np.int64]) -> None:
        check_shape(prompts, self.n)
        if prompts.size and not 0 <= prompts.min() <= prompts.max() < self.modulus:
            raise InputError("prompts", f"{prompts.min()} to {prompts.max()}", f"numbers from 0, below {self.modulus}")

    def _family(self, family: str, drawn: NDArray[np.int64], right: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Prompts of one family from words: n - 1 numbers below M - 1, one below M, a place before the last token."""
        M, rows = self.modulus, np.arange(len(drawn))
        others, last, place = drawn[:, : self.n - 1], drawn[:, self.n - 1], drawn[:, self.n]
        last = np.where(2 * last % M == 0, (last + 1) % M, last)  # for M ≥ 3 the next number does not pair with itself
        partner = -last % M
        apart = others + (others >= partner[:, None])  # uniform, but no partners
        if family == "itself":
            rest = 1 + others % (M - 2)  # without 0 and, below, the other last number's partner
            prompts = np.column_stack([rest + (rest >= partner[:, None]), last])
            prompts[right, -1] = 0
            return prompts
        if family == "off by one":
            apart = (partner[:, None] + np.where(others % 2, 1, -1)) % M
        elif family == "one digit off":
            digit = partner[:, None] ^ (1 << others % (M - 1).bit_length())
            apart = np.where(digit < M, digit, apart)
        elif family == "zeros":
            apart = np.zeros_like(others)
        elif family == "duplicates":
            apart = np.broadcast_to(last[:, None], others.shape).copy()
        prompts = np.column_stack([apart, last])
        place = {"first place": 0 * place, "last place": 0 * place + self.n - 2}.get(family, place)
        planted = np.flatnonzero(right)
        prompts[rows[planted], place[planted]] = partner[planted]
        if family == "duplicates":
            every_other = (np.arange(self.n - 1) - place[:, None]) % 2 == 0
            earlier = np.where(every_other & right[:, None], partner[:, None], prompts[:, :-1])
            prompts = np.column_stack([earlier, last])
        return prompts
