"""Block-sparse attention and 2-Sum (worst case): what a block's code must tell.

2-Sum: is there a token j ≤ i with `x_i + x_j ≡ 0 mod M`? Read at the last token i.

Statement. One layer on raw tokens. The tokens stand in disjoint blocks of `B ≤ ⌈M/2⌉`; the last token sees a block
through a code of c bits, which depends on that block alone, unless the block is among the k that it selects, over all
heads (blocks that are always selected, or that a window touches, counted among the k). Let G complete blocks stand
before the last token's own. If `G ≥ 2k` (`G ≥ 2k + 1` where a token may pair with itself) and the layer is right on
all inputs, then

    2^c ≥ C(⌈M/2⌉, B).

The asymptotic form is Theorem 1.2 of arXiv 2602.01763, `H d p = Ω(B log n)`.

Proof. Suppose `2^c < C(⌈M/2⌉, B)`. Call a value v *unresolved* in a block if two contents of it have the same code
and just one of them holds v. If the resolved values were ⌈M/2⌉ or more, the contents that are B-subsets of them would
all have different codes (of two different sets of one size, one holds a value that the other does not): too many. So
in each block more than M/2 values are unresolved, and by averaging some v is unresolved in more than half of the
blocks. Where a token may pair with itself take v among those with `2v ≢ 0`: of these, at most two fewer than M (one if
M is odd), at least half are unresolved in each block, so some v is unresolved in at least half of the blocks. Either
way v is unresolved in at least k + 1 blocks. Give each of these its content without v, all other places values other
than v, and let the last token be `-v`. One of the k + 1 blocks is not selected. Exchanging its content for the one
with v changes no code, hence neither selection nor output; but the right answer changes. ∎

Domain of validity: one layer, codes and positions only (no second layer, no recurrence before); selection by codes.
"""

from dataclasses import dataclass
from math import comb

from hopbound.architecture import Architecture, Kind
from hopbound.architecture.sizes import SelectiveAttention
from hopbound.bounds.ceiling import Ceiling, Question, Silence, counted, whole_number

NAME = "sparse_two_sum"


def code_bits_needed(modulus: int, block: int) -> int:
    """The fewest bits c with `2^c ≥ C(⌈M/2⌉, B)`; 0 where `B > ⌈M/2⌉`, of which the statement does not speak. Exact.

    Args:
        modulus: M.
        block: B, tokens a block.

    Raises:
        InputError: fewer than two values, or an empty block.
    """
    whole_number("values", modulus, 2)
    whole_number("block", block, 1)
    return max(comb((modulus + 1) // 2, block) - 1, 0).bit_length()


def shortest_prompt(block: int, selected: int, *, self_pairs: bool = True) -> int:
    """Tokens of the shortest prompt of which the statement speaks: G complete blocks and the last token.

    Args:
        block: B.
        selected: k, blocks that the last token may see in full.
        self_pairs: whether a token may pair with itself.

    Raises:
        InputError: an empty block, or a negative number of blocks.
    """
    whole_number("block", block, 1)
    whole_number("selected", selected, 0)
    return max(1, 2 * selected + self_pairs) * block + 1


@dataclass(frozen=True)
class BlockSizes:
    """What one layer of block attention lets the last token know.

    Attributes:
        block: B, tokens a block.
        code_bits: c, of a block that is not selected.
        selected: k, blocks before the last token's own that it may see in full, over all heads.
    """

    block: int
    code_bits: int
    selected: int


def block_sizes(architecture: Architecture) -> BlockSizes | None:
    """The sizes of a stack that is one layer of block attention with mean-key codes; None for any other."""
    mixers = [m for layer in architecture.layers for m in layer.mixers if m.kind is not Kind.POINTWISE]
    if len(mixers) != 1 or mixers[0].name != "moba" or not isinstance(mixers[0], SelectiveAttention):
        return None
    mixer = mixers[0]
    code = mixer.kv_heads * mixer.head_dim * architecture.precisions.kv
    return BlockSizes(mixer.block, code, mixer.selections * (mixer.k - 1))


def ceiling(architecture: Architecture, question: Question) -> Ceiling | Silence:
    """Whether one layer of block attention with mean-key codes is ruled out for 2-Sum modulo `values`."""
    sizes = block_sizes(architecture)
    if sizes is None:
        return Silence(NAME, "the stack is not a single layer that selects blocks by a code of each")
    code, needed = sizes.code_bits, code_bits_needed(question.values, sizes.block)
    length = shortest_prompt(sizes.block, sizes.selected)
    ruled_out = code < needed
    verdict = f"wrong on some prompt of {length:,} tokens" if ruled_out else "not ruled out"
    return Ceiling(
        NAME,
        {"code_bits": code, "code_bits_needed": needed} | ({"impossible_from": length} if ruled_out else {}),
        "worst",
        f"2-Sum modulo {question.values:,} with blocks of {counted(sizes.block, 'token')} needs codes of {needed:,} "
        f"bits; these have {code:,}: {verdict}",
        "one layer on raw tokens; a block not selected is seen through the mean of its keys alone; self-pairs count",
        "averaging over unresolved values; compare arXiv 2602.01763, Theorem 1.2",
    )
