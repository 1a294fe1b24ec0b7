r"""C1, C2, C3, U2, U3: weights that make L hops of sequential function composition (arXiv 2602.01763), at any sizes.

`claims.py` plans which layer makes which move; here each move becomes weights:

- *fetch* and *look up* (full layer): the exact look-up of `lookup.py` by the last token;
- *look ahead* (full layer): the token of z_0 looks up i_1, whose address it knows;
- *carry* (bounded layer): `carry.py`;
- *recall*: by a recurrence `recall.py`, by a window or a cache of recent tokens the exact look-up;
- *packed recall*: by a recurrence with several entries in a row of its state, `packing.py`;
- *branch* (full layer with many heads): two look-ups in one layer, `branching.py`;
- *gather* and *look up row* (the same, then any full layer): two hops by one look-up, `rows.py`.

**C1** (L + 1 full layers): fetch z_0, then L look-ups. **C2** (L full layers and one bounded layer): a carry in place
of the fetch, before the first full layer or, after a look-ahead, between the first two. **C3** (L - 1 full layers and
two bounded ones before the first): carry, recall of z_1 from a state that holds it, then look-ups. **U2**: any of them
with rows, which save a full layer where n_l is at most the number of heads. **U3**: any of them with a branch, which
saves one where M_l is less than it.

*Why it is exact.* A move writes raw digits to coordinates of its own; the layer's position-wise map restores ±1
(`lookup.write_clean`), so errors do not add up from hop to hop. The answer is read from the raw digits of i_L: the
smallest margin that verification prints, 2 in exact arithmetic, shows how much the last look-up leaked.

*Layout.* The query is one token: the last. Position codes hold the digits of the function's number and of the address
(w, i), token codes the digits of the token and of each w_l of a query token, both by rule (`decoder/codes.py`).
"""

from dataclasses import dataclass

import torch

from hopbound.architecture import Architecture
from hopbound.claims import Move, Plan, Step, TaskSizes, plan_or_refuse
from hopbound.constructions.assembly import plain_config
from hopbound.constructions.branching import Branch, branch_of, write_branch, write_branch_choice
from hopbound.constructions.carry import write_carry
from hopbound.constructions.construction import Built
from hopbound.constructions.directions import Directions
from hopbound.constructions.lookup import LookUp, write_clean, write_lookup
from hopbound.constructions.memory import MEMORIES
from hopbound.constructions.packing import Packing, Weights
from hopbound.constructions.recall import write_one_hot, write_recall
from hopbound.constructions.rows import Gathering
from hopbound.decoder import (
    Decoder,
    DigitField,
    PositionCode,
    SegmentCode,
    TokenCode,
    signs,
)
from hopbound.decoder.codes import bit_length
from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition


@dataclass(frozen=True, kw_only=True)
class BuiltComposition(Built):
    """Weights for hops.

    Attributes:
        plan: which layer makes which move.
        packing: where the bits of z_1 stand in the state, where they are packed.
        gathering: the rows, where some are gathered.
    """

    plan: Plan
    packing: Packing | None
    gathering: Gathering | None


def task_sizes(task: FunctionComposition) -> TaskSizes:
    """The task's sizes, as the claims ask for them."""
    return TaskSizes(tuple(task.domains), tuple(task.values), tuple(task.n))


