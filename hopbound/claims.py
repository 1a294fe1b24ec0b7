"""What a stack is known to be able to do: how many hops, by which construction, under which size conditions.

The constructions (docs/constructions.md) let two tokens make progress, the last token (it knows the query w) and the
token of `z_0`. Each layer makes at most one of these *moves*; the best schedule of moves is found by going through the
layers once with the set of all reachable situations.

| move | mixer | from | to |
|---|---|---|---|
| fetch | full | last token knows nothing | it knows what the token of z_0 knows |
| look up | full | last token knows i_t | i_{t+1}, by the address (w_t, i_t) |
| look ahead | full | the token of z_0 knows i_0 | i_1: the first look-up needs no query |
| carry | bounded | last token knows less than the token of z_0 | the same as it |
| recall | bounded, before the first full layer | last token knows i_0 | i_1, from a state that holds all of z_1 |
| recall packed | the same, where tokens add to the state | the same | i_1, one of several entries that are read |
| branch | full, with more heads than i_{t+1} has values | last token knows i_t | i_{t+2}, of all that it may be |

A branch from nothing, t = -1, brings i_1, of all z_1: the start counts as i_0 then, m as M_0.

A packed recall and a branch are only looked for where they are asked for (`packed`, `branching`): their limits depend
on two sizes of the task, how much of m is held on M_1, how many heads are needed on M_{t+1} and M_{t+2}.

Which mixers these are, and within which sizes, `moves.py` says.

C1 uses fetch and look up; C2 a carry as well; C3 a recall as well; U3 a branch, whatever else it uses.
What no sequence of moves reaches is refused with the reason, before anything is built.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hopbound.architecture import Architecture, MixerSpec
from hopbound.errors import InputError
from hopbound.limits import Code, Limit, TaskSizes, tag_bits
from hopbound.moves import Move, limits, obstacle

__all__ = [
    "Move",
    "Plan",
    "Step",
    "TaskSizes",
    "best_plan",
    "conditions",
    "obstacle",
    "plan_or_refuse",
]


@dataclass(frozen=True)
class Step:
    """One layer's move: which of its mixers makes it, and the hop whose value it brings."""

    layer: int
    mixer: int
    move: Move
    hop: int


@dataclass(frozen=True)
class Plan:
    """A way to make `hops` hops: one step for each layer that is needed."""

    hops: int
    steps: tuple[Step, ...]

    @property
    def construction(self) -> Literal["C1", "C2", "C3", "U3"]:
        """The construction's name, by the moves that it needs."""
        moves = {step.move for step in self.steps}
        if Move.BRANCH in moves:
            return "U3"
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
class _Way:
    """How a situation was reached: the last step and the way before it, and what the steps cost.

    Among ways to as many hops: fewer branches, no recall before recall, a plain one before a packed one (which counts
    twice), no carry before carry, then fewer steps.
    """

    cost: tuple[int, int, int, int]
    step: Step | None = None
    before: "_Way | None" = None

    def then(self, step: Step) -> "_Way":
        """One step more."""
        branches, recalls, carries, number = self.cost
        branches += step.move is Move.BRANCH
        recalls += (step.move is Move.RECALL) + 2 * (step.move is Move.RECALL_PACKED)
        cost = branches, recalls, carries + (step.move is Move.CARRY), number + 1
        return _Way(cost, step, self)

    def steps(self) -> tuple[Step, ...]:
        """All steps, the first one first."""
        found: list[Step] = []
        way: _Way | None = self
        while way is not None and way.step is not None:
            found.append(way.step)
            way = way.before
        return tuple(reversed(found))


def moves_from(
    at: Situation, hops: int, before_full: bool, *, packed: bool = False, branching: bool = False
) -> Iterator[tuple[Move, int, Situation]]:
    """The moves from a situation: the hop whose value each brings, and the situation after it.

    Args:
        at: what the two tokens know.
        hops: L.
        before_full: whether no full layer was so far, nor is in this one.
        packed: whether packed recalls count.
        branching: whether branches count.
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
    if at.start == 0:
        yield Move.LOOK_AHEAD, 1, Situation(at.last, 1)


def _worth_going_on(reached: dict[Situation, _Way]) -> dict[Situation, _Way]:
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


def best_plan(
    architecture: Architecture,
    hops: int,
    sizes: TaskSizes | None = None,
    *,
    overfill: bool = False,
    packed: bool = False,
    branching: bool = False,
) -> Plan:
    """The plan with the most hops, at most `hops`; without sizes one that works whenever its `conditions` hold.

    Args:
        architecture: the stack.
        hops: as many as are wanted.
        sizes: of the task.
        overfill: see `obstacle`.
        packed: look for packed recalls too; of recalls it is then these that may be overfilled.
        branching: look for branches too.
    """

    def first_able(mixers: Sequence[MixerSpec], move: Move, hop: int) -> int | None:
        """The first of a layer's mixers that can make the move."""
        for index, mixer in enumerate(mixers):
            forced = overfill and (move is not Move.RECALL or not packed)
            reason = obstacle(mixer, move, hop, sizes, overfill=forced, precisions=architecture.precisions)
            if reason is None:
                return index
        return None

    reached = {Situation(-1, 0): _Way((0, 0, 0, 0))}
    first_full = min(architecture.full_layers, default=len(architecture.layers))
    for number, layer in enumerate(architecture.layers):
        following = dict(reached)
        able: dict[tuple[Move, int], int | None] = {}
        for at, way in reached.items():
            for move, hop, then in moves_from(at, hops, number < first_full, packed=packed, branching=branching):
                if (move, hop) not in able:
                    able[move, hop] = first_able(layer.mixers, move, hop)
                mixer = able[move, hop]
                if mixer is None:
                    continue
                candidate = way.then(Step(number, mixer, move, hop))
                if then not in following or candidate.cost < following[then].cost:
                    following[then] = candidate
        reached = _worth_going_on(following)
    at = min(reached, key=lambda s: (-s.last, *reached[s].cost))
    return Plan(max(at.last, 0), reached[at].steps() if at.last > 0 else ())


