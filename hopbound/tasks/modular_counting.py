"""Modular counting: at each token of a word of bits, how many ones there were so far, modulo M.

With M = 2 the labels are parities (`hopbound.tasks.parity` asks for the last one alone). What makes it harder: a longer
word, a larger modulus.

>>> import numpy as np
>>> ModularCounting(modulus=3, length=6).labels(np.array([[1, 0, 1, 1, 1, 0]])).tolist()
[[1, 1, 2, 0, 1, 1]]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.tasks.independent import Stretch, UniformSequence
from hopbound.tasks.sequence import LabelFunction
from hopbound.tasks.sizes import check_whole

MAX_MODULUS = 2**16
MAX_LENGTH = 2**24


@final
@dataclass(frozen=True)
class ModularCounting(UniformSequence):
    """The number of ones so far (see the module's text).

    Args:
        modulus: M, at least 2.
        length: of the word, at least M: in a shorter one no count comes round.

    Raises:
        InputError: a size is no such number.
    """

    name: ClassVar[str] = "modular_counting"

    modulus: int
    length: int

    def __post_init__(self) -> None:
        check_whole("modulus", self.modulus, 2, MAX_MODULUS)
        check_whole("length", self.length, self.modulus, MAX_LENGTH)

    @property
    def stretches(self) -> Sequence[Stretch]:
        """The word alone."""
        return (("bit", self.length, 0, 2),)

    @property
    def answers(self) -> int:
        """M."""
        return self.modulus

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts at all tokens.

        Raises:
            InputError: these are not words of this task.
        """
        self.check_prompts(tokens)
        return np.cumsum(tokens, axis=1) % self.modulus

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model without the state would answer.

        - constant: 0;
        - last bit: the token's own;
        - last eight bits: the count of those alone;
        - stop at the modulus: the count, or M - 1 once it has come so far.
        """

        def last_eight(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
            counts = np.cumsum(tokens, axis=1)
            counts[:, 8:] -= counts[:, :-8].copy()
            return counts % self.modulus

        return {
            "constant": np.zeros_like,
            "last bit": np.copy,
            "last eight bits": last_eight,
            "stop at the modulus": lambda tokens: np.minimum(np.cumsum(tokens, axis=1), self.modulus - 1),
        }
