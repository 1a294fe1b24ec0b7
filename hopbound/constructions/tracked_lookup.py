r"""Track, then look up: what a delta rule with the eigenvalue -1 below a full layer can, and neither can alone.

**State-based recall.** The delta rule keeps the variables' addresses. The token that gives variable i the address a
writes the digits c(a) under the key e_{2i}, with the strength 1; a swap reflects with the doubled key (f_i - f_j)/2 and
the strength 2 (`reflections.py`). As e_{2i} = (f_i + g_i)/2 with g_i = e_{2i} - e_{2i+1}, which is orthogonal to all
f's and stays under every swap, the state is

    S = 1/2 Σ_i f_{P(i)} c(a_i)ᵀ + 1/2 Σ_i g_i c(a_i)ᵀ ,

P the product of the swaps, and the query f_b / √2 of the variable that is asked reads c(address of b) / √2: only this
reading is rounded, once, not the state, and the position-wise map restores ±1 (`lookup.write_clean`). All entries are
multiples of 1/4: nothing grows with the number of swaps. The full layer then looks the address up (`lookup.py`).

**Parity-conditioned retrieval.** The delta rule reflects at every 1 (`parity.py`); its digit, ±1 exactly, is one more
digit of the address: the memory in which the full layer looks.

*Limits.* None of length beyond the look-up's, whose sharpness grows with ln n. Two key coordinates a variable and value
channels for an address in the delta rule; the address with the function's digit, and for the parity one digit more,
within the key dimension of the full layer, the value's digits within its value channels.

*Why neither alone.* Bounded layers alone, any number with any weights: what crosses from the memory to the question is
their state. Every cell can be asked for, so that with fewer than cells · log₂ values bits two memories are answered
alike (`bounds/recall.py` says how often, on average). Attention alone: with five pointers the swaps are the word
problem of S_5, complete for NC¹, which softmax attention of fixed depth and logarithmic precision does not solve at
every length unless TC⁰ = NC¹ (`bounds/languages.py`; arXiv 2207.00729). For parity, attention of constant precision
needs more than constantly many steps (arXiv 2605.16640) and hard attention is excluded (arXiv 1906.06755); softmax
attention whose precision grows with the length is not. That a hybrid does state-based recall and neither part does is
Theorem 1 of arXiv 2604.03444, under its assumptions.
"""

import math

import torch

from hopbound.architecture import Architecture
from hopbound.architecture.sizes import Attention, MatrixState
from hopbound.constructions.assembly import finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions, coarse
from hopbound.constructions.lookup import LookUp, write_clean, write_lookup
from hopbound.constructions.parity import write_parity
from hopbound.constructions.permutation_words import transpositions
from hopbound.constructions.reflections import (
    DOUBLED,
    find_delta_rule,
    key_rows,
    no_negative_eigenvalue,
    too_few_values,
    value_rows,
    write_doubled,
    write_strength,
)
from hopbound.decoder import (
    Decoder,
    DigitField,
    PositionCode,
    SegmentCode,
    bit_length,
    signs,
)
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.tasks import ParityRetrieval, StateRecall

MEMORY, ELSEWHERE = 1, 0  # the function's digit of the look-up


