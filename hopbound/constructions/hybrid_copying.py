r"""Selective copying by one recurrent and one windowed layer, which neither does alone.

*First layer*, a recurrence that adds up (`memory.py`): every symbol writes the number 1 under one and the same key, so
that every token reads how many symbols there were so far. *Map*: the count becomes binary digits. *Second layer*, a
window: the last token looks up, by the exact look-up (`lookup.py`), the symbol whose number is j.

*Counting.* Symbols have the key 2, noise exactly 0; nothing is forgotten, so the state is twice a whole number and
exact up to 2^24 in float32, the accumulator of every recurrence. RWKV-6 reads before it writes and so gives the number
of symbols before; the others give one more, which the map takes off.

*Digits of a count.* Digit b as a function f_b of the count c = 0 .. n, linear between whole numbers, is

    f_b(c) = f_b(0) + Σ_{k=0}^{n} (slope after k - slope before k) relu(c - k) ,

with slopes f_b(k+1) - f_b(k) ∈ {-2, 0, 2}, and 0 before 0 and after n. All digits share the n + 1 units. The terms are
even whole numbers that sum to about 2 n² at most in absolute value: for n ≤ 4000 every partial sum is one that float32
holds, and the digits are exactly ±1. At the last token, whose own number writes half a symbol more or less, they are
anything from -1 to 1, and the tag tells it from the text. Then one symbol in sight has the address (text, symbol, j);
the promise of the task says that it is in sight; and the margin is 2 - 4ε.

*Limits.* n ≤ 4000 tokens, float32 (bfloat16 holds counts to 128, and thresholds above 512 are no numbers of it); the
window reaches `recent` tokens back. *Beyond* (forced): a shorter window does not see the first recent symbols.

*Neither alone*: `parents.py`.
"""

from collections.abc import Sequence
from math import isqrt
from typing import ClassVar

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import MatrixState, WindowAttention
from hopbound.constructions.assembly import Place, finished, first_exceeded, map_of, pair_of_layers, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.hybrid_recall import window_refusal
from hopbound.constructions.lookup import LookUp, write_lookup
from hopbound.constructions.memory import Table, write_memory
from hopbound.decoder import Decoder, DigitField, PositionCode, SegmentCode, TokenCode
from hopbound.decoder.codes import bit_length, signs
from hopbound.moves import Code, Move, limits
from hopbound.tasks import SelectiveCopying, Task

COUNTS_ITSELF = {"gla": True, "mamba": True, "mamba2": True, "rwkv7": True, "rwkv6": False}
"""Recurrences that add up what is written, and whether a token's own write is in what it reads."""

MOST_TOKENS = 4000
STEP = 2  # what a symbol adds


class HybridCopying(Construction[SelectiveCopying]):
    """The count by a recurrence, the symbols by a window."""

    name: ClassVar[str] = "hybrid selective copying"
    task: ClassVar[type[Task]] = SelectiveCopying
    about: ClassVar[str] = "a recurrence counts the symbols, a window looks the j-th one up"
    source: ClassVar[str] = "hopbound/constructions/hybrid_copying.py; that hybrids can is arXiv 2603.08859's"
    examples: ClassVar[Sequence[Example]] = (
        Example(
            schedule="gla[heads=1,head_dim=1] window[w=4,heads=1,head_dim=8]",
            task="selective_copying[far=3,recent=3,symbols=3,noise=1]",
        ),
        Example(
            schedule="mamba2[heads=1,head_dim=1,state=1] window[w=65,heads=1,head_dim=16]",
            task="selective_copying[far=960,recent=64,symbols=16,noise=4]",
        ),
        Example(
            schedule="gla[heads=1,head_dim=1] window[w=8,heads=1,head_dim=8]",
            task="selective_copying[far=20,recent=8,symbols=4,noise=2]",
            fits=False,
        ),
    )

    def refusal(self, architecture: Architecture, task: SelectiveCopying) -> str | None:
        """Layers that are missing, a window that is too short, or a prompt that is too long."""
        found = self._layers(architecture, task, task.recent + 1)
        return found if isinstance(found, str) else None

    def fatal_refusal(self, architecture: Architecture, task: SelectiveCopying) -> str | None:
        """Forced weights do with any window."""
        found = self._layers(architecture, task, 1)
        return found if isinstance(found, str) else None

    def write(self, architecture: Architecture, task: SelectiveCopying, dtype: torch.dtype) -> Built:
        """A counter, a map that turns counts into digits, a look-up."""
        found = self._layers(architecture, task, task.recent + 1)
        if isinstance(found, str):
            found = self._layers(architecture, task, 1)
        assert not isinstance(found, str)
        (first, counting), (second, asking) = found
        directions = _directions(task)
        number, answer = directions["number"], directions["raw answer"]
        config = plain_config(
            architecture,
            task,
            directions,
            tokens=TokenCode(tuple(_token_fields(task, directions))),
            positions=_positions(task, directions),
            answer=answer,
            hidden={first: task.tokens + 1},
        )
        decoder = Decoder.zeros(config)
        counter = architecture.layers[first].mixers[counting]
        window = architecture.layers[second].mixers[asking]
        assert isinstance(window, WindowAttention)
        blocks = decoder.each_block()
        with torch.no_grad():
            table = Table(
                keys=directions["symbol"],
                queries=directions["one"],
                ages=[1],
                source=directions["one"],
                target=directions["count"],
            )
            write_memory(blocks[first].each_mixer()[counting], directions, table)
            write_digits_of_count(
                *map_of(decoder, first),
                count=directions["count"][0],
                target=number,
                most=task.tokens,
                first=1 if COUNTS_ITSELF[counter.name] else 0,
            )
            look_up = LookUp(
                tag=0,
                compared=[(directions["asked"], number), (directions["one"], directions["is symbol"])],
                source=directions["value"],
                target=answer,
                in_sight=min(window.w, task.prompt_length),
            )
            write_lookup(blocks[second].each_mixer()[asking], directions, look_up)
        steps = f"layer {first + 1} counts symbols", f"layer {second + 1} looks the asked one up"
        return finished(decoder, self.name, steps, directions, dtype)

    @staticmethod
    def _layers(architecture: Architecture, task: SelectiveCopying, window: int) -> tuple[Place, Place] | str:
        """The counter, and a window of so many tokens after it; or why not."""
        if task.tokens > MOST_TOKENS:
            return f"{task.tokens} tokens; counts are exact up to {MOST_TOKENS}"
        address, value = 2 + bit_length(task.tokens), bit_length(task.symbols)
        return pair_of_layers(
            architecture,
            counter_refusal,
            lambda spec: window_refusal(spec, tokens=window, address=address, value=value),
        )


