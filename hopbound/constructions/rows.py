r"""U2: rows that a layer gathers, so that a later look-up makes two hops at once.

*Gather.* The tokens of z_{l+1} stand before those of z_l. So in an early full layer every token of z_l, at whose
address the value v stands, can look up its whole *row*, z_{l+1}(w, v) for all n_l query parts w: head w asks for the
address (w, v), where w is written into the head's query and v are the token's own digits. The map behind the layer
makes the digits ±1 again, and 0 at every other token.

*Look-up of a row.* The last token knows i_{l-1} and looks up the address (w_{l-1}, i_{l-1}) of z_l as ever, but what it
gets is the row that stands there, n_l B' digits (B' those of i_{l+1}). With r_{w,b} these digits, each off by η, p_c
the Q digits of w_l that it knows, exact, and s_w = Σ_c w_c p_c - Q the map behind the layer adds

    Σ_w clip(2 (r_{w,b} + s_w), -1, 1) + (n_l - 1) ,

the digit of the entry w_l: s_w = 0 there, and at most -2 at the others, whose terms are -1. It is exact while η ≤ 1/2.
i_l itself is never read: a row takes n_l B' value channels, and the layer makes two hops.

*At once.* One layer gathers the rows of all z_l that are wanted, by the same heads, while the last token fetches or
looks up something for itself, or the token of z_0 looks ahead, with head 0. All add up in a query, and each must mean
nothing where another asks. Constants (a function's number, w of the head) are multiplied with coordinates that are 1 at
the tokens that ask and 0 elsewhere. There remain digits that are read from the stream:

- Behind a map, which copies the tokens' own digits, times 1 at tokens that gather and 0 at others, the last token asks
  as if it were alone. The digits of its i and w stand in the queries of other tokens too, at most 1 in absolute value
  (see below). What gathers asks S = 4 times as loud, so that a digit that it compares keeps its sign and weighs at
  least 3.
- In the first layer there is no map before. All tokens ask with their own digits, the last one as well (S = 1), but it
  can only fetch there, and compares a function's number alone.

A function's digits weigh S + E/2, rounded up, where E is what a key of another function can win by digits that this
one's addresses do not have. By its number that key loses 2 S + E, so that the gap of the scores is 2β or more, as in
`lookup.py`, with its errors.

*Digits at other tokens* are a clip, or made by a choice, of a row or a branch: Σ_v φ(2 (r_v + s_v)) - 1, where
φ(u) = relu(u + 1) - relu(u - 1) is at most 2 and at most 3 + 2 s_v, as means have |r_v| ≤ 1 and |p_c| ≤ 1. Two
codes v differ in a digit, so their s add up to at most -2 and their φ, where neither is 0, to at most 2. For three the
s add up to at most -4 and the φ to at most 1: they differ in two digits, and each takes 2. Four are never open at
once: they differ in three digits, or in two and each takes 4, so that their s add up to at most -6 and their φ to 0.
The sum is within ±1. What is unpacked from a memory is not looked at here: no plan has both.

*Key-value heads* hold the token's digits, spread over P of them where a token has more than `value_dim`: ⌊kv_heads / P⌋
· heads / kv_heads look-ups fit, as for a branch.

With fewer heads than entries, or value channels for fewer (`overfill`, for demonstration), the last entries are not
gathered: where one of them is wanted no unit is open, all digits are -1, and it is taken for 0.

So a bound on hops can only hold at sizes with n_l above the number of heads, for each l whose tokens have a full layer
in which to gather before the last token needs them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hopbound.architecture import Architecture
from hopbound.claims import Plan, Step
from hopbound.constructions.branching import write_choice
from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.lookup import OPEN, sharpness, upward
from hopbound.constructions.packing import Weights
from hopbound.decoder.codes import signs
from hopbound.limits import Code, HeadsLimit, TaskSizes
from hopbound.mixers import Mixer, SoftmaxMixer
from hopbound.moves import Limits, Move, limits

LOUD = 4.0  # of what gathers, where other digits stand in the same query

Term = tuple[int, int, float]
"""A part of a query: the key's column that it meets, the column of the asking token, the weight between."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the tokens of one function gather.

    Attributes:
        hop: l + 1, of whose values the row is.
        mixer: of the layer that gathers: the one that gathers this row.
        read_in: the layer in which the last token looks it up.
        entries: how many of it are gathered, the first ones.
        bits: of an entry.
    """

    hop: int
    mixer: int
    read_in: int
    entries: int
    bits: int

    @property
    def here(self) -> str:
        """The name of the coordinate that is 1 at the tokens that gather the row."""
        return f"in z_{self.hop - 1}"

    @property
    def raw(self) -> str:
        """The name of its digits as they were looked up."""
        return f"raw row of i_{self.hop}"

    @property
    def clean(self) -> str:
        """The name of its digits, ±1, at the tokens that gather it."""
        return f"row of i_{self.hop}"

    @property
    def found(self) -> str:
        """The name of its digits at the last token."""
        return f"found row of i_{self.hop}"

    def entry(self, directions: Directions, name: str, number: int) -> range:
        """Where one entry stands."""
        return directions[name][number * self.bits : (number + 1) * self.bits]


@dataclass(frozen=True, kw_only=True)
class Gathering:
    """The rows of a plan.

    Attributes:
        sizes: of the task.
        layer: that gathers them.
        rows: by hop.
        beside: the moves in that layer by the same mixers, by mixer.
    """

    sizes: TaskSizes
    layer: int
    rows: tuple[Row, ...]
    beside: Mapping[int, Step]

    @classmethod
    def of(cls, architecture: Architecture, sizes: TaskSizes, plan: Plan) -> "Gathering | None":
        """The rows of a plan, with as many entries as there are heads and value channels for; None if it has none."""
        gathers = [step for step in plan.steps if step.move is Move.GATHER]
        if not gathers:
            return None
        reading = {step.hop: step for step in plan.steps if step.move is Move.LOOK_UP_ROW}
        rows = []
        for step in gathers:
            read = reading[step.hop]
            fitting = min(_entries(architecture, sizes, each) for each in (step, read))
            entries = min(sizes.row_entries(step.hop), fitting)
            bits = sizes.value_bits(step.hop)
            rows.append(Row(hop=step.hop, mixer=step.mixer, read_in=read.layer, entries=entries, bits=bits))
        layer, mixers = gathers[0].layer, {row.mixer for row in rows}
        others = (step for step in plan.steps if step.layer == layer and step.move is not Move.GATHER)
        beside = {step.mixer: step for step in others if step.mixer in mixers}
        return cls(sizes=sizes, layer=layer, rows=tuple(rows), beside=beside)

    @property
    def looks_ahead(self) -> bool:
        """Whether the token of z_0 asks with the same heads."""
        return any(step.move is Move.LOOK_AHEAD for step in self.beside.values())

    @property
    def own_bits(self) -> int:
        """Digits of their own that tokens ask with."""
        asking = [row.hop - 1 for row in self.rows] + ([0] if self.looks_ahead else [])
        return max(map(self.sizes.value_bits, asking))

    # -- coordinates ---------------------------------------------------------------------------------------------------

    def add_to(self, directions: Directions) -> None:
        """Hand out coordinates for the rows, and for who asks."""
        directions.add("last", 1)
        if self.looks_ahead and "start" not in directions.spans:
            directions.add("start", 1)
        if self.layer > 0:
            directions.add("own", self.own_bits)
        for row in self.rows:
            directions.add(row.here, 1)
            for name in (row.raw, row.clean, row.found):
                directions.add(name, row.entries * row.bits)

    def constants(self, segment: str, directions: Directions) -> list[tuple[int, float]]:
        """What the positions of a segment hold, by its name: z_1, …, w."""
        names = [row.here for row in self.rows if segment == f"z_{row.hop - 1}"] + ["last"] * (segment == "w")
        return [(directions[name].start, 1.0) for name in names]

    # -- moves ---------------------------------------------------------------------------------------------------------

    def shares(self, step: Step) -> bool:
        """Whether a step is made by heads that gather: `write` writes it too."""
        return step in self.beside.values()

    def write(self, mixer: Mixer[Any, Any], directions: Directions, number: int, in_sight: int) -> None:
        """Let a zeroed full attention mixer gather its rows, and make the move beside.

        Args:
            mixer: softmax attention; all weights zero.
            directions: of the residual stream; has those of `add_to`.
            number: which mixer of the layer it is.
            in_sight: how many positions the softmax ranges over.
        """
        assert isinstance(mixer, SoftmaxMixer)
        spec, beta = mixer.spec, sharpness(in_sight) / mixer.scale
        columns = [*directions["tag"], *directions["address query"], *directions["address value"]]
        digit_of = {column: digit for digit, column in enumerate(columns)}
        stored = directions["token"]
        parts = _heads_limit(limits(spec, Move.GATHER)).parts(len(stored))
        group, copies = spec.heads // spec.kv_heads, spec.kv_heads // parts
        asked = [list(terms) for terms in self._queries(directions, number)]
        for part in range(parts):
            source = stored[part * spec.value_dim : (part + 1) * spec.value_dim]
            for head in range(part * copies, (part + 1) * copies):
                copy(mixer.key.weight, range(head * spec.head_dim, head * spec.head_dim + len(columns)), columns)
                copy(mixer.value.weight, range(head * spec.value_dim, head * spec.value_dim + len(source)), source)
            for place, terms in enumerate(asked):
                head = part * copies * group + place
                for key, column, weight in terms:
                    size = upward(abs(weight) * beta)
                    mixer.query.weight[head * spec.head_dim + digit_of[key], column] = size if weight > 0 else -size
                for target in self._targets(directions, number, place):
                    wanted = target[part * spec.value_dim : (part + 1) * spec.value_dim]
                    copy(mixer.out.weight, wanted, range(head * spec.value_dim, head * spec.value_dim + len(wanted)))
        if mixer.gate is not None:
            (one,) = directions["one"]
            mixer.gate.weight[:, one] = OPEN

    @property
    def mixers(self) -> tuple[int, ...]:
        """Those of the layer that gather."""
        return tuple(sorted({row.mixer for row in self.rows}))

    def _rows_of(self, mixer: int) -> list[Row]:
        return [row for row in self.rows if row.mixer == mixer]

    def _targets(self, directions: Directions, mixer: int, head: int) -> Iterator[range]:
        """Where the answer of a head goes."""
        for row in self._rows_of(mixer):
            if head < row.entries:
                yield row.entry(directions, row.raw, head)
        step = self.beside.get(mixer)
        if step is not None and head == 0:
            yield directions["raw i_1 at z_0" if step.move is Move.LOOK_AHEAD else f"raw i_{step.hop}"]

    def _queries(self, directions: Directions, mixer: int) -> Iterator[Iterator[Term]]:
        """What each head asks for."""
        for head in range(max(row.entries for row in self._rows_of(mixer))):
            yield self._asked(directions, mixer, head)

    def _asked(self, directions: Directions, mixer: int, head: int) -> Iterator[Term]:
        sizes, step = self.sizes, self.beside.get(mixer)
        value, own = directions.low("address value", self.own_bits), self._own(directions)
        looks_up = step is not None and step.move is Move.LOOK_UP and head == 0
        loud = LOUD if self.layer > 0 else 1.0
        queries, values = (sizes.query_bits(step.hop), sizes.value_bits(step.hop - 1)) if step and looks_up else (0, 0)

        def louder(query_bits: int, value_bits: int) -> float:
            """How loud a token asks for its function: its addresses have only so many of the digits in its query."""
            added = max(0, queries - query_bits) + max(0, values - value_bits) + loud * max(0, len(own) - value_bits)
            return loud + -(-added // 2)

        yield from ((key, column, loud) for key, column in zip(value, own, strict=True))
        for row in self._rows_of(mixer):
            (here,) = directions[row.here]
            query_bits, value_bits = sizes.query_bits(row.hop), sizes.value_bits(row.hop - 1)
            yield from self._function(directions, row.hop, here, louder(query_bits, value_bits))
            places = directions.low("address query", query_bits)
            yield from ((key, here, loud * sign) for key, sign in zip(places, signs(head, query_bits), strict=True))
        if step is None or head > 0:
            return
        if step.move is Move.LOOK_AHEAD:
            (start,) = directions["start"]
            yield from self._function(directions, 1, start, louder(0, sizes.value_bits(0)))
            return
        (last,) = directions["last"]
        alone = 1.0 if self.layer > 0 else 1.0 + -(-len(own) // 2)
        yield from self._function(directions, step.hop, last, alone)
        if looks_up:
            places = directions.low("address value", values)
            yield from ((key, column, 1.0) for key, column in zip(places, directions[f"i_{step.hop - 1}"], strict=True))
        if queries:
            places = directions.low("address query", queries)
            yield from ((key, column, 1.0) for key, column in zip(places, directions[f"w_{step.hop - 1}"], strict=True))

    def _function(self, directions: Directions, function: int, asking: int, weight: float) -> Iterator[Term]:
        """The digits of a function's number."""
        for key, sign in zip(directions["tag"], signs(function, self.sizes.tag_bits), strict=True):
            yield key, asking, weight * sign

    def _own(self, directions: Directions) -> range:
        """Where tokens keep the digits of their own that they ask with."""
        return directions["own"] if self.layer > 0 else directions.low("token", self.own_bits)

    def stored_and_found(self, hop: int, directions: Directions) -> tuple[range, range]:
        """Where a row stands at the tokens that gathered it, and where the last token finds it."""
        (row,) = (row for row in self.rows if row.hop == hop)
        return directions[row.clean], directions[row.found]

    # -- position-wise maps --------------------------------------------------------------------------------------------

    def units(self, layer: int) -> int:
        """Units that `write_map` takes behind a layer."""
        copied = self.own_bits + 1 if layer == self.layer - 1 else 0
        cleaned = sum(2 * row.entries * row.bits + 1 for row in self.rows) if layer == self.layer else 0
        return copied + cleaned + sum(2 * row.entries * row.bits for row in self.rows if row.read_in == layer)

    def write_map(self, layer: int, unit: int, weights: Weights, directions: Directions) -> None:
        """Let units of the map behind a layer, from `unit` on, do what is needed there."""
        if layer == self.layer - 1:
            self._write_own(unit, weights, directions)
        if layer == self.layer:
            for row in self.rows:
                unit = _write_row(unit, weights, directions, row)
        for row in self.rows:
            if row.read_in == layer:
                found = [row.entry(directions, row.found, number) for number in range(row.entries)]
                known = directions[f"w_{row.hop - 1}"]
                target = directions[f"i_{row.hop}" if row.hop < self.sizes.hops else f"raw i_{row.hop}"]
                unit = write_choice(unit, weights, known=known, found=found, target=target)

    def _write_own(self, unit: int, weights: Weights, directions: Directions) -> None:
        """Copies of a token's digits where it asks, 0 elsewhere: 2 relu(digit + here - 1) - here."""
        asking = [directions[row.here].start for row in self.rows]
        asking += list(directions["start"]) if self.looks_ahead else []
        own, token = directions["own"], directions.low("token", self.own_bits)
        here = unit + len(own)
        weights.rise[here, asking] = 1.0
        for place, (source, target) in enumerate(zip(token, own, strict=True)):
            weights.rise[unit + place, source] = 1.0
            weights.rise[unit + place, asking] = 1.0
            weights.rise_bias[unit + place] = -1.0
            weights.fall[target, unit + place] = 2.0
            weights.fall[target, here] = -1.0


