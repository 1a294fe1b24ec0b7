"""Match3: at each token, are there two among the tokens so far that add up to 0 with it?

Source: Representational Strengths and Limitations of Transformers (arXiv 2306.02896). The sequence is n numbers x_1 ..
x_n below M. The label at token i is 1 if some j, k ≤ i have `x_i + x_j + x_k ≡ 0 mod M`, else 0; j and k may be equal,
and either may be i. (There, j and k may also lie behind i; here a causal model can read everything that counts.) One
layer of attention finds pairs (`hopbound.tasks.two_sum`), not triples.

By a coin a token is uniform, or completes a triple with two uniform places before it (the first token: with itself, so
that it is 0). So about half of the labels are 1 where M is much larger than n²; in a smaller M more are 1 by accident.

What makes it harder: a longer sequence with M above n²; M below makes "always" right.

A worked example modulo 10. In the first sequence 8 + 1 + 1 is 10 and 7 + 5 + 8 is 20, but nothing goes with 1 or 5; in
the second 2 + 3 + 5 is 10:

>>> import numpy as np
>>> Match3(length=4, modulus=10).labels(np.array([[1, 8, 5, 7], [3, 3, 5, 2]])).tolist()
[[0, 1, 0, 1], [0, 0, 0, 1]]
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.tasks import stream
from hopbound.tasks.sequence import LabelFunction, Labelled
from hopbound.tasks.sizes import Sized, check_shape, check_tokens, check_whole

MAX_LENGTH = 2**12
MAX_MODULUS = 2**22
_SUMS_AT_ONCE = 2**24  # entries of the tables of sums that are held at a time


@final
@dataclass(frozen=True)
class Match3(Sized):
    """Triples that add up to 0 (see the module's text).

    Args:
        length: n, numbers in the sequence, at least 2.
        modulus: M, at least 4: modulo 3, every number would make a triple with itself.

    Raises:
        InputError: a size is out of range.
    """

    name: ClassVar[str] = "match3"

    length: int
    modulus: int

    def __post_init__(self) -> None:
        check_whole("length", self.length, 2, MAX_LENGTH)
        check_whole("modulus", self.modulus, 4, MAX_MODULUS)

    @property
    def vocabulary_size(self) -> int:
        """M."""
        return self.modulus

    @property
    def prompt_length(self) -> int:
        """n."""
        return self.length

    @property
    def answers(self) -> int:
        """No and yes."""
        return 2

    @property
    def log2_instances(self) -> float:
        """n log₂ M: every sequence of numbers can be drawn."""
        return self.length * float(np.log2(self.modulus))

    @property
    def chance(self) -> float:
        """1 / 2."""
        return 0.5

    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """Numbers that are uniform or, by a coin, complete a triple; labelled by the oracle.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        before = np.maximum(np.arange(self.length, dtype=np.int64), 1)
        ranges = np.concatenate([np.full(self.length, self.modulus), np.full(self.length, 2), before, before])
        drawn = stream.integers(seed, self.identity, split, start, count, ranges)
        tokens, coins, first, second = (part.copy() for part in np.split(drawn, 4, axis=1))
        rows = np.arange(count)
        for i in range(self.length):
            pair = tokens[rows, first[:, i]] + tokens[rows, second[:, i]] if i else 0
            tokens[:, i] = np.where(coins[:, i] == 1, -pair % self.modulus, tokens[:, i])
        return Labelled(tokens, self.labels(tokens))

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whether there is a triple, at all tokens, from a table of the sums of two so far.

        Raises:
            InputError: these are not numbers below M.
        """
        check_shape(tokens, self.length)
        check_tokens("numbers", tokens, self.modulus)
        labels = np.empty_like(tokens)
        size = max(1, _SUMS_AT_ONCE // self.modulus)
        for start in range(0, len(tokens), size):
            part = tokens[start : start + size]
            rows = np.arange(len(part))[:, None]
            sums = np.zeros((len(part), self.modulus), dtype=np.bool_)
            for i in range(self.length):
                sums[rows, (part[:, : i + 1] + part[:, [i]]) % self.modulus] = True
                labels[start : start + size, i] = sums[rows[:, 0], -part[:, i] % self.modulus]
        return labels

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model that looks for less would answer.

        - never: 0; always: 1;
        - pairs: whether a number so far adds up to 0 with the token, as in 2-Sum;
        - with itself: triples that have the token twice;
        - with the token before: triples that have that one.
        """

        def any_so_far(tokens: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
            """Whether the number wanted [N, n] at each token is one so far."""
            found = np.empty_like(tokens)
            for i in range(self.length):
                found[:, i] = (tokens[:, : i + 1] == wanted[:, [i]] % self.modulus).any(axis=1)
            return found

        def with_token_before(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            before = np.concatenate([tokens[:, :1], tokens[:, :-1]], axis=1)
            return any_so_far(tokens, -tokens - before)

        return {
            "never": np.zeros_like,
            "always": np.ones_like,
            "pairs": lambda tokens: any_so_far(tokens, -tokens),
            "with itself": lambda tokens: any_so_far(tokens, -2 * tokens),
            "with the token before": with_token_before,
        }
