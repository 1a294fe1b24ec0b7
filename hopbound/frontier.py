"""The frontier of a stack for one or two hops: sizes that are built, sizes that are certified impossible, the gap.

For one hop the only size is m. For two hops the sizes are m, `M_1` and `n_1` (`D_2 = n_1 M_1`); for each m of a grid
one row says up to which `n_1` a construction of this project reaches and from which on no weights whatever do, at the
same `M_1`: m itself (the paper's sizes), or the one of the shortest certified prompt (free sizes).

All constructions count, those that take many heads as well: a branch (U3) as far as `M_1` is below the number of heads,
rows (U2) as far as `n_1` is not above it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log2

from hopbound.architecture import Architecture
from hopbound.bounds import Certificate, Sizes, Verdict, prove
from hopbound.bounds.frontier import edge
from hopbound.claims import TaskSizes, best_plan
from hopbound.errors import InputError

LARGEST = 2**512  # sizes beyond are not asked for: a construction that still works there works at every size
SPAN = 16  # how far beyond the smallest certified m, and beyond what a state holds, the grid goes
MOST_ROWS = 64


@dataclass(frozen=True)
class Row:
    """One line of sizes along which one size varies.

    Attributes:
        m: the size of the first function; None for one hop, where it is what varies.
        values: `M_1`; None for one hop (`M_1 = m`).
        built: the largest size that a construction reaches; 0 if none, None without a limit.
        construction: which construction that is; empty if none.
        certified: the certificate with the smallest size that was found; None if none was.
    """

    m: int | None
    values: int | None
    built: int | None
    construction: str
    certified: Certificate | None

    @property
    def impossible(self) -> int | None:
        """The size from which on it is impossible."""
        if self.certified is None:
            return None
        return self.certified.domains[0] if self.m is None else self.certified.n[0]


@dataclass(frozen=True)
class Frontier:
    """The rows, for a number of hops.

    Attributes:
        hops: 1 or 2.
        sizes: `free` or `paper`.
        varying: the size that varies along a row: `m` for one hop, `n_1` for two.
        rows: by rising m.
        reason: why nothing is certified; empty if something is.
    """

    hops: int
    sizes: Sizes
    varying: str
    rows: tuple[Row, ...]
    reason: str


def frontier(
    architecture: Architecture, hops: int, *, sizes: Sizes = "free", verdict: Verdict | None = None
) -> Frontier:
    """What is built, what is certified impossible, and the gap between.

    Args:
        architecture: the stack.
        hops: 1 or 2.
        sizes: `free` or `paper`.
        verdict: the bound for these, where it is known already.

    Raises:
        InputError: another number of hops, or as `prove`.
    """
    if hops not in (1, 2):
        raise InputError("hops", hops, "1 or 2 for a frontier")
    verdict = verdict or prove(architecture, hops, sizes=sizes)
    shortest = verdict.certificate
    if hops == 1:
        built, construction = _largest(architecture, lambda m: TaskSizes((m,), (m,), ()), least=2)
        row = Row(None, None, built, construction, shortest)
        return Frontier(hops, sizes, "m", (row,), verdict.reason)
    grid = _grid(architecture, shortest)
    certified = edge(architecture, grid, sizes)
    if shortest is not None:
        certified[shortest.domains[0]] = shortest
    rows = []
    for m in grid:
        certificate = certified.get(m)
        M = m if certificate is None else certificate.values[0]
        built, construction = _largest(
            architecture, lambda n, m=m, M=M: TaskSizes((m, n * M), (M, n * M), (n,)), least=1
        )
        rows.append(Row(m, M, built, construction, certificate))
    return Frontier(hops, sizes, "n_1", tuple(rows), verdict.reason)


@dataclass(frozen=True)
class Capacity:
    """How much of z_1 a stack can hold, from both sides, where the hops need a state that holds all of it.

    Attributes:
        built: the largest m that is built, with one row of z_2.
        impossible: the smallest m that was found certified impossible, with any number of rows.
        certificate: the one with that m.
    """

    built: int
    impossible: int
    certificate: Certificate

    @property
    def ratio(self) -> float:
        """log m that is impossible over log m that is built."""
        return log2(self.impossible) / log2(self.built)


def capacity(architecture: Architecture, hops: int) -> Capacity | None:
    """The capacity of a stack for z_1, with the paper's sizes; None where there is none, or nothing is built.

    For two hops the smallest certified m is found by halving, as certificates at one m are found at larger ones.

    Args:
        architecture: the stack.
        hops: 1 or 2.

    Raises:
        InputError: another number of hops, or as `prove`.
    """
    if hops not in (1, 2):
        raise InputError("hops", hops, "1 or 2 for a capacity")

    def sizes(m: int) -> TaskSizes:
        return TaskSizes((m,) * hops, (m,) * hops, (1,) * (hops - 1))

    built, construction = _largest(architecture, sizes, least=2, many_heads=False)
    best = prove(architecture, hops, sizes="paper").certificate
    if best is None or not built or construction != "C3":
        return None
    low = built
    while hops == 2 and best.domains[0] - low > 1:
        middle = (low + best.domains[0]) // 2
        found = edge(architecture, [middle], "paper").get(middle)
        if found is None:
            low = middle
        else:
            best = found
    return Capacity(built, best.domains[0], best)


def _grid(architecture: Architecture, shortest: Certificate | None) -> list[int]:
    """Sizes of the first function: powers of √2, the shortest certificate's, what a state or the heads just hold."""
    marks = [shortest.domains[0]] if shortest is not None else []
    for many_heads in (False, True):
        held, construction = _largest(
            architecture, lambda m: TaskSizes((m, m), (m, m), (1,)), least=2, many_heads=many_heads
        )
        marks += [held, held + 1] if held is not None and construction in ("C3", "U3") else []
    top = SPAN * max(marks, default=SPAN)
    steps = {round(2 ** (k / 2)) for k in range(2, 2 * top.bit_length() + 1)}
    grid = sorted(m for m in {*steps, *marks} if m <= top)
    while len(grid) > MOST_ROWS:
        grid = sorted({*grid[::2], *marks})
    return grid


def _largest(
    architecture: Architecture, sizes: Callable[[int], TaskSizes], *, least: int, many_heads: bool = True
) -> tuple[int | None, str]:
    """The largest size at which a construction makes the hops (0 if none, None without a limit), and which one.

    Every obstacle is a code, a table or a number of look-ups that no longer fits, and what is needed of each grows with
    the size: a plan that fits at one fits at all smaller ones, and what fits by any plan is everything up to a size.
    """

    def plan(size: int) -> str | None:
        task = sizes(size)
        found = best_plan(architecture, task.hops, task, packed=True, many_heads=many_heads)
        return found.construction if found.hops == task.hops else None

    construction = plan(least)
    if construction is None:
        return 0, ""
    low, high = least, 2 * least
    while (reached := plan(high)) is not None:
        low, high, construction = high, 2 * high, reached
        if high > LARGEST:
            return None, construction
    while high - low > 1:
        middle = (low + high) // 2
        reached = plan(middle)
        low, high, construction = (low, middle, construction) if reached is None else (middle, high, reached)
    return low, construction
