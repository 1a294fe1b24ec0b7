"""Why a design works, in sentences: its moves, what each layer is worth, where it may stand, what more would bring.

Nothing is typed in but the words: every number of hops is what the claims say of the stack that the sentence is about.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hopbound.architecture import Architecture, Kind, Layer, format_names, format_schedule
from hopbound.bounds.ceiling import counted
from hopbound.claims import Move, Plan, TaskSizes
from hopbound.design.search import Situations, count_orders, orders
from hopbound.design.stacks import makes_hops, most_hops, plans

MOST_ORDERS = 12  # that are listed

_WORDS = {
    Move.FETCH: "brings what the token of z_0 knows, i_{hop}, to the last token",
    Move.CARRY: "carries what the token of z_0 knows, i_{hop}, to the last token",
    Move.LOOK_AHEAD: "lets the token of z_0 look up i_1: the first look-up needs no query",
    Move.RECALL: "reads i_1 from a state that holds all of z_1",
}


@dataclass(frozen=True)
class Placement:
    """The orders of a design's layers.

    Attributes:
        orders: how many there are.
        working: how many make the hops.
        same: these, where the orders are few enough to be listed.
        fewer: the others, with the hops that they make.
    """

    orders: int
    working: int
    same: tuple[Architecture, ...]
    fewer: tuple[tuple[Architecture, int], ...]


def placement(architecture: Architecture, hops: int, context: int, situations: Situations) -> Placement:
    """Which orders of the layers make the hops, and how many hops the others make."""
    tally = Counter(architecture.layers)
    menu, counts = tuple(tally), tuple(tally.values())
    working, number = count_orders(menu, counts, situations)
    if number > MOST_ORDERS:
        return Placement(number, working, (), ())
    all_orders = [Architecture(tuple(menu[i] for i in order), architecture.precisions) for order in orders(counts)]
    made = [(one, most_hops(one, context)) for one in all_orders]
    return Placement(
        number,
        working,
        tuple(one for one, reached in made if reached >= hops),
        tuple((one, reached) for one, reached in made if reached < hops),
    )


def reasons(
    architecture: Architecture, hops: int, context: int, menu: Sequence[Layer], orders: Placement
) -> tuple[str, ...]:
    """The sentences about one design.

    Args:
        architecture: the design.
        hops: L.
        context: N.
        menu: the layers that it was made from.
        orders: its placement.
    """
    names = Names(menu)
    return (
        *_moves(architecture, plans(architecture, hops, context), names),
        *_worth(architecture, context, names),
        *_places(hops, orders, names),
        *_more(architecture, hops, context, menu, names),
    )


class Names:
    """What schedules are called: by the names of their mixers, with the sizes where a menu has two of a name.

    Args:
        menu: all layers that there are.
    """

    def __init__(self, menu: Iterable[Layer]) -> None:
        short = [format_names((layer,)) for layer in menu]
        self._format = format_names if len(set(short)) == len(short) else format_schedule

    def of(self, layers: Sequence[Layer]) -> str:
        """The name of a schedule."""
        return self._format(layers)


def _moves(architecture: Architecture, found: dict[TaskSizes, Plan], names: Names) -> list[str]:
    """One sentence a move; where sizes ask for different plans each is introduced by one of its sizes."""
    examples: dict[Plan, TaskSizes] = {}
    for sizes, plan in found.items():
        examples.setdefault(plan, sizes)
    lines = []
    for plan, sizes in examples.items():
        where = f"at D = {sizes.domains}, M = {sizes.values}: " if len(examples) > 1 else ""
        for step in plan.steps:
            name = names.of((architecture.layers[step.layer],))
            if step.move is Move.LOOK_UP:
                address = "i_0" if step.hop == 1 else f"(w_{step.hop - 1}, i_{step.hop - 1})"
                does = f"lets the last token look up i_{step.hop} at the address {address}"
            else:
                does = _WORDS[step.move].format(hop=step.hop)
            lines.append(f"{where}layer {step.layer + 1} ({name}) {does}")
    return lines


def _worth(architecture: Architecture, context: int, names: Names) -> list[str]:
    """What is left without a layer; layers that are alike and leave as many hops are named together."""
    layers = architecture.layers
    if len(layers) == 1:
        return []
    left: dict[tuple[str, int], list[int]] = {}
    for index, layer in enumerate(layers):
        rest = Architecture((*layers[:index], *layers[index + 1 :]), architecture.precisions)
        left.setdefault((names.of((layer,)), most_hops(rest, context)), []).append(index + 1)
    parts = []
    for (name, hops), places in left.items():
        which = f"layer {places[0]}" if len(places) == 1 else f"any one of layers {_listed(places)}"
        parts.append(f"without {which} ({name}) {counted(hops, 'hop')}")
    return ["; ".join(parts)]


def _listed(places: Sequence[int]) -> str:
    """Rising places, those in a row as `a-b`."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _places(hops: int, found: Placement, names: Names) -> list[str]:
    if found.orders == 1:
        return []
    share = f"{found.working:,} of the {found.orders:,} orders of these layers make {counted(hops, 'hop')}"
    if not found.same:
        return [share]
    listed = f"{share}: {', '.join(names.of(one.layers) for one in found.same)}"
    for left in sorted({made for _, made in found.fewer}, reverse=True):
        others = [names.of(one.layers) for one, made in found.fewer if made == left]
        listed += f"; {counted(left, 'hop')}: {', '.join(others)}"
    rule = _rule(found, names)
    return [listed, *([rule] if rule else [])]


def _rule(found: Placement, names: Names) -> str | None:
    """Where the only bounded layer may stand, if what decides is before which full layer."""
    if len(found.same[0].bounded_layers) != 1 or any(len(layer.kinds) > 1 for layer in found.same[0].layers):
        return None
    allowed = [one.bounded_layers[0] for one in found.same]  # as many full layers stand in front of it
    refused = [one.bounded_layers[0] for one, _ in found.fewer]
    if not refused or max(allowed) >= min(refused):
        return None
    made = {hops for _, hops in found.fewer}
    name = names.of((found.same[0].layers[allowed[0]],))
    left = f"{'at most ' if len(made) > 1 else ''}{counted(max(made), 'hop')}"
    return f"{name} may stand anywhere before full layer {max(allowed) + 1}; behind that one the stack makes {left}"


def _more(architecture: Architecture, hops: int, context: int, menu: Sequence[Layer], names: Names) -> list[str]:
    """What one more layer brings, in every place: bounded ones, then full ones."""
    lines = []
    for full in (False, True):
        chosen = [layer for layer in menu if (Kind.FULL in layer.kinds) is full]
        stacks = dict.fromkeys(
            (*architecture.layers[:at], layer, *architecture.layers[at:])
            for layer in chosen
            for at in range(len(architecture.layers) + 1)
        )
        if not stacks:
            continue
        enough = [one for one in stacks if makes_hops(Architecture(one, architecture.precisions), hops + 1, context)]
        what = f"one more layer of {' or '.join(names.of((layer,)) for layer in chosen)}, in any place"
        if enough:
            shown = names.of(enough[0])
            lines.append(
                f"{what}: {len(enough)} of the {len(stacks)} stacks reach {counted(hops + 1, 'hop')}, as {shown}"
            )
        else:
            lines.append(
                f"{what}, changes nothing: none of the {len(stacks)} stacks reaches {counted(hops + 1, 'hop')}"
            )
    return lines
