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
| recall | recurrence before the first full layer | last token knows i_0 | i_1, from a state that holds all of z_1 |

C1 uses fetch and look up; C2 a carry as well; C3 a recall as well. What no sequence of moves reaches is refused with
the reason, before anything is built.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import Attention, Columns, MatrixState, WindowAttention
from hopbound.errors import InputError


class Move(Enum):
    """What one layer does for the chain of hops."""

    FETCH = "fetch"
    LOOK_UP = "look up"
    LOOK_AHEAD = "look ahead"
    CARRY = "carry"
    RECALL = "recall"


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
    def construction(self) -> Literal["C1", "C2", "C3"]:
        """The construction's name, by the moves that it needs."""
        moves = {step.move for step in self.steps}
        if Move.RECALL in moves:
            return "C3"
        return "C2" if Move.CARRY in moves else "C1"


@dataclass(frozen=True)
class TaskSizes:
    """Sizes of L-hop composition as the constructions need them: `D_1..D_L`, `M_1..M_L`, `n_1..n_{L-1}`."""

    domains: tuple[int, ...]
    values: tuple[int, ...]
    n: tuple[int, ...]

    @property
    def hops(self) -> int:
        """L."""
        return len(self.domains)

    @property
    def tag_bits(self) -> int:
        """Bits that tell the functions z_1..z_L, the start and the query apart."""
        return (self.hops + 1).bit_length()

    def value_bits(self, hop: int) -> int:
        """Bits of i_hop; i_0 is the start."""
        return ((self.domains[0] if hop == 0 else self.values[hop - 1]) - 1).bit_length()

    def query_bits(self, hop: int) -> int:
        """Bits of the query part w_{hop-1} that the address of the look-up to i_hop holds; 0 for the first hop."""
        return 0 if hop == 1 else (self.n[hop - 2] - 1).bit_length()

    def address_bits(self, hop: int) -> int:
        """Bits of the code of an address of z_hop: function, query part, value."""
        return self.tag_bits + self.query_bits(hop) + self.value_bits(hop - 1)


# The mixers that a recall can use: their keys can be one-hot and each write stays until it is read.
RECALLING = ("linear", "delta", "gdn")
CARRYING = ("linear", "delta", "gdn", "conv", "window")


def obstacle(mixer: MixerSpec, move: Move, hop: int, sizes: TaskSizes | None, *, overfill: bool = False) -> str | None:
    """Why `mixer` cannot make `move` to the value of `hop` at these sizes; None if it can. Without sizes: at all.

    Args:
        mixer: the mixer.
        move: what it should do.
        hop: the value that the move brings.
        sizes: of the task; None leaves all size conditions out (a recall then never fits).
        overfill: let a recall hold more addresses than its state has room for (it will fail: for demonstrations).
    """
    if move in (Move.FETCH, Move.LOOK_UP, Move.LOOK_AHEAD):
        if mixer.name != "full" or not isinstance(mixer, Attention):
            return f"{mixer.name} makes no exact look-up here"
        if sizes is None:
            return None
        code = sizes.tag_bits if move is Move.FETCH else sizes.address_bits(hop)
        if code > mixer.head_dim:
            return f"an address code of {code} bits is wider than the head (head_dim {mixer.head_dim})"
        return _too_wide(sizes.value_bits(hop), mixer.kv_heads * mixer.value_dim)
    if move is Move.CARRY:
        if mixer.name not in CARRYING:
            return f"{mixer.name} has no built carry"
        if isinstance(mixer, Columns) and mixer.kernel < 2:
            return "a convolution of width 1 carries nothing"
        if isinstance(mixer, WindowAttention) and mixer.w < 2:
            return "a window of one token carries nothing"
        if sizes is None:
            return None
        if isinstance(mixer, WindowAttention) and sizes.tag_bits > mixer.head_dim:
            return f"a function code of {sizes.tag_bits} bits is wider than the head (head_dim {mixer.head_dim})"
        return _too_wide(sizes.value_bits(hop), _value_room(mixer))
    if mixer.name not in RECALLING or not isinstance(mixer, MatrixState):
        return f"{mixer.name} holds no table"
    if sizes is None:
        return "a state of fixed size holds no table of any size"
    m = sizes.domains[0]
    if m > mixer.head_dim and not overfill:
        return f"z_1 has m = {m} addresses, the state holds {mixer.head_dim} of them (its key dimension)"
    return _too_wide(sizes.value_bits(hop), _value_room(mixer))


def _value_room(mixer: MixerSpec) -> int:
    if isinstance(mixer, Columns):
        return mixer.channels
    if isinstance(mixer, WindowAttention):
        return mixer.kv_heads * mixer.value_dim
    assert isinstance(mixer, MatrixState)
    return mixer.heads * mixer.value_dim


def _too_wide(bits: int, room: int) -> str | None:
    return f"a value code of {bits} bits is wider than the {room} value channels" if bits > room else None