def counter_refusal(spec: MixerSpec) -> str | None:
    """Why a recurrence does not count exactly; None if it does."""
    if spec.name not in COUNTS_ITSELF:
        return f"{spec.name} does not add up what is written; {', '.join(sorted(COUNTS_ITSELF))} do"
    if spec.name == "gla" and isinstance(spec, MatrixState):
        root = isqrt(spec.head_dim)
        if root * root != spec.head_dim or root & (root - 1):
            return "gla's query makes up for 1/√d_k exactly where d_k is 1, 4, 16, 64, .."
    return first_exceeded(limits(spec, Move.CARRY), {Code.VALUE: 1})


def write_digits_of_count(
    rise: torch.Tensor,
    rise_bias: torch.Tensor,
    fall: torch.Tensor,
    fall_bias: torch.Tensor,
    *,
    count: int,
    target: range,
    most: int,
    first: int,
) -> None:
    """Let the first `most` + 1 units of a ReLU map write the digits of c - `first` (0 where c is less).

    Args:
        rise: weights into the units.
        rise_bias: their biases.
        fall: weights out of them.
        fall_bias: added at every position.
        count: the column that holds `STEP` times c.
        target: where the digits go.
        most: the largest c.
        first: what is taken off.
    """
    digits = torch.tensor([signs(max(c - first, 0), len(target)) for c in range(most + 1)], dtype=rise.dtype)
    fall_bias[target.start : target.stop] = digits[0]
    flat = torch.zeros(1, len(target), dtype=rise.dtype)
    bends = digits.diff(dim=0).diff(dim=0, prepend=flat, append=flat)
    units = most + 1
    rise[:units, count] = 1.0
    rise_bias[:units] = -STEP * torch.arange(units, dtype=rise.dtype)
    fall[target.start : target.stop, :units] = bends.T / STEP


def _directions(task: SelectiveCopying) -> Directions:
    directions = Directions()
    for name in ("one", "tag", "symbol", "is symbol", "count"):
        directions.add(name, 1)
    for name in ("asked", "number"):
        directions.add(name, bit_length(task.tokens))
    for name in ("value", "raw answer"):
        directions.add(name, bit_length(task.symbols))
    return directions


def _token_fields(task: SelectiveCopying, directions: Directions) -> list[DigitField]:
    """Which symbol a token is, whether it is one (twice), and the number that the last one asks for."""
    asked, value = directions["asked"], directions["value"]
    return [
        DigitField(directions["symbol"].start, task.symbols, 2, 1),
        DigitField(directions["is symbol"].start, task.symbols, 2, 1),
        DigitField(value.start, 1, task.symbols, len(value)),
        DigitField(asked.start, 1, 2 ** len(asked), len(asked)),
    ]


def _positions(task: SelectiveCopying, directions: Directions) -> PositionCode:
    """The constant 1 makes 2 and exactly 0 of the digit that tells symbols from noise; the last token is tagged."""
    (one,), (tag,), (symbol,) = directions["one"], directions["tag"], directions["symbol"]
    text = SegmentCode("text", task.tokens, (), ((one, 1.0), (tag, -1.0), (symbol, 1.0)))
    return PositionCode((text, SegmentCode("query", 1, (), ((one, 1.0), (tag, 1.0)))))
