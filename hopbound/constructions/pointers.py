r"""Pointers that many tokens follow at once: the weights for C5 and for the easy order, from what each token does.

Every token of a segment has one *role*. In layer 1 it fetches one token by its function's number alone: the query, or
the start. Then it holds a *pointer*, digits of a value: its own token's, its own address's value part, or what it
fetched. In each further layer it asks for an address, the pointer and a part of the query, in a function that its
position names, and its pointer becomes what is found there: that token's digits, or that token's own pointer.

*Why it is exact.* All look-ups are exact look-ups by functions that the position names (`lookup.py`, addresses of
several kinds): where the role asks for no part of the query, its digits are 0 in the asking token, and all addresses of
the function with the asked value tie; the constructions ask so only where the tied tokens hold the same. The map after
each layer picks, by gated digits (`layout.py`), which of the digits found becomes the pointer, exactly ±1, so that
errors do not add up. A role that asks for nothing keeps its pointer. What tokens hold that no role needs is at most 1
in size.

The query's parts reach an asking token in one of three ways: fetched in layer 1, its own digits (the token w), or with
what it finds in layer 2 (the token that asks in the easy order, whose layer 1 fetches the start).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.assembly import plain_config
from hopbound.constructions.directions import Directions
from hopbound.constructions.layout import (
    Constants,
    Gates,
    Room,
    add_addresses,
    full_mixer,
    position_code,
    query_bits,
    start_bits,
    tag_count_bits,
    tag_of,
    token_code,
    write_cut,
)
from hopbound.constructions.lookup import LookUp
from hopbound.decoder import Decoder, bit_length, signs
from hopbound.mixers import SoftmaxAttention
from hopbound.tasks import FunctionComposition
from hopbound.tasks.composition import Segment

Source = Literal["fetched", "own", "found"]


@dataclass(frozen=True)
class Ask:
    """What a role asks for in a layer.

    Attributes:
        tag: number of the function whose tokens are asked.
        part: number of the query's part in the address; None: none is compared.
        pointer: whether that token's pointer is taken, or else its own digits.
    """

    tag: int
    part: int | None
    pointer: bool


@dataclass(frozen=True, kw_only=True)
class Role:
    """What the tokens of a segment do.

    Attributes:
        fetches: number of the function whose token is fetched in layer 1.
        starts: what the pointer is after layer 1.
        query: how the parts of the query come to the token.
        asks: in layer 2 and on; None, or nothing: the pointer is kept.
    """

    fetches: int
    starts: Literal["token", "address value", "fetched token"]
    query: Source = "fetched"
    asks: tuple[Ask | None, ...] = ()

    def ask(self, layer: int) -> Ask | None:
        """In layer 2, 3, .."""
        return self.asks[layer - 2] if layer - 2 < len(self.asks) else None


@dataclass(frozen=True, kw_only=True)
class Program:
    """What all tokens do.

    Attributes:
        task: what is asked.
        layers: how many full layers are used, at least 2; the last token asks in the last one.
        roles: by the segment's function, as in `tasks.composition.Segment`.
        causal: whether it is for a causal stack.
    """

    task: FunctionComposition
    layers: int
    roles: Mapping[int, Role]
    causal: bool

    @property
    def last(self) -> Role:
        """That of the last token."""
        return self.roles[self.task.segments[-1].function]

    def asks(self, layer: int) -> list[Ask]:
        """All that is asked in a layer."""
        return [ask for role in self.roles.values() if (ask := role.ask(layer)) is not None]

    def takes(self, layer: int) -> list[bool]:
        """Which are taken in a layer: tokens (False), pointers (True)."""
        return sorted({ask.pointer for ask in self.asks(layer)})

    @property
    def room(self) -> Room:
        """What the look-ups need."""
        value, query = start_bits(self.task), sum(bit_length(count) for count in self.task.n)
        found = [value + query] + [value * len(self.takes(layer)) for layer in range(2, self.layers + 1)]
        found[1] += query * any(role.query == "found" for role in self.roles.values())
        return Room(key=tag_count_bits(self.task) + value + query_bits(self.task), value=max(found))

    def queries(self, source: Source) -> list[tuple[int, int]]:
        """The layers in which roles with this source ask with a part of the query, and the part."""
        found = {
            (layer, ask.part)
            for role in self.roles.values()
            for layer in range(2, self.layers + 1)
            if role.query == source and (ask := role.ask(layer)) is not None and ask.part is not None
        }
        return sorted(found)


@dataclass(frozen=True)
class _Job:
    """Digits that a map lets through: where from, where to, and the flag's direction."""

    source: range
    flag: str
    target: range


def write_program(architecture: Architecture, program: Program, layers: list[int], dtype: torch.dtype) -> Decoder:
    """The weights, in the first full layers of a stack.

    Args:
        architecture: the stack.
        program: what the tokens do.
        layers: the stack's full layers, at least as many as are used.
        dtype: of the weights; every weight is exact in bfloat16.
    """
    task, directions = program.task, program_directions(program)
    jobs = {layer: _jobs(program, directions, layer) for layer in range(1, program.layers)}
    answer = program.last.ask(program.layers)
    assert answer is not None
    config = plain_config(
        architecture,
        task,
        directions,
        tokens=token_code(task, directions),
        positions=position_code(task, directions, lambda segment: _constants(program, segment)),
        answer=directions.low(_found(program.layers, pointer=answer.pointer), bit_length(task.answers)),
        hidden={
            layers[layer - 1]: sum(Gates.units(len(job.source)) for job in wanted) for layer, wanted in jobs.items()
        },
    )
    decoder = Decoder.zeros(replace(config, causal=program.causal))
    with torch.no_grad():
        for layer in range(1, program.layers + 1):
            place = layers[layer - 1]
            block = decoder.each_block()[place]
            mixer = block.each_mixer()[full_mixer(architecture, place)[0]]
            assert isinstance(mixer, SoftmaxAttention)
            write_cut(mixer, directions, _look_up(program, directions, layer))
            gates = Gates(block.pointwise)
            for job in jobs.get(layer, ()):
                gates.let_through(job.source, directions[job.flag].start, job.target)
    return decoder.to(dtype).eval().requires_grad_(False)