def _write_row(unit: int, weights: Weights, directions: Directions, row: Row) -> int:
    """±1 again where the row was gathered, 0 elsewhere: relu(2 r + 4 here - 3) - relu(2 r + 4 here - 5) - here."""
    (here,) = directions[row.here]
    raw, clean = directions[row.raw], directions[row.clean]
    constant = unit + 2 * len(raw)
    weights.rise[constant, here] = 1.0
    for source, target in zip(raw, clean, strict=True):
        for shift in (1.0, -1.0):
            weights.rise[unit, source] = 2.0
            weights.rise[unit, here] = 4.0
            weights.rise_bias[unit] = shift - 4.0
            weights.fall[target, unit] = shift
            unit += 1
        weights.fall[target, constant] = -1.0
    return constant + 1


def _heads_limit(found: Limits | str) -> HeadsLimit:
    (heads,) = (limit for limit in found if isinstance(limit, HeadsLimit))
    return heads


def _entries(architecture: Architecture, sizes: TaskSizes, step: Step) -> int:
    """How many entries of a row fit into the heads or channels of a step's mixer."""
    found = limits(architecture.layers[step.layer].mixers[step.mixer], step.move)
    assert not isinstance(found, str)
    if step.move is Move.GATHER:
        return _heads_limit(found).at_once(sizes.token_bits)
    return min(limit.entries(sizes, step.hop) for limit in found if limit.code in (Code.ROW, Code.ADDRESS_AND_ROW))