def conditions(plan: Plan, architecture: Architecture) -> tuple[str, ...]:
    """The size conditions under which a plan works, in words with the numbers of its stack, the tightest of each kind.

    Codes are binary: a function's number takes `(L + 1).bit_length()` bits, an address these and the bits of its query
    part and its value. Every task of the plan's hops that keeps to all conditions is answered.

    ```python
    conditions(best_plan(stack, 2), stack)
    # ("address codes of at most 24 bits (head_dim of layer 2)", "value codes of at most 24 bits (value channels …)")
    ```

    Args:
        plan: of `best_plan`, with or without sizes.
        architecture: the stack that it is for.
    """
    tightest: dict[Code, tuple[Limit, int]] = {}
    for step in plan.steps:
        found = limits(architecture.layers[step.layer].mixers[step.mixer], step.move, architecture.precisions)
        assert not isinstance(found, str)
        for limit in found:
            if limit.code is Code.FUNCTION and tag_bits(plan.hops) <= limit.most:
                continue  # no condition: the number of hops is known
            if limit.code not in tightest or limit.most < tightest[limit.code][0].most:
                tightest[limit.code] = limit, step.layer
    return tuple(
        f"{tightest[code][0].said()} ({tightest[code][0].size} of layer {tightest[code][1] + 1})"
        for code in Code
        if code in tightest
    )


def plan_or_refuse(
    architecture: Architecture,
    sizes: TaskSizes,
    *,
    overfill: bool = False,
    packed: bool = False,
    branching: bool = False,
) -> Plan:
    """The plan for the task's hops.

    Args:
        architecture: the stack.
        sizes: of the task.
        overfill: see `obstacle`. With `packed` the memory that is overfilled is the plain one where a packed one would
            fit, and the packed one where it would not.
        packed: look for packed recalls too.
        branching: look for branches too.

    Raises:
        InputError: no construction of this project makes so many hops with this stack, or not at these sizes; one
            line that says what would fit.
    """
    hops = sizes.hops
    fitting = best_plan(architecture, hops, sizes, packed=packed, branching=branching)
    forced = [best_plan(architecture, hops, sizes, overfill=True)]
    if packed and fitting.hops < hops:
        forced.insert(0, best_plan(architecture, hops, sizes, overfill=True, packed=True))
    if branching:
        forced.append(best_plan(architecture, hops, sizes, overfill=True, packed=packed, branching=True))
    for plan in forced if overfill else [fitting]:
        if plan.hops == hops:
            return plan
    unlimited = best_plan(architecture, hops)
    smallest = [best_plan(architecture, hops, _least_sizes(hops), branching=True)] if branching else []
    for other in (unlimited, *forced, *smallest):
        if other.hops == hops:
            raise InputError(
                "sizes", f"D={sizes.domains} M={sizes.values}", _what_is_too_large(architecture, other, sizes)
            )
    raise InputError("hops", hops, _what_fits(architecture, unlimited, _at_least_sizes(architecture, hops, branching)))


def _what_is_too_large(architecture: Architecture, plan: Plan, sizes: TaskSizes) -> str:
    """The first obstacle on a plan's way that the sizes put there."""
    for step in plan.steps:
        mixer = architecture.layers[step.layer].mixers[step.mixer]
        reason = obstacle(mixer, step.move, step.hop, sizes, precisions=architecture.precisions)
        if reason is not None:
            return f"smaller ones: layer {step.layer + 1}, {step.move.value}: {reason}"
    raise AssertionError("a plan that the sizes allow was refused")


def _least_sizes(hops: int) -> TaskSizes:
    return TaskSizes((2,) * hops, (2,) * hops, (1,) * (hops - 1))


def _at_least_sizes(architecture: Architecture, hops: int, branching: bool) -> Plan:
    """The plan with the most hops below `hops` where all sizes are as small as they can be."""
    for fewer in range(hops - 1, 0, -1):
        plan = best_plan(architecture, fewer, _least_sizes(fewer), branching=branching)
        if plan.hops == fewer:
            return plan
    return Plan(0, ())


_SMALL = "a state holds z_1 while it is small"


def _what_fits(architecture: Architecture, unlimited: Plan, smallest: Plan) -> str:
    full, label = len(architecture.full_layers), architecture.label
    if smallest.hops > unlimited.hops:
        few = "heads look up for all values while these are few" if smallest.construction == "U3" else _SMALL
        return f"at most {smallest.hops} for {label!r}: {smallest.construction}, {few}"
    if unlimited.hops == 0:
        return (
            f"none for {label!r}: without a full layer a hop needs two bounded layers, one that carries z_0 and one "
            "whose state holds the function; one full layer alone has no z_0 in its query"
        )
    layers = f"{full} full layer{'s' if full != 1 else ''}"
    way = "one of them fetches z_0" if unlimited.construction == "C1" else "a bounded layer carries z_0 or i_1"
    return f"at most {unlimited.hops} for {label!r}: {unlimited.construction}, {layers}, {way}"
