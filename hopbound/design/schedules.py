"""`design`: the cheapest schedules that make L hops at every choice of sizes with prompts of up to N tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hopbound.architecture import Architecture, Kind, Layer, Precisions
from hopbound.bounds.ceiling import counted
from hopbound.claims import Plan, TaskSizes
from hopbound.design.cost import Held, held
from hopbound.design.hardest import LONGEST, Hardest, hardest
from hopbound.design.reasons import Names, Placement, placement, reasons
from hopbound.design.search import Found, Situations, minimal_counts
from hopbound.design.stacks import Limit, limit, most_hops, plans, shortest_prompt
from hopbound.errors import InputError

MOST_HOPS = 16
MOST_MIXERS = 12
MOST_LAYERS = 128


@dataclass(frozen=True, kw_only=True)
class Design:
    """One schedule and what is claimed of it.

    Attributes:
        architecture: the schedule.
        idle: how many of its layers fill it up to the depth that was asked for.
        held: what it holds for one sequence at the context.
        cheapest: whether no other design takes as little in caches, states and layers, and less in one of them.
        hops: the most that it makes at every choice of sizes within the context.
        plans: the moves that make the hops, at the hardest sizes.
        limit: where it stops making them; None: not up to the longest prompts that are asked for.
        placement: which other orders of its layers do as well.
        why: sentences, each computed from the claims.
    """

    architecture: Architecture
    idle: int
    held: Held
    cheapest: bool
    hops: int
    plans: dict[TaskSizes, Plan]
    limit: Limit | None
    placement: Placement
    why: tuple[str, ...]

    @property
    def construction(self) -> str:
        """The constructions that its plans use: `C1`, `C2`, `C3`, or several."""
        return " or ".join(sorted({plan.construction for plan in self.plans.values()}))


@dataclass(frozen=True)
class FewerFull:
    """What one full layer fewer would do: nothing of the mixers does it at the context, but at shorter prompts it may.

    Attributes:
        full_layers: how many full layers that is.
        context: the longest prompts up to which some schedule of the mixers makes the hops; 0 if none does at any.
        architecture: such a schedule, one with as few layers as can be; None if there is none.
        limit: why it is no longer enough.
    """

    full_layers: int
    context: int
    architecture: Architecture | None
    limit: Limit | None


@dataclass(frozen=True)
class Designs:
    """The answer to one question.

    Attributes:
        hops: L.
        context: N.
        mixers: the layers to choose from.
        found: how many designs there are, the budget not looked at.
        designs: those within the budget, the cheapest first, at most as many as were asked for.
        fewer: one full layer fewer; None where the designs have none.
    """

    hops: int
    context: int
    mixers: tuple[Layer, ...]
    found: int
    designs: tuple[Design, ...]
    fewer: FewerFull | None


def design(
    hops: int,
    context: int,
    mixers: Sequence[Layer],
    *,
    precisions: Precisions | None = None,
    layers: int | None = None,
    budget: Fraction | int | None = None,
    limit_to: int | None = None,
) -> Designs:
    """The cheapest schedules of some mixers that make L hops at every choice of sizes with prompts of up to N tokens.

    Without `layers` these are all schedules from which no layer can be taken, in one order each. With it each of them
    is filled up to that depth with the mixer that holds the fewest bytes; such layers change no hop wherever they stand
    (a layer may do nothing), so they are spread evenly.

    Args:
        hops: L, from 1 to 16.
        context: N, at least the 2 L + 2 tokens of the shortest prompt.
        mixers: the layers to choose from, with their sizes.
        precisions: bits an element.
        layers: the exact depth.
        budget: bytes that a sequence may hold at the context.
        limit_to: how many designs are explained, the cheapest first; None for all.

    Raises:
        InputError: a number out of range; no schedule of these mixers makes the hops, none is so shallow or so cheap.
    """
    _check(hops, context, mixers, layers)
    precisions, menu = precisions or Precisions(), _menu(mixers)
    hardest_sizes = hardest(frozenset(mixer for layer in menu for mixer in layer.mixers), hops)
    situations = Situations(hops, hardest_sizes.at(context))
    found = minimal_counts(menu, situations)
    if not found:
        raise InputError("mixers", _names(menu), _what_is_missing(hops, context, menu, precisions))
    if layers is not None and layers < len(found[0].order):
        raise InputError(
            "layers", layers, f"at least {len(found[0].order)}: fewer layers make no {counted(hops, 'hop')} here"
        )
    filler = min(menu, key=lambda layer: held((layer,), precisions, context).bytes)
    filled = [
        _filled(one, menu, filler, layers, situations) for one in found if layers is None or len(one.order) <= layers
    ]
    costs = [held(order, precisions, context) for order, _ in filled]
    ranked = sorted(range(len(filled)), key=lambda i: (costs[i].bytes, len(filled[i][0]), i))
    affordable = [i for i in ranked if budget is None or costs[i].bytes <= budget]
    if not affordable:
        raise InputError(
            "budget", float(budget or 0), f"at least {costs[ranked[0]].bytes:,} bytes: the cheapest takes these"
        )
    points = [(cost.kv_bits, cost.state_bits, len(order)) for cost, (order, _) in zip(costs, filled, strict=True)]
    made = []
    for i in affordable[:limit_to]:
        architecture = Architecture(filled[i][0], precisions)
        orders = placement(architecture, hops, context, situations)
        made.append(
            Design(
                architecture=architecture,
                idle=filled[i][1],
                held=costs[i],
                cheapest=not any(_better(other, points[i]) for other in points),
                hops=most_hops(architecture, context),
                plans=plans(architecture, hops, context),
                limit=limit(architecture, hops),
                placement=orders,
                why=reasons(architecture, hops, context, menu, orders),
            )
        )
    return Designs(
        hops, context, menu, len(filled), tuple(made), _fewer_full(found, menu, hardest_sizes, context, precisions)
    )


def _better(other: tuple[Fraction, int, int], point: tuple[Fraction, int, int]) -> bool:
    return other != point and all(a <= b for a, b in zip(other, point, strict=True))


def _check(hops: int, context: int, mixers: Sequence[Layer], layers: int | None) -> None:
    def whole(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    if not whole(hops) or not 1 <= hops <= MOST_HOPS:
        raise InputError("hops", hops, f"a whole number from 1 to {MOST_HOPS}")
    least = shortest_prompt(hops)
    if not whole(context) or not least <= context <= LONGEST:
        raise InputError(
            "context", context, f"from {least} tokens, the shortest prompt of {counted(hops, 'hop')}, to 2^40"
        )
    if not 1 <= len(_menu(mixers)) <= MOST_MIXERS:
        raise InputError("mixers", len(_menu(mixers)), f"1 to {MOST_MIXERS} different ones")
    if layers is not None and (not whole(layers) or not 1 <= layers <= MOST_LAYERS):
        raise InputError("layers", layers, f"a whole number from 1 to {MOST_LAYERS}")


def _menu(mixers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Each once; what is not full first, so that of equal orders the one with these in front is found."""
    return tuple(sorted(dict.fromkeys(mixers), key=lambda layer: Kind.FULL in layer.kinds))


