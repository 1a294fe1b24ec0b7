"""What one stack does at every choice of sizes: asked of the claims, at the sizes that decide."""

from dataclasses import dataclass

from hopbound.architecture import Architecture, MixerSpec
from hopbound.claims import Plan, TaskSizes, best_plan, plan_or_refuse
from hopbound.design.hardest import Hardest, hardest
from hopbound.errors import InputError


@dataclass(frozen=True)
class Limit:
    """Where a stack stops making its hops.

    Attributes:
        context: the longest prompts up to which it makes them at every choice of sizes; 0 if it never does.
        sizes: with the shortest prompt at which it does not.
        reason: what is too large there, as the claims say it.
    """

    context: int
    sizes: TaskSizes
    reason: str


def shortest_prompt(hops: int) -> int:
    """Tokens of the shortest prompt of a task of so many hops: two a function, the start and the query."""
    return 2 * hops + 2


def _hardest(architecture: Architecture, hops: int) -> Hardest:
    mixers: frozenset[MixerSpec] = frozenset(mixer for layer in architecture.layers for mixer in layer.mixers)
    return hardest(mixers, hops)


def plans(architecture: Architecture, hops: int, context: int) -> dict[TaskSizes, Plan]:
    """The claims' plans at the hardest sizes with prompts of up to `context` tokens; empty if there are none."""
    return {one.sizes: best_plan(architecture, hops, one.sizes) for one in _hardest(architecture, hops).at(context)}


def makes_hops(architecture: Architecture, hops: int, context: int) -> bool:
    """Whether a stack makes so many hops at every choice of sizes with prompts of up to `context` tokens.

    False also where no prompt of so many hops is so short.
    """
    found = plans(architecture, hops, context)
    return bool(found) and all(plan.hops == hops for plan in found.values())


def most_hops(architecture: Architecture, context: int) -> int:
    """The most hops that a stack makes at every choice of sizes with prompts of up to `context` tokens."""
    hops = 0
    while makes_hops(architecture, hops + 1, context):
        hops += 1
    return hops


def limit(architecture: Architecture, hops: int) -> Limit | None:
    """Up to which prompts a stack makes so many hops at every choice of sizes; None: up to the longest asked for."""
    sizes = _hardest(architecture, hops).shortest(lambda sizes: best_plan(architecture, hops, sizes).hops < hops)
    if sizes is None:
        return None
    before = sum(sizes.domains) + 1
    try:
        plan_or_refuse(architecture, sizes)
    except InputError as error:
        return Limit(
            before if before >= shortest_prompt(hops) else 0, sizes, error.expected.removeprefix("smaller ones: ")
        )
    raise AssertionError("a stack that makes the hops was said not to")
