"""Where the certified region of two hops begins: for a size of the first function, the least fan-out of the second.

The sizes of two-hop composition are `m`, `M_1` and `n_1`. For a given m the search looks for the shortest certified
prompt, that is for the smallest `D_2 = n_1 M_1`, with `M_1 = m` (the paper's sizes) or any `M_1` (free sizes).

What is certified at `n_1` stays impossible at every larger `n_1` with the same m and `M_1`: further rows of `z_2` that
are fixed for good are constant tokens of player 2, whose intake no step of the proof charges, and a stack that is right
at the larger size is right on these inputs of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product as choices
from math import ceil, inf, log2

from hopbound.architecture import Architecture
from hopbound.bounds import search
from hopbound.bounds.certificate import Certificate, Sizes
from hopbound.bounds.checker import check
from hopbound.bounds.conditions import Instance, Point, Problem
from hopbound.bounds.counting import exceeds
from hopbound.bounds.prove import Candidate, certificate_of, counted_certificate, crossing, ways

LONGEST = 400  # log2 of the largest sizes that are looked for
COARSE = sorted({round(1.4**i) for i in range(36)})  # of x_1
SPREADS = (0.5, 1.0, 2.0, 8.0, 64.0)
STEPS = (2.0, 1.3, 1.06, 1.015)  # of a descent, as factors
ROUGH = 1e-3  # relative, to which fan-outs are known in a descent


def edge(architecture: Architecture, grid: Sequence[int], sizes: Sizes) -> dict[int, Certificate]:
    """For each m of the grid the shortest certified prompt that was found; without those m where none was.

    Args:
        architecture: the stack.
        grid: sizes of the first function, rising.
        sizes: `free` or `paper`.
    """
    found: dict[int, Certificate] = {}

    def keep(certificate: Certificate) -> None:
        m = certificate.domains[0]
        if m not in found or certificate.prompt_length < found[m].prompt_length:
            found[m] = certificate

    readings = architecture.layer_bits()
    if architecture.exclusions():
        return found
    for layers in readings:
        bits = crossing(layers)
        for m in grid:
            M = None if bits is None else _values_counted(bits, m, sizes)
            if M is not None:
                keep(counted_certificate(architecture, layers, m, M, 2, sizes))
    for candidate in ways(readings, 2, sizes):
        for first in (True, False) if candidate.problem.theorem == "A" else (False,):
            for certificate in _walk(architecture, candidate, first, grid, sizes):
                keep(certificate)
    limit = architecture.length_limit
    return {m: one for m, one in sorted(found.items()) if limit is None or one.prompt_length <= limit}


def _values_counted(bits: int, m: int, sizes: Sizes) -> int | None:
    """The smallest M_1 with `m log M_1 > bits`; with the paper's sizes m itself, if it is large enough."""
    if bits / m > LONGEST:
        return None
    if sizes == "paper":
        return m if exceeds(m, m, bits) else None
    M = max(2, int(2 ** (bits / m) * (1 - 1e-9)))
    while not exceeds(m, M, bits):
        M += max(1, M >> 40)
    return M


@dataclass(frozen=True)
class _Shape:
    """What is chosen at one m: `x_1`, the share of the m addresses that are in `x_0`, and `M_1 / (x_0 x_1)`."""

    x: float
    share: float
    spread: float

    def moved(self, name: str, factor: float) -> "_Shape":
        changed = replace(self, **{name: getattr(self, name) * factor})
        return replace(changed, x=max(changed.x, 1.0), share=min(changed.share, 1.0))


def _walk(
    architecture: Architecture, candidate: Candidate, first: bool, grid: Sequence[int], sizes: Sizes
) -> Iterator[Certificate]:
    """Certificates along the grid, from large m, where conditions are easiest to meet, down: each from the last."""
    near: _Shape | None = None
    for m in reversed(grid):
        best = _best(candidate, first, m, near)
        if best is None:
            if near is not None:
                return  # what is too small for one m is too small for those below it
            continue
        near, point = best
        for tolerance in search.TOLERANCES:
            instance = _least_fan(candidate.problem, point, tolerance)
            if instance is not None:
                certificate = certificate_of(architecture, candidate, instance, 2, sizes)
                if check(certificate.document()).accepted:
                    yield certificate
                    break


