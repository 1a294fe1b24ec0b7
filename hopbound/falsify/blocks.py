"""The pigeonhole of block attention, made real: two prompts that a layer must answer alike, given its codes of blocks.

The proof of `hopbound/bounds/sparse_two_sum.py` is run. Take ⌈M/2⌉ values that a block is not known to leave
*unresolved*. If they have more B-subsets than there are codes, two of these have the same code; a value in one of them
and not in the other is unresolved. So fewer than ⌈M/2⌉ values of each block stay resolved, and some value v with
2v ≢ 0 is unresolved in k + 1 blocks if there are 2k + 1. These blocks get contents without v, the last token is -v; in
one block that is not seen in full, the content is exchanged for the one that holds v and has the same code.

This takes at most 2^c + 1 codes a step; a budget ends the search for codes that are too long to be tried out.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import torch
from numpy.typing import NDArray

from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.mixers.moba import MixtureOfBlockAttention
from hopbound.mixers.selection import best
from hopbound.tasks import TwoSum

Compressor = Callable[[int, NDArray[np.int64]], Sequence[Hashable]]
"""The codes of contents [N, B] of the block with a number; they depend on nothing else."""
Selector = Callable[[NDArray[np.int64]], Collection[int]]
"""The blocks of a prompt [n] that its last token sees in full; it looks at codes and at the last token only."""

Contents = tuple[tuple[int, ...], tuple[int, ...]]
"""Two contents of a block with one code, without and with a value."""

BUDGET = 2**17  # codes that are tried out for one collision
_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class BlockPair:
    """Two prompts alike in all codes, in all blocks that are seen in full and in the last token.

    Attributes:
        task: 2-Sum, of which these are prompts.
        prompts: int64 [2, n]; the right answers are 0 and 1.
        value: what the second prompt holds and the first does not: the last token's partner.
        hidden: number of the block in which they differ.
    """

    task: TwoSum
    prompts: NDArray[np.int64]
    value: int
    hidden: int


def colliding_contents(
    compress: Compressor, number: int, values: Sequence[int], size: int, *, budget: int = BUDGET
) -> Contents | None:
    """Two subsets of `size` of the values with the same code in one block; None if there are none within the budget.

    Args:
        compress: the codes.
        number: of the block.
        values: what the subsets are made of.
        size: B.
        budget: how many subsets are tried at most.
    """
    seen: dict[Hashable, tuple[int, ...]] = {}
    subsets = islice(combinations(values, size), budget)
    while chunk := list(islice(subsets, _AT_ONCE)):
        for content, code in zip(chunk, compress(number, np.array(chunk, dtype=np.int64)), strict=True):
            if code in seen:
                return seen[code], content
            seen[code] = content
    return None


def block_pair(
    compress: Compressor, select: Selector, task: TwoSum, *, block: int, selected: int, budget: int = BUDGET
) -> BlockPair | None:
    """The two prompts of the proof; None if no value is found that enough blocks leave unresolved.

    Found whenever 2^c < C(⌈M/2⌉, B) and 2^c is below the budget.

    Args:
        compress: the codes of blocks.
        select: which blocks are seen in full.
        task: 2-Sum with 2 selected + 1 complete blocks before the last token's own.
        block: B.
        selected: k, the most blocks before its own that the last token sees in full.
        budget: of codes, for one collision.

    Raises:
        InputError: the prompt has fewer blocks, or a block is longer than ⌈M/2⌉.
    """
    blocks = (task.n - 1) // block
    if blocks < 2 * selected + 1:
        raise InputError("n", task.n, f"at least {(2 * selected + 1) * block + 1} tokens: 2 selected + 1 blocks")
    if block > (task.modulus + 1) // 2:
        raise InputError("block", block, f"at most {(task.modulus + 1) // 2} tokens: half of the modulus")
    for value, unresolved in _unresolved(compress, task.modulus, block, blocks, budget):
        if len(unresolved) > selected:
            return _prompts(select, task, block, value, unresolved)
    return None


def _unresolved(
    compress: Compressor, modulus: int, size: int, blocks: int, budget: int
) -> Iterator[tuple[int, dict[int, Contents]]]:
    """Values with the blocks that leave them unresolved, again whenever one more block is known to."""
    found: dict[int, dict[int, Contents]] = defaultdict(dict)
    resolved = [list(range(modulus)) for _ in range(blocks)]  # as far as is known
    half = (modulus + 1) // 2
    progress = True
    while progress:
        progress = False
        for number in range(blocks):
            if len(resolved[number]) < half:
                continue
            pair = colliding_contents(compress, number, resolved[number][:half], size, budget=budget)
            if pair is None:
                continue
            progress = True
            for other in _alike(compress, pair, blocks):  # often one pair of contents collides in every block
                for first, second in (pair, pair[::-1]):
                    for value in set(second) - set(first):
                        if other not in found[value]:
                            found[value][other] = first, second
                            resolved[other].remove(value)
                            if 2 * value % modulus:
                                yield value, found[value]


def _alike(compress: Compressor, pair: Contents, blocks: int) -> list[int]:
    """The blocks in which two contents have the same code."""
    both = np.array(pair, dtype=np.int64)
    codes = [compress(number, both) for number in range(blocks)]
    return [number for number, (first, second) in enumerate(codes) if first == second]


def _prompts(select: Selector, task: TwoSum, block: int, value: int, unresolved: dict[int, Contents]) -> BlockPair:
    """The prompts for a value that more blocks leave unresolved than can be seen in full."""
    filler = next(other for other in range(task.modulus) if other != value)
    without = np.full(task.n, filler, dtype=np.int64)
    without[-1] = -value % task.modulus
    for number, (content, _) in unresolved.items():
        without[number * block : (number + 1) * block] = content
    seen = select(without)
    hidden = next(number for number in unresolved if number not in seen)
    with_value = without.copy()
    with_value[hidden * block : (hidden + 1) * block] = unresolved[hidden][1]
    return BlockPair(task, np.stack([without, with_value]), value, hidden)


class MeanKeys:
    """What the last token of a decoder with one layer of block attention (MoBA) sees: mean keys, and its choice.

    Args:
        decoder: whose first layer is one `moba` mixer, on raw tokens.

    Raises:
        InputError: it is another one.
    """

    def __init__(self, decoder: Decoder) -> None:
        mixers = decoder.each_block()[0].each_mixer()
        if len(mixers) != 1 or not isinstance(mixers[0], MixtureOfBlockAttention):
            raise InputError("decoder", decoder.config.schedule, "one with moba alone in its first layer")
        self.decoder = decoder
        self.mixer = mixers[0]

    @torch.no_grad()
    def compress(self, number: int, contents: NDArray[np.int64]) -> list[bytes]:
        """The mean keys of contents [N, B] of one block, byte for byte (a `Compressor`)."""
        size = self.mixer.spec.block
        keys = self._keys(torch.from_numpy(contents), number * size)
        return [mean.tobytes() for mean in (keys.sum(dim=1) / size).numpy()]

    @torch.no_grad()
    def select(self, prompt: NDArray[np.int64]) -> set[int]:
        """The blocks before the last token's own that any head chooses (a `Selector`)."""
        spec, tokens = self.mixer.spec, torch.from_numpy(prompt)[None]
        blocks = (len(prompt) - 1) // spec.block
        keys = self._keys(tokens[:, : blocks * spec.block], 0)[0]
        means = (keys.view(blocks, spec.block, -1).sum(dim=1) / spec.block).view(blocks, spec.kv_heads, -1)
        query = self.mixer.query(self._stream(tokens, 0)[0, -1]).float().view(spec.kv_heads, -1, spec.head_dim)
        scores = torch.einsum("hgd,bhd->hgb", query, means)
        return set(best(scores, spec.k - 1).any(dim=0).any(dim=0).nonzero()[:, 0].tolist())

    def _keys(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        return self.mixer.key(self._stream(tokens, start)).float()

    def _stream(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        """What the first layer reads of tokens [N, T] that stand from a position on."""
        decoder = self.decoder
        positions = decoder.embed_positions(torch.arange(start, start + tokens.shape[1]))
        return decoder.each_block()[0].norm(decoder.embed_tokens(tokens) + positions)