def build_composition(
    architecture: Architecture, task: FunctionComposition, *, dtype: torch.dtype = torch.float32, overfill: bool = False
) -> BuiltComposition:
    """Weights with which `architecture` answers `task`.

    Args:
        architecture: the stack.
        task: hard order, the query in one token.
        dtype: of the weights; every weight is exact in bfloat16.
        overfill: let a recall hold more addresses than fit, a branch leave values out, a row entries (it will
            fail: for demonstrations).

    Raises:
        InputError: the task's layout has no construction; the stack makes fewer hops; the sizes do not fit.
    """
    if task.order != "hard" or task.query != "one":
        raise InputError("task", f"order={task.order} query={task.query}", "order=hard query=one")
    sizes = task_sizes(task)
    plan = plan_or_refuse(architecture, sizes, overfill=overfill, packed=True, many_heads=True)
    packing, gathering = _packing(architecture, sizes, plan), Gathering.of(architecture, sizes, plan)
    parts = _Parts(architecture, sizes, plan, packing, gathering, Directions())
    _add_directions(parts)
    directions = parts.directions
    config = plain_config(
        architecture,
        task,
        directions,
        tokens=_token_code(sizes, directions),
        positions=_position_code(parts),
        answer=directions[f"raw i_{sizes.hops}"],
        hidden={layer: _hidden_units(parts, layer) for layer in range(len(architecture.layers))},
    )
    decoder = Decoder.zeros(config)
    with torch.no_grad():
        for step in plan.steps:
            if gathering is None or not gathering.shares(step):
                _write_move(decoder, parts, step, task.prompt_length)
        if gathering is not None:
            mixers = decoder.each_block()[gathering.layer].each_mixer()
            for number in gathering.mixers:
                gathering.write(mixers[number], directions, number, task.prompt_length)
        for layer in range(len(architecture.layers)):
            _write_map(decoder, parts, layer)
    return BuiltComposition(
        decoder=decoder.to(dtype).eval().requires_grad_(False),
        construction=plan.construction,
        steps=tuple(f"layer {step.layer + 1} {step.move.value} i_{step.hop}" for step in plan.steps),
        directions=directions,
        plan=plan,
        packing=packing,
        gathering=gathering,
    )


@dataclass(frozen=True)
class _Parts:
    """What is written, and where to."""

    architecture: Architecture
    sizes: TaskSizes
    plan: Plan
    packing: Packing | None
    gathering: Gathering | None
    directions: Directions

    def steps(self, layer: int, *moves: Move) -> list[Step]:
        """Those of a layer that make one of these moves."""
        return [step for step in self.plan.steps if step.layer == layer and step.move in moves]

    def branch(self, step: Step) -> Branch:
        """The look-ups of a step that branches."""
        return branch_of(self.architecture.layers[step.layer].mixers[step.mixer], self.sizes, step.hop)


def _packing(architecture: Architecture, sizes: TaskSizes, plan: Plan) -> Packing | None:
    """Of the plan's packed recall, if it has one."""
    for step in plan.steps:
        if step.move is Move.RECALL_PACKED:
            mixer = architecture.layers[step.layer].mixers[step.mixer]
            return Packing.of(mixer, architecture.precisions, sizes.domains[0], sizes.value_bits(1))
    return None


# -- coordinates -------------------------------------------------------------------------------------------------------


def _add_directions(parts: _Parts) -> None:
    sizes, packing, directions = parts.sizes, parts.packing, parts.directions
    hops, steps = sizes.hops, [step for step in parts.plan.steps if step.move is not Move.GATHER]
    directions.add("one", 1)
    directions.add("tag", sizes.tag_bits)
    if any(step.move is Move.CARRY for step in steps):
        directions.add("start", 1)
    directions.add("address query", max(sizes.query_bits(hop) for hop in range(1, hops + 1)))
    directions.add("address value", max(sizes.value_bits(hop) for hop in range(hops)))
    directions.add("token", max(sizes.value_bits(hop) for hop in range(hops + 1)))
    for part in range(1, hops):
        directions.add(f"w_{part}", sizes.query_bits(part + 1))
    for step in steps:
        name = _name(step)
        directions.add(f"raw {name}", sizes.value_bits(step.hop))
        if step.hop < hops or step.move is Move.LOOK_AHEAD:
            directions.add(name, sizes.value_bits(step.hop))
        if step.move is Move.BRANCH:
            parts.branch(step).add_to(directions)
        keys = 0
        if step.move is Move.RECALL and parts.architecture.layers[step.layer].mixers[step.mixer].name in MEMORIES:
            keys = sizes.domains[0]
        elif step.move is Move.RECALL_PACKED and packing is not None:
            keys = len(packing.writers)
            directions.add("row", bit_length(packing.rows))
            directions.add("slot", bit_length(packing.slots))
            directions.add("wanted slot", packing.slots)
            directions.add("packed", packing.used)
            directions.add("raw packed", packing.used)
        if keys:
            directions.add("key", keys)
            directions.add("wanted key", keys)
    if parts.gathering is not None:
        parts.gathering.add_to(directions)


def _name(step: Step) -> str:
    """What a step's value is called: at the token of z_0, or at the last token."""
    return "i_1 at z_0" if step.move is Move.LOOK_AHEAD else f"i_{step.hop}"


