"""The search over schedules: an exact dynamic program over what the two tokens can know after each layer.

The claims plan for one stack at one choice of sizes: a *situation* (`planning.Situation`) is what the last token and
the token of `z_0` know, and each layer makes at most one move, one of `planning.moves_from`. A prefix of a
schedule is as good as the set of situations that it can reach, at each of the hardest sizes, and as whether a full
layer was in it (a recall stands before the first). So two prefixes are compared by these alone, not by their layers.

`minimal_counts` finds every multiset of layers that makes the hops in some order while no smaller one does in any. A
prefix is dropped if another one, made of some or all of the same layers, reaches at least the same situations:
whatever completes the dropped one completes the other. Costs add up over the layers and are not negative, so the
cheapest schedules, by any such cost, are among these multisets.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial, prod

from hopbound.architecture import Kind, Layer
from hopbound.design.hardest import HardSizes
from hopbound.planning import Situation, moves_from

Reached = int
"""A set of situations for each of the sizes, and whether no full layer stands before, as one number."""

Counts = tuple[int, ...]
"""How often each layer of a menu is taken."""


@dataclass(frozen=True)
class Found:
    """A minimal multiset of layers, with one order in which it makes the hops (indices into the menu)."""

    counts: Counts
    order: tuple[int, ...]


class Situations:
    """Which situations layers reach, at each of some sizes.

    Args:
        hops: L.
        hard: the sizes.
    """

    def __init__(self, hops: int, hard: Sequence[HardSizes]) -> None:
        self._hops = hops
        self._refused = [one.refused for one in hard]
        self._span = 2 * (hops + 2)  # situations at one of the sizes
        self._no_full_yet = 1 << self._span * len(hard)
        self._known: dict[tuple[Layer, Reached], Reached] = {}
        self.nothing: Reached = self._no_full_yet | self._everywhere(-1, 0)
        self._goal = self._everywhere(hops, 1)

    def _bit(self, size: int, last: int, start: int) -> Reached:
        return 1 << size * self._span + 2 * (last + 1) + start

    def _everywhere(self, last: int, start: int) -> Reached:
        return sum(self._bit(size, last, start) for size in range(len(self._refused)))

    def makes_hops(self, reached: Reached) -> bool:
        """Whether the last token can know the answer, at each of the sizes."""
        return reached & self._goal == self._goal

    def after(self, layer: Layer, reached: Reached) -> Reached:
        """What is reached behind one more layer."""
        key = (layer, reached)
        if key not in self._known:
            self._known[key] = self._after(layer, reached)
        return self._known[key]

    def _after(self, layer: Layer, reached: Reached) -> Reached:
        full = Kind.FULL in layer.kinds
        before_full = bool(reached & self._no_full_yet) and not full
        then = reached & ~self._no_full_yet if full else reached
        for size, refused in enumerate(self._refused):
            for last in range(-1, self._hops + 1):
                for start in (0, 1):
                    if not reached & self._bit(size, last, start):
                        continue
                    for move, hop, after in moves_from(Situation(last, start), self._hops, before_full):
                        if any((mixer, move, hop) not in refused for mixer in layer.mixers):
                            then |= self._bit(size, after.last, after.start)
        return then


def minimal_counts(
    menu: Sequence[Layer], situations: Situations, *, deepest: int | None = None, most_full: int | None = None
) -> list[Found]:
    """All multisets of layers that make the hops and of which no smaller part does; fewest layers first.

    Args:
        menu: the layers to choose from.
        situations: for the sizes.
        deepest: at most so many layers; None without a limit.
        most_full: at most so many full layers; None without a limit.
    """
    full = [Kind.FULL in layer.kinds for layer in menu]
    nothing = (0,) * len(menu)
    known = _Known(nothing, situations)
    found: list[Found] = []
    level = [(Found(nothing, ()), situations.nothing)]
    depth = 0
    while level and (deepest is None or depth < deepest):
        depth += 1
        following: list[tuple[Found, Reached]] = []
        for prefix, reached in level:
            for index, layer in enumerate(menu):
                counts = (*prefix.counts[:index], prefix.counts[index] + 1, *prefix.counts[index + 1 :])
                if most_full is not None and sum(c for c, f in zip(counts, full, strict=True) if f) > most_full:
                    continue
                then = situations.after(layer, reached)
                if not known.is_news(counts, then):
                    continue
                longer = Found(counts, (*prefix.order, index))
                if situations.makes_hops(then):
                    found.append(longer)
                else:
                    following.append((longer, then))
        level = following
    return found


class _Known:
    """What the layers of each multiset, or some of them, are known to reach; multisets come by rising size."""

    def __init__(self, nothing: Counts, situations: Situations) -> None:
        self._makes_hops = situations.makes_hops
        self._best: dict[Counts, list[Reached]] = {nothing: [situations.nothing]}

    def is_news(self, counts: Counts, reached: Reached) -> bool:
        """Whether they were not known to reach as much, nor to make the hops; if so it is known now."""
        known = self._with_fewer(counts)
        if any(reached & other == reached or self._makes_hops(other) for other in known):
            return False
        known.append(reached)
        return True

    def _with_fewer(self, counts: Counts) -> list[Reached]:
        if counts not in self._best:
            fewer = [(*counts[:i], count - 1, *counts[i + 1 :]) for i, count in enumerate(counts) if count]
            self._best[counts] = list(dict.fromkeys(one for part in fewer for one in self._with_fewer(part)))
        return self._best[counts]


def count_orders(menu: Sequence[Layer], counts: Counts, situations: Situations) -> tuple[int, int]:
    """In how many orders these layers make the hops, and how many orders there are."""
    ways = Counter({((0,) * len(menu), situations.nothing): 1})
    for _ in range(sum(counts)):
        longer: Counter[tuple[Counts, Reached]] = Counter()
        for (used, reached), number in ways.items():
            for index, layer in enumerate(menu):
                if used[index] < counts[index]:
                    more = (*used[:index], used[index] + 1, *used[index + 1 :])
                    longer[more, situations.after(layer, reached)] += number
        ways = longer
    working = sum(number for (_, reached), number in ways.items() if situations.makes_hops(reached))
    return working, factorial(sum(counts)) // prod(factorial(count) for count in counts)


def orders(counts: Counts) -> Iterator[tuple[int, ...]]:
    """All orders of a multiset, as indices into the menu, by rising indices."""
    if not any(counts):
        yield ()
    for index, count in enumerate(counts):
        if count:
            for rest in orders((*counts[:index], count - 1, *counts[index + 1 :])):
                yield (index, *rest)
