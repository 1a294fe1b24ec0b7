"""Brackets, what may come next: at each token of a prefix of a Dyck word of bounded depth, the set of allowed tokens.

Prefixes are those of `hopbound.tasks.dyck`: tokens `0 .. kinds - 1` open a bracket of that kind, tokens `kinds ..
2 kinds - 1` close one, at most `depth` brackets are open at a time. Next may come any opener unless `depth` brackets
are open, and the closer of the innermost open bracket if one is open. So there are three sorts of sets, and the label
says which it is:

- 0: openers alone (nothing is open);
- 1 + k: the closer of kind k alone (`depth` brackets are open, the innermost of kind k);
- 1 + kinds + k: openers and the closer of kind k. With depth 1 there is no such set.

What makes it harder: more kinds, a larger depth, a longer prefix.

A worked example with two kinds, ( ) and [ ], tokens 0 2 and 1 3, depth 2. After `(` all openers and `)` may come, after
`( [` only `]`, after `( [ ]` what may come after `(`, after `( [ ] )` openers alone:

>>> import numpy as np
>>> DyckNext(kinds=2, depth=2, length=4).labels(np.array([[0, 1, 3, 2]])).tolist()
[[3, 2, 3, 0]]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks.dyck import Dyck
from hopbound.tasks.sequence import LabelFunction, Labelled
from hopbound.tasks.sizes import Sized, check_shape, check_tokens


@final
@dataclass(frozen=True)
class DyckNext(Sized):
    """The set of allowed next tokens (see the module's text).

    Args:
        kinds: of brackets, at least 1.
        depth: how many are open at most, at least 1.
        length: of the prefix, at least 1.

    Raises:
        InputError: a size is no such number.
    """

    name: ClassVar[str] = "dyck_next"

    kinds: int
    depth: int
    length: int

    def __post_init__(self) -> None:
        self.prefixes  # noqa: B018 - it checks the sizes

    @cached_property
    def prefixes(self) -> Dyck:
        """The task whose prompts these sequences are."""
        return Dyck(self.kinds, self.depth, self.length)

    @property
    def vocabulary_size(self) -> int:
        """An opener and a closer of each kind."""
        return 2 * self.kinds

    @property
    def prompt_length(self) -> int:
        """The prefix alone."""
        return self.length

    @property
    def answers(self) -> int:
        """The sets."""
        return 1 + self.kinds * (1 if self.depth == 1 else 2)

    @property
    def log2_instances(self) -> float:
        """Of the prefixes of this length."""
        return self.prefixes.log2_instances

    @property
    def chance(self) -> float:
        """One in `answers`."""
        return 1 / self.answers

    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """Random prefixes, token by token, as those of `hopbound.tasks.dyck`, labelled by the oracle.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        tokens = self.prefixes.draw(seed, self.identity, split, start, count)
        return Labelled(tokens, self.labels(tokens))

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sets after all tokens.

        Raises:
            InputError: these are not prefixes within the depth.
        """
        heights, tops = self._read(tokens)
        return np.where(heights == 0, 0, 1 + tops + np.where(heights == self.depth, 0, self.kinds))

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model that does not keep the stack would answer.

        - nothing open: openers alone;
        - last opener: how many are open is right, but the innermost is taken to be the last that was opened;
        - never full: all is right, but the depth is forgotten; with depth 1, where this set is none, the last opener.
        """

        def with_kind(heights: NDArray[np.int64], kinds: NDArray[np.int64], bounded: bool) -> NDArray[np.int64]:
            full = (heights == self.depth) if bounded or self.depth == 1 else np.zeros_like(heights, dtype=np.bool_)
            return np.where(heights == 0, 0, 1 + kinds + np.where(full, 0, self.kinds))

        def last_opener(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            places = np.where(tokens < self.kinds, np.arange(self.length), 0)
            last = np.take_along_axis(tokens, np.maximum.accumulate(places, axis=1), axis=1)
            return with_kind(self._read(tokens)[0], last, True)

        def never_full(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            return with_kind(*self._read(tokens), False)

        return {
            "nothing open": np.zeros_like,
            "last opener": last_opener,
            "never full": never_full if self.depth > 1 else last_opener,
        }

    def _read(self, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """After each token, how many brackets are open and the kind of the innermost, 0 for none: int64 [N, n] both."""
        check_shape(tokens, self.length)
        check_tokens("brackets", tokens, 2 * self.kinds)
        opens = tokens < self.kinds
        heights = np.cumsum(np.where(opens, 1, -1), axis=1)
        if heights.size and not 0 <= heights.min() <= heights.max() <= self.depth:
            raise InputError("heights", f"{heights.min()} to {heights.max()}", f"0 to {self.depth} open brackets")
        tops, rows = np.zeros_like(tokens), np.arange(len(tokens))
        stack = np.zeros((len(tokens), self.depth + 1), dtype=np.int64)
        for t in range(self.length):
            height, token = heights[:, t], tokens[:, t]
            stack[rows[opens[:, t]], height[opens[:, t]]] = token[opens[:, t]]
            closes = ~opens[:, t]
            if (stack[rows[closes], height[closes] + 1] + self.kinds != token[closes]).any():
                raise InputError("brackets", "one closed by another kind", "each closed by its own kind")
            tops[:, t] = np.where(height > 0, stack[rows, height], 0)
        return heights, tops
