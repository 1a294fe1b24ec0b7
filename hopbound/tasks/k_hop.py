"""k-hop induction: follow "what came after this symbol, last time?" k times.

Source: Transformers, Parallel Computation, and Logarithmic Depth (arXiv 2402.09268). From token i one hop leads to the
token behind the last earlier one with the same symbol: to the largest j ≤ i with `x_{j-1} = x_i`. The label at token i
is the symbol to which k hops lead. Where one of them leads nowhere, because a symbol stands there for the first time,
nothing is asked. With k = 1 this is what an induction head does. A symbol that is repeated leads to itself.

Symbols are uniform. What makes it harder: more hops; more symbols (longer ways back, fewer tokens that are asked).

A worked example with two hops, symbols a b c as 0 1 2, the sequence a b c a b. From the last b one hop leads to the c
behind the first b, and there it ends: c stands for the first time. After one more c there is a way: from c to the
second a, and from there to the b behind the first a:

>>> import numpy as np
>>> KHop(hops=2, symbols=3, length=6).labels(np.array([[0, 1, 2, 0, 1, 2]])).tolist()
[[-1, -1, -1, -1, -1, 1]]
>>> KHop(hops=1, symbols=3, length=6).labels(np.array([[0, 1, 2, 0, 1, 2]])).tolist()
[[-1, -1, -1, 1, 2, 0]]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.tasks.independent import Stretch, UniformSequence
from hopbound.tasks.sequence import NOT_ASKED, LabelFunction
from hopbound.tasks.sizes import check_whole

MAX_SYMBOLS = 2**16
MAX_LENGTH = 2**20


@final
@dataclass(frozen=True)
class KHop(UniformSequence):
    """The symbol k hops away (see the module's text).

    Args:
        hops: k, at least 1.
        symbols: at least 2.
        length: more than the symbols, so that one of them comes twice.

    Raises:
        InputError: a size is out of range.
    """

    name: ClassVar[str] = "k_hop"

    hops: int
    symbols: int
    length: int

    def __post_init__(self) -> None:
        check_whole("hops", self.hops, 1, 2**16)
        check_whole("symbols", self.symbols, 2, MAX_SYMBOLS)
        check_whole("length", self.length, self.symbols + 1, MAX_LENGTH)

    @property
    def stretches(self) -> Sequence[Stretch]:
        """The symbols alone."""
        return (("symbol", self.length, 0, self.symbols),)

    @property
    def answers(self) -> int:
        """The symbols."""
        return self.symbols

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The symbols k hops away, where there are so many hops.

        Raises:
            InputError: these are not symbols of this task.
        """
        self.check_prompts(tokens)
        return self._after(tokens, self.hops)

    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model that makes fewer hops would answer.

        - constant: symbol 0;
        - same symbol: the token's own, no hop at all;
        - stop one hop early: k - 1 hops (for k = 1, no hop);
        - symbol before: the token before.
        """
        return {
            "constant": np.zeros_like,
            "same symbol": np.copy,
            "stop one hop early": lambda tokens: self._after(tokens, self.hops - 1),
            "symbol before": lambda tokens: np.concatenate([tokens[:, :1], tokens[:, :-1]], axis=1),
        }

    def _after(self, tokens: NDArray[np.int64], hops: int) -> NDArray[np.int64]:
        count = len(tokens)
        rows = np.arange(count)
        # Where one hop leads from each token; place n stands for nowhere and leads to itself.
        nowhere = self.length
        places = np.full((count, self.length + 1), nowhere, dtype=np.int64)
        behind = np.full((count, self.symbols), nowhere, dtype=np.int64)  # the token behind each symbol's last one
        for i in range(self.length):
            if i:
                behind[rows, tokens[:, i - 1]] = i
            places[:, i] = behind[rows, tokens[:, i]]
        reached = np.broadcast_to(np.arange(self.length), tokens.shape)
        for _ in range(hops):
            reached = np.take_along_axis(places, reached, axis=1)
        symbols = np.column_stack([tokens, np.full(count, NOT_ASKED, dtype=np.int64)])
        return np.take_along_axis(symbols, reached, axis=1)
