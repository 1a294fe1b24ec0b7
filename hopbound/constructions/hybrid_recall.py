r"""Masked recall by one recurrent and one windowed layer, which neither does alone.

*First layer*, a delta rule (`memory.py`) with two key coordinates. The first token writes the mask under the first one;
every key token overwrites what stands under the second one with its own digits. The last token reads the first, all
tokens of the pairs the second: a value so learns the key right before it, the last token the mask, far as it may be.
*Map*: the digits of the values' keys are restored; at the last token the digits of q XOR h are |x - y| - 1 = relu(x -
y) + relu(y - x) - 1 for digits x of h and y of q. *Second layer*, a window over the pairs: the exact look-up
(`lookup.py`) of that key among the values.

*Why it is exact.* Keys are unit vectors along the axes and the strength is 1: a write replaces what stood under its
coordinate by the token's digits, exactly, and leaves the other one as it is; tokens of the gap have the key 0 and write
nothing. So the compared digits are exactly ±1, one address matches, and the margin is 2 - 4ε (`lookup.py`).

*Limits.* Two key coordinates, `bits` value channels, a window that reaches the first value, 2 P - 1 tokens back.
*Beyond* (forced): with one coordinate the keys overwrite the mask; a shorter window does not see the first pairs.

*Neither alone*: `parents.py`.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import MatrixState, WindowAttention
from hopbound.constructions.assembly import Place, finished, first_exceeded, map_of, pair_of_layers, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.lookup import LookUp, write_clean, write_lookup
from hopbound.constructions.memory import Table, write_memory
from hopbound.constructions.reflections import DELTA_RULES, is_delta_rule
from hopbound.decoder import Decoder, DigitField, PositionCode, SegmentCode, TokenCode
from hopbound.decoder.codes import bit_length
from hopbound.moves import Code, Move, limits
from hopbound.tasks import MaskedRecall, Task

COORDINATES = 2  # one for the mask, one for the key that came last


class HybridRecall(Construction[MaskedRecall]):
    """The mask by a recurrence, the pairs by a window."""

    name: ClassVar[str] = "hybrid recall"
    task: ClassVar[type[Task]] = MaskedRecall
    about: ClassVar[str] = "a delta rule brings the far mask and each value's key, a window looks the masked key up"
    source: ClassVar[str] = "hopbound/constructions/hybrid_recall.py; that hybrids can is arXiv 2603.08859's"
    examples: ClassVar[Sequence[Example]] = (
        Example(
            schedule="delta[heads=1,head_dim=2] window[w=4,heads=1,head_dim=3]",
            task="masked_recall[pairs=2,bits=2,values=3,gap=1]",
        ),
        Example(
            schedule="gdn[heads=1,head_dim=2,value_dim=7] window[w=128,heads=1,head_dim=16]",
            task="masked_recall[pairs=64,bits=7,values=65536,gap=200]",
        ),
        Example(
            schedule="delta[heads=1,head_dim=2,value_dim=7] window[w=128,heads=1,head_dim=16]",
            task="masked_recall[pairs=64,bits=7,values=65536,gap=1000000]",
        ),
        Example(
            schedule="delta[heads=1,head_dim=1,value_dim=4] window[w=16,heads=1,head_dim=8]",
            task="masked_recall[pairs=8,bits=4,values=16,gap=5]",
            fits=False,
        ),
        Example(
            schedule="delta[heads=1,head_dim=2,value_dim=4] window[w=15,heads=1,head_dim=8]",
            task="masked_recall[pairs=8,bits=4,values=16,gap=5]",
            fits=False,
        ),
    )

    def refusal(self, architecture: Architecture, task: MaskedRecall) -> str | None:
        """Layers that are missing or too small."""
        found = self._layers(architecture, task, COORDINATES, 2 * task.pairs)
        return found if isinstance(found, str) else None

    def fatal_refusal(self, architecture: Architecture, task: MaskedRecall) -> str | None:
        """Forced weights do with one key coordinate and any window."""
        found = self._layers(architecture, task, 1, 1)
        return found if isinstance(found, str) else None

    def write(self, architecture: Architecture, task: MaskedRecall, dtype: torch.dtype) -> Built:
        """A memory of two entries, a map that applies the mask, a look-up."""
        found = self._layers(architecture, task, COORDINATES, 2 * task.pairs)
        if isinstance(found, str):
            found = self._layers(architecture, task, 1, 1)
        assert not isinstance(found, str)
        (first, holding), (second, asking) = found
        directions = _directions(task)
        raw, key, wanted = directions["raw"], directions["key"], directions["wanted key"]
        answer, own = directions["raw answer"], directions.low("token", task.bits)
        token = directions["token"]
        config = plain_config(
            architecture,
            task,
            directions,
            tokens=TokenCode((DigitField(token.start, 1, 2 ** len(token), len(token)),)),
            positions=_positions(task, directions),
            answer=answer,
            hidden={first: 4 * task.bits},
        )
        decoder = Decoder.zeros(config)
        blocks = decoder.each_block()
        window = architecture.layers[second].mixers[asking]
        assert isinstance(window, WindowAttention)
        with torch.no_grad():
            table = Table(
                keys=directions["writes"], queries=directions["reads"], ages=[1] * COORDINATES, source=own, target=raw
            )
            memory = blocks[first].each_mixer()[holding]
            write_memory(memory, directions, table)
            # In the pairs the digit ±1 of odd places and a constant 1 add up to 2 at keys and exactly 0 at values.
            keys = memory.get_parameter("key.weight")
            keys[:, directions["reads"][1]] = keys[:, directions["writes"][1]]
            rise, rise_bias, fall, fall_bias = map_of(decoder, first)
            write_clean(rise, rise_bias, fall, fall_bias, raw, key)
            write_exclusive_or(rise, fall, fall_bias, first_unit=2 * task.bits, pairs=(raw, own), target=wanted)
            look_up = LookUp(
                tag=0,
                compared=[(wanted, key)],
                source=directions.low("token", bit_length(task.values)),
                target=answer,
                in_sight=min(window.w, task.prompt_length),
            )
            write_lookup(blocks[second].each_mixer()[asking], directions, look_up)
        steps = f"layer {first + 1} brings mask and keys", f"layer {second + 1} looks the masked key up"
        return finished(decoder, self.name, steps, directions, dtype)

    @staticmethod
    def _layers(architecture: Architecture, task: MaskedRecall, room: int, window: int) -> tuple[Place, Place] | str:
        """The recurrence with so many key coordinates, and a window of so many tokens after it; or why not."""

        def holds(spec: MixerSpec) -> str | None:
            if not isinstance(spec, MatrixState) or not is_delta_rule(spec):
                return f"{spec.name} does not overwrite: {', '.join(DELTA_RULES)} do"
            if spec.head_dim < room:
                return f"{spec.name} needs {room} key coordinates"
            return first_exceeded(limits(spec, Move.CARRY), {Code.VALUE: task.bits})

        def sees(spec: MixerSpec) -> str | None:
            return window_refusal(spec, tokens=window, address=1 + task.bits, value=bit_length(task.values))

        return pair_of_layers(architecture, holds, sees)


def window_refusal(spec: MixerSpec, *, tokens: int, address: int, value: int) -> str | None:
    """Why a mixer is no window of so many tokens for a look-up of so many digits; None if it is one."""
    if not isinstance(spec, WindowAttention) or spec.name != "window":
        return f"{spec.name} is no window"
    if spec.w < tokens:
        return f"a window of {spec.w} tokens, {tokens} are needed"
    if address > spec.head_dim:
        return f"{address} digits are compared, head_dim is {spec.head_dim}"
    channels = spec.kv_heads * spec.value_dim
    return f"{value} digits are returned, the window has {channels} channels" if value > channels else None


def write_exclusive_or(
    rise: torch.Tensor,
    fall: torch.Tensor,
    fall_bias: torch.Tensor,
    *,
    first_unit: int,
    pairs: tuple[range, range],
    target: range,
) -> None:
    """Let units of a ReLU map, two a digit, write the digits of x XOR y: |x - y| - 1 for digits ±1.

    Args:
        rise: weights into the units.
        fall: weights out of them.
        fall_bias: added at every position.
        first_unit: the units are this one and those after it.
        pairs: columns of the digits of x and of y.
        target: where the result goes.
    """
    for index, (x, y, out) in enumerate(zip(*pairs, target, strict=True)):
        for unit, sign in ((first_unit + 2 * index, 1.0), (first_unit + 2 * index + 1, -1.0)):
            rise[unit, x], rise[unit, y] = sign, -sign
            fall[out, unit] = 1.0
        fall_bias[out] = -1.0


def _directions(task: MaskedRecall) -> Directions:
    directions = Directions()
    directions.add("one", 1)
    directions.add("tag", 1)
    directions.add("writes", COORDINATES)
    directions.add("reads", COORDINATES)
    directions.add("token", max(task.bits, bit_length(task.values)))
    for name in ("raw", "key", "wanted key"):
        directions.add(name, task.bits)
    directions.add("raw answer", bit_length(task.values))
    return directions


def _positions(task: MaskedRecall, directions: Directions) -> PositionCode:
    """Values are tagged -1; the mask and the keys write, the last token and the pairs read.

    From the first value on, odd places hold keys.
    """
    (one,), (tag,) = directions["one"], directions["tag"]
    (mask_writes, key_writes), (asks_mask, asks_key) = directions["writes"], directions["reads"]
    other = ((one, 1.0), (tag, 1.0))
    rest = SegmentCode(
        "pairs",
        2 * task.pairs - 1,
        (DigitField(tag, 1, 2, 1), DigitField(key_writes, 1, 2, 1)),
        ((one, 1.0), (asks_key, 1.0)),
    )
    segments = (
        SegmentCode("mask", 1, (), (*other, (mask_writes, 1.0))),
        SegmentCode("gap", task.gap, (), other),
        SegmentCode("first key", 1, (), (*other, (key_writes, 2.0))),
        rest,
        SegmentCode("query", 1, (), (*other, (asks_mask, 1.0))),
    )
    return PositionCode(tuple(segment for segment in segments if segment.length))
