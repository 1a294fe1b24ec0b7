"""The search for the smallest certified sizes of one theorem.

First the continuous optimum; then its small numbers are tried rounded down and up; from each rounding an integer
descent over the chosen numbers, where the ones that the conditions determine are not chosen but solved for: `m` from
(A1), each θ as the largest that (A1) or (A2) allows, and one more size as the smallest that meets (A3).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from itertools import product as choices
from math import inf, log2

from hopbound.bounds import closed_forms, continuous
from hopbound.bounds.conditions import Instance, Point, Problem, domains_of, largest_theta, losses

Slot = tuple[str, int]  # m, n, x or M, and the place in it

# Where the search stands in for the closed forms: beyond, floating point would overflow or the time would grow.
SEARCH_HOPS, SEARCH_BITS = 5, 1000
SECOND_FORM_HOPS = 3  # hops up to which both forms of (A1) are tried in Theorem A
ALL_CUTS_HOPS = 4  # hops up to which every cut of the last step is tried
SMALL, MAX_BRANCHED = 5.0, 4  # up to so many numbers below 2^SMALL are tried rounded both ways
MAX_DESCENTS = 2  # from the best of these roundings
STEPS = (0.2, 0.06, 0.02, 0.006, 0.002)  # of a descent, relative
BUDGETS, LEAST_BUDGET = {2: 400, 3: 150}, 24  # solutions tried in one descent, by hops; the deeper, the less it finds
PAIRED = 64  # numbers below this are also changed two at a time
RADIUS = 3  # of these changes for two hops; 1 for more
ROUNDING = 1e-13  # relative, above what the logarithms of a slack are off by
TOLERANCES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)  # relative room for rounding errors, tried until the checker accepts


def with_slot(point: Point, slot: Slot, value: int) -> Point:
    """The point with one number replaced; `x_0` stays at `m` if it was, and never exceeds it."""
    kind, index = slot
    if kind == "m":
        x_0 = value if point.x[0] == point.m else min(point.x[0], value)
        return replace(point, m=value, x=(x_0, *point.x[1:]))
    numbers = list(getattr(point, kind))
    numbers[index] = value
    changed = replace(point, **{kind: tuple(numbers)})
    return replace(changed, m=max(point.m, changed.x[0]))


def slot_value(point: Point, slot: Slot) -> int:
    """The number in a slot."""
    kind, index = slot
    return point.m if kind == "m" else getattr(point, kind)[index]


def least(slot: Slot) -> int:
    """The smallest number a slot may hold."""
    return 2 if slot[0] in "mM" else 1


def total(problem: Problem, instance: Instance) -> int:
    """The prompt length without the start and the query."""
    return sum(instance.domains) + problem.passing * instance.values[-1]


def complete(problem: Problem, point: Point, tolerance: float) -> Instance | None:
    """What follows from a point: each θ as large as the conditions allow; None if (A1) or (A2) cannot be met."""
    D = domains_of(point.m, point.n, None if problem.paper else point.M)
    M = D[:-1] if problem.paper else list(point.M)
    hidden = problem.hidden(point.n)
    deltas, cut = losses(problem, D, point.n, point.x, None)
    x = point.x
    if point.first:
        x_1 = x[1]
        if x_1 > M[0] or (x_1 > 1 and point.m * (log2(M[0]) - log2(x_1 - 1)) <= hidden * (1 + tolerance)):
            return None
        theta = [x_1]
    else:
        P = x[0] * x[1]
        if x[0] > point.m:
            return None
        theta = [largest_theta(P, M[0], P * hidden / point.m * (1 + 1e-14), tolerance)]
    for i in range(1, len(M)):
        if theta[-1] < 1:
            return None
        P = x[i + 1] * point.n[i - 1] * theta[-1]
        theta.append(largest_theta(P, M[i], x[i + 1] * deltas[i - 1] + 1, tolerance))
    if theta[-1] < 1:
        return None
    reached = point.n[-1] * theta[-1]
    end = D[-1]
    if problem.free_end:
        bits = deltas[-1] / reached * (1 + tolerance)
        bits *= 1 + (ROUNDING if bits > 20 else 0)  # one more than such a number is no other number in floating point
        if bits > 1000:
            return None
        end = min(max(2, int(2.0**bits) + 1), D[-1])
    slack = log2(reached) + log2(log2(end)) - (log2(deltas[-1]) if deltas[-1] else -inf) - tolerance * 2
    return Instance(point, tuple(D), (*M, end), tuple(theta), tuple(deltas), cut, slack)


def smallest(measure: Callable[[int], float], guess: int, least: int, resolution: float) -> int | None:
    """The smallest integer near `guess` from which on `measure` is positive, up to a relative `resolution`.

    `measure` is close to linear in the logarithm with a slope of about 1.
    """
    value = max(least, guess)
    level = measure(value)
    good, good_level, bad, bad_level = None, 1.0, None, -1.0
    stride = 1e-4
    for _ in range(24):
        stride = min(3 * stride, 4.0)
        if level > 0:
            good, good_level = value, level
            if bad is not None or value <= least:
                break
            value = max(least, min(value - 1, int(value * 2.0 ** -(min(level, 8.0) + stride))))
        else:
            bad, bad_level = value, level
            if good is not None:
                break
            value = max(value + 1, int(value * 2.0 ** (min(-level, 8.0) + stride)))
        level = measure(value)
    if good is None:
        return None
    if bad is None:
        return good
    halve = False
    while good - bad > max(1, resolution * good):
        width = log2(good) - log2(bad)
        part = 0.5 if halve or bad_level < -8 else min(0.95, max(0.05, -bad_level / (good_level - bad_level)))
        middle = min(good - 1, max(bad + 1, int(bad * 2.0 ** (width * part)) if width > 1e-12 else (good + bad) // 2))
        level = measure(middle)
        if level > 0:
            good, good_level = middle, level
        else:
            bad, bad_level = middle, level
        halve = not halve
    return good


@dataclass(frozen=True)
class Solver:
    """Solves the determined numbers of a point.

    Attributes:
        problem: what is searched.
        first: the form of (A1).
        determined: the size that (A3) determines; None where it is `M_L`.
    """

    problem: Problem
    first: bool
    determined: Slot | None

    def chosen(self) -> list[Slot]:
        """The numbers that are not determined."""
        L = self.problem.hops
        slots: list[Slot] = [("x", i) for i in range(L - 1, 0, -1)] + [("n", i) for i in range(L - 2, -1, -1)]
        if not self.first:
            slots.append(("x", 0))
        if not self.problem.paper:
            slots += [("M", i) for i in range(L - 1)]
        if self.problem.paper or not self.first:
            slots.append(("m", 0))
        return [slot for slot in slots if slot != self.determined]

    def solve(self, point: Point, tolerance: float = 0.0, resolution: float = 1e-7) -> Instance | None:
        """The smallest instance at the chosen numbers of `point`."""
        problem = self.problem
        if self.first and not problem.paper:
            x_1, M_1 = point.x[1], point.M[0]
            if x_1 > M_1:
                return None
            rate = log2(M_1) - log2(x_1 - 1) if x_1 > 1 else inf
            point = replace(point, m=max(2, int(problem.states[0] * (1 + tolerance) / rate) + 1))
        slot = self.determined
        if slot is not None:

            def measure(value: int) -> float:
                instance = complete(problem, with_slot(point, slot, value), tolerance)
                return -9.0 if instance is None else instance.slack

            value = smallest(measure, slot_value(point, slot), least(slot), resolution)
            if value is None:
                return None
            point = with_slot(point, slot, value)
        instance = complete(problem, point, tolerance)
        return instance if instance is not None and instance.slack > 0 else None


def solver(problem: Problem, point: Point) -> Solver:
    """The solver that lets (A3) determine the largest of the sizes that it bounds from below."""
    last = problem.hops - 2
    if problem.free_end:
        return Solver(problem, point.first, None)
    if problem.paper:
        slots: list[Slot] = [("n", i) for i in range(last + 1)]
        slots += [] if problem.theorem == "A" else [("m", 0)]
    else:
        slots = [("n", last)] + ([] if point.first and last == 0 else [("M", last)])
    return Solver(problem, point.first, max(slots, key=lambda slot: slot_value(point, slot)))


def descend(solver: Solver, start: Instance) -> Instance:
    """Improve an instance by changing one number at a time, in ever smaller steps."""
    budget = BUDGETS.get(solver.problem.hops, LEAST_BUDGET)
    best, cost, slots = start, total(solver.problem, start), solver.chosen()
    for step in STEPS:
        improved = True
        while improved and budget > 0:
            improved = False
            for slot in slots:
                for sign in (1, -1):
                    while budget > 0:
                        value = slot_value(best.point, slot)
                        change = max(1, round(value * step))
                        other = value + sign * change
                        if other < least(slot):
                            break
                        budget -= 1
                        found = solver.solve(with_slot(best.point, slot, other))
                        if found is None or total(solver.problem, found) >= cost:
                            break
                        gain = cost - total(solver.problem, found)
                        best, cost = found, total(solver.problem, found)
                        improved = improved or gain > 1e-4 * cost or cost < 10**6
    radius = RADIUS if solver.problem.hops == 2 else 1
    few = [slot for slot in slots if slot_value(best.point, slot) < PAIRED]
    for one, other in combinations(few, 2):
        centre = best.point
        for change, other_change in choices(range(-radius, radius + 1), repeat=2):
            values = slot_value(centre, one) + change, slot_value(centre, other) + other_change
            if values[0] < least(one) or values[1] < least(other):
                continue
            found = solver.solve(with_slot(with_slot(centre, one, values[0]), other, values[1]))
            if found is not None and total(solver.problem, found) < cost:
                best, cost = found, total(solver.problem, found)
    return best


def _point(problem: Problem, first: bool, y: list[float]) -> Point:
    """The nearest integers of a vector of logarithms."""
    m, n, x, _, M, _ = continuous.Layout(problem, first).split([max(1, round(2.0**v)) for v in y])
    return Point(m, tuple(n), (min(m, x[0]), *x[1:]), tuple(M or ()), first)


@dataclass(frozen=True, order=True)
class Relaxed:
    """A continuous optimum: log2 of the length, the coordinates, the cut and the form of (A1) it is for."""

    length: float
    y: list[float]
    cut: int
    first: bool


def _relax(problem: Problem, start: list[float], first: bool, cut: int, fixed: dict[int, float]) -> list[Relaxed]:
    """The continuous optimum near `start`, if the method converges."""
    y = continuous.optimum(problem, start, first, cut, fixed)
    return [] if y is None else [Relaxed(continuous.log2_length(problem, first, cut, y), y, cut, first)]


def _starts(problem: Problem, closed: Instance) -> Iterator[tuple[list[float], bool]]:
    """Where the continuous search starts, for each form of (A1): the closed form, and what follows from it."""
    y, L = continuous.coordinates(problem, closed), problem.hops
    yield y, closed.point.first
    if closed.point.first and L <= SECOND_FORM_HOPS:
        yield [*y[: 2 * L - 1], y[0] / 2, y[L], *y[2 * L - 1 :]], False  # half of log m for x_0, and θ_1 = x_1


def relax(problem: Problem) -> Relaxed | None:
    """The shortest continuous optimum over the cuts of the last step and the forms of (A1); None if none is found."""
    if problem.hops > SEARCH_HOPS or closed_forms.log2_length(problem) > SEARCH_BITS or not continuous.available():
        return None
    closed = closed_forms.instance(problem)
    assert closed is not None
    found: list[Relaxed] = []
    cuts = range(-1, problem.hops - 1) if problem.hops <= ALL_CUTS_HOPS else (closed.cut,)
    for start, first in _starts(problem, closed):
        for cut in cuts:
            found += _relax(problem, start, first, cut, {})
    return min(found, default=None)


def _branches(problem: Problem, rough: Relaxed) -> list[Relaxed]:
    """The continuous optima with the smallest numbers rounded down and up, the shortest first."""
    numbers = range(1, 2 * problem.hops - 1 + (not rough.first))
    small = sorted((i for i in numbers if rough.y[i] < SMALL), key=lambda i: rough.y[i])[:MAX_BRANCHED]
    found: list[Relaxed] = []
    for ups in choices((0, 1), repeat=len(small)):
        fixed = {i: log2(max(1, int(2.0 ** rough.y[i] + 1e-6) + up)) for i, up in zip(small, ups, strict=True)}
        found += _relax(problem, rough.y, rough.first, rough.cut, fixed)
    return sorted(found)[:MAX_DESCENTS] or [rough]


def _hard_end(problem: Problem) -> Point:
    """Where no layer hears anything: all functions but the last as small as they get, the last one too long to hold.

    One table each for the others (`x_l = 1`), two values but for 8 of the last but one, of which 7 are reached: with
    21 queries 21 log(8/7) - log 8 ≥ 1, which is (A2) at δ = 0.
    """
    L, held = problem.hops, max(problem.states)
    queries = held // (7 * max(1, held.bit_length() - 4)) + 1
    return Point(2, (21,) * (L - 2) + (queries,), (1,) * L, (2,) * (L - 2) + (8,), True)


def refine(problem: Problem, rough: Relaxed) -> Iterator[Instance]:
    """The best instance found near a continuous optimum, then the same with ever more room for rounding errors."""
    best: Instance | None = None
    points = [_point(problem, rough.first, option.y) for option in _branches(problem, rough)]
    if not any(problem.summaries) and not problem.paper:
        points.append(_hard_end(problem))
    for point in points:
        solving = solver(problem, point)
        instance = solving.solve(point)
        if instance is not None:
            instance = descend(solving, instance)
            if best is None or total(problem, instance) < total(problem, best):
                best = instance
    if best is not None:
        solving = solver(problem, best.point)
        for tolerance in TOLERANCES:
            instance = solving.solve(best.point, tolerance, 0.0)
            if instance is not None:
                yield instance
