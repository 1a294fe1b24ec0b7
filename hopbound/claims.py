"""What a stack is known to be able to do: how many hops, by which construction, under which size conditions.

Which sequences of moves there are, `planning.py` says; which mixer makes which, and within which sizes, `moves.py`.

C1 uses fetch and look up; C2 a carry as well; C3 a recall as well; U2 looks up a row, whatever else it uses but a
branch; U3 a branch, whatever else it uses.
What no sequence of moves reaches is refused with the reason, before anything is built.
"""

from fractions import Fraction

from hopbound.architecture import Architecture
from hopbound.errors import InputError
from hopbound.limits import Code, Limit, TaskSizes, tag_bits
from hopbound.moves import Move, limits, obstacle
from hopbound.planning import Plan, Planner, Step

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


def best_plan(
    architecture: Architecture,
    hops: int,
    sizes: TaskSizes | None = None,
    *,
    overfill: bool = False,
    packed: bool = False,
    many_heads: bool = False,
) -> Plan:
    """The plan with the most hops, at most `hops`; without sizes one that works whenever its `conditions` hold.

    Args:
        architecture: the stack.
        hops: as many as are wanted.
        sizes: of the task.
        overfill: see `obstacle`.
        packed: look for packed recalls too; of recalls it is then these that may be overfilled.
        many_heads: look for branches too, and for rows.
    """
    return Planner(architecture, hops, sizes, overfill, packed).plan(branching=many_heads, rows=many_heads)


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
    many_heads: bool = False,
) -> Plan:
    """The plan for the task's hops.

    Args:
        architecture: the stack.
        sizes: of the task.
        overfill: see `obstacle`. With `packed` the memory that is overfilled is the plain one where a packed one would
            fit, and the packed one where it would not.
        packed: look for packed recalls too.
        many_heads: look for branches too, and for rows.

    Raises:
        InputError: no construction of this project makes so many hops with this stack, or not at these sizes; one
            line that says what would fit.
    """
    hops = sizes.hops
    fitting = best_plan(architecture, hops, sizes, packed=packed, many_heads=many_heads)
    forced = [best_plan(architecture, hops, sizes, overfill=True)]
    if packed and fitting.hops < hops:
        forced.insert(0, best_plan(architecture, hops, sizes, overfill=True, packed=True))
    if many_heads:
        planner = Planner(architecture, hops, sizes, True, packed)
        ways = [planner.plan(branching=one, rows=other) for one, other in ((True, False), (False, True), (True, True))]
        forced += sorted(ways, key=lambda plan: _excess(architecture, plan, sizes))
    for plan in forced if overfill else [fitting]:
        if plan.hops == hops:
            return plan
    unlimited = best_plan(architecture, hops)
    smallest = [best_plan(architecture, hops, _least_sizes(hops), many_heads=True)] if many_heads else []
    for other in (unlimited, *forced, *smallest):
        if other.hops == hops:
            raise InputError(
                "sizes", f"D={sizes.domains} M={sizes.values}", _what_is_too_large(architecture, other, sizes)
            )
    raise InputError("hops", hops, _what_fits(architecture, unlimited, _at_least_sizes(architecture, hops, many_heads)))


def _excess(architecture: Architecture, plan: Plan, sizes: TaskSizes) -> Fraction:
    """How many times as much a plan needs as there is, at most, of anything that is limited."""
    excess = Fraction(0)
    for step in plan.steps:
        found = limits(architecture.layers[step.layer].mixers[step.mixer], step.move, architecture.precisions)
        assert not isinstance(found, str)
        excess = max(excess, *(Fraction(limit.needed(sizes, step.hop), limit.most) for limit in found))
    return excess


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


def _at_least_sizes(architecture: Architecture, hops: int, many_heads: bool) -> Plan:
    """The plan with the most hops below `hops` where all sizes are as small as they can be."""
    for fewer in range(hops - 1, 0, -1):
        plan = best_plan(architecture, fewer, _least_sizes(fewer), many_heads=many_heads)
        if plan.hops == fewer:
            return plan
    return Plan(0, ())


_FEW = {
    "U2": "heads gather rows while these are short",
    "U3": "heads look up for all values while these are few",
}


def _what_fits(architecture: Architecture, unlimited: Plan, smallest: Plan) -> str:
    full, label = len(architecture.full_layers), architecture.label
    if smallest.hops > unlimited.hops:
        few = _FEW.get(smallest.construction, "a state holds z_1 while it is small")
        return f"at most {smallest.hops} for {label!r}: {smallest.construction}, {few}"
    if unlimited.hops == 0:
        return (
            f"none for {label!r}: without a full layer a hop needs two bounded layers, one that carries z_0 and one "
            "whose state holds the function; one full layer alone has no z_0 in its query"
        )
    layers = f"{full} full layer{'s' if full != 1 else ''}"
    way = "one of them fetches z_0" if unlimited.construction == "C1" else "a bounded layer carries z_0 or i_1"
    return f"at most {unlimited.hops} for {label!r}: {unlimited.construction}, {layers}, {way}"