def _best(candidate: Candidate, first: bool, m: int, near: _Shape | None) -> tuple[_Shape, Point] | None:
    """The best shape found at m: near that of another m, or else from a coarse grid of all shapes."""
    problem = candidate.problem

    def cost(shape: _Shape) -> tuple[float, Point | None]:
        point = _point(problem, first, m, shape)
        instance = None if point is None else _least_fan(problem, point, resolution=ROUGH)
        return (inf, None) if instance is None else (log2(instance.domains[1]), instance.point)

    starts = [near] if near is not None else []
    names = ("x",) if first else ("x", "share") if problem.paper else ("x", "share", "spread")
    best = min(((*cost(shape), shape) for shape in starts), key=lambda one: one[0], default=(inf, None, None))
    if best[1] is None:
        shares = (1.0,) if first else (1.0, 0.25, 1e-9)
        spreads = SPREADS if "spread" in names else (1.0,)
        coarse = (_Shape(float(x), share, spread) for x, share, spread in choices(COARSE, shares, spreads))
        best = min(((*cost(shape), shape) for shape in coarse), key=lambda one: one[0])
    value, point, shape = best
    if point is None or shape is None:
        return None
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            for name, factor in choices(names, (1 / step, step)):
                other = shape.moved(name, factor)
                if name == "x" and round(other.x) == round(shape.x):
                    other = replace(other, x=max(1.0, round(shape.x) + (1.0 if factor > 1 else -1.0)))
                found, at = cost(other)
                if at is not None and found < value - 1e-9:
                    value, point, shape, improved = found, at, other, True
    return shape, point


def _point(problem: Problem, first: bool, m: int, shape: _Shape) -> Point | None:
    """The integers of a shape, the fan-out left at 1; None if (A1) asks for too many values."""
    x_1 = round(shape.x)
    if not first:
        x_0 = max(1, round(m * shape.share))
        values = () if problem.paper else (max(2, round(x_0 * x_1 * shape.spread)),)
        return Point(m, (1,), (x_0, x_1), values, False)
    # Smallest M_1 ≥ x_1 with m (log M_1 - log(x_1 - 1)) > σ_0; of a given M_1 as many values as that allows.
    if problem.paper:
        most = max(1, ceil(m * 2.0 ** (-problem.states[0] / m)))
        return Point(m, (1,), (1, min(x_1, most, m)), (), True)
    exponent = log2(x_1 - 1) + problem.states[0] / m if x_1 > 1 else 1.0
    if exponent > LONGEST:
        return None
    return Point(m, (1,), (1, x_1), (max(2, x_1, int(2.0**exponent * (1 + 1e-12)) + 1),), True)


def _least_fan(problem: Problem, point: Point, tolerance: float = 0.0, resolution: float = 0.0) -> Instance | None:
    """The least certified `n_1` and all that follows, up to a relative `resolution`; None beyond `LONGEST` bits."""

    def at(fan: int) -> Instance | None:
        return search.complete(problem, replace(point, n=(fan,)), tolerance)

    low, high, found = 0, 1, at(1)
    while found is not None and found.slack <= 0:
        low = high
        high *= max(2, int(2.0 ** min(-found.slack / 2, 100)))
        found = at(high) if high.bit_length() <= LONGEST else None
    if found is None:  # (A1) is met at small fan-outs or at none: in Theorem B they are what it gives away
        return None
    while high - low > max(1, resolution * high):
        middle = (low + high) // 2
        tried = at(middle)
        if tried is not None and tried.slack > 0:
            high, found = middle, tried
        else:
            low = middle
    return found
