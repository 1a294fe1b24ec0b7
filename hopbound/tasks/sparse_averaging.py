"""Sparse averaging: the sum of the digits at q named positions.

Source: q-sparse averaging, Representational Strengths and Limitations of Transformers (arXiv 2306.02896): every token
names q positions and asks for the mean of the vectors there. Here vectors are digits and the mean is their sum, so that
answers are exact. First stand n digits. Then each question is q tokens, different positions in any order, and asks at
the last of them; nothing else is asked. (One token that names q positions at once would need as many symbols as there
are sets of q.)

Tokens `0 .. digits - 1` are digits; token `digits + p` is the position p, from 0.

What makes it harder: larger q, which a layer of attention needs about q numbers a token for; more positions, digits and
questions.

A worked example, n = 4 bits, q = 2, two questions:

>>> import numpy as np
>>> task = SparseAveraging(positions=4, q=2, questions=2)
>>> task.labels(np.array([[1, 0, 0, 1, 2, 5, 3, 4]])).tolist()
[[-1, -1, -1, -1, -1, 2, -1, 0]]

Positions 0 and 3 hold 1 and 1; positions 1 and 2 hold 0 and 0.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sequence import NOT_ASKED, LabelFunction, Labelled
from hopbound.tasks.sizes import Sized, check_shape, check_tokens, check_whole, distinct, have_repeats

MAX_POSITIONS = 2**16


@final
@dataclass(frozen=True)
class SparseAveraging(Sized):
    """Sums over named positions (see the module's text).

    Args:
        positions: n, at least 2.
        q: how many are named at a time, from 1 to n.
        digits: how many digits there are, at least 2.
        questions: at least 1.

    Raises:
        InputError: a size is out of range.
    """

    name: ClassVar[str] = "sparse_averaging"

    positions: int
    q: int
    digits: int = 2
    questions: int = 1

    def __post_init__(self) -> None:
        check_whole("positions", self.positions, 2, MAX_POSITIONS)
        check_whole("q", self.q, 1, self.positions)
        check_whole("digits", self.digits, 2, 2**16)
        check_whole("questions", self.questions, 1, MAX_POSITIONS)

    @property
    def vocabulary_size(self) -> int:
        """Digits and positions."""
        return self.digits + self.positions

    @property
    def prompt_length(self) -> int:
        """The digits, then the questions."""
        return self.positions + self.q * self.questions

    @property
    def answers(self) -> int:
        """Sums of q digits, from 0."""
        return self.q * (self.digits - 1) + 1

    @property
    def log2_instances(self) -> float:
        """Of the digits and of the sequences of q different positions."""
        return self.positions * math.log2(self.digits) + self.questions * math.log2(math.perm(self.positions, self.q))

    @property
    def chance(self) -> float:
        """One in `answers`."""
        return 1 / self.answers

    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """Uniform digits and positions, labelled by the oracle.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        left = self.positions - np.arange(self.q, dtype=np.int64)
        ranges = np.concatenate([np.full(self.positions, self.digits), np.tile(left, self.questions)])
        tokens = stream.integers(seed, self.identity, split, start, count, ranges)
        choices = tokens[:, self.positions :].reshape(-1, self.q)
        named = distinct(choices, self.positions).reshape(count, self.q * self.questions)
        tokens[:, self.positions :] = named + self.digits
        return Labelled(tokens, self.labels(tokens))

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums at the last tokens of the questions.

        Raises:
            InputError: these are not sequences of this task.
        """
        return self._summed(tokens, self._named(tokens))

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model that misses positions would answer.

        - middle: half of the largest sum, rounded down;
        - last position: q times its digit;
        - all but one: the sum without the first of the positions;
        - mean of all: q times the mean of all digits, rounded down.
        """

        def last_position(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            named = self._named(tokens)
            return self._summed(tokens, np.repeat(named[:, :, -1:], self.q, axis=2))

        def mean_of_all(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            total = tokens[:, : self.positions].sum(axis=1, keepdims=True)
            return np.repeat(self.q * total // self.positions, self.prompt_length, axis=1)

        return {
            "middle": lambda tokens: np.full_like(tokens, (self.answers - 1) // 2),
            "last position": last_position,
            "all but one": lambda tokens: self._summed(tokens, self._named(tokens)[:, :, 1:]),
            "mean of all": mean_of_all,
        }

    def _named(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions that each question names: int64 [N, questions, q]."""
        check_shape(tokens, self.prompt_length)
        check_tokens("digits", tokens[:, : self.positions], self.digits)
        named = tokens[:, self.positions :]
        check_tokens("positions", named, self.positions, self.digits)
        if have_repeats(named.reshape(-1, self.q)).any():
            raise InputError("positions", "one named twice in a question", "different positions")
        return (named - self.digits).reshape(len(tokens), self.questions, self.q)

    def _summed(self, tokens: NDArray[np.int64], named: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels [N, n] from positions [N, questions, any]."""
        labels = np.full_like(tokens, NOT_ASKED)
        rows = np.arange(len(tokens))[:, None, None]
        labels[:, self.positions + self.q - 1 :: self.q] = tokens[rows, named].sum(axis=2)
        return labels
