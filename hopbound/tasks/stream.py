"""The data rule: which random integers an example is made of.

Examples are numbered from 0 and come in blocks of `BLOCK` = 1,024. A block is one stream of 64-bit words of the
counter-based generator Philox 4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3;
SC 2011). The stream's key is the first 128 bits of the sha256 of (seed, task identity, split, block), written as
a JSON list in UTF-8; its counter starts at 0. Every example of a task takes the same number of words, rounded up
to a multiple of 4 (the words of one counter value), and the examples of a block follow one another. So an example
is reached by setting the counter, and its bytes depend on nothing but the key and its number: not on the batch
size, the process, the hash seed or the state of any generator of the caller. numpy is used for the raw words
alone, whose values are fixed by the definition of Philox; integers are made of them by `below`, and by nothing else.

Different splits are independent streams. They are not disjoint sets of examples: where a task has few instances,
the same one turns up in both. `hopbound.tasks.splits` keeps what is tested out of training.
"""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError

BLOCK = 1024
MAX_RANGE = 2**32

_WORDS_PER_COUNTER = 4
_CHUNK_WORDS = 2**18  # words converted at a time: the temporaries stay in the cache whatever the batch


def check_range(start: int, count: int) -> None:
    """Refuse a range of examples or instances that is not `count >= 0` of them from `start >= 0` on.

    Raises:
        InputError: either is not a whole number of at least 0.
    """
    for field, value in (("start", start), ("count", count)):
        if type(value) is not int or value < 0:
            raise InputError(field, value, "a whole number of at least 0")


def block_key(seed: int, identity: str, split: str, block: int) -> int:
    """The 128-bit Philox key of one block of examples.

    Raises:
        InputError: the seed is not a whole number or the split is not a string.
    """
    if type(seed) is not int:
        raise InputError("seed", seed, "a whole number")
    if not isinstance(split, str):
        raise InputError("split", split, "a name such as 'train'")
    text = json.dumps([seed, identity, split, block], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def words(seed: int, identity: str, split: str, start: int, count: int, columns: int) -> NDArray[np.uint64]:
    """The words [count, columns] of the examples `start .. start + count - 1`, each of `columns` words.

    Raises:
        InputError: the seed, the split or the range is not one (see `block_key`, `check_range`).
    """
    check_range(start, count)
    counters = -(-columns // _WORDS_PER_COUNTER)  # counter values an example takes
    drawn = np.empty((count, columns), dtype=np.uint64)
    done = 0
    while done < count:
        block, index = divmod(start + done, BLOCK)
        rows = min(count - done, BLOCK - index)
        # numpy adds 1 to the counter before each draw; the offset of one is part of the rule.
        generator = np.random.Philox(key=block_key(seed, identity, split, block), counter=index * counters)
        raw = generator.random_raw(rows * counters * _WORDS_PER_COUNTER)
        drawn[done : done + rows] = raw.reshape(rows, counters * _WORDS_PER_COUNTER)[:, :columns]
        done += rows
    return drawn


def below(drawn: NDArray[np.uint64], ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn words [N, columns] into integers [N, columns], column `c` in `0 .. ranges[c] - 1`.

    A word w and a range k give exactly floor(w k / 2^64). With w = high 2^32 + low that is
    (high k + floor(low k / 2^32)) >> 32, which never leaves 64 bits for k up to 2^32.

    Bias: each value belongs to the floor or the ceiling of 2^64 / k words, so its probability differs from 1/k by
    less than 2^-64, and the whole distribution from the uniform one by less than k / 2^65 <= 2^-33 in total
    variation.

    Raises:
        InputError: a range is below 1 or above 2^32.
    """
    if ranges.size and not (ranges.min() >= 1 and ranges.max() <= MAX_RANGE):
        raise InputError("ranges", f"{ranges.min()} to {ranges.max()}", f"numbers from 1 to {MAX_RANGE}")
    factors = ranges.astype(np.uint64)
    half = np.uint64(32)
    low = drawn & np.uint64(2**32 - 1)
    low *= factors
    low >>= half
    high = drawn >> half
    high *= factors
    high += low
    high >>= half
    return high.view(np.int64)


def integers(
    seed: int, identity: str, split: str, start: int, count: int, ranges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The integers [count, columns] of the examples `start .. start + count - 1`, column `c` below `ranges[c]`.

    Equal to `below(words(...), ranges)`, with temporaries of a bounded size.

    Raises:
        InputError: as `words` and `below`.
    """
    check_range(start, count)
    made = np.empty((count, ranges.size), dtype=np.int64)
    rows = max(1, _CHUNK_WORDS // max(1, ranges.size))
    for done in range(0, count, rows):
        part = made[done : done + rows]
        part[:] = below(words(seed, identity, split, start + done, len(part), ranges.size), ranges)
    return made
