r"""C6: one layer of full attention decides 2-Sum exactly (arXiv 2602.01763, Section 2, names the task).

*Codes.* A token x holds the B = ⌈log₂ M⌉ digits of x and those of its partner -x mod M, both as ±1, both by rule (the
second is a negated field of `decoder/codes.py`): no layer has to subtract.

*The layer.* Keys and values are the digits of x, the query of the last token β times the digits c of its partner: the
exact look-up of `lookup.py`, by content instead of by position. A token whose number differs from the partner in h
digits has the score β (B - 2h). The last token sees itself, so that it may pair with itself.

*Telling "no match".* No default token is needed: the map after the layer compares what came back with what was asked
for. Let r = Σ_j w_j v_j be the returned digits, w the weights of the softmax. As all |r_k| ≤ 1 and c_k = ±1,

    S = Σ_k |r_k - c_k| = Σ_k (1 - r_k c_k) = Σ_j w_j 2 h_j

is twice the mean number of digits that differ. Two ReLUs a digit make |r_k - c_k|, and y = 1 - S is read: the logits
are -y for "no" and y for "yes".

- No partner in sight: every h_j ≥ 1, so S ≥ 2 and y ≤ -1, whatever the weights are. β does not matter.
- A partner in sight: one with h = 0 has the largest score, and any other weight is at most e^{-2βh}. So
  S ≤ 2 n max_h h e^{-2βh} = 2 n e^{-2β} ≤ 2ε if 2β ≥ ln n + ln(1/ε), and y ≥ 1 - 2ε with ε = 2^-10.

The smallest margin is 2 |y|: 2 in exact arithmetic where one digit differs, and at least 2 - 2^-8.

*Precision.* All weights are small whole numbers, which bfloat16 holds; scores are sums of ±β and, in float32, exact. In
bfloat16 the returned digits are off by 2^-9 at most, and a sum S ≤ 2 B of at most 2^7 is off by 2^-8 of itself: far
from the 1 where the answers part.

*Limits.* B digits must fit into the key dimension of a head and into the value channels. Of the mixers that do not see
everything, windows, chunks and block attention (MoBA) will do for prompts that they see whole. Beyond, the bound
`bounds/sparse_two_sum.py` says from which length on no weights at all will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.constructions.assembly import finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.lookup import LookUp, write_lookup
from hopbound.decoder import (
    Decoder,
    DecoderConfig,
    DigitField,
    PositionCode,
    SegmentCode,
    TokenCode,
    bit_length,
)
from hopbound.decoder.model import PointwiseMap
from hopbound.moves import Code, Limit, Move, limits
from hopbound.tasks import Task, TwoSum

_SIZES = {Code.ADDRESS: 1, Code.VALUE: 1, Code.ADDRESS_AND_VALUE: 2}  # how many codes of B digits share the size


@dataclass(frozen=True)
class _Place:
    """A mixer that could be used, and why it cannot; where nothing but sizes is in the way, it can be forced."""

    layer: int
    mixer: int
    obstacle: str | None
    only_sizes: bool


class TwoSumByOneLayer(Construction[TwoSum]):
    """C6 (see the module's text)."""

    name: ClassVar[str] = "C6"
    task: ClassVar[type[Task]] = TwoSum
    about: ClassVar[str] = "one layer looks the last token's partner up by content; the map compares what came back"
    source: ClassVar[str] = "docs/constructions/two_sum.md"
    examples: ClassVar[Sequence[Example]] = (
        Example(schedule="full[heads=1,head_dim=3]", task="two_sum[n=5,modulus=8]"),
        Example(schedule="full[heads=1,head_dim=3]", task="two_sum[n=6,modulus=5]"),
        Example(schedule="full[heads=4,kv_heads=2,head_dim=7,value_dim=4,gate=1]", task="two_sum[n=64,modulus=100]"),
        Example(schedule="mla[heads=2,latent=12,rope_dim=4,value_dim=6]", task="two_sum[n=40,modulus=50]"),
        Example(schedule="topk[heads=1,head_dim=7,k=3,index_heads=1,index_dim=7]", task="two_sum[n=64,modulus=100]"),
        Example(schedule="window[heads=1,head_dim=7,w=64]", task="two_sum[n=64,modulus=100]"),
        Example(schedule="moba[heads=1,head_dim=7,k=4,block=16]", task="two_sum[n=64,modulus=100]"),
        Example(schedule="full[heads=1,head_dim=20]", task="two_sum[n=4096,modulus=1000000]"),
        Example(schedule="full[heads=1,head_dim=20]", task="two_sum[n=200000,modulus=1000000]"),
        # One step beyond each limit: a digit that keys, or values, do not hold; a token that is not seen.
        Example(schedule="full[heads=1,head_dim=2,value_dim=3]", task="two_sum[n=5,modulus=8]", fits=False),
        Example(schedule="full[heads=1,head_dim=3,value_dim=2]", task="two_sum[n=5,modulus=8]", fits=False),
        Example(schedule="full[heads=1,head_dim=3]", task="two_sum[n=5,modulus=9]", fits=False),
        Example(schedule="window[heads=1,head_dim=7,w=63]", task="two_sum[n=64,modulus=100]", fits=False),
        Example(schedule="chunk[heads=1,head_dim=7,w=64]", task="two_sum[n=65,modulus=100]", fits=False),
        Example(schedule="moba[heads=1,head_dim=7,k=4,block=16]", task="two_sum[n=65,modulus=100]", fits=False),
    )

    def refusal(self, architecture: Architecture, task: TwoSum) -> str | None:
        """Why no mixer of the stack does."""
        places = _places(architecture, task)
        if any(place.obstacle is None for place in places):
            return None
        return _told(places)

    def fatal_refusal(self, architecture: Architecture, task: TwoSum) -> str | None:
        """Why none can be forced either: there is no softmax over tokens that stand for themselves."""
        places = _places(architecture, task)
        return None if any(place.only_sizes for place in places) else _told(places)

    def write(self, architecture: Architecture, task: TwoSum, dtype: torch.dtype) -> Built:
        """The weights, in the first layer that fits; forced, with as many digits as there is room for."""
        places = _places(architecture, task)
        place = min(places, key=lambda one: (one.obstacle is not None, not one.only_sizes, one.layer, one.mixer))
        spec = architecture.layers[place.layer].mixers[place.mixer]
        bits, asked, held = bit_length(task.modulus), *_room(spec, bit_length(task.modulus))
        directions = Directions()
        for name, size in (("one", 1), ("tag", 0), ("number", bits), ("partner", bits), ("returned", held), ("yes", 1)):
            directions.add(name, size)
        decoder = Decoder.zeros(_config(architecture, task, directions, place.layer, units=2 * held))
        block = decoder.each_block()[place.layer]
        look_up = LookUp(
            tag=0,
            compared=[(directions.low("partner", asked), directions.low("number", asked))],
            source=directions.low("number", held),
            target=directions["returned"],
            in_sight=task.n,
        )
        assert block.pointwise is not None
        with torch.no_grad():
            write_lookup(block.each_mixer()[place.mixer], directions, look_up)
            _write_comparison(block.pointwise, directions, held)
        return finished(
            decoder, self.name, (f"layer {place.layer + 1} look up the partner, compare",), directions, dtype
        )


def _config(
    architecture: Architecture, task: TwoSum, directions: Directions, layer: int, *, units: int
) -> DecoderConfig:
    """Codes of the number and of its partner; a map after the layer that looks up."""
    bits = bit_length(task.modulus)
    number, partner = (directions[name].start for name in ("number", "partner"))
    fields = (
        DigitField(number, 1, task.modulus, bits),
        DigitField(partner, 1, task.modulus, bits, negated=True),
    )
    everywhere = SegmentCode("x", task.n, (), ((directions["one"].start, 1.0),))
    return plain_config(
        architecture,
        task,
        directions,
        tokens=TokenCode(fields),
        positions=PositionCode((everywhere,)),
        answer=directions["yes"],
        hidden={layer: units},
    )


def _write_comparison(pointwise: PointwiseMap, directions: Directions, held: int) -> None:
    """yes = 1 - Σ_k |r_k - c_k|, by two ReLUs a digit."""
    (yes,) = directions["yes"]
    pointwise.fall.bias[yes] = 1.0
    for digit, (returned, wanted) in enumerate(
        zip(directions["returned"], directions.low("partner", held), strict=True)
    ):
        for unit, sign in ((2 * digit, 1.0), (2 * digit + 1, -1.0)):
            pointwise.rise.weight[unit, returned] = sign
            pointwise.rise.weight[unit, wanted] = -sign
            pointwise.fall.weight[yes, unit] = -1.0


# -- which mixer -------------------------------------------------------------------------------------------------------


def _places(architecture: Architecture, task: TwoSum) -> list[_Place]:
    """Every mixer of the stack, in order."""
    return [
        _Place(layer, number, *_obstacle(spec, task))
        for layer, one in enumerate(architecture.layers)
        for number, spec in enumerate(one.mixers)
    ]


def _obstacle(spec: MixerSpec, task: TwoSum) -> tuple[str | None, bool]:
    """Why a mixer cannot look partners up, and whether it is for nothing but sizes."""
    bits, seen = bit_length(task.modulus), _sees(spec)
    found = limits(spec, Move.LOOK_UP) if seen is None else _by_heads(spec)
    if isinstance(found, str):
        return found, False
    too_small = [limit for limit in found if _SIZES[limit.code] * bits > limit.most]
    if too_small:
        needed = _SIZES[too_small[0].code] * bits
        return too_small[0].exceeded(needed), all(limit.code is not Code.ADDRESS_AND_VALUE for limit in too_small)
    if seen is not None and task.n > seen:
        return f"{spec.name} sees {seen:,} tokens at most, the prompt has {task.n:,}", True
    return None, True


def _sees(spec: Any) -> int | None:
    """How many of the last tokens of a prompt a softmax sees whatever they are, itself included; None: no such limit.

    A chunk, and a query's k blocks, begin with the prompt: what is longer has tokens that are not seen.
    """
    match spec.name:
        case "window" | "chunk" | "block":
            return spec.w
        case "moba":
            return spec.k * spec.block
        case _:
            return None


def _by_heads(spec: Any) -> tuple[Limit, ...]:
    """As of full attention's look-up: keys of a head, values of all."""
    values = Limit(Code.VALUE, spec.kv_heads * spec.value_dim, "value channels")
    return Limit(Code.ADDRESS, spec.head_dim, "head_dim"), values


def _room(spec: MixerSpec, bits: int) -> tuple[int, int]:
    """How many of the digits can be asked for, and be returned."""
    found = limits(spec, Move.LOOK_UP) if _sees(spec) is None else _by_heads(spec)
    assert not isinstance(found, str)
    most = {limit.code: min(bits, limit.most) for limit in found}
    return most[Code.ADDRESS], most[Code.VALUE]


def _told(places: Sequence[_Place]) -> str:
    """Why no mixer does, in one clause, and what would."""
    reasons = list(dict.fromkeys(place.obstacle for place in places if place.obstacle is not None))
    why = "; ".join(reasons) or "it has no layers"
    return f"no layer looks partners up: {why}; full attention does if the digits of M fit into a head"