def _names(menu: Sequence[Layer]) -> str:
    return " ".join(Names(menu).of((layer,)) for layer in menu)


def _filled(
    found: Found, menu: Sequence[Layer], filler: Layer, depth: int | None, situations: Situations
) -> tuple[tuple[Layer, ...], int]:
    """The layers of a design, filled up to a depth, and how many were put in."""
    order = tuple(menu[index] for index in found.order)
    idle = max(0, (depth or 0) - len(order))
    gaps = len(order) + 1
    shares = [idle // gaps + (gap < idle % gaps) for gap in range(gaps)]
    spread = [filler] * shares[0]
    for layer, share in zip(order, shares[1:], strict=True):
        spread += [layer, *[filler] * share]
    reached = situations.nothing
    for layer in spread:
        reached = situations.after(layer, reached)
    # A filler that is full may end the recalls too early; behind all the others it cannot.
    return tuple(spread) if situations.makes_hops(reached) else (*order, *[filler] * idle), idle


def _what_is_missing(hops: int, context: int, menu: tuple[Layer, ...], precisions: Precisions) -> str:
    """What the mixers do instead: fewer hops, or as many at shorter prompts."""
    mixers = frozenset(mixer for layer in menu for mixer in layer.mixers)
    best, upto = _longest(hardest(mixers, hops), menu, context, None)
    if best is not None:
        label = Names(menu).of([menu[i] for i in best.order])
        return (
            f"prompts of at most {upto} tokens: there {label!r} makes {counted(hops, 'hop')} at every choice of sizes"
        )
    fewer = next(
        (k for k in range(hops - 1, 0, -1) if minimal_counts(menu, Situations(k, hardest(mixers, k).at(context)))), 0
    )
    return f"at most {counted(fewer, 'hop')} of them at {context} tokens, whatever the schedule"


def _longest(sizes: Hardest, menu: tuple[Layer, ...], context: int, most_full: int | None) -> tuple[Found | None, int]:
    """The longest prompts, up to `context`, for which some schedule makes the hops, and one with the fewest layers."""

    def first(tokens: int) -> Found | None:
        found = minimal_counts(menu, Situations(sizes.hops, sizes.at(tokens)), most_full=most_full)
        return found[0] if found else None

    low, high = shortest_prompt(sizes.hops), context + 1
    best = first(low)
    if best is None:
        return None, 0
    while high - low > 1:
        middle = (low + high) // 2
        reached = first(middle)
        low, high, best = (low, middle, best) if reached is None else (middle, high, reached)
    return best, low


def _fewer_full(
    found: list[Found], menu: tuple[Layer, ...], sizes: Hardest, context: int, precisions: Precisions
) -> FewerFull | None:
    full = min(sum(Kind.FULL in menu[index].kinds for index in one.order) for one in found)
    if not full:
        return None
    best, upto = _longest(sizes, menu, context, full - 1)
    if best is None:
        return FewerFull(full - 1, 0, None, None)
    architecture = Architecture(tuple(menu[index] for index in best.order), precisions)
    return FewerFull(full - 1, upto, architecture, limit(architecture, sizes.hops))
