r"""C4: one full layer makes any number of hops with a chain of thought: L tokens of the model's own, then the answer.

The model answers with a pair (i, w'), i some i_l and w' the parts of the query that are still to be used, written as
the token i + 2^B (w'_1 + 2^q (w'_2 + ..)), B the digits of the largest i, q those of the largest w_l.

| the token | asks for | and answers |
|---|---|---|
| w, the last of the prompt | z_0 | (i_0; w_1, .., w_{L-1}) |
| thought 1 = (i_0; w_1, .., w_{L-1}) | z_1 at i_0 | (i_1; w_1, .., w_{L-1}) |
| thought t = (i_{t-1}; w_{t-1}, .., w_{L-1}), t = 2 .. L | z_t at (w_{t-1}, i_{t-1}) | (i_t; w_t, .., w_{L-1}) |

Thought L answers (i_L; nothing), which is the number i_L. So L + 1 tokens are generated, the answer the last of them,
by one layer with one head and a code of O(log n) digits, where without them Theorem A allows one full layer no second
hop (arXiv 2602.01763; with them its bound does not apply, as every generated token is a pass of its own).

*Why it is exact.* A query is linear in the token's stream: the function asked for stands in the position's code, i and
the first part of w' in the token's own digits. The function's digits outweigh all others (`lookup.py`, addresses of
several kinds), so that what the token w holds in the places of i and w', and the first part of w' in thought 1, which
z_1 has no use for, do no harm: in z_0 and in z_1 they change the scores of all addresses alike. Within z_t the wanted
address beats the others by 2β. The map shifts w' by gated digits (`layout.py`), which are ±1 exactly; the digits of i
go to the readout as they were looked up, off by at most twice the leak, and the token chosen by argmax is exact again:
errors do not add up from thought to thought.

*Limits.* `head_dim` at least the digits of function, i and w_l; value channels at least B; a token of every pair, so
2^(B + (L-1) q) answers, at most `MOST_ANSWERS`.
"""

from dataclasses import replace
from typing import ClassVar, final

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.assembly import finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example, Mode
from hopbound.constructions.directions import Directions
from hopbound.constructions.layout import (
    Constants,
    Gates,
    Room,
    add_addresses,
    full_layers,
    full_mixer,
    position_code,
    query_bits,
    segment_code,
    start_bits,
    tag_count_bits,
    token_code,
    write_cut,
)
from hopbound.constructions.lookup import LookUp
from hopbound.decoder import Decoder, DigitField, ReadoutCode, SegmentCode, signs
from hopbound.mixers import SoftmaxAttention
from hopbound.tasks import FunctionComposition
from hopbound.tasks.composition import Segment

MOST_ANSWERS = 2**22

_Jobs = list[tuple[range, str, range]]


def _example(task: str, *, head_dim: int = 24, value_dim: int = 24, fits: bool = True) -> Example:
    schedule = f"full[heads=1,head_dim={head_dim},value_dim={value_dim}]"
    return Example(schedule=schedule, task=task, fits=fits, options={"thoughts": True})


