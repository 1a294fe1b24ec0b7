r"""The hardest sizes: few choices of sizes decide what a stack can do at *every* choice with prompts of up to N tokens.

A task of L hops has the sizes `m`, `M_1 .. M_{L-1}`, `n_1 .. n_{L-1}`; from them `D_1 = m`, `D_{l+1} = n_l M_l`,
`M_L = D_L`, and its prompt has `D_1 + .. + D_L + 2` tokens. They fall into *parts* that are chosen independently, and
the prompt's length is the sum of what these take: m alone takes m tokens, the pair `(M_l, n_l)` takes `n_l M_l`.

Write `refused(s)` for the moves, each of one mixer to one hop, that the claims find an obstacle to at sizes s. Three
facts about `hopbound.claims.obstacle` are used (a test holds each against all sizes):

1. *Monotone.* Larger sizes never make a move possible: obstacles are codes, or a table, that no longer fit.
2. *Apart.* `refused(s)` is the union over the parts of what is refused when all other parts are as small as they can
   be: a code of an address, a code of a value and a table each speak of one part. The address of `z_{l+1}` and the
   value i_l are the business of the pair `(M_l, n_l)`, and of the last pair also the value i_L; z_0, the address of
   `z_1` and the table of `z_1` are the business of m.
3. *Bits.* What a pair refuses depends on the bit lengths of `M_l - 1` and `n_l - 1` and, for the last one, on that
   of `n_l M_l - 1`.

**Claim.** A stack makes L hops at every choice of sizes with prompts up to N if it does so at those of
`Hardest.at(N)`. *Proof.* More refused moves leave fewer plans, so at sizes s with `refused(s) ⊆ refused(t)` the stack
makes the hops if it makes them at t. Let s be any choice with a prompt up to N. By fact 1, a part m refuses the same
as the largest, among those up to m, of 2 and of the least values at which a move is first refused. By fact 3 a pair
refuses the same as the pair of the least numbers with as many bits, `2^(b-1) + 1` (1 for b = 0), which takes no more
tokens; or, where the last product has a bit more than theirs, as the pair with the least such product. These are the
parts' *choices*. So by fact 2 there are choices that refuse just what s does, in a prompt that is no longer; and `at`
goes through all combinations of choices with prompts up to N and leaves out only those whose refused moves another
one refuses as well. ∎ The converse is plain: the sizes of `at` are sizes with prompts up to N.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from hopbound.architecture import MixerSpec
from hopbound.claims import Move, TaskSizes, obstacle

LONGEST = 2**40  # tokens; longer prompts are not asked for

Act = tuple[MixerSpec, Move, int]
"""A move of one mixer to the value of one hop."""

_Pair = tuple[int, int]
_SMALLEST_M = 2
_SMALLEST_PAIR: _Pair = (2, 1)


@dataclass(frozen=True)
class HardSizes:
    """Sizes, and all that is refused at them."""

    sizes: TaskSizes
    refused: frozenset[Act]

    @property
    def prompt_length(self) -> int:
        """D_1 + .. + D_L + 2."""
        return sum(self.sizes.domains) + 2


@dataclass(frozen=True)
class _Choice:
    """A way to choose one part: `(m,)` or `(M_l, n_l)`, the tokens it takes, what it refuses."""

    numbers: tuple[int, ...]
    tokens: int
    refused: frozenset[Act]


@lru_cache(maxsize=256)
def hardest(mixers: frozenset[MixerSpec], hops: int) -> "Hardest":
    """The hardest sizes for stacks of these mixers."""
    return Hardest(mixers, hops)


class Hardest:
    """The choices of every part, for some mixers and a number of hops.

    Args:
        mixers: of which the stacks consist.
        hops: L, at least 1.
    """

    def __init__(self, mixers: Iterable[MixerSpec], hops: int) -> None:
        self.mixers = frozenset(mixers)
        self.hops = hops
        self.parts = (self._starts(), *(self._pairs(part) for part in range(1, hops)))

    def at(self, context: int) -> tuple[HardSizes, ...]:
        """The sizes that decide about all with prompts of up to `context` tokens; empty if there are none so short."""
        parts = [[choice for choice in part if choice.tokens <= context] for part in self.parts]
        most = [max((choice.tokens for choice in part), default=0) for part in parts]
        reached = [_Choice((), 2, frozenset())]
        for done, part in enumerate(parts, start=1):
            # Tokens count only as far as they may be wanting: less than `spare` is as good as nothing.
            rest_at_least, spare = 2 * (self.hops - done), context - sum(most[done:])
            extended = [_joined(before, choice) for before in reached for choice in part]
            fitting = [one for one in extended if one.tokens + rest_at_least <= context]
            reached = _undominated(fitting, spare)
        return tuple(HardSizes(self._sizes(one.numbers), one.refused) for one in reached)

    def shortest(self, fails: Callable[[TaskSizes], bool]) -> TaskSizes | None:
        """The sizes with the shortest prompt, up to `LONGEST` tokens, among those that fail.

        Args:
            fails: must depend on the refused moves alone and stay true where more are refused.
        """
        survived: list[frozenset[Act]] = []
        for one in self._by_length():
            if any(one.refused <= refused for refused in survived):
                continue
            sizes = self._sizes(one.numbers)
            if fails(sizes):
                return sizes
            survived.append(one.refused)
        return None

    def _by_length(self) -> Iterator[_Choice]:
        """All combinations of choices, by rising prompt length."""
        first: tuple[int, ...] = (0,) * len(self.parts)
        queue: list[tuple[int, tuple[int, ...]]] = [(self._tokens(first), first)]
        seen: set[tuple[int, ...]] = {first}
        while queue:
            _, at = heapq.heappop(queue)
            joined = _Choice((), 2, frozenset())
            for part, index in zip(self.parts, at, strict=True):
                joined = _joined(joined, part[index])
            yield joined
            for place, index in enumerate(at):
                following = (*at[:place], index + 1, *at[place + 1 :])
                if index + 1 < len(self.parts[place]) and following not in seen:
                    seen.add(following)
                    if (tokens := self._tokens(following)) <= LONGEST:
                        heapq.heappush(queue, (tokens, following))

    def _tokens(self, at: tuple[int, ...]) -> int:
        return 2 + sum(part[index].tokens for part, index in zip(self.parts, at, strict=True))

    def _sizes(self, numbers: tuple[int, ...]) -> TaskSizes:
        """Sizes from `m, M_1, n_1, M_2, n_2, ..`."""
        values, n = numbers[1::2], numbers[2::2]
        domains = (numbers[0], *(M * fan for M, fan in zip(values, n, strict=True)))
        return TaskSizes(domains, (*values, domains[-1]), n)

    def _refused(self, sizes: TaskSizes, hops: Iterable[int]) -> frozenset[Act]:
        acts = ((mixer, move, hop) for mixer in self.mixers for hop in hops for move in _moves_to(hop))
        return frozenset(act for act in acts if obstacle(*act, sizes) is not None)

    # -- choices of the parts

    def _starts(self) -> list[_Choice]:
        """Choices of m: 2, and the least m at which each move is first refused."""
        rest = _SMALLEST_PAIR * (self.hops - 1)

        def sizes(m: int) -> TaskSizes:
            return self._sizes((m, *rest))

        marks = {_SMALLEST_M}
        for mixer in self.mixers:
            for hop in (0, 1):
                for move in _moves_to(hop):
                    act = (mixer, move, hop)
                    mark = _least(lambda m, act=act: obstacle(*act, sizes(m)) is not None)
                    marks |= set() if mark is None else {mark}
        return _undominated([_Choice((m,), m, self._refused(sizes(m), (0, 1))) for m in marks])

    def _pairs(self, part: int) -> list[_Choice]:
        """Choices of `(M_part, n_part)`: the least numbers with so many bits, and the last products with a bit more."""
        before, after = _SMALLEST_PAIR * (part - 1), _SMALLEST_PAIR * (self.hops - 1 - part)

        def choice(M: int, n: int) -> _Choice:
            sizes = self._sizes((_SMALLEST_M, *before, M, n, *after))
            return _Choice((M, n), M * n, self._refused(sizes, (part, part + 1)))

        choices: list[_Choice] = []
        for value_bits in range(1, LONGEST.bit_length()):
            for query_bits in range(LONGEST.bit_length()):
                M, n = _least_with(value_bits), _least_with(query_bits)
                if M * n > LONGEST:
                    break
                choices.append(choice(M, n))
                if part == self.hops - 1 and (M * n - 1).bit_length() < value_bits + query_bits:
                    largest = choice(2**value_bits, 2**query_bits)
                    if largest.refused != choices[-1].refused:
                        choices.append(choice(*_least_product(value_bits, query_bits)))
        return _undominated(choices)


def _moves_to(hop: int) -> tuple[Move, ...]:
    """The moves that can bring the value of this hop."""
    if hop == 0:
        return (Move.FETCH, Move.CARRY)
    if hop > 1:
        return (Move.LOOK_UP,)
    return tuple(move for move in Move if move.is_common)  # others speak of m and M_1, or M_1 and M_2: not apart


def _joined(before: _Choice, choice: _Choice) -> _Choice:
    return _Choice((*before.numbers, *choice.numbers), before.tokens + choice.tokens, before.refused | choice.refused)


def _undominated(choices: Iterable[_Choice], spare: int = 0) -> list[_Choice]:
    """Those than which none refuses as much in as few tokens, by rising length; `spare` tokens count as nothing."""
    kept: list[_Choice] = []
    for one in sorted(choices, key=lambda c: (max(c.tokens, spare), -len(c.refused), c.tokens)):
        if not any(one.refused <= other.refused for other in kept):
            kept.append(one)
    return kept


def _least_with(bits: int) -> int:
    """The least x whose x - 1 has so many bits."""
    return 2 ** (bits - 1) + 1 if bits else 1


def _least(refuses: Callable[[int], bool]) -> int | None:
    """The least number from 2 to `LONGEST` that is refused; None if none is."""
    if not refuses(LONGEST):
        return None
    low, high = 1, LONGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refuses(middle) else (middle, high)
    return high


def _least_product(value_bits: int, query_bits: int) -> _Pair:
    """Of the pairs (M, n) with so many bits each, and the bits of both in the product, one with the least product."""
    above = 2 ** (value_bits + query_bits - 1)
    few, many = sorted((value_bits, query_bits))
    best = (2**few, 2**many)
    for small in range(_least_with(few), 2**few + 1):
        large = above // small + 1
        if large <= 2**many and small * large < best[0] * best[1]:
            best = (small, large)
            if small * large == above + 1:
                break
    return best if value_bits <= query_bits else (best[1], best[0])
