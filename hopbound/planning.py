"""How the layers of a stack make hops: the moves between situations, and the best sequence of them.

The constructions (docs/constructions.md) let two tokens make progress, the last token (it knows the query w) and the
token of `z_0`. Each layer makes at most one of these *moves*, and one full layer may *gather* beside its own; the best
schedule of moves is found by going through the layers once with the set of all reachable situations.

| move | mixer | from | to |
|---|---|---|---|
| fetch | full | last token knows nothing | it knows what the token of z_0 knows |
| look up | full | last token knows i_t | i_{t+1}, by the address (w_t, i_t) |
| look ahead | full | the token of z_0 knows i_0 | i_1: the first look-up needs no query |
| carry | bounded | last token knows less than the token of z_0 | the same as it |
| recall | bounded, before the first full layer | last token knows i_0 | i_1, from a state that holds all of z_1 |
| recall packed | the same, where tokens add to the state | the same | i_1, one of several entries that are read |
| branch | full, with more heads than i_{t+1} has values | last token knows i_t | i_{t+2}, of all that it may be |
| look up row | full, after a gather for z_{t+1} | last token knows i_t | i_{t+2}, one of the row at (w_t, i_t) |

A branch from nothing, t = -1, brings i_1, of all z_1: the start counts as i_0 then, m as M_0.

A *gather* for z_l lets each token of z_l fetch its row, z_{l+1}(w, v) for all w at its own value v: the tokens of
z_{l+1} stand before it. It takes a full layer with as many heads as w_l has values, which may fetch, look up or look
ahead besides: the same heads ask for other addresses at other tokens. One layer gathers the rows of all z_l that are
wanted; it makes no branch itself, fetches tokens alone, and packed recalls are not planned with it.

A packed recall and what takes many heads are only looked for where they are asked for (`packed`, `many_heads`): their
limits depend on two sizes of the task, how much of m is held on M_1, how many heads are needed on M_{t+1} or n_{t+1}
and on M_{t+2}.

Which mixers these are, and within which sizes, `moves.py` says.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hopbound.architecture import Architecture, MixerSpec
from hopbound.limits import TaskSizes
from hopbound.moves import Move, obstacle


@dataclass(frozen=True)
class Step:
    """One layer's move: which of its mixers makes it, and the hop whose value it brings."""

    layer: int
    mixer: int
    move: Move
    hop: int


@dataclass(frozen=True)
class Plan:
    """A way to make `hops` hops: one step for each layer that is needed, and those of the layer that gathers."""

    hops: int
    steps: tuple[Step, ...]

    @property
    def construction(self) -> Literal["C1", "C2", "C3", "U2", "U3"]:
        """The construction's name, by the moves that it needs."""
        moves = {step.move for step in self.steps}
        if Move.BRANCH in moves:
            return "U3"
        if Move.LOOK_UP_ROW in moves:
            return "U2"
        if moves & {Move.RECALL, Move.RECALL_PACKED}:
            return "C3"
        return "C2" if Move.CARRY in moves else "C1"


@dataclass(frozen=True)
class Situation:
    """What the last token and the token of z_0 know: the number of the hop, -1 for nothing.

    Once the last token knows i_1 or more, the token of z_0 is of no more use, and what it knows is not told apart.
    """

    last: int
    start: int


@dataclass(frozen=True)
class Way:
    """How a situation was reached: the last step and the way before it, and what the steps cost.

    Among ways to as many hops: fewer branches and rows, no recall before recall, a plain one before a packed one (which
    counts twice), no carry before carry, then fewer steps.
    """

    cost: tuple[int, int, int, int]
    step: Step | None = None
    before: "Way | None" = None

    def then(self, step: Step) -> "Way":
        """One step more."""
        wide, recalls, carries, number = self.cost
        wide += step.move.takes_many_heads
        recalls += (step.move is Move.RECALL) + 2 * (step.move is Move.RECALL_PACKED)
        cost = wide, recalls, carries + (step.move is Move.CARRY), number + 1
        return Way(cost, step, self)

    def steps(self) -> tuple[Step, ...]:
        """All steps, the first one first."""
        found: list[Step] = []
        way: Way | None = self
        while way is not None and way.step is not None:
            found.append(way.step)
            way = way.before
        return tuple(reversed(found))


def moves_from(
    at: Situation,
    hops: int,
    before_full: bool,
    *,
    packed: bool = False,
    branching: bool = False,
    gathered: Collection[int] = (),
) -> Iterator[tuple[Move, int, Situation]]:
    """The moves from a situation: the hop whose value each brings, and the situation after it.

    Args:
        at: what the two tokens know.
        hops: L.
        before_full: whether no full layer was so far, nor is in this one.
        packed: whether packed recalls count.
        branching: whether branches count.
        gathered: hops whose values stand in rows that were gathered in a layer before.
    """
    if at.last < at.start:
        for move in (Move.FETCH, Move.CARRY):
            yield move, at.start, Situation(at.start, at.start)
    if 0 <= at.last < hops:
        yield Move.LOOK_UP, at.last + 1, Situation(at.last + 1, 1)
    if at.last == 0 and before_full:
        yield Move.RECALL, 1, Situation(1, 1)
        if packed:
            yield Move.RECALL_PACKED, 1, Situation(1, 1)
    if branching and at.last + 2 <= hops and (at.last >= 0 or at.start == 0):
        yield Move.BRANCH, at.last + 2, Situation(at.last + 2, 1)
    if at.last >= 0 and at.last + 2 in gathered:
        yield Move.LOOK_UP_ROW, at.last + 2, Situation(at.last + 2, 1)
    if at.start == 0:
        yield Move.LOOK_AHEAD, 1, Situation(at.last, 1)


