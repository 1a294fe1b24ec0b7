"""State-based recall: follow which variable points where through swaps, then read the memory at the address it holds.

A memory of `cells` values; `pointers` variables with an address each; then `swaps` tokens, each of which swaps the
addresses of two variables or does nothing; the last token asks a variable. The answer is the value in the cell to which
that variable points in the end. The task is that of Olmo Hybrid (arXiv 2604.03444): to follow the pointers is a word
problem of permutations, to read the memory takes a look-up; there the memory holds bits and five pointers start at
different cells, here the sizes are free and two pointers may start at one cell.

Tokens: values are 0 .. values - 1, then come the addresses, the swaps (nothing, then all pairs i < j in lexicographic
order), the variables that can be asked.

A worked example, memory (7, 8, 9), two variables that point to cells 2 and 0, one swap, asked for variable 0: it points
to cell 0 then, which holds 7.

>>> import numpy as np
>>> task = StateRecall(cells=3, pointers=2, swaps=1, values=10)
>>> task.stretches
(('cell', 3, 0, 10), ('pointer', 2, 10, 3), ('swap', 1, 13, 2), ('asked', 1, 15, 2))
>>> task.oracle(np.array([[7, 8, 9, 12, 10, 14, 15]])).tolist()
[7]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.tasks.independent import IndependentTokens, Stretch
from hopbound.tasks.permutation_words import MAX_LENGTH, PermutationWords
from hopbound.tasks.sizes import check_whole
from hopbound.tasks.task import AnswerFunction, Task

MAX_CELLS = 2**20


@final
@dataclass(frozen=True)
class StateRecall(IndependentTokens):
    """Pointers that are swapped, then read (see the module's text).

    Args:
        cells: of the memory, at least 2.
        pointers: variables, at least 2.
        swaps: tokens that swap or do nothing, at least 1.
        values: that a cell can hold, at least 2.

    Raises:
        InputError: a size is no such number.
    """

    name: ClassVar[str] = "state_recall"
    families: ClassVar[Sequence[str]] = ("nothing moves", "one swap repeated", "one cell apart", "one swap apart")
    """No swap at all; one swap again and again; two prompts that differ in the cell that is read, or in one swap."""

    cells: int
    pointers: int
    swaps: int
    values: int = 2

    def __post_init__(self) -> None:
        check_whole("cells", self.cells, 2, MAX_CELLS)
        check_whole("pointers", self.pointers, 2, 64)
        check_whole("swaps", self.swaps, 1, MAX_LENGTH)
        check_whole("values", self.values, 2, 2**16)

    @cached_property
    def permutations(self) -> NDArray[np.int64]:
        """What each swap does to the variables: int64 [swap tokens, pointers]."""
        return PermutationWords(self.pointers, 1).permutations

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Memory, pointers, swaps, the variable that is asked."""
        kinds, first_swap = len(self.permutations), self.values + self.cells
        return (
            ("cell", self.cells, 0, self.values),
            ("pointer", self.pointers, self.values, self.cells),
            ("swap", self.swaps, first_swap, kinds),
            ("asked", 1, first_swap + kinds, self.pointers),
        )

    @property
    def answers(self) -> int:
        """The values."""
        return self.values

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the cells hold to which the asked variables point in the end.

        Raises:
            InputError: these are not prompts of this task.
        """
        self.check_prompts(prompts)
        return self._read(prompts, self._first_holders(prompts, self._swapped(prompts)))

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: 0, the variable's first cell, only the last swap, only the first one, the memory's first cell."""
        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "no swap": lambda prompts: self._read(prompts, self._first_holders(prompts, self._swapped(prompts)[:, :0])),
            "last swap": lambda prompts: self._read(
                prompts, self._first_holders(prompts, self._swapped(prompts)[:, -1:])
            ),
            "first swap": lambda prompts: self._read(
                prompts, self._first_holders(prompts, self._swapped(prompts)[:, :1])
            ),
            "first cell": lambda prompts: prompts[:, 0].copy(),
        }

    def smaller(self) -> Iterator[Task]:
        """1, 2, 4, .. swaps."""
        sizes = range((self.swaps - 1).bit_length())
        yield from (StateRecall(self.cells, self.pointers, 2**power, self.values) for power in sizes)

    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `families`."""
        swaps, rows = prompts[:, self.span("swap")], np.arange(len(prompts))
        if family == "nothing moves":
            swaps[:] = self.values + self.cells
        elif family == "one swap repeated":
            swaps[:] = swaps[:, :1]
        elif family == "one cell apart":
            prompts[1::2] = prompts[::2]
            pairs = prompts[::2]
            holders = self._first_holders(pairs, self._swapped(pairs))
            cells = self._addresses(pairs, holders)
            prompts[rows[1::2], cells] = (prompts[rows[1::2], cells] + 1) % self.values
        else:
            prompts[1::2] = prompts[::2]
            first, kinds = self.values + self.cells, len(self.permutations)
            place = numbers[1::2] // (2 * len(self.families)) % self.swaps
            swaps = prompts[:, self.span("swap")]
            swaps[rows[1::2], place] = first + (swaps[rows[1::2], place] - first + 1) % kinds
        return prompts

    def _swapped(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the swaps [N, swaps]."""
        return prompts[:, self.span("swap")] - (self.values + self.cells)

    def _first_holders(self, prompts: NDArray[np.int64], swaps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which variable held at first the address that the asked one holds in the end: from the last swap back."""
        holders = prompts[:, -1] - self.stretches[-1][2]
        for swap in swaps.T[::-1]:
            holders = self.permutations[swap, holders]
        return holders

    def _addresses(self, prompts: NDArray[np.int64], holders: NDArray[np.int64]) -> NDArray[np.int64]:
        return prompts[np.arange(len(prompts)), self.cells + holders] - self.values

    def _read(self, prompts: NDArray[np.int64], holders: NDArray[np.int64]) -> NDArray[np.int64]:
        return prompts[np.arange(len(prompts)), self._addresses(prompts, holders)]