def program_directions(program: Program) -> Directions:
    """The coordinates that a program needs."""
    task, directions = program.task, Directions()
    value, query = start_bits(task), sum(bit_length(count) for count in task.n)
    add_addresses(directions, task)
    directions.add("fetched token", value)
    directions.add("fetched query", query)
    directions.add("found query", query)
    for start in ("token", "address value", "fetched token"):
        directions.add(f"starts as {start}", 1)
    for layer in range(1, program.layers + 1):
        directions.add(f"tag asked in {layer}", tag_count_bits(task))
        directions.add(f"pointer {layer}", value if layer < program.layers else 0)
        if layer > 1:
            directions.add(f"query asked in {layer}", query_bits(task))
            directions.add(f"keeps in {layer}", 1)
            for pointer in program.takes(layer):
                directions.add(_found(layer, pointer=pointer), value)
                directions.add(_take(layer, pointer=pointer), 1)
    for source in ("fetched", "own", "found"):
        for layer, part in program.queries(source):
            directions.add(_part(layer, part, source), 1)
    return directions


def _found(layer: int, *, pointer: bool) -> str:
    return f"{'pointer' if pointer else 'token'} found in {layer}"


def _take(layer: int, *, pointer: bool) -> str:
    return f"takes {_found(layer, pointer=pointer)}"


def _part(layer: int, part: int, source: Source) -> str:
    return f"w_{part} {source} for {layer}"


def _constants(program: Program, segment: Segment) -> Constants:
    """What a segment's positions say of its role."""
    task, role = program.task, program.roles[segment.function]
    bits = tag_count_bits(task)
    constants: dict[str, list[float]] = {
        "tag asked in 1": [float(digit) for digit in signs(role.fetches, bits)],
        f"starts as {role.starts}": [1.0],
    }
    for layer in range(2, program.layers + 1):
        ask = role.ask(layer)
        if ask is None:
            constants[f"keeps in {layer}"] = [1.0]
            # Something must be asked for: with no digits all positions would tie, whatever they hold; that is allowed.
            constants[f"tag asked in {layer}"] = [float(digit) for digit in signs(tag_of(task, segment), bits)]
            continue
        constants[f"tag asked in {layer}"] = [float(digit) for digit in signs(ask.tag, bits)]
        constants[_take(layer, pointer=ask.pointer)] = [1.0]
        if ask.part is not None:
            constants[_part(layer, ask.part, role.query)] = [1.0]
    return constants


def _look_up(program: Program, directions: Directions, layer: int) -> LookUp:
    task, asked = program.task, directions[f"tag asked in {layer}"]
    if layer == 1:
        query = [column for part in range(1, task.hops) for column in directions[f"w_{part}"]]
        source, target = [*directions["token"], *query], [*directions["fetched token"], *directions["fetched query"]]
        return LookUp(tag=asked, compared=[], source=source, target=target, in_sight=task.prompt_length)
    compared = [
        (directions[f"pointer {layer - 1}"], directions["address value"]),
        (directions[f"query asked in {layer}"], directions["address query"]),
    ]
    source: list[int] = []
    target: list[int] = []
    for pointer in program.takes(layer):
        source += directions[f"pointer {layer - 1}" if pointer else "token"]
        target += directions[_found(layer, pointer=pointer)]
    if layer == 2 and program.queries("found"):
        source += directions["fetched query"]
        target += directions["found query"]
    return LookUp(tag=asked, compared=compared, source=source, target=target, in_sight=task.prompt_length)


def _jobs(program: Program, directions: Directions, layer: int) -> list[_Job]:
    """What the map after a layer lets through: the pointer, and the parts of the query where they come to tokens."""
    pointer = directions[f"pointer {layer}"]
    if layer == 1:
        starts = ("token", "address value", "fetched token")
        jobs = [_Job(directions[start], f"starts as {start}", pointer) for start in starts]
        return [*jobs, *_parts(program, directions, "fetched"), *_parts(program, directions, "own")]
    jobs = [_Job(directions[f"pointer {layer - 1}"], f"keeps in {layer}", pointer)]
    for taken in program.takes(layer):
        jobs.append(_Job(directions[_found(layer, pointer=taken)], _take(layer, pointer=taken), pointer))
    return [*jobs, *(_parts(program, directions, "found") if layer == 2 else ())]


def _parts(program: Program, directions: Directions, source: Source) -> Iterator[_Job]:
    places, start = {}, 0
    for part, count in enumerate(program.task.n, start=1):
        places[part] = slice(start, start := start + bit_length(count))
    for layer, part in program.queries(source):
        held = directions[f"w_{part}"] if source == "own" else directions[f"{source} query"][places[part]]
        yield _Job(held, _part(layer, part, source), directions.low(f"query asked in {layer}", len(held)))