class TrackedLookUp(Construction[StateRecall]):
    """Pointers in a delta rule, the memory in a full layer's cache."""

    name = "tracked look-up"
    task = StateRecall
    about = "a delta rule swaps the addresses of its variables, a full layer looks one up"
    source = "hopbound/constructions/tracked_lookup.py; arXiv 2604.03444, Theorem 1"
    examples = (
        Example(
            schedule="gdn[heads=1,head_dim=4,value_dim=2,beta=2] full[heads=1,head_dim=3,value_dim=1]",
            task="state_recall[cells=3,pointers=2,swaps=3]",
        ),
        Example(
            schedule="3*gdn[heads=2,head_dim=10,value_dim=6,beta=2] full[heads=1,head_dim=12]",
            task="state_recall[cells=100,pointers=5,swaps=30,values=256]",
        ),
        Example(
            schedule="gdn[heads=1,head_dim=10,value_dim=12,beta=2] full[heads=1,head_dim=13]",
            task="state_recall[cells=4096,pointers=5,swaps=100000,values=256]",
        ),
        Example(
            schedule="gdn[heads=1,head_dim=3,value_dim=2,beta=2] full[heads=1,head_dim=3,value_dim=1]",
            task="state_recall[cells=3,pointers=2,swaps=3]",
            fits=False,
        ),
        Example(
            schedule="gdn[heads=1,head_dim=4,value_dim=2] full[heads=1,head_dim=3,value_dim=1]",
            task="state_recall[cells=3,pointers=2,swaps=3]",
            fits=False,
        ),
        Example(
            schedule="gdn[heads=1,head_dim=4,value_dim=1,beta=2] full[heads=1,head_dim=3,value_dim=1]",
            task="state_recall[cells=3,pointers=2,swaps=3]",
            fits=False,
        ),
    )

    def fatal_refusal(self, architecture: Architecture, task: StateRecall) -> str | None:
        """No delta rule below a full layer, a convolution, or an address that the full layer's keys do not hold."""
        digits = 1 + bit_length(task.cells)
        return _no_hybrid(architecture, address=digits, value=bit_length(task.values), convolved=False)

    def refusal(self, architecture: Architecture, task: StateRecall) -> str | None:
        """Also, strengths below 2, too few coordinates or values in the delta rule."""
        fatal, found = self.fatal_refusal(architecture, task), find_delta_rule(architecture)
        if fatal is not None or found is None:
            return fatal
        spec = found[2]
        if spec.head_dim < DOUBLED * task.pointers:
            return f"{task.pointers} pointers take {DOUBLED} coordinates each, {spec.name} has head_dim={spec.head_dim}"
        return no_negative_eigenvalue(spec) or too_few_values(spec, bit_length(task.cells))

    def write(self, architecture: Architecture, task: StateRecall, dtype: torch.dtype) -> Built:
        """Write addresses, swap them, read one, look it up."""
        (tracker, place), (reader, reading) = _places(architecture)
        bits = bit_length(task.cells)
        directions = Directions()
        for name, size in (("one", 1), ("tag", 1), ("cell", bits), ("variable", task.pointers), ("address", bits)):
            directions.add(name, size)
        for name, size in (("swaps", 1), ("moved", task.pointers), ("asked", task.pointers)):
            directions.add(name, size)
        for name, size in (("raw address", bits), ("wanted", bits)):
            directions.add(name, size)
        for name in ("value", "answer"):
            directions.add(name, bit_length(task.values))
        variables = [
            SegmentCode(f"variable {i}", 1, (), (*_elsewhere(directions), (directions["variable"][i], 1.0)))
            for i in range(task.pointers)
        ]
        positions = PositionCode(
            (
                _memory("memory", task.cells, directions, ()),
                *variables,
                SegmentCode("swaps and question", task.swaps + 1, (), _elsewhere(directions)),
            )
        )
        config = plain_config(
            architecture,
            task,
            directions,
            positions=positions,
            answer=directions["answer"],
            hidden={tracker: 2 * bits},
        )
        decoder = Decoder.zeros(config)
        with torch.no_grad():
            _write_state_tokens(decoder, directions, task)
            block = decoder.each_block()[tracker]
            mixer, pointwise = block.each_mixer()[place], block.pointwise
            assert isinstance(mixer, DeltaRecurrence | DeltaProduct)
            assert pointwise is not None
            _write_tracker(mixer, directions)
            rise, fall = pointwise.rise, pointwise.fall
            write_clean(rise.weight, rise.bias, fall.weight, fall.bias, directions["raw address"], directions["wanted"])
            look_up = LookUp(
                tag=MEMORY,
                compared=[(directions["wanted"], directions["cell"])],
                source=directions["value"],
                target=directions["answer"],
                in_sight=task.prompt_length,
            )
            write_lookup(decoder.each_block()[reader].each_mixer()[reading], directions, look_up)
        steps = (f"layer {tracker + 1} swaps the pointers", f"layer {reader + 1} looks the address up")
        return finished(decoder, self.name, steps, directions, dtype)


