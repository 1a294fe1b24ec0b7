"""Selective copying: symbols stand among noise; the last token asks for the j-th symbol, counted from the start.

There are D symbols, which are the tokens D .. 2 D - 1, and noise, the tokens 0 .. N - 1 with N ≤ D. The prompt is `far`
+ `recent` of these and a last token j. The promise: the symbol that has exactly j symbols before it is there, among the
last `recent` ones. Which of the recent symbols that is depends on how many there were far away, so that counting over
any distance and reading what is near must come together: what a hybrid of a recurrence and a window can do while
neither can do it alone (selective copying as a task that hybrids of small size solve: arXiv 2603.08859).

A worked example with three far and three recent tokens, symbols 4 .. 7 and one kind of noise:

>>> import numpy as np
>>> task = SelectiveCopying(far=3, recent=3, symbols=4)
>>> task.oracle(np.array([[5, 0, 7, 4, 0, 6, 2]])).tolist()
[0]

The symbols are 5, 7, 4, 6; the one with two before it is the token 4, the first symbol, which is called 0.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sizes import SizedTask, check_shape, check_whole
from hopbound.tasks.task import AnswerFunction, Batch, Task, instance_digits

SELECTIVE_FAMILIES = ("dense", "sparse", "crowded far", "first recent", "last recent")
"""The families of `SelectiveCopying.adversarial`, in the order in which they take turns."""

MAX_TOKENS = 2**24


@final
@dataclass(frozen=True)
class SelectiveCopying(SizedTask):
    """The j-th symbol among noise (see the module's text).

    Args:
        far: tokens before the recent ones.
        recent: R, how many tokens before the last one hold the symbol that is asked, at least 1.
        symbols: D, at least 2.
        noise: N, kinds of noise, 1 to D.

    Raises:
        InputError: a size is out of range.
    """

    name: ClassVar[str] = "selective_copying"

    far: int
    recent: int
    symbols: int
    noise: int = 1

    def __post_init__(self) -> None:
        check_whole("far", self.far, 0, MAX_TOKENS)
        check_whole("recent", self.recent, 1, MAX_TOKENS)
        check_whole("symbols", self.symbols, 2, 2**20)
        check_whole("noise", self.noise, 1, self.symbols)

    @property
    def tokens(self) -> int:
        """Tokens before the last one."""
        return self.far + self.recent

    @property
    def vocabulary_size(self) -> int:
        """Symbols, noise, and the numbers that may be asked."""
        return max(2 * self.symbols, self.tokens)

    @property
    def prompt_length(self) -> int:
        """far + recent + 1."""
        return self.tokens + 1

    @property
    def answers(self) -> int:
        """D."""
        return self.symbols

    @property
    def instances(self) -> int:
        """(N + D)^(far + recent - 1) R D: the place that is asked holds a symbol, every other one anything."""
        return (self.noise + self.symbols) ** (self.tokens - 1) * self.recent * self.symbols

    @property
    def log2_instances(self) -> float:
        """Without that number."""
        kinds = math.log2(self.noise + self.symbols)
        return (self.tokens - 1) * kinds + math.log2(self.recent) + math.log2(self.symbols)

    @property
    def chance(self) -> float:
        """1 / D."""
        return 1 / self.symbols

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Examples as likely to hold noise as a symbol at each place, but the asked one; that place is uniform.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        coins = np.full(self.tokens, 2, dtype=np.int64)
        drawn = stream.integers(
            seed, self.identity, split, start, count, np.concatenate([coins, self._symbol_ranges(), [self.recent]])
        )
        is_symbol = drawn[:, : self.tokens].astype(np.bool_)
        return self._made(is_symbol, drawn[:, self.tokens : -1], drawn[:, -1])

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number: tokens, the asked place and its symbol as digits, the last one fastest.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        others = np.full(self.tokens - 1, self.noise + self.symbols, dtype=np.int64)
        digits = instance_digits(start, count, np.concatenate([others, [self.recent, self.symbols]]), self.instances)
        place = self.far + digits[:, -2]
        columns = np.arange(self.tokens)
        # The token at the asked place is left out of the others: those behind it stand one digit earlier.
        source = np.minimum(columns - (columns > place[:, np.newaxis]), max(self.tokens - 2, 0))
        kinds = np.take_along_axis(digits, source, axis=1)
        is_symbol = kinds >= self.noise
        numbers = np.where(is_symbol, kinds - self.noise, kinds)
        numbers[np.arange(count), place] = digits[:, -1]
        return self._made(is_symbol, numbers, digits[:, -2])

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most others; they take turns one by one.

        - dense: no noise at all;
        - sparse: nothing but noise beside the asked symbol;
        - crowded far: no noise far away;
        - first recent, last recent: the asked symbol stands there.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        coins = np.full(self.tokens, 2, dtype=np.int64)
        ranges = np.concatenate([coins, self._symbol_ranges(), [self.recent]])
        drawn = stream.integers(seed, f"{self.identity} adversarial", "adversarial", start, count, ranges)
        is_symbol, asked = drawn[:, : self.tokens].astype(np.bool_), drawn[:, -1]
        families = (start + np.arange(count)) % len(SELECTIVE_FAMILIES)
        is_symbol[families == 0] = True
        is_symbol[families == 1] = False
        is_symbol[np.ix_(families == 2, np.arange(self.tokens) < self.far)] = True
        asked[families == 3] = 0
        asked[families == 4] = self.recent - 1
        return self._made(is_symbol, drawn[:, self.tokens : -1], asked)

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return SELECTIVE_FAMILIES[number % len(SELECTIVE_FAMILIES)]

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N].

        Raises:
            InputError: these are not prompts of this task: a token is neither noise nor a symbol, or the symbol that
                is asked does not stand among the recent tokens.
        """
        check_shape(prompts, self.prompt_length)
        if not self._known(prompts).all():
            raise InputError("tokens", "one that is neither noise nor a symbol", self._tokens_text)
        found = self._found(prompts)
        if not found.any(axis=1).all():
            raise InputError(
                "number that is asked", "one that is not there", "that of a symbol among the recent tokens"
            )
        rows = np.arange(len(prompts))
        return prompts[rows, self.far + found.argmax(axis=1)] - self.symbols

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of tokens are prompts of this task."""
        return np.logical_and(self._known(prompts), self._found(prompts).any(axis=1))

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: what a model that does not count, or counts without the far tokens, would answer.

        - constant: 0;
        - last symbol: the last one before the question;
        - counted in sight: the symbol that has j before it, modulo how many there are, among the recent tokens alone.
        """

        def last(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
            recent = prompts[:, self.far : -1]
            place = self.recent - 1 - (recent[:, ::-1] >= self.symbols).argmax(axis=1)
            return recent[np.arange(len(prompts)), place] - self.symbols

        def counted(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
            recent = prompts[:, self.far : -1]
            is_symbol = recent >= self.symbols
            wanted = prompts[:, -1] % is_symbol.sum(axis=1)
            place = (is_symbol & (is_symbol.cumsum(axis=1) == wanted[:, np.newaxis] + 1)).argmax(axis=1)
            return recent[np.arange(len(prompts)), place] - self.symbols

        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "last symbol": last,
            "counted in sight": counted,
        }

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs of prompts: the first token becomes noise or a symbol, so that all is counted anew; then the symbol
        that is asked for changes.
        """
        rows = np.arange(len(batch))
        changed = batch.prompts.copy()
        first = changed[:, 0] >= self.symbols
        changed[:, 0] = np.where(first, start % self.noise, self.symbols + (start + rows) % self.symbols)
        differs = self.valid(changed)
        differs[differs] = self.oracle(changed[differs]) != batch.answers[differs]
        if differs.any():
            yield np.stack([batch.prompts, changed], axis=1)[differs]
        changed = batch.prompts.copy()
        shift = 1 + (start + rows) % (self.symbols - 1)
        place = self.far + self._found(batch.prompts).argmax(axis=1)
        changed[rows, place] = self.symbols + (batch.answers + shift) % self.symbols
        yield np.stack([batch.prompts, changed], axis=1)

    def place(self, position: int) -> tuple[str, int]:
        """Far, recent, or what asks."""
        if position == self.tokens:
            return "query", 0
        return ("far", position) if position < self.far else ("recent", position - self.far)

    def path(self, prompts: NDArray[np.int64]) -> list[list[int]]:
        """The number that is asked, where that symbol stands among the recent tokens, the symbol."""
        found = self._found(prompts).argmax(axis=1)
        return np.stack([prompts[:, -1], found, self.oracle(prompts)], axis=1).tolist()

    def smaller(self) -> Iterator[Task]:
        """Fewer far and recent tokens."""
        for tokens in range(1, min(self.tokens, 7)):
            recent = min(self.recent, max(1, tokens // 2))
            yield SelectiveCopying(tokens - recent, recent, self.symbols, self.noise)

    @property
    def _tokens_text(self) -> str:
        noise = "0" if self.noise == 1 else f"0 to {self.noise - 1}"
        return f"noise {noise} or symbols {self.symbols} to {2 * self.symbols - 1}"

    def _known(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Rows whose tokens are all noise or symbols, the last one aside."""
        tokens = prompts[:, :-1]
        is_noise = (tokens >= 0) & (tokens < self.noise)
        return np.logical_and.reduce(is_noise | ((tokens >= self.symbols) & (tokens < 2 * self.symbols)), axis=1)

    def _found(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the recent tokens [N, R] is the symbol that is asked."""
        is_symbol = prompts[:, :-1] >= self.symbols
        before = is_symbol.cumsum(axis=1) - is_symbol
        return (is_symbol & (before == prompts[:, -1:]))[:, self.far :]

    def _symbol_ranges(self) -> NDArray[np.int64]:
        return np.full(self.tokens, self.symbols, dtype=np.int64)

    def _made(self, is_symbol: NDArray[np.bool_], numbers: NDArray[np.int64], asked: NDArray[np.int64]) -> Batch:
        """Prompts of these symbols and noise (numbers, modulo N) with the question for a place among the recent."""
        rows, place = np.arange(len(asked)), self.far + asked
        is_symbol = is_symbol.copy()
        is_symbol[rows, place] = True
        prompts = np.empty((len(asked), self.prompt_length), dtype=np.int64)
        prompts[:, :-1] = np.where(is_symbol, self.symbols + numbers, numbers % self.noise)
        prompts[:, -1] = is_symbol.cumsum(axis=1)[rows, place] - 1
        return Batch(prompts, numbers[rows, place].copy())
