"""Copying: a text, a separator, and the first symbols of the text again; the answer is the symbol that comes next.

With `unique` = g, no g symbols in a row occur twice in the text: the last g symbols that were copied then say what the
next one is, which is how a model copies by n-gram look-up (arXiv 2402.01032). With `unique` = 0 texts are any. There
are texts of n symbols out of D whose g-grams are unique exactly for n ≤ D^g + g - 1 (de Bruijn).

A worked example with five symbols, the separator being 5 and bigrams unique:

>>> import numpy as np
>>> task = Copying(length=6, symbols=5, done=3, unique=2)
>>> task.prompt_length
10
>>> task.oracle(np.array([[0, 1, 4, 0, 2, 1, 5, 0, 1, 4]])).tolist()
[0]

1, 4 was copied last; after 1, 4 comes 0. The text has 0 and 1 twice, but no bigram: 0 1, 1 4, 4 0, 0 2, 2 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sizes import SizedTask, check_shape, check_tokens, check_whole, have_repeats
from hopbound.tasks.task import AnswerFunction, Batch, Task, instance_digits

COPYING_FAMILIES = ("long repeat", "low symbols", "cycle", "uniform")
"""The families of `Copying.adversarial`, in the order in which they take turns."""

MAX_LENGTH = 2**22
MOST_COUNTED = 2**20  # texts that are listed where their g-grams must be unique


@final
@dataclass(frozen=True)
class Copying(SizedTask):
    """The next symbol of a copy (see the module's text).

    Args:
        length: n, symbols of the text, at least 2.
        symbols: D, at least 2.
        done: symbols that are copied already, 0 to n - 1.
        unique: g, or 0 for any text.

    Raises:
        InputError: a size is out of range, or no text of this length has unique g-grams.
    """

    name: ClassVar[str] = "copying"

    length: int
    symbols: int
    done: int
    unique: int = 0

    def __post_init__(self) -> None:
        check_whole("length", self.length, 2, MAX_LENGTH)
        check_whole("symbols", self.symbols, 2, 2**20)
        check_whole("done", self.done, 0, self.length - 1)
        check_whole("unique", self.unique, 0, min(self.length, 60))
        if self.unique and self.length - self.unique + 1 > self.symbols**self.unique:
            most = self.symbols**self.unique + self.unique - 1
            raise InputError("length", self.length, f"at most {most} for unique {self.unique}-grams")

    @property
    def vocabulary_size(self) -> int:
        """The symbols and the separator."""
        return self.symbols + 1

    @property
    def prompt_length(self) -> int:
        """n + 1 + done."""
        return self.length + 1 + self.done

    @property
    def answers(self) -> int:
        """D."""
        return self.symbols

    @property
    def instances(self) -> int:
        """Texts: D^n, or those with unique g-grams, which are counted one by one.

        Raises:
            InputError: g-grams are unique and there are more than 2^20 texts in all.
        """
        return self.symbols**self.length if not self.unique else len(self._listed())

    @property
    def log2_instances(self) -> float:
        """Exact where there are at most 2^20 texts; else of all texts, also where g-grams are unique."""
        return math.log2(len(self._listed())) if self._is_listed else self.length * math.log2(self.symbols)

    @property
    def chance(self) -> float:
        """1 / D."""
        return 1 / self.symbols

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Random texts: symbols independent and uniform, or, where g-grams are unique, a walk that takes the next
        symbol in cyclic order where the one drawn would repeat a g-gram (see `unique_text`).

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        return self._made(stream.integers(seed, self.identity, split, start, count, self._ranges()))

    def enumerate(self, start: int, count: int) -> Batch:
        """Texts by number, in the order of their symbols, the last one fastest.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1, or there are too many
                texts to be listed (see `instances`).
        """
        if not self.unique:
            return self._made(instance_digits(start, count, self._ranges(), self.instances))
        listed = self._listed()
        chosen = instance_digits(start, count, np.array([len(listed)], dtype=np.int64), len(listed))[:, 0]
        return self._made(listed[chosen])

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most others; they take turns one by one.

        Where g-grams are unique, each text is made from the drawn one as far as that leaves them so (`unique_text`).

        - long repeat: the symbols right before the one that is asked stand once more, g - 1 of them (8 if texts are
          any), with another symbol behind them, and as early as the text allows;
        - low symbols: only two symbols are drawn;
        - cycle: the symbols 0, 1, 2, .. in turn, from one that is drawn;
        - uniform: as drawn.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        identity = f"{self.identity} adversarial"
        drawn = stream.integers(seed, identity, "adversarial", start, count, self._ranges())
        for row, text in enumerate(drawn):
            family = self.adversarial_family(start + row)
            if family == "long repeat":
                self._repeat(text)
            elif family == "low symbols":
                text %= 2
            elif family == "cycle":
                text[:] = (text[0] + np.arange(self.length)) % self.symbols
        return self._made(drawn)

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return COPYING_FAMILIES[number % len(COPYING_FAMILIES)]

    def _repeat(self, text: NDArray[np.int64]) -> None:
        """Let what stands before the asked symbol stand at the beginning too, followed by another symbol."""
        size = min(self.unique - 1 if self.unique else 8, self.done // 2)
        if size > 0:
            text[self.done - size : self.done] = text[:size]
            if text[size] == text[self.done]:
                text[self.done] = (text[self.done] + 1) % self.symbols

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N].

        Raises:
            InputError: these are not prompts of this task: a symbol is out of range, the separator is missing, what
                follows it is no copy, or a g-gram that should be unique occurs twice.
        """
        check_shape(prompts, self.prompt_length)
        text = prompts[:, : self.length]
        check_tokens("text", text, self.symbols)
        check_tokens("separator", prompts[:, self.length], 1, self.symbols)
        if (prompts[:, self.length + 1 :] != text[:, : self.done]).any():
            raise InputError("copy", "other symbols", "the first symbols of the text")
        if self.unique and have_repeats(self._grams(text)).any():
            raise InputError("text", f"a {self.unique}-gram that occurs twice", f"unique {self.unique}-grams")
        return text[:, self.done].copy()

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: what a model that looks at less than g symbols would answer.

        - constant: 0;
        - first symbol: of the text;
        - by one symbol: what follows the first place where the last copied symbol stands.
        """

        def by_one(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
            if not self.done:
                return prompts[:, 0].copy()
            place = (prompts[:, : self.length - 1] == prompts[:, -1:]).argmax(axis=1)
            return prompts[np.arange(len(prompts)), place + 1]

        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "first symbol": lambda prompts: prompts[:, 0].copy(),
            "by one symbol": by_one,
        }

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs of prompts: the symbol that comes next changes, if that leaves a text of this task."""
        changed = batch.prompts.copy()
        shift = 1 + (start + np.arange(len(batch))) % (self.symbols - 1)
        changed[:, self.done] = (batch.answers + shift) % self.symbols
        valid = ~have_repeats(self._grams(changed[:, : self.length])) if self.unique else np.ones(len(batch), np.bool_)
        if valid.any():
            yield np.stack([batch.prompts, changed], axis=1)[valid]

    def place(self, position: int) -> tuple[str, int]:
        """The text, the separator, or the copy."""
        if position < self.length:
            return "text", position
        return ("separator", 0) if position == self.length else ("copy", position - self.length - 1)

    def smaller(self) -> Iterator[Task]:
        """Shorter texts with a copy of the same kind."""
        for length in range(max(2, self.unique + 1), min(self.length, 8)):
            if not self.unique or length - self.unique + 1 <= self.symbols**self.unique:
                yield Copying(length, self.symbols, min(self.done, length - 1), self.unique)

    @property
    def _is_listed(self) -> bool:
        return bool(self.unique) and self.symbols**self.length <= MOST_COUNTED

    def _listed(self) -> NDArray[np.int64]:
        if not self._is_listed:
            raise InputError("texts", f"{self.symbols}^{self.length}", f"at most {MOST_COUNTED}, to be listed")
        return _texts(self.length, self.symbols, self.unique)

    def _ranges(self) -> NDArray[np.int64]:
        return np.full(self.length, self.symbols, dtype=np.int64)

    def _grams(self, text: NDArray[np.int64]) -> NDArray[np.int64]:
        """A number for each g-gram [N, n - g + 1], equal for equal g-grams alone."""
        count = self.length - self.unique + 1
        grams = np.zeros((len(text), count), dtype=np.int64)
        for place in range(self.unique):
            grams = grams * self.symbols + text[:, place : place + count]
            if self.symbols ** (place + 2) >= 2**62:  # number the different ones, as more digits would not fit
                grams = np.unique(grams, return_inverse=True)[1].reshape(len(text), count)
        return grams

    def _made(self, drawn: NDArray[np.int64]) -> Batch:
        """Prompts of these texts, or of what is left of them where g-grams must be unique."""
        prompts = np.empty((len(drawn), self.prompt_length), dtype=np.int64)
        text = prompts[:, : self.length]
        text[:] = drawn
        if self.unique:
            for row in np.flatnonzero(have_repeats(self._grams(text))):
                text[row] = unique_text(drawn[row].tolist(), self.symbols, self.unique)
        prompts[:, self.length] = self.symbols
        prompts[:, self.length + 1 :] = text[:, : self.done]
        return Batch(prompts, text[:, self.done].copy())


@cache
def _texts(length: int, symbols: int, gram: int) -> NDArray[np.int64]:
    """All texts in which no `gram` symbols in a row occur twice, in order."""
    whole = instance_digits(0, symbols**length, np.full(length, symbols, dtype=np.int64), symbols**length)
    grams = sum(whole[:, place : length - gram + 1 + place] * symbols ** (gram - 1 - place) for place in range(gram))
    return whole[~have_repeats(np.asarray(grams, dtype=np.int64))]


def unique_text(drawn: Sequence[int], symbols: int, gram: int) -> list[int]:
    """A text without a repeated g-gram, that follows `drawn` as far as it can.

    It is a walk along g-grams, each used once. Where the drawn symbol would repeat one, the next in cyclic order is
    taken that does not. If all would, the walk is back where it began (in a graph in which as many edges enter a vertex
    as leave it, a trail ends nowhere else): what there is so far is a circle, and it is turned so that it ends where
    something is left. So every length up to D^g + g - 1 is reached.

    Args:
        drawn: as many symbols as the text has.
        symbols: D.
        gram: g, at least 1.
    """
    context, modulus = gram - 1, symbols ** (gram - 1)
    text = list(drawn[:context])

    def code(symbols_in_a_row: Sequence[int]) -> int:
        number = 0
        for symbol in symbols_in_a_row:
            number = number * symbols + symbol
        return number

    used: set[int] = set()
    here = code(text)
    for wanted in drawn[context:]:
        free = _free(here, wanted, symbols, used)
        if free is None:
            text = _turned(text, symbols, context, used)
            here = code(text[len(text) - context :])
            free = _free(here, wanted, symbols, used)
            assert free is not None
        text.append(free)
        number = here * symbols + free
        used.add(number)
        here = number % modulus
    return text


def _free(here: int, wanted: int, symbols: int, used: set[int]) -> int | None:
    """The first symbol from `wanted` on, in cyclic order, that makes no used g-gram; None if all do."""
    for step in range(symbols):
        symbol = (wanted + step) % symbols
        if here * symbols + symbol not in used:
            return symbol
    return None


def _turned(text: list[int], symbols: int, context: int, used: set[int]) -> list[int]:
    """A circle of g-grams, begun at another of its places so that it ends where a symbol is free."""
    circle = text[: len(text) - context]
    doubled = circle + text
    for place in range(1, len(circle)):
        here = 0
        for symbol in doubled[place : place + context]:
            here = here * symbols + symbol
        if _free(here, 0, symbols, used) is not None:
            return doubled[place : place + len(text)]
    raise AssertionError("a text of this length has no unique g-grams")
