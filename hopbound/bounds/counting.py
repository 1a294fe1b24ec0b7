"""One hop, counted exactly: the state at the cut before the start must determine the whole function `z_1`.

Without a full layer `σ_0` bits cross that cut, so one hop is impossible as soon as `m log M_1 > σ_0`. With a single
full layer and nothing else the query of the last token has not seen the start: what it learns of `z_1` is one
summary of `b_1` bits, the same for every start, and `m log M_1 > b_1` is impossible.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from math import log2

WINDOW = 64  # values of M_1 tried on both sides of the real optimum


def crossing_bits(states: tuple[int, ...], summaries: tuple[int, ...]) -> int | None:
    """Bits that must determine `z_1`; None where counting does not speak of the stack."""
    if not summaries:
        return states[0]
    if len(summaries) == 1 and not any(states):
        return summaries[0]
    return None


def exceeds(m: int, M: int, bits: int) -> bool:
    """Whether `m log M > bits`: exact when `M` is a power of two; else never equal, and decided with 60 digits."""
    if M & (M - 1) == 0:
        return m * (M.bit_length() - 1) > bits
    with localcontext() as context:
        context.prec = 60
        return m * Decimal(M).ln() > bits * Decimal(2).ln()


def _smallest(holds: Callable[[int], bool]) -> int:
    """The smallest integer from 2 on at which a condition holds that stays true once it is."""
    low, high = 1, 2
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_sizes(bits: int, passing: int, paper: bool) -> tuple[int, int]:
    """The sizes `(m, M_1)` of the shortest prompt with `m log M_1 > bits`, `passing` identities after the function.

    Without identities, or with the paper's sizes, `M_1 = m`. Otherwise the length `m + passing · M_1` is, rounding
    aside, a convex function of `M_1`.
    """
    m = _smallest(lambda m: exceeds(m, m, bits))
    if paper or not passing:
        return m, m

    def grows(M: int) -> bool:
        return bits / log2(M + 1) + passing * (M + 1) >= bits / log2(M) + passing * M

    best = _smallest(grows)
    options = []
    for M in range(max(2, best - WINDOW), min(m, best + WINDOW) + 1):
        needed = _smallest(lambda m, M=M: exceeds(m, M, bits))
        options.append((needed + passing * M, needed, M))
    return min(options)[1:]