def _is_cleaned(step: Step, hops: int) -> bool:
    """Whether raw digits are made ±1 again; what is unpacked or chosen is so at once, rows have a map of theirs."""
    exact = step.move is Move.RECALL_PACKED or step.move.takes_many_heads
    return step.move is Move.LOOK_AHEAD or (step.hop < hops and not exact)


def _known_at_start(directions: Directions, sizes: TaskSizes, hop: int) -> range:
    """Where the token of z_0 keeps i_hop: its own token, or what it looked up ahead."""
    return directions.low("token", sizes.value_bits(0)) if hop == 0 else directions["i_1 at z_0"]


def _token_code(sizes: TaskSizes, directions: Directions) -> TokenCode:
    token = directions["token"]
    fields = [DigitField(token.start, 1, 2 ** len(token), len(token))]
    divisor = 1
    for part, count in enumerate(sizes.n, start=1):
        bits = sizes.query_bits(part + 1)
        if bits:
            fields.append(DigitField(directions[f"w_{part}"].start, divisor, count, bits))
        divisor *= count
    return TokenCode(tuple(fields))


def _position_code(parts: _Parts) -> PositionCode:
    sizes, packing, directions = parts.sizes, parts.packing, parts.directions
    query, value = directions["address query"].start, directions["address value"].start

    def segment(name: str, tag: int, length: int, fields: tuple[DigitField, ...]) -> SegmentCode:
        digits = zip(directions["tag"], signs(tag, sizes.tag_bits), strict=True)
        constants = [(directions["one"].start, 1.0), *((column, float(digit)) for column, digit in digits)]
        if name == "z_0" and "start" in directions.spans:
            constants.append((directions["start"].start, 1.0))
        if parts.gathering is not None:
            constants += parts.gathering.constants(name, directions)
        return SegmentCode(name, length, fields, tuple(constants))

    segments = []
    for hop in range(sizes.hops, 0, -1):
        values = sizes.domains[0] if hop == 1 else sizes.values[hop - 2]
        fields = [DigitField(value, 1, values, sizes.value_bits(hop - 1))]
        if sizes.query_bits(hop):
            fields.append(DigitField(query, values, sizes.n[hop - 2], sizes.query_bits(hop)))
        if hop == 1 and packing is not None:
            row, slot = directions["row"], directions["slot"]
            fields.append(DigitField(row.start, 1, packing.rows, len(row)))
            fields.append(DigitField(slot.start, packing.rows, packing.slots, len(slot)))
        segments.append(segment(f"z_{hop}", hop, sizes.domains[hop - 1], tuple(fields)))
    segments += [segment("z_0", 0, 1, ()), segment("w", sizes.hops + 1, 1, ())]
    return PositionCode(tuple(segments))


# -- moves -------------------------------------------------------------------------------------------------------------


def _write_move(decoder: Decoder, parts: _Parts, step: Step, length: int) -> None:
    sizes, packing, directions = parts.sizes, parts.packing, parts.directions
    mixer = decoder.each_block()[step.layer].each_mixer()[step.mixer]
    if step.move is Move.GATHER:
        return
    target = directions[f"raw {_name(step)}"]
    if step.move is Move.CARRY:
        write_carry(mixer, directions, _known_at_start(directions, sizes, step.hop), target, length=length)
        return
    stored = directions.low("token", sizes.value_bits(step.hop))
    if step.move is Move.RECALL and mixer.spec.name in MEMORIES:
        keys, queries = directions["key"], directions["wanted key"]
        write_recall(mixer, directions, keys=keys, queries=queries, source=stored, target=target)
        return
    if step.move is Move.RECALL_PACKED and packing is not None:
        write_recall(
            mixer,
            directions,
            keys=directions["key"],
            queries=directions["wanted key"],
            source=directions["packed"],
            target=directions["raw packed"],
            writers=packing.writers,
        )
        return
    if step.move is Move.BRANCH:
        write_branch(mixer, directions, parts.branch(step), length)
        return
    tag, compared = step.hop, []
    if step.move is Move.FETCH:
        tag, stored = 0, _known_at_start(directions, sizes, step.hop)
    elif step.move is Move.LOOK_AHEAD:
        value_key = directions.low("address value", sizes.value_bits(0))
        compared = [(directions.low("token", sizes.value_bits(0)), value_key)]
    elif step.move is Move.LOOK_UP_ROW and parts.gathering is not None:
        tag, compared = step.hop - 1, _address(parts, step.hop - 1)
        stored, target = parts.gathering.stored_and_found(step.hop, directions)
    else:
        compared = _address(parts, step.hop)
    look_up = LookUp(tag=tag, compared=compared, source=stored, target=target, in_sight=length)
    write_lookup(mixer, directions, look_up)