@dataclass(frozen=True)
class _Situation:
    """What the last token and the token of z_0 know: the number of the hop, -1 for nothing."""

    last: int
    start: int


def _moves(
    layer: Sequence[MixerSpec], at: _Situation, hops: int, before_full: bool
) -> Iterator[tuple[int, Move, int, _Situation]]:
    for index in range(len(layer)):
        if at.last < at.start:
            for move in (Move.FETCH, Move.CARRY):
                yield index, move, at.start, _Situation(at.start, at.start)
        if 0 <= at.last < hops:
            yield index, Move.LOOK_UP, at.last + 1, _Situation(at.last + 1, at.start)
        if at.last == 0 and before_full:
            yield index, Move.RECALL, 1, _Situation(1, at.start)
        if at.start == 0:
            yield index, Move.LOOK_AHEAD, 1, _Situation(at.last, 1)


# Among plans with as many hops: no recall before recall, no carry before carry, then fewer steps.
def _cost(steps: Sequence[Step]) -> tuple[int, int, int]:
    moves = [step.move for step in steps]
    return moves.count(Move.RECALL), moves.count(Move.CARRY), len(moves)


def best_plan(architecture: Architecture, hops: int, sizes: TaskSizes | None = None, *, overfill: bool = False) -> Plan:
    """The plan with the most hops, at most `hops`; without sizes one that works whenever the codes fit.

    Args:
        architecture: the stack.
        hops: as many as are wanted.
        sizes: of the task.
        overfill: see `obstacle`.
    """
    reached: dict[_Situation, tuple[Step, ...]] = {_Situation(-1, 0): ()}
    first_full = min(architecture.full_layers, default=len(architecture.layers))
    for number, layer in enumerate(architecture.layers):
        following = dict(reached)
        for at, steps in reached.items():
            for mixer, move, hop, then in _moves(layer.mixers, at, hops, number < first_full):
                if obstacle(layer.mixers[mixer], move, hop, sizes, overfill=overfill) is not None:
                    continue
                candidate = (*steps, Step(number, mixer, move, hop))
                if then not in following or _cost(candidate) < _cost(following[then]):
                    following[then] = candidate
        reached = following
    at = min(reached, key=lambda s: (-s.last, *_cost(reached[s])))
    return Plan(max(at.last, 0), reached[at] if at.last > 0 else ())


def plan_or_refuse(architecture: Architecture, sizes: TaskSizes, *, overfill: bool = False) -> Plan:
    """The plan for the task's hops.

    Raises:
        InputError: no construction of this project makes so many hops with this stack, or not at these sizes; one
            line that says what would fit.
    """
    hops = sizes.hops
    plan = best_plan(architecture, hops, sizes, overfill=overfill)
    if plan.hops == hops:
        return plan
    unlimited = best_plan(architecture, hops)
    for other in (unlimited, best_plan(architecture, hops, sizes, overfill=True)):
        if other.hops == hops:
            raise InputError(
                "sizes", f"D={sizes.domains} M={sizes.values}", _what_is_too_large(architecture, other, sizes)
            )
    raise InputError("hops", hops, _what_fits(architecture, unlimited, _at_least_sizes(architecture, hops)))


def _what_is_too_large(architecture: Architecture, plan: Plan, sizes: TaskSizes) -> str:
    """The first obstacle on a plan's way that the sizes put there."""
    for step in plan.steps:
        mixer = architecture.layers[step.layer].mixers[step.mixer]
        reason = obstacle(mixer, step.move, step.hop, sizes)
        if reason is not None:
            return f"smaller ones: layer {step.layer + 1}, {step.move.value}: {reason}"
    raise AssertionError("a plan that the sizes allow was refused")


def _at_least_sizes(architecture: Architecture, hops: int) -> Plan:
    """The plan with the most hops below `hops` where all sizes are as small as they can be."""
    for fewer in range(hops - 1, 0, -1):
        plan = best_plan(architecture, fewer, TaskSizes((2,) * fewer, (2,) * fewer, (1,) * (fewer - 1)))
        if plan.hops == fewer:
            return plan
    return Plan(0, ())


def _what_fits(architecture: Architecture, unlimited: Plan, smallest: Plan) -> str:
    full, label = len(architecture.full_layers), architecture.label
    if smallest.hops > unlimited.hops:
        return f"at most {smallest.hops} for {label!r}: {smallest.construction}, a state holds z_1 while it is small"
    if unlimited.hops == 0:
        return (
            f"none for {label!r}: without a full layer a hop needs two bounded layers, one that carries z_0 and one "
            "whose state holds the function; one full layer alone has no z_0 in its query"
        )
    layers = f"{full} full layer{'s' if full != 1 else ''}"
    way = "one of them fetches z_0" if unlimited.construction == "C1" else "a bounded layer carries z_0 or i_1"
    return f"at most {unlimited.hops} for {label!r}: {unlimited.construction}, {layers}, {way}"
