"""Brackets: which kind of bracket must close next, in a prefix of a Dyck word of bounded depth.

Tokens 0 .. kinds - 1 open a bracket of that kind, tokens kinds .. 2 kinds - 1 close one. A prompt is any prefix of a
well-matched word in which at most `depth` brackets are open at a time: a bracket is closed by its own kind, and nothing
closes where nothing is open. The answer is the kind of the innermost open bracket, or `kinds` where none is open.

Examples are drawn token by token: where a bracket may be opened and one may be closed, either is as likely.

With two kinds, ( ) and [ ], tokens 0 2 and 1 3: in `( [ ] (` the last bracket that is open is a ( :

>>> import numpy as np
>>> task = Dyck(kinds=2, depth=3, length=4)
>>> task.oracle(np.array([[0, 1, 3, 0], [0, 1, 3, 2]])).tolist()
[0, 2]
>>> task.instances
32
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.sizes import DRAWN_AT_ONCE, SizedTask, check_whole, made_in_pairs
from hopbound.tasks.task import MAX_INSTANCE_NUMBER, AnswerFunction, Batch, Task

ADVERSARIAL_FAMILIES = ("full depth", "long ago", "emptied", "one kind apart")
"""The families of `Dyck.adversarial`, in the order in which they take turns, two examples each."""
MAX_LENGTH = 2**30


@final
@dataclass(frozen=True)
class Dyck(SizedTask):
    """The innermost open bracket of a prefix (see the module's text).

    Args:
        kinds: of brackets, at least 1.
        depth: how many are open at most, at least 1.
        length: of the prefix, at least 1.

    Raises:
        InputError: a size is no such number.
    """

    name: ClassVar[str] = "dyck"

    kinds: int
    depth: int
    length: int

    def __post_init__(self) -> None:
        check_whole("kinds", self.kinds, 1, 1024)
        check_whole("depth", self.depth, 1, 255)
        check_whole("length", self.length, 1, MAX_LENGTH)

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
        """The kinds, and none."""
        return self.kinds + 1

    @property
    def instances(self) -> int:
        """Prefixes of this length, counted by how many brackets are open."""
        return self._continuations(self.length)[0]

    @property
    def log2_instances(self) -> float:
        """The logarithm of `instances`, from counts that are kept small."""
        counts, doublings = np.ones(self.depth + 1), 0
        for _ in range(self.length):
            counts = self.kinds * np.append(counts[1:], 0.0) + np.append(0.0, counts[:-1])
            _, exponent = math.frexp(counts.max())
            counts = np.ldexp(counts, -exponent)
            doublings += exponent
        return doublings + math.log2(counts[0])

    @property
    def chance(self) -> float:
        """One in `answers`."""
        return 1 / self.answers

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Random prefixes, token by token.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        return self._labelled(self.draw(seed, self.identity, split, start, count))

    def draw(self, seed: int, identity: str, split: str, start: int, count: int) -> NDArray[np.int64]:
        """Random prefixes [count, n] from the stream of that identity, which may be another task's.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        prompts = np.empty((count, self.length), dtype=np.int64)
        stream.check_range(start, count)
        step = max(1, DRAWN_AT_ONCE // self.length)
        for done in range(0, count, step):
            drawn = self._drawn(seed, identity, split, start + done, min(step, count - done))
            prompts[done : done + len(drawn)] = self._walks(drawn % 2 == 1, drawn // 2)
        return prompts

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number, in lexicographic order of their tokens.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        stream.check_range(start, count)
        end = start + count
        if end > MAX_INSTANCE_NUMBER:
            expected = f"at most {MAX_INSTANCE_NUMBER} (larger numbers are not enumerated)"
            raise InputError("start + count", end, expected)
        if end > self.instances:
            raise InputError("start + count", end, f"at most the {self.instances} instances there are")
        prompts = [self._unrank(number) for number in range(start, end)]
        return self._labelled(np.array(prompts, dtype=np.int64).reshape(count, self.length))

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most random ones.

        - full depth: all opens at once, then the top of the stack is closed and opened again and again;
        - long ago: a few brackets are opened, then pairs come and go above them, and all of those are closed: the
          answer was read long ago;
        - emptied: the same, but for the first brackets, so that nothing is open in the end (or one bracket, where the
          length is odd);
        - one kind apart: random prefixes; examples 2i and 2i + 1 differ in the kind of the innermost open bracket,
          where one is open.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        prompts = made_in_pairs(partial(self._adversarial_pairs, seed), self.length, start, count)
        return self._labelled(prompts)

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return ADVERSARIAL_FAMILIES[number // 2 % len(ADVERSARIAL_FAMILIES)]

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The innermost open brackets.

        Raises:
            InputError: these are not prompts of this task.
        """
        if prompts.dtype != np.int64 or prompts.ndim != 2 or prompts.shape[1] != self.length:
            raise InputError("prompts", (str(prompts.dtype), prompts.shape), f"int64 of shape (N, {self.length})")
        valid, openers = self._read(prompts)
        if not valid.all():
            row = int(np.argmin(valid))
            shown = prompts[row, :20].tolist()
            raise InputError("prompt", shown, f"a prefix of brackets of {self.kinds} kinds, {self.depth} open at most")
        return self._kind_at(prompts, openers)

    def valid(self, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of N rows of tokens are prefixes within the depth: bool [N]."""
        return self._read(prompts)[0]

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs that differ in the kind of the innermost open bracket, where one is open; none where kinds are one."""
        for shift in range(1, self.kinds):
            rows = np.flatnonzero(batch.answers < self.kinds)
            changed = batch.prompts[rows].copy()
            _, openers = self._read(changed)
            changed[np.arange(len(rows)), openers] = (batch.answers[rows] + shift) % self.kinds
            if len(rows):
                yield np.stack([batch.prompts[rows], changed], axis=1)

    def place(self, position: int) -> tuple[str, int]:
        """A bracket."""
        return "bracket", position

    def smaller(self) -> Iterator[Task]:
        """Prefixes of 1, 2, 4, .. brackets."""
        yield from (Dyck(self.kinds, self.depth, 2**power) for power in range((self.length - 1).bit_length()))

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: none, the kind of the last opener, the kind of the last token, the kind of the first one."""

        def last_opener(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
            back = np.argmax(prompts[:, ::-1] < self.kinds, axis=1)
            return prompts[np.arange(len(prompts)), self.length - 1 - back] % self.kinds

        return {
            "none": lambda prompts: np.full(len(prompts), self.kinds, dtype=np.int64),
            "last opener": last_opener,
            "last kind": lambda prompts: prompts[:, -1] % self.kinds,
            "first kind": lambda prompts: prompts[:, 0] % self.kinds,
        }

    def _labelled(self, prompts: NDArray[np.int64]) -> Batch:
        return Batch(prompts, self.oracle(prompts))

    def _drawn(self, seed: int, identity: str, split: str, start: int, count: int) -> NDArray[np.int64]:
        """For each token a number below 2 kinds: whether to open, and which kind."""
        ranges = np.full(self.length, 2 * self.kinds, dtype=np.int64)
        return stream.integers(seed, identity, split, start, count, ranges)

    def _walks(self, opens: NDArray[np.bool_], kinds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Prefixes [N, n] that open where they are told to and can, and close where they must."""
        count = len(opens)
        prompts, rows = np.empty((count, self.length), dtype=np.int64), np.arange(count)
        stack, height = np.zeros((count, self.depth + 1), dtype=np.int64), np.zeros(count, dtype=np.int64)
        for t in range(self.length):
            rises = (height == 0) | ((height < self.depth) & opens[:, t])
            stack[rows[rises], height[rises] + 1] = kinds[rises, t]
            prompts[:, t] = np.where(rises, kinds[:, t], self.kinds + stack[rows, height])
            height += np.where(rises, 1, -1)
        return prompts

    def _read(self, prompts: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which rows are prefixes [N], and where each one's innermost open bracket stands, -1 for none [N]."""
        count, rows = len(prompts), np.arange(len(prompts))
        valid = np.all((prompts >= 0) & (prompts < 2 * self.kinds), axis=1)
        # Where the bracket at each height was opened; height 0 holds -1.
        opened, height = np.full((count, self.depth + 2), -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
        for t in range(self.length):
            token = prompts[:, t]
            rises = token < self.kinds
            matched = prompts[rows, opened[rows, height]] + self.kinds == token
            valid &= np.where(rises, height < self.depth, (height > 0) & matched)
            height = np.clip(height + np.where(rises, 1, -1), 0, self.depth)
            opened[rows[rises], height[rises]] = t
            opened[:, 0] = -1
        return valid, opened[rows, height]

    def _kind_at(self, prompts: NDArray[np.int64], openers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(openers < 0, self.kinds, prompts[np.arange(len(prompts)), openers])

    def _continuations(self, length: int) -> list[int]:
        """For each number of open brackets, in how many ways a prefix goes on for so many tokens."""
        counts = [1] * (self.depth + 1)
        for _ in range(length):
            counts = self._longer(counts)
        return counts

    def _longer(self, counts: list[int]) -> list[int]:
        above, below = [*counts[1:], 0], [0, *counts[:-1]]
        return [self.kinds * up + down for up, down in zip(above, below, strict=True)]

    @cached_property
    def _tables(self) -> list[list[int]]:
        """`_continuations` for 0 .. length - 1 tokens."""
        tables = [[1] * (self.depth + 1)]
        for _ in range(self.length - 1):
            tables.append(self._longer(tables[-1]))
        return tables

    def _unrank(self, number: int) -> list[int]:
        """The prefix with this number: openers come before the closer, in the order of their kinds."""
        tokens: list[int] = []
        stack: list[int] = []
        for rest in reversed(range(self.length)):
            each = self._tables[rest][len(stack) + 1] if len(stack) < self.depth else 0
            if number < self.kinds * each:
                kind, number = divmod(number, each)
                stack.append(kind)
                tokens.append(kind)
            else:
                number -= self.kinds * each
                tokens.append(self.kinds + stack.pop())
        return tokens

    def _adversarial_pairs(self, seed: int, low: int, high: int) -> NDArray[np.int64]:
        """Adversarial prompts number `low .. high - 1`; both are even, so that no pair is cut."""
        drawn = self._drawn(seed, f"{self.identity} adversarial", "adversarial", low, high - low)
        opens, kinds, numbers = drawn % 2 == 1, drawn // 2, np.arange(low, high)
        turn = numbers // 2 % len(ADVERSARIAL_FAMILIES)
        opens[turn == ADVERSARIAL_FAMILIES.index("full depth")] = True
        for row in np.flatnonzero(turn == ADVERSARIAL_FAMILIES.index("long ago")):
            opens[row] = self._come_and_go(int(1 + numbers[row] // 8 % max(1, self.depth - 1)))
        opens[turn == ADVERSARIAL_FAMILIES.index("emptied")] = self._come_and_go(0)
        prompts = self._walks(opens, kinds)
        near = np.flatnonzero(turn == ADVERSARIAL_FAMILIES.index("one kind apart"))
        prompts[near[1::2]] = self._other_kind(prompts[near[::2]])
        return prompts

    def _other_kind(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same prefixes with another kind for the innermost open bracket, where one is open."""
        changed = prompts.copy()
        _, openers = self._read(prompts)
        rows = np.flatnonzero(openers >= 0)
        changed[rows, openers[rows]] = (changed[rows, openers[rows]] + 1) % self.kinds
        return changed

    def _come_and_go(self, kept: int) -> NDArray[np.bool_]:
        """Whether each token opens: some brackets that stay, then as many more as fit, closed again, to the end.

        `kept` brackets stay, or one more or fewer, so that an even number of tokens is left for the others.
        """
        kept = min(kept, self.length)
        if (self.length - kept) % 2:
            kept += 1 if kept + 1 < self.depth or kept == 0 else -1
        rest = self.length - kept
        above = max(1, min(self.depth - kept, rest // 2))
        place = np.arange(rest)
        pairs = rest % (2 * above)  # before whole rounds: one bracket, opened and closed, again and again
        opens = np.where(place < pairs, place % 2 == 0, (place - pairs) % (2 * above) < above)
        return np.append(np.ones(kept, dtype=np.bool_), opens)