def _address(parts: _Parts, hop: int) -> list[tuple[range, range]]:
    """What the last token compares, that knows i_{hop-1}, to find i_hop: (columns of its query, columns of keys)."""
    sizes, directions = parts.sizes, parts.directions
    compared = [(directions[f"i_{hop - 1}"], directions.low("address value", sizes.value_bits(hop - 1)))]
    if sizes.query_bits(hop):
        compared.append((directions[f"w_{hop - 1}"], directions.low("address query", sizes.query_bits(hop))))
    return compared


# -- position-wise maps -----------------------------------------------------------------------------------------------


def _cleaned_in(parts: _Parts, layer: int) -> list[Step]:
    return [step for step in parts.steps(layer, *Move) if _is_cleaned(step, parts.sizes.hops)]


def _precedes_memory(parts: _Parts, layer: int) -> bool:
    """Whether the next layer recalls by one-hot keys, which this layer's map makes."""
    return bool(parts.steps(layer + 1, Move.RECALL, Move.RECALL_PACKED)) and "key" in parts.directions.spans


def _hidden_units(parts: _Parts, layer: int) -> int:
    sizes, packing = parts.sizes, parts.packing
    units = sum(2 * sizes.value_bits(step.hop) for step in _cleaned_in(parts, layer))
    if _precedes_memory(parts, layer):
        units += 2 * sizes.domains[0] if packing is None else packing.key_units + packing.query_units
    if packing is not None and parts.steps(layer, Move.RECALL_PACKED):
        units += packing.read_units
    if parts.gathering is not None:
        units += parts.gathering.units(layer)
    return units + sum(parts.branch(step).units for step in parts.steps(layer, Move.BRANCH))


def _write_map(decoder: Decoder, parts: _Parts, layer: int) -> None:
    sizes, packing, directions = parts.sizes, parts.packing, parts.directions
    pointwise = decoder.each_block()[layer].pointwise
    if pointwise is None:
        return
    rise, rise_bias, fall = pointwise.rise.weight, pointwise.rise.bias, pointwise.fall.weight
    unit = 0
    cleaned = _cleaned_in(parts, layer)
    for step in cleaned:
        raw, clean = directions[f"raw {_name(step)}"], directions[_name(step)]
        write_clean(rise, rise_bias, fall, pointwise.fall.bias, raw, clean)
        unit += 2 * len(raw)
    weights = Weights(rise, rise_bias, fall, pointwise.fall.bias)
    for branch in map(parts.branch, parts.steps(layer, Move.BRANCH)):
        write_branch_choice(unit, weights, directions, branch)
        unit += branch.units
    if parts.gathering is not None:
        parts.gathering.write_map(layer, unit, weights, directions)
        unit += parts.gathering.units(layer)
    if packing is not None and parts.steps(layer, Move.RECALL_PACKED):
        target = directions["i_1" if sizes.hops > 1 else "raw i_1"]
        read, slot = directions["raw packed"], directions["wanted slot"]
        packing.write_unpacking(unit, weights, read=read, slot=slot, target=target)
    if not _precedes_memory(parts, layer):
        return
    # i_0 as the carry left it if it came in this very layer: its clean digits are only being written.
    wanted = directions["raw i_0" if any(step.hop == 0 for step in cleaned) else "i_0"]
    tag = list(zip(directions["tag"], signs(1, sizes.tag_bits), strict=True))
    if packing is not None:
        packing.write_packed(
            unit,
            weights,
            row=directions["row"],
            slot=directions["slot"],
            value=directions.low("token", packing.bits),
            required=tag,
            key=directions["key"],
            target=directions["packed"],
        )
        unit += packing.key_units
        key, slot = directions["wanted key"], directions["wanted slot"]
        packing.write_wanted(unit, weights, address=wanted, key=key, slot=slot)
        return
    held = directions.low("address value", sizes.value_bits(0))
    for digits, required, name in ((held, tag, "key"), (wanted, [], "wanted key")):
        target = directions[name]
        write_one_hot(rise, rise_bias, fall, first_unit=unit, digits=digits, required=required, target=target)
        unit += len(target)
