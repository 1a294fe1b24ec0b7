"""Words over a group: at each token, the product of all elements so far.

Tokens and labels are the elements of a group, numbered: of S_k and A_k, the permutations of k points, in lexicographic
order of their values; of the cyclic group C_k (or Z_k), the shifts by 0, 1, .., k - 1. Element 0 is the identity. The
label at token t is g_1 ∘ g_2 ∘ .. ∘ g_t, whose last factor acts first, as in `hopbound.tasks.permutation_words`.

What makes it harder: a longer word; the group. The word problem of S_5 and A_5 is complete for NC¹ (Barrington 1989);
S_3, S_4, A_4 and cyclic groups are solvable and their word problems in ACC⁰; C_2 is parity.

A worked example in S_3. Element 1 is (0, 2, 1), element 2 is (1, 0, 2), and 1 ∘ 2 takes 0 to 2, 1 to 0, 2 to 1:

>>> import numpy as np
>>> task = GroupWords(group="S3", length=3)
>>> task.elements.tolist()
[[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
>>> task.labels(np.array([[1, 2, 1]])).tolist()
[[1, 4, 5]]
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks.independent import Stretch, UniformSequence
from hopbound.tasks.permutation_words import Letters, letters_of
from hopbound.tasks.sequence import LabelFunction
from hopbound.tasks.sizes import check_whole

MAX_LENGTH = 2**24
_KINDS: dict[str, tuple[Letters, int, int]] = {
    "S": ("symmetric", 2, 5),
    "A": ("alternating", 3, 5),
    "C": ("cyclic", 2, 256),
}


@final
@dataclass(frozen=True)
class GroupWords(UniformSequence):
    """The product so far (see the module's text).

    Args:
        group: S2 to S5, A3 to A5, or C2 to C256; Zk is written as Ck.
        length: of the word, at least 1.

    Raises:
        InputError: there is no such group here, or the length is no such number.
    """

    name: ClassVar[str] = "group_words"

    group: str
    length: int

    def __post_init__(self) -> None:
        match = re.fullmatch(r"([SACZ])([1-9]\d{0,2})", self.group) if isinstance(self.group, str) else None
        kind = "C" if match and match[1] == "Z" else match[1] if match else ""
        if match is None or not _KINDS[kind][1] <= int(match[2]) <= _KINDS[kind][2]:
            known = ", ".join(f"{kind}{least} to {kind}{most}" for kind, (_, least, most) in _KINDS.items())
            raise InputError("group", self.group, known)
        object.__setattr__(self, "group", f"{kind}{match[2]}")
        check_whole("length", self.length, 1, MAX_LENGTH)

    @cached_property
    def elements(self) -> NDArray[np.int64]:
        """What each element does: int64 [order, k], row g holds g(0), g(1), .."""
        return np.array(letters_of(int(self.group[1:]), _KINDS[self.group[0]][0]), dtype=np.int64)

    @cached_property
    def products(self) -> NDArray[np.int64]:
        """The number of g ∘ h: int64 [order, order]."""
        first = self.elements[:, :2] if self.group[0] == "C" else self.elements  # a shift is known by two values
        places = self.elements.shape[1] ** np.arange(first.shape[1])
        codes = first @ places
        order = np.argsort(codes)
        return order[np.searchsorted(codes, self.elements[:, first] @ places, sorter=order)]

    @property
    def stretches(self) -> Sequence[Stretch]:
        """The word alone."""
        return (("element", self.length, 0, len(self.elements)),)

    @property
    def answers(self) -> int:
        """The order of the group."""
        return len(self.elements)

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The products at all tokens.

        Raises:
            InputError: these are not words of this task.
        """
        self.check_prompts(tokens)
        labels = tokens.copy()
        for t in range(1, self.length):
            labels[:, t] = self.products[labels[:, t - 1], tokens[:, t]]
        return labels

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model that does not keep the product would answer.

        - identity;
        - last element: the token's own; last two elements: the product of those alone;
        - backwards: g_t ∘ .. ∘ g_1. In a group that commutes that would be right, and is left out.
        """

        def last_two(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            labels = tokens.copy()
            labels[:, 1:] = self.products[tokens[:, :-1], tokens[:, 1:]]
            return labels

        def backwards(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            labels = tokens.copy()
            for t in range(1, self.length):
                labels[:, t] = self.products[tokens[:, t], labels[:, t - 1]]
            return labels

        found: dict[str, LabelFunction] = {
            "identity": np.zeros_like,
            "last element": np.copy,
            "last two elements": last_two,
        }
        commutes = np.array_equal(self.products, self.products.T)
        return found if commutes else {**found, "backwards": backwards}
