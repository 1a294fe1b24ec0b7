"""Parity-conditioned retrieval: the parity of a word of bits says in which of two memories to look something up.

Two memories of `cells` values one after the other, a word of `length` bits, and a token that asks for a cell. The
answer is that cell of the first memory if the number of ones is even, of the second if it is odd. The name is that of
arXiv 2605.16640, whose abstract says what hybrids and their parts make of such a task; the layout is this project's.

Tokens: values are 0 .. values - 1, bits are values and values + 1, then come the cells that can be asked for.

With memories (5, 6) and (7, 8), the bits 1 0 0 and the cell 1 the answer is 8:

>>> import numpy as np
>>> task = ParityRetrieval(cells=2, length=3, values=10)
>>> task.oracle(np.array([[5, 6, 7, 8, 11, 10, 10, 13]])).tolist()
[8]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.tasks.independent import IndependentTokens, Stretch
from hopbound.tasks.parity import MAX_LENGTH
from hopbound.tasks.sizes import check_whole
from hopbound.tasks.task import AnswerFunction, Task


@final
@dataclass(frozen=True)
class ParityRetrieval(IndependentTokens):
    """A look-up in the memory that a parity names (see the module's text).

    Args:
        cells: of each memory, at least 1.
        length: of the word of bits, at least 1.
        values: that a cell can hold, at least 2.

    Raises:
        InputError: a size is no such number.
    """

    name: ClassVar[str] = "parity_retrieval"
    families: ClassVar[Sequence[str]] = ("ones", "memories apart", "one bit apart", "one cell apart")
    """All bits ones; memories that differ everywhere; two prompts that differ in a bit, or in the cell read."""

    cells: int
    length: int
    values: int = 2

    def __post_init__(self) -> None:
        check_whole("cells", self.cells, 1, 2**20)
        check_whole("length", self.length, 1, MAX_LENGTH)
        check_whole("values", self.values, 2, 2**16)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The memories, the bits, the cell."""
        return (
            ("even", self.cells, 0, self.values),
            ("odd", self.cells, 0, self.values),
            ("bit", self.length, self.values, 2),
            ("asked", 1, self.values + 2, self.cells),
        )

    @property
    def answers(self) -> int:
        """The values."""
        return self.values

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells that are asked for, of the memories that the parities name.

        Raises:
            InputError: these are not prompts of this task.
        """
        self.check_prompts(prompts)
        return self._read(prompts, self._odd(prompts, self.length))

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: 0, always the first memory, the last bit for the parity, the parity of the last eight bits."""
        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "first memory": lambda prompts: self._read(prompts, np.zeros(len(prompts), dtype=np.int64)),
            "last bit": lambda prompts: self._read(prompts, self._odd(prompts, 1)),
            "last eight bits": lambda prompts: self._read(prompts, self._odd(prompts, 8)),
        }

    def smaller(self) -> Iterator[Task]:
        """Words of 1, 2, 4, .. bits."""
        sizes = range((self.length - 1).bit_length())
        yield from (ParityRetrieval(self.cells, 2**power, self.values) for power in sizes)

    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `families`."""
        rows = np.arange(len(prompts))
        if family == "ones":
            prompts[:, self.span("bit")] = self.values + 1
        elif family == "memories apart":
            prompts[:, self.span("odd")] = (prompts[:, self.span("even")] + 1) % self.values
        elif family == "one bit apart":
            prompts[1::2] = prompts[::2]
            place = 2 * self.cells + numbers[1::2] // (2 * len(self.families)) % self.length
            prompts[rows[1::2], place] = 2 * self.values + 1 - prompts[rows[1::2], place]
        else:
            prompts[1::2] = prompts[::2]
            place = self._place(prompts[1::2], self._odd(prompts[1::2], self.length))
            prompts[rows[1::2], place] = (prompts[rows[1::2], place] + 1) % self.values
        return prompts

    def _odd(self, prompts: NDArray[np.int64], last: int) -> NDArray[np.int64]:
        """The parities of the last so many bits."""
        bits = prompts[:, self.span("bit")][:, -last:] - self.values
        return bits.sum(axis=1) % 2

    def _place(self, prompts: NDArray[np.int64], odd: NDArray[np.int64]) -> NDArray[np.int64]:
        return odd * self.cells + prompts[:, -1] - (self.values + 2)

    def _read(self, prompts: NDArray[np.int64], odd: NDArray[np.int64]) -> NDArray[np.int64]:
        return prompts[np.arange(len(prompts)), self._place(prompts, odd)]
