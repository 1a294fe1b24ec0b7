"""Parity: whether the number of ones in a word of bits is odd, the least state that there is to track.

A word of `length` tokens 0 and 1; the answer, read at its last token, is the sum of the bits modulo 2. No token can be
left out: changing any one of them changes the answer.

>>> import numpy as np
>>> Parity(length=5).oracle(np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]])).tolist()
[1, 0]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.tasks.independent import IndependentTokens, Stretch
from hopbound.tasks.sizes import check_whole
from hopbound.tasks.task import AnswerFunction, Task

MAX_LENGTH = 2**30


@final
@dataclass(frozen=True)
class Parity(IndependentTokens):
    """The parity of a word of bits (see the module's text).

    Args:
        length: of the word, at least 1.

    Raises:
        InputError: the length is no such number.
    """

    name: ClassVar[str] = "parity"
    families: ClassVar[Sequence[str]] = ("ones", "single one", "alternating", "one bit apart")
    """All ones but at the last token; a single one; 0 1 0 1 ..; two uniform words that differ in one bit."""

    length: int

    def __post_init__(self) -> None:
        check_whole("length", self.length, 1, MAX_LENGTH)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The word alone."""
        return (("bit", self.length, 0, 2),)

    @property
    def answers(self) -> int:
        """Even or odd."""
        return 2

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of the bits modulo 2.

        Raises:
            InputError: these are not prompts of this task.
        """
        self.check_prompts(prompts)
        return prompts.sum(axis=1) % 2

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: even, the last bit, whether ones are in the majority, the parity of the last eight bits."""
        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "last bit": lambda prompts: prompts[:, -1].copy(),
            "majority": lambda prompts: (2 * prompts.sum(axis=1) > self.length).astype(np.int64),
            "last eight bits": lambda prompts: prompts[:, -8:].sum(axis=1) % 2,
        }

    def smaller(self) -> Iterator[Task]:
        """Words of 1, 2, 4, .. bits."""
        yield from (Parity(2**power) for power in range((self.length - 1).bit_length()))

    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `families`."""
        rows = np.arange(len(prompts))
        if family == "ones":
            prompts[:, :-1] = 1
        elif family == "single one":
            prompts[:] = 0
            prompts[rows, numbers % self.length] = 1
        elif family == "alternating":
            prompts[:] = (np.arange(self.length) + numbers[:, None]) % 2
        else:
            prompts[1::2] = prompts[::2]
            changed = numbers[1::2] // (2 * len(self.families)) % self.length
            prompts[rows[1::2], changed] ^= 1
        return prompts
