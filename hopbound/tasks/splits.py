"""Train and test sequences that are disjoint by construction.

Splits of the stream are independent (`hopbound.tasks.stream`), so that the same sequence may be drawn in two of them. A
fixed hash of the tokens settles that: the sequences whose hash is small, about 1 in `APART`, are held out. Training
asks nothing in them, and tests ask them alone. What a sequence is for depends on its tokens and on nothing else,
neither on seeds and sizes of batches nor on how much was drawn, so that no list of seen sequences is kept and any range
of training examples can be made alone.

A task of fewer than `FEW` instances has no such split. A sixteenth of so few is a handful, perhaps none that a sampler
ever draws, and a model that is to be right on all of them must see nearly all; then training and tests use all
sequences and `overlap` says how many of the tested ones were seen. Two splits that are both tested are both held out
and may share sequences.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks.sequence import NOT_ASKED, Labelled, SequenceTask
from hopbound.tasks.stream import BLOCK, block_key, check_range

APART = 16
"""One sequence in so many is held out."""
FEW = 1024
"""A task with fewer instances has no split."""
TRAIN = "train"
"""The split of the stream that training examples come from."""

_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_STEP = 0x9E3779B97F4A7C15
_TOKENS_AT_ONCE = 2**18  # hashed at a time: the temporaries stay in the cache
_LONGEST_SEARCH = 64  # examples looked at for each held-out one that is wanted, before a search is given up


def sequence_hashes(tokens: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A 64-bit hash of each row of tokens [N, n]: uint64 [N].

    The tokens go in from left to right: each is added, the sum times an odd number takes in its own upper half; in the
    end the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators; OOPSLA 2014)
    mixes all bits. Unsigned arithmetic modulo 2^64, the same on every machine.
    """
    rows, length = tokens.shape
    hashes = np.full(rows, (_STEP * (length + 1)) % 2**64, dtype=np.uint64)
    half, step = np.uint64(32), np.uint64(_STEP)
    size = max(1, _TOKENS_AT_ONCE // max(1, length))
    for start in range(0, rows, size):
        part = hashes[start : start + size]
        for column in np.ascontiguousarray(tokens[start : start + size].T).view(np.uint64):
            part += column
            part *= step
            part ^= part >> half
        for shift, factor in zip((30, 27), _MIX, strict=True):
            part ^= part >> np.uint64(shift)
            part *= np.uint64(factor)
        part ^= part >> np.uint64(31)
    return hashes


def held_out(tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these sequences [N, n] are for tests alone: bool [N], about one in `APART`."""
    return sequence_hashes(tokens) < np.uint64(2**64 // APART)


def has_split(task: SequenceTask) -> bool:
    """Whether a task has so many instances that those of tests are kept apart from those of training."""
    return task.log2_instances > math.log2(FEW) - 1e-9  # within the rounding of a logarithm


def training_examples(task: SequenceTask, seed: int, start: int, count: int) -> Labelled:
    """The training examples `start .. start + count - 1`: in those that are held out nothing is asked.

    Raises:
        InputError: seed or range are not valid (see `hopbound.tasks.stream`).
    """
    made = task.labelled(seed, TRAIN, start, count)
    if not has_split(task):
        return made
    labels = made.labels.copy()
    labels[held_out(made.tokens)] = NOT_ASKED
    return Labelled(made.tokens, labels)


def test_examples(task: SequenceTask, seed: int, count: int, split: str = "test") -> Labelled:  # noqa: PT028
    """The first `count` held-out examples of a split, or its first ones where the task has no split.

    Raises:
        InputError: seed, split or count are not valid (see `hopbound.tasks.stream`); the split is the one of training;
            or nearly nothing that the task draws is held out.
    """
    if split == TRAIN:
        raise InputError("split", split, "another split than the one of training")
    parts = list(examples_of(task, seed, split, count))
    nothing = np.empty((0, task.prompt_length), dtype=np.int64)
    tokens = np.concatenate([nothing, *(part.tokens for part in parts)])
    return Labelled(tokens, np.concatenate([nothing, *(part.labels for part in parts)]))


def examples_of(task: SequenceTask, seed: int, split: str, count: int) -> Iterator[Labelled]:
    """The first `count` examples that belong to a split, in parts: of training those that are not held out.

    Raises:
        InputError: seed, split or count are not valid (see `hopbound.tasks.stream`); or nearly nothing that the task
            draws belongs to the split.
    """
    check_range(0, count)
    block_key(seed, task.identity, split, 0)
    most = _LONGEST_SEARCH * (count + BLOCK)
    share = 1 if split == TRAIN or not has_split(task) else APART
    largest = max(1, _TOKENS_AT_ONCE // task.prompt_length)
    found = start = 0
    while found < count:
        if start >= most:
            raise InputError("count", count, f"at most {found}: no more of {start} examples belong to {split}")
        # About as many as will do, in whole blocks.
        size = min(-(-share * (count - found) // BLOCK) * BLOCK, largest)
        made = task.labelled(seed, split, start, size)
        if has_split(task):
            kept = np.flatnonzero(held_out(made.tokens) == (split != TRAIN))[: count - found]
        else:
            kept = np.arange(min(size, count - found))
        found, start = found + len(kept), start + size
        yield Labelled(made.tokens[kept], made.labels[kept])


# pytest would take it for a test wherever it is imported.
test_examples.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]


def overlap(task: SequenceTask, seed: int, start: int, count: int, tested: NDArray[np.int64]) -> int:
    """How many of the tested sequences [N, n] are asked in the training examples `start .. start + count - 1`.

    Exact: equal hashes are followed by a comparison of the tokens. The memory is that of the tested sequences.

    Raises:
        InputError: seed or range are not valid (see `hopbound.tasks.stream`).
    """
    check_range(start, count)
    hashes = np.unique(sequence_hashes(tested))
    seen: set[bytes] = set()
    size = max(BLOCK, _TOKENS_AT_ONCE // max(1, task.prompt_length))
    for done in range(0, count, size):
        made = training_examples(task, seed, start + done, min(size, count - done))
        asked = made.tokens[made.asked.any(axis=1)]
        seen.update(row.tobytes() for row in asked[np.isin(sequence_hashes(asked), hashes)])
    return sum(row.tobytes() in seen for row in tested)