@final
class ChainOfThought(Construction[FunctionComposition]):
    """C4; see the head of this file."""

    name: ClassVar[str] = "C4"
    task = FunctionComposition
    mode = Mode.THOUGHTS
    about: ClassVar[str] = "one full layer looks up one hop for each token that the model generates"
    source: ClassVar[str] = "hopbound/constructions/chain.py"
    examples = (
        _example("composition[hops=2,m=2,n=2/]"),
        _example("composition[hops=3,m=2,n=2/1,values=2/2]"),
        _example("composition[hops=3,m=8,n=4/4]"),
        _example("composition[hops=8,m=7,n=2/1/2/1/2/1/2,values=5/7/6/5/7/6/5]"),
        _example("composition[hops=2,m=50000,n=2/,values=25000/]"),
        _example("composition[hops=3,m=8,n=4/4]", head_dim=11, fits=False),
        _example("composition[hops=3,m=8,n=4/4]", value_dim=6, fits=False),
    )

    def refusal(self, architecture: Architecture, task: FunctionComposition) -> str | None:
        """Too few digits in a head, or what is fatal."""
        if (fatal := self.fatal_refusal(architecture, task)) is not None:
            return fatal
        key = tag_count_bits(task) + start_bits(task) + query_bits(task)
        return Room(key=key, value=start_bits(task)).shortage(architecture, full_layers(architecture)[:1])

    def fatal_refusal(self, architecture: Architecture, task: FunctionComposition) -> str | None:
        """Another layout of the prompt, no full layer, or too many pairs for a token each."""
        if task.order != "hard" or task.query != "one":
            return f"order={task.order} query={task.query}, expected order=hard query=one"
        if not full_layers(architecture):
            return "no full layer, one is enough"
        if (answers := 2 ** _answer_bits(task)) > MOST_ANSWERS:
            return f"{answers} pairs of a value and a query, at most {MOST_ANSWERS} can be tokens"
        return None

    def write(self, architecture: Architecture, task: FunctionComposition, dtype: torch.dtype) -> Built:
        """The weights, in the first full layer; beyond the limits of size its look-up is cut."""
        layer = full_layers(architecture)[0]
        directions = _directions(task)
        jobs = _jobs(task, directions)
        answers = 2 ** _answer_bits(task)
        queue = DigitField(directions["queue"].start, 2 ** start_bits(task), answers, len(directions["queue"]))
        config = plain_config(
            architecture,
            task,
            directions,
            tokens=token_code(task, directions, (queue,)),
            positions=position_code(
                task, directions, lambda segment: _constants(task, directions, segment), _thoughts(task, directions)
            ),
            hidden={layer: sum(Gates.units(len(source)) for source, _, _ in jobs)},
        )
        thinking = replace(
            config,
            vocabulary=max(task.vocabulary_size, answers),
            answers=answers,
            readout=ReadoutCode(DigitField(directions["answer"].start, 1, answers, _answer_bits(task))),
            thoughts=task.hops,
        )
        decoder = Decoder.zeros(thinking)
        block = decoder.each_block()[layer]
        mixer = block.each_mixer()[full_mixer(architecture, layer)[0]]
        assert isinstance(mixer, SoftmaxAttention)
        token, part = directions["token"], directions.low("queue", len(directions["queue"]) and query_bits(task))
        look_up = LookUp(
            tag=directions["asked tag"],
            compared=[(token, directions["address value"]), (part, directions.low("address query", len(part)))],
            source=token,
            target=directions.low("answer", len(token)),
            in_sight=task.prompt_length + task.hops,
        )
        with torch.no_grad():
            write_cut(mixer, directions, look_up)
            gates = Gates(block.pointwise)
            for source, flag, target in jobs:
                gates.let_through(source, directions[flag].start, target)
        steps = [f"layer {layer + 1} token {t + 1} i_{t}" for t in range(task.hops + 1)]
        return finished(decoder, self.name, steps, directions, dtype)


def _answer_bits(task: FunctionComposition) -> int:
    """Digits of a pair (i; w')."""
    return start_bits(task) + (task.hops - 1) * query_bits(task)


def _directions(task: FunctionComposition) -> Directions:
    directions = Directions()
    add_addresses(directions, task)
    directions.add("asked tag", len(directions["tag"]))
    for flag in ("query", "first thought", "later thought"):
        directions.add(flag, 1)
    directions.add("queue", (task.hops - 1) * query_bits(task))
    directions.add("answer", _answer_bits(task))
    return directions


def _parts(task: FunctionComposition, span: range) -> list[range]:
    """The places of w'_1, w'_2, .. in a span."""
    bits = query_bits(task)
    return [span[index * bits : (index + 1) * bits] for index in range(task.hops - 1)]


def _jobs(task: FunctionComposition, directions: Directions) -> _Jobs:
    """What the map lets through to the answer's w': source, flag, target."""
    held, target = directions["queue"], directions["answer"][start_bits(task) :]
    asked = [directions[f"w_{part}"] for part in range(1, task.hops)]
    jobs: _Jobs = [(w, "query", place[: len(w)]) for w, place in zip(asked, _parts(task, target), strict=True)]
    shift = query_bits(task)
    jobs += [(held, "first thought", target), (held[shift:], "later thought", target[: max(len(target) - shift, 0)])]
    return [job for job in jobs if len(job[0])]


def _constants(task: FunctionComposition, directions: Directions, segment: Segment) -> Constants:
    if segment.name != "w":
        return {}
    bits = query_bits(task)
    padding = [-float(place >= len(directions[f"w_{part}"])) for part in range(1, task.hops) for place in range(bits)]
    return {
        "asked tag": signs(0, len(directions["tag"])),
        "query": [1.0],
        "answer": [0.0] * start_bits(task) + padding,
    }


def _thoughts(task: FunctionComposition, directions: Directions) -> list[SegmentCode]:
    """The positions of the tokens that the model generates."""
    codes = []
    queue, bits = len(directions["queue"]), query_bits(task)
    for number in range(1, task.hops + 1):
        segment = Segment(f"thought {number}", -1, 0, 1)
        constants: dict[str, list[float]] = {
            "asked tag": [float(digit) for digit in signs(number, len(directions["tag"]))]
        }
        if number == 1:
            constants["first thought"] = [1.0]
        else:
            constants["later thought"] = [1.0]
            constants["answer"] = [0.0] * (start_bits(task) + queue - bits) + [-1.0] * bits
        codes.append(segment_code(task, directions, segment, constants))
    return codes