class ParityLookUp(Construction[ParityRetrieval]):
    """The parity in a delta rule, the memories in a full layer's cache."""

    name = "parity look-up"
    task = ParityRetrieval
    about = "a delta rule reflects at every 1, a full layer looks up in the memory that the parity names"
    source = "hopbound/constructions/tracked_lookup.py"
    examples = (
        Example(
            schedule="gdn[heads=1,head_dim=1,beta=2] full[heads=1,head_dim=3,value_dim=1]",
            task="parity_retrieval[cells=2,length=6]",
        ),
        Example(
            schedule="3*gdn[heads=2,head_dim=4,conv=4,beta=2] full[heads=2,head_dim=12,gate=1]",
            task="parity_retrieval[cells=20,length=20,values=256]",
        ),
        Example(
            schedule="gdn[heads=1,head_dim=1,beta=2] full[heads=1,head_dim=14]",
            task="parity_retrieval[cells=4096,length=200000,values=256]",
        ),
        Example(
            schedule="gdn[heads=1,head_dim=1] full[heads=1,head_dim=3,value_dim=1]",
            task="parity_retrieval[cells=2,length=6]",
            fits=False,
        ),
    )

    def fatal_refusal(self, architecture: Architecture, task: ParityRetrieval) -> str | None:
        """No delta rule below a full layer, or an address that the full layer's keys do not hold."""
        digits = 2 + bit_length(task.cells)
        return _no_hybrid(architecture, address=digits, value=bit_length(task.values), convolved=True)

    def refusal(self, architecture: Architecture, task: ParityRetrieval) -> str | None:
        """Also, strengths below 2."""
        fatal, found = self.fatal_refusal(architecture, task), find_delta_rule(architecture)
        return fatal if fatal is not None or found is None else no_negative_eigenvalue(found[2])

    def write(self, architecture: Architecture, task: ParityRetrieval, dtype: torch.dtype) -> Built:
        """The parity, then the look-up with one digit more."""
        (tracker, place), (reader, reading) = _places(architecture)
        bits, values = bit_length(task.cells), bit_length(task.values)
        directions = Directions()
        for name, size in (("one", 1), ("tag", 1), ("cell", bits), ("memory", 1), ("bit", 1)):
            directions.add(name, size)
        for name, size in (("asked", bits), ("parity", 1), ("value", values), ("answer", values)):
            directions.add(name, size)
        (memory,) = directions["memory"]
        positions = PositionCode(
            (
                _memory("even", task.cells, directions, ((memory, -1.0),)),
                _memory("odd", task.cells, directions, ((memory, 1.0),)),
                SegmentCode("bits and question", task.length + 1, (), _elsewhere(directions)),
            )
        )
        config = plain_config(architecture, task, directions, positions=positions, answer=directions["answer"])
        decoder = Decoder.zeros(config)
        with torch.no_grad():
            _write_parity_tokens(decoder, directions, task)
            mixer = decoder.each_block()[tracker].each_mixer()[place]
            assert isinstance(mixer, DeltaRecurrence | DeltaProduct)
            (one,), (bit,), (parity,) = (directions[name] for name in ("one", "bit", "parity"))
            write_parity(mixer, one=one, bit=bit, parity=parity)
            look_up = LookUp(
                tag=MEMORY,
                compared=[(directions["asked"], directions["cell"]), (directions["parity"], directions["memory"])],
                source=directions["value"],
                target=directions["answer"],
                in_sight=task.prompt_length,
            )
            write_lookup(decoder.each_block()[reader].each_mixer()[reading], directions, look_up)
        steps = (f"layer {tracker + 1} reflects at every 1", f"layer {reader + 1} looks the cell up")
        return finished(decoder, self.name, steps, directions, dtype)


# -- the stack ---------------------------------------------------------------------------------------------------------


def _no_hybrid(architecture: Architecture, *, address: int, value: int, convolved: bool) -> str | None:
    """Why a stack has no delta rule below a full layer with room for the address and the value."""
    found = find_delta_rule(architecture)
    full = None if found is None else _full_layer(architecture, above=found[0])
    if found is None or full is None:
        return "no full layer above a delta rule: gdn[beta=2] full"
    if found[2].conv and not convolved:
        return f"{found[2].name} stands behind a convolution: conv=0"
    spec = full[2]
    if spec.head_dim < address:
        return f"address codes of {address} digits, full has head_dim={spec.head_dim}"
    held = spec.kv_heads * spec.value_dim
    return f"value codes of {value} digits, full has {held} value channels" if held < value else None


