"""Words over permutations: where the product of a word's letters takes a point.

Letters are permutations of k points, read as functions; a word g_1 g_2 .. g_n stands for the product g_1 ∘ g_2 ∘ .. ∘
g_n, whose last letter acts first. The prompt is the word and then a token that names a point b; the answer is
g_1(g_2(.. g_n(b))).

Another reading: k cards lie in k places, card i in place i. The letter g puts the card from place g(i) into place i,
for all i at once. After the word, which card lies in place b?

`letters` says what the letters are:

- `transpositions`: the identity, then all swaps (i j) with i < j in lexicographic order;
- `symmetric`, `alternating`, `cyclic`: all elements of that group of the k points, in lexicographic order of their
  values (for k ≤ 5; cyclic: shifts by 0, 1, .., k - 1, for any k).

Letter 0 is always the identity. With k ≥ 5 the word problem of the symmetric and of the alternating group is complete
for NC¹ (Barrington 1989); parity is the case k = 2.

A worked example, k = 3, letters (0) identity, (1) swaps 0 and 1, (2) swaps 0 and 2, (3) swaps 1 and 2; points are the
tokens 4, 5, 6. The word `1 3` and the point 2: letter 3 takes 2 to 1, letter 1 takes 1 to 0:

>>> import numpy as np
>>> task = PermutationWords(points=3, length=2)
>>> task.permutations.tolist()
[[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]]
>>> task.oracle(np.array([[1, 3, 6]])).tolist()
[0]
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks.independent import IndependentTokens, Stretch
from hopbound.tasks.sizes import check_whole
from hopbound.tasks.task import AnswerFunction, Task

Letters = Literal["transpositions", "symmetric", "alternating", "cyclic"]
MAX_LENGTH = 2**30
MOST_POINTS: dict[str, int] = {"transpositions": 64, "symmetric": 5, "alternating": 5, "cyclic": 1024}


@final
@dataclass(frozen=True)
class PermutationWords(IndependentTokens):
    """The image of a point under a product of permutations (see the module's text).

    Args:
        points: k, at least 2.
        length: of the word, at least 1; the prompt has one token more.
        letters: which permutations are letters.

    Raises:
        InputError: a size is no such number, or there are too many letters.
    """

    name: ClassVar[str] = "permutation_words"
    families: ClassVar[Sequence[str]] = ("one letter repeated", "there and back", "one move", "one letter apart")
    """One letter again and again; a word and its inverse, so that all comes back; identities but for one letter; two
    words that differ in one letter."""

    points: int
    length: int
    letters: Letters = "transpositions"

    def __post_init__(self) -> None:
        if self.letters not in get_args(Letters):
            raise InputError("letters", self.letters, f"one of {', '.join(get_args(Letters))}")
        check_whole("points", self.points, 2, MOST_POINTS[self.letters])
        if self.letters == "alternating" and self.points == 2:
            raise InputError("points", self.points, "at least 3 for an alternating group of more than one element")
        check_whole("length", self.length, 1, MAX_LENGTH)

    @cached_property
    def permutations(self) -> NDArray[np.int64]:
        """What each letter does: int64 [letters, k], row g holds g(0), g(1), .."""
        return np.array(letters_of(self.points, self.letters), dtype=np.int64)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The letters, then the point."""
        count = len(self.permutations)
        return ("letter", self.length, 0, count), ("point", 1, count, self.points)

    @property
    def answers(self) -> int:
        """The points."""
        return self.points

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the products take the points.

        Raises:
            InputError: these are not prompts of this task.
        """
        self.check_prompts(prompts)
        return self._images(prompts[:, :-1], prompts[:, -1] - len(self.permutations))

    def path(self, prompts: NDArray[np.int64]) -> list[list[int]]:
        """The points that b, g_n(b), g_{n-1}(g_n(b)), .. are."""
        paths = []
        for prompt in prompts.tolist():
            visited = [prompt[-1] - len(self.permutations)]
            for letter in reversed(prompt[:-1]):
                visited.append(int(self.permutations[letter, visited[-1]]))
            paths.append(visited)
        return paths

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: 0, the point itself, the last letter alone, the first letter alone, the word backwards."""

        def image(letters: slice) -> AnswerFunction:
            return lambda prompts: self._images(prompts[:, :-1][:, letters], prompts[:, -1] - len(self.permutations))

        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "no letter": lambda prompts: prompts[:, -1] - len(self.permutations),
            "last letter": image(slice(-1, None)),
            "first letter": image(slice(0, 1)),
            "backwards": image(slice(None, None, -1)),
        }

    def smaller(self) -> Iterator[Task]:
        """Words of 1, 2, 4, .. letters."""
        sizes = range((self.length - 1).bit_length())
        yield from (PermutationWords(self.points, 2**power, self.letters) for power in sizes)

    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `families`."""
        words, rows = prompts[:, :-1], np.arange(len(prompts))
        if family == "one letter repeated":
            words[:] = words[:, :1]
        elif family == "there and back":
            half = self.length // 2
            words[:, self.length - half :] = self._inverses[words[:, :half][:, ::-1]]
            words[:, half : self.length - half] = 0
        elif family == "one move":
            moved = numbers % self.length
            letters = words[rows, moved]
            words[:] = 0
            words[rows, moved] = letters
        else:
            first, other = prompts[::2], prompts[1::2].copy()
            prompts[1::2] = first
            changed = numbers[1::2] // (2 * len(self.families)) % self.length
            pairs = np.arange(len(first))
            new = other[pairs, changed]
            new = np.where(new == first[pairs, changed], (new + 1) % len(self.permutations), new)
            prompts[rows[1::2], changed] = new
        return prompts

    @cached_property
    def _inverses(self) -> NDArray[np.int64]:
        """The number of each letter's inverse, which is a letter too."""
        number = {tuple(row): index for index, row in enumerate(self.permutations.tolist())}
        return np.array([number[tuple(np.argsort(row).tolist())] for row in self.permutations], dtype=np.int64)

    def _images(self, words: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Points [N] under words [N, n], the last letter first."""
        flat, points = self.permutations.ravel(), points.copy()
        starts = words.T * self.points
        for letter in starts[::-1]:
            points = flat[letter + points]
        return points


@cache
def letters_of(points: int, letters: Letters) -> tuple[tuple[int, ...], ...]:
    """The letters of a kind, the identity first: each the tuple of its values."""
    identity = tuple(range(points))
    if letters == "cyclic":
        return tuple(tuple((i + shift) % points for i in identity) for shift in identity)
    if letters == "transpositions":
        swaps = []
        for i, j in itertools.combinations(identity, 2):
            swapped = list(identity)
            swapped[i], swapped[j] = j, i
            swaps.append(tuple(swapped))
        return identity, *swaps
    found = itertools.permutations(identity)
    return tuple(one for one in found if letters == "symmetric" or _is_even(one))


def _is_even(permutation: tuple[int, ...]) -> bool:
    """Whether a permutation has an even number of inversions."""
    return sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0
