"""Min-IP: the smallest inner product of the last vector with one before it.

Each token is a vector of m bits, written as the number below 2^m whose binary digits they are. The answer, read at the
last token, is the smallest of the inner products (the number of ones in common) of the last vector with those before.

Three Tokens Force Exponential Feature Rank in Nonnegative Kernel Attention (arXiv 2608.11427) sets the task with three
tokens, of which the last asks and two compete: softmax attention answers with scores of m numbers, one head of kernel
attention needs 2^Ω(m) features; with two tokens there is nothing to compare and one feature is enough. That abstract
says what must hold of the task; what is written above is our reading of it.

What makes it harder: more bits, more tokens.

A worked example with m = 3: 011 has one bit in common with 110 and two with 011; 100 has none with 011:

>>> import numpy as np
>>> MinInnerProduct(bits=3).oracle(np.array([[0b110, 0b011, 0b011], [0b110, 0b100, 0b011]])).tolist()
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

MAX_BITS = 22
MAX_LENGTH = 2**20


@final
@dataclass(frozen=True)
class MinInnerProduct(IndependentTokens):
    """The smallest inner product with the last vector (see the module's text).

    Args:
        bits: m, of a vector, at least 1.
        length: vectors, the asking one included, at least 2.

    Raises:
        InputError: a size is out of range.
    """

    name: ClassVar[str] = "min_ip"
    families: ClassVar[Sequence[str]] = ("all alike", "one bit less", "ones ask", "one bit apart")
    """All vectors but the last are equal; the same, but for one of them that lacks one of its ones; the last vector is
    all ones; two uniform prompts that differ in one bit of one vector."""

    bits: int
    length: int = 3

    def __post_init__(self) -> None:
        check_whole("bits", self.bits, 1, MAX_BITS)
        check_whole("length", self.length, 2, MAX_LENGTH)

    @property
    def stretches(self) -> Sequence[Stretch]:
        """Vectors; the last one is the one that asks."""
        return ("vector", self.length - 1, 0, 2**self.bits), ("asking", 1, 0, 2**self.bits)

    @property
    def answers(self) -> int:
        """0 to m."""
        return self.bits + 1

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The smallest inner products.

        Raises:
            InputError: these are not prompts of this task.
        """
        self.check_prompts(prompts)
        return _ones(prompts[:, :-1] & prompts[:, -1:]).min(axis=1)

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: a fourth of the bits, which the product of two uniform vectors has on average; the product with
        the first vector, with the one before the last, the mean of all products, rounded down."""

        def products(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
            return _ones(prompts[:, :-1] & prompts[:, -1:])

        return {
            "a fourth": lambda prompts: np.full(len(prompts), self.bits // 4, dtype=np.int64),
            "first vector": lambda prompts: products(prompts)[:, 0],
            "vector before": lambda prompts: products(prompts)[:, -1],
            "mean": lambda prompts: products(prompts).sum(axis=1) // (self.length - 1),
        }

    def smaller(self) -> Iterator[Task]:
        """Two, three, .. vectors of as many bits."""
        yield from (MinInnerProduct(self.bits, length) for length in range(2, min(self.length, 8)))

    def make_family(self, family: str, prompts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `families`."""
        rows = np.arange(len(prompts))
        turns = numbers // (2 * len(self.families))
        if family in ("all alike", "one bit less"):
            prompts[:, :-1] = prompts[:, :1]
        if family == "one bit less":
            prompts[rows, turns % (self.length - 1)] &= ~(1 << turns % self.bits)
        elif family == "ones ask":
            prompts[:, -1] = 2**self.bits - 1
        elif family == "one bit apart":
            prompts[1::2] = prompts[::2]
            prompts[rows[1::2], turns[1::2] % self.length] ^= 1 << (turns[1::2] // self.length) % self.bits
        return prompts


def _ones(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many binary digits of each number are 1, in the numbers' shape."""
    count = numbers & 1
    for digit in range(1, MAX_BITS):
        count += numbers >> digit & 1
    return count