def _full_layer(architecture: Architecture, *, above: int) -> tuple[int, int, Attention] | None:
    for index in range(above + 1, len(architecture.layers)):
        for place, spec in enumerate(architecture.layers[index].mixers):
            if spec.name == "full":
                assert isinstance(spec, Attention)
                return index, place, spec
    return None


def _places(architecture: Architecture) -> tuple[tuple[int, int], tuple[int, int]]:
    """Layer and mixer of the delta rule and of the full attention."""
    found = find_delta_rule(architecture)
    assert found is not None
    full = _full_layer(architecture, above=found[0])
    assert full is not None
    return found[:2], full[:2]


# -- codes -------------------------------------------------------------------------------------------------------------


def _memory(name: str, cells: int, directions: Directions, more: tuple[tuple[int, float], ...]) -> SegmentCode:
    """Cells, each with the digits of its address."""
    (tag,), cell = directions["tag"], directions["cell"]
    return SegmentCode(name, cells, (DigitField(cell.start, 1, cells, len(cell)),), ((tag, 1.0), *more))


def _elsewhere(directions: Directions) -> tuple[tuple[int, float], ...]:
    """What is no cell."""
    (tag,) = directions["tag"]
    return ((tag, float(signs(ELSEWHERE, 1)[0])),)


def _write_digits(table: torch.Tensor, first: int, count: int, columns: range) -> None:
    """The digits of 0 .. count - 1 in the rows from `first` on."""
    digits = DigitField(0, 1, max(count, 1), len(columns)).encode(torch.arange(count), table.dtype)
    table[first : first + count, columns.start : columns.stop] = digits


def _write_state_tokens(decoder: Decoder, directions: Directions, task: StateRecall) -> None:
    assert decoder.token_table is not None
    table, first = decoder.token_table.weight, {name: least for name, _, least, _ in task.stretches}
    (one,), (swaps,), moved = directions["one"], directions["swaps"], directions["moved"]
    table[:, one] = 1.0
    _write_digits(table, first["cell"], task.values, directions["value"])
    _write_digits(table, first["pointer"], task.cells, directions["address"])
    for swap, permutation in enumerate(task.permutations):
        row = first["swap"] + swap
        table[row, swaps] = 1.0
        for i, j in transpositions(permutation):
            table[row, moved[i]], table[row, moved[j]] = 1.0, -1.0
    for pointer, column in enumerate(directions["asked"]):
        table[first["asked"] + pointer, column] = 1.0


def _write_parity_tokens(decoder: Decoder, directions: Directions, task: ParityRetrieval) -> None:
    assert decoder.token_table is not None
    table, first = decoder.token_table.weight, {name: least for name, _, least, _ in task.stretches}
    (one,), (bit,), (parity,) = (directions[name] for name in ("one", "bit", "parity"))
    table[:, one] = 1.0
    table[first["bit"] + 1, bit] = 1.0
    table[:, parity] = -1.0
    _write_digits(table, first["even"], task.values, directions["value"])
    _write_digits(table, first["asked"], task.cells, directions["asked"])


# -- the pointers ------------------------------------------------------------------------------------------------------


def _write_tracker(mixer: DeltaRecurrence | DeltaProduct, directions: Directions) -> None:
    """Strength 2 at swaps and 1 elsewhere; variable i is written under e_{2i} and read under f_i / √2."""
    spec: MatrixState = mixer.spec
    (swaps,) = directions["swaps"]
    write_strength(mixer, swaps)
    rows = key_rows(mixer)
    write_doubled(mixer.key.weight, rows, directions["moved"], spec.head_dim)
    for row in rows:
        for variable, column in enumerate(directions["variable"]):
            mixer.key.weight[row + DOUBLED * variable % spec.head_dim, column] = 1.0
    heads = [head * spec.head_dim for head in range(spec.key_heads)]
    write_doubled(mixer.query.weight, heads, directions["asked"], spec.head_dim)
    channels = zip(value_rows(mixer), directions["address"], directions["raw address"], strict=False)
    for channel, (row, address, raw) in enumerate(channels):
        mixer.value.weight[row, address] = 1.0
        mixer.out.weight[raw, channel] = coarse(math.sqrt(DOUBLED))