def _worth_going_on(reached: dict[Situation, Way]) -> dict[Situation, Way]:
    """Without the situations that another one makes needless.

    From i_1 on there are only look-ups and branches. A way that is further, and was no dearer than the other will be
    when it is there, can sit out the layers in which the other catches up; where the other would overtake it by a
    branch, it looks up, which is cheaper. So few ways are left, however many hops there are.
    """
    kept = {at: way for at, way in reached.items() if at.last < 1}
    cheapest = None
    for at in sorted((at for at in reached if at.last >= 1), key=lambda at: -at.last):
        *rare, number = reached[at].cost
        cost = *rare, number - at.last
        if cheapest is None or cost < cheapest:
            kept[at], cheapest = reached[at], cost
    return kept


@dataclass(frozen=True)
class Found:
    """The best way of one search.

    Attributes:
        hops: that it makes.
        way: to these.
        layer: the one that gathers; -1: none does.
        gathered: the mixer of it that gathers the row of each hop.
    """

    hops: int
    way: Way
    layer: int
    gathered: Mapping[int, int]

    def steps(self) -> tuple[Step, ...]:
        """Of the plan, with those rows gathered that are looked up."""
        steps = self.way.steps() if self.hops else ()
        rows = (step.hop for step in steps if step.move is Move.LOOK_UP_ROW)
        gathers = [Step(self.layer, self.gathered[hop], Move.GATHER, hop) for hop in rows]
        return tuple(sorted((*gathers, *steps), key=lambda step: step.layer))


@dataclass(frozen=True)
class Planner:
    """Goes through the layers of a stack, with arguments of `best_plan`."""

    architecture: Architecture
    hops: int
    sizes: TaskSizes | None
    overfill: bool
    packed: bool

    def plan(self, *, branching: bool, rows: bool) -> Plan:
        """The best plan, of those without rows and those in which one of the full layers gathers."""
        best = self.ways(branching=branching)
        if rows and self.sizes is not None:
            for layer in self.architecture.full_layers:
                if best.hops == self.hops and best.way.cost[0] == 0:
                    break
                gathered = self.gathered(layer)
                found = self.ways(branching=branching, layer=layer, gathered=gathered) if gathered else best
                if (-found.hops, found.way.cost) < (-best.hops, best.way.cost):
                    best = found
        return Plan(best.hops, best.steps())

    def first_able(self, mixers: Sequence[MixerSpec], move: Move, hop: int) -> int | None:
        """The first of a layer's mixers that can make the move."""
        precisions = self.architecture.precisions
        forced = self.overfill and (move is not Move.RECALL or not self.packed)
        for index, mixer in enumerate(mixers):
            if obstacle(mixer, move, hop, self.sizes, overfill=forced, precisions=precisions) is None:
                return index
        return None

    def gathered(self, layer: int) -> dict[int, int]:
        """The hops whose values a layer can gather in rows, with its mixer that does."""
        mixers = self.architecture.layers[layer].mixers
        able = {hop: self.first_able(mixers, Move.GATHER, hop) for hop in range(2, self.hops + 1)}
        return {hop: mixer for hop, mixer in able.items() if mixer is not None}

    def ways(self, *, branching: bool, layer: int = -1, gathered: Mapping[int, int] | None = None) -> Found:
        """The best way, with rows that one layer gathers, or without."""
        rows = gathered or {}
        reached = {Situation(-1, 0): Way((0, 0, 0, 0))}
        first_full = min(self.architecture.full_layers, default=len(self.architecture.layers))
        for number, each in enumerate(self.architecture.layers):
            following = dict(reached)
            able: dict[tuple[Move, int], int | None] = {}
            for at, way in reached.items():
                for move, hop, then in moves_from(
                    at,
                    self.hops,
                    number < first_full,
                    packed=self.packed and not rows,
                    branching=branching and number != layer,
                    gathered=rows if number > layer else (),
                ):
                    if number == layer and move is Move.FETCH and hop:
                        continue
                    if (move, hop) not in able:
                        able[move, hop] = self.first_able(each.mixers, move, hop)
                    mixer = able[move, hop]
                    if mixer is None:
                        continue
                    candidate = way.then(Step(number, mixer, move, hop))
                    if then not in following or candidate.cost < following[then].cost:
                        following[then] = candidate
            reached = following if rows else _worth_going_on(following)
        at = min(reached, key=lambda s: (-s.last, *reached[s].cost))
        return Found(max(at.last, 0), reached[at], layer, rows)
