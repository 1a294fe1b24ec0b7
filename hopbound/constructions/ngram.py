r"""Copying by n-gram look-up: two layers, as long as no n symbols in a row occur twice in the text.

*First layer* (`gather.py`): every token learns the n tokens before it, by n heads of full attention (or n taps of a
convolution); the map after the layer restores ±1. *Second layer* (`lookup.py`): the last token looks up the place
before which stand the last n tokens of the prompt, itself among them, and returns the symbol there. So a model copies
in arXiv 2402.01032; there the n-grams are hashed, here they are compared whole, digit by digit.

*Why it is exact.* The tag says which places can be asked: those of the text that have n symbols before them. The last n
tokens of the prompt are symbols `done - n` .. `done - 1` of the text (n ≤ done), and no other place of the text has the
same n before it, so the address (tag, n-gram) is that of place `done`; every other one differs in a digit. The
compared digits are exactly ±1 after the map, and the margin is 2 - 4ε (`lookup.py`).

*Limits.* n ⌈log₂(D + 1)⌉ + 1 digits within the key dimension, n heads or taps, n ≤ done, and texts whose n-grams are
unique: `unique` = n. *Beyond* (forced): fewer tokens are compared where fewer fit, and a text with a repeat of just
that length has two places with one address; with fewer than n symbols copied the separator is among the last n tokens,
and no place has it before it; in any text n-grams repeat.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.constructions.assembly import Place, finished, look_up_refusal, map_of, pair_of_layers, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.gather import gather_room, write_gather
from hopbound.constructions.lookup import LookUp, write_clean, write_lookup
from hopbound.decoder import Decoder, DigitField, PositionCode, SegmentCode, TokenCode
from hopbound.decoder.codes import bit_length
from hopbound.tasks import Copying, Task

FORCED_GRAM = 4  # compared where n-grams of no length are unique


class NGramCopying(Construction[Copying]):
    """The next symbol of a copy, by what was copied last."""

    name: ClassVar[str] = "n-gram copying"
    task: ClassVar[type[Task]] = Copying
    about: ClassVar[str] = "every token learns the n tokens before it, then the last one looks the last n tokens up"
    source: ClassVar[str] = "hopbound/constructions/ngram.py; n-gram look-up as in arXiv 2402.01032"
    examples: ClassVar[Sequence[Example]] = (
        Example(schedule="2*full[heads=2,head_dim=8]", task="copying[length=6,symbols=3,done=3,unique=2]"),
        Example(schedule="2*full[heads=3,head_dim=12]", task="copying[length=40,symbols=7,done=12,unique=3]"),
        Example(
            schedule="conv[channels=30,kernel=7] full[heads=1,head_dim=31]",
            task="copying[length=131072,symbols=16,done=70000,unique=6]",
        ),
        Example(
            schedule="full[heads=2,head_dim=8] full[heads=1,head_dim=12]",
            task="copying[length=24,symbols=7,done=12,unique=3]",
            fits=False,
        ),
        Example(
            schedule="conv[channels=9,kernel=4] full[heads=1,head_dim=9]",
            task="copying[length=24,symbols=7,done=12,unique=3]",
            fits=False,
        ),
        Example(
            schedule="conv[channels=9,kernel=4] full[heads=1,head_dim=12]",
            task="copying[length=24,symbols=7,done=2,unique=3]",
            fits=False,
        ),
        Example(
            schedule="conv[channels=12,kernel=5] full[heads=1,head_dim=16]",
            task="copying[length=24,symbols=7,done=12]",
            fits=False,
        ),
    )

    def refusal(self, architecture: Architecture, task: Copying) -> str | None:
        """Texts in which n-grams repeat, a copy that is too short, layers that are missing or too small."""
        if not task.unique:
            return "where n-grams may repeat, what was copied last does not say what comes next: unique=n"
        if task.done < task.unique:
            return f"of {task.unique} symbols that are looked up {task.done} are copied"
        found = self._layers(architecture, task, task.unique)
        return found if isinstance(found, str) else None

    def fatal_refusal(self, architecture: Architecture, task: Copying) -> str | None:
        """Forced weights compare as many tokens as there is room for, one at least."""
        found = self._layers(architecture, task, 1)
        return found if isinstance(found, str) else None

    def write(self, architecture: Architecture, task: Copying, dtype: torch.dtype) -> Built:
        """A gather, a map that restores its digits, a look-up."""
        fitting = (
            (gram, layers)
            for gram in range(task.unique or FORCED_GRAM, 0, -1)
            if not isinstance(layers := self._layers(architecture, task, gram), str)
        )
        gram, ((first, gathering), (second, asking)) = next(fitting)
        directions = _directions(task, gram)
        token, raw, clean, answer = (directions[name] for name in ("token", "raw before", "before", "raw answer"))
        bits = len(token)
        config = plain_config(
            architecture,
            task,
            directions,
            tokens=TokenCode((DigitField(token.start, 1, 2**bits, bits),)),
            positions=_positions(task, directions, gram),
            answer=answer,
            hidden={first: 2 * len(raw)},
        )
        decoder = Decoder.zeros(config)
        blocks = decoder.each_block()
        with torch.no_grad():
            write_gather(
                blocks[first].each_mixer()[gathering],
                directions,
                source=token,
                targets=[_part(raw, place, bits) for place in range(gram)],
                positions=directions["position"],
                before=[directions[_name(back)] for back in range(1, gram + 1)],
                in_sight=task.prompt_length,
            )
            write_clean(*map_of(decoder, first), raw, clean)
            own = [token, *(_part(clean, place, bits) for place in range(gram - 1))]
            look_up = LookUp(
                tag=1,
                compared=[(asked, _part(clean, place, bits)) for place, asked in enumerate(own)],
                source=directions.low("token", bit_length(task.symbols)),
                target=answer,
                in_sight=task.prompt_length,
            )
            write_lookup(blocks[second].each_mixer()[asking], directions, look_up)
        steps = f"layer {first + 1} gathers {gram}-grams", f"layer {second + 1} looks the last one up"
        return finished(decoder, self.name, steps, directions, dtype)

    @staticmethod
    def _layers(architecture: Architecture, task: Copying, gram: int) -> tuple[Place, Place] | str:
        """The layers that gather and look up where so many tokens are compared, or why there are none."""
        bits = bit_length(task.vocabulary_size)

        def gathers(spec: MixerSpec) -> str | None:
            room = gather_room(spec, bits, bit_length(task.prompt_length))
            if isinstance(room, str):
                return room
            return None if room >= gram else f"{spec.name} brings {room} of the {gram} tokens before"

        def looks_up(spec: MixerSpec) -> str | None:
            value = bit_length(task.symbols)
            return look_up_refusal(spec, address=1 + gram * bits, value=value, distance=task.prompt_length - 1)

        return pair_of_layers(architecture, gathers, looks_up)


def _part(columns: range, place: int, bits: int) -> range:
    """The digits of one token among those of several."""
    return columns[place * bits : (place + 1) * bits]


def _name(back: int) -> str:
    return f"position {back} before"


def _directions(task: Copying, gram: int) -> Directions:
    directions = Directions()
    directions.add("one", 1)
    directions.add("tag", 1)
    directions.add("position", bit_length(task.prompt_length))
    for back in range(1, gram + 1):
        directions.add(_name(back), bit_length(task.prompt_length))
    bits = bit_length(task.vocabulary_size)
    directions.add("token", bits)
    directions.add("raw before", gram * bits)
    directions.add("before", gram * bits)
    directions.add("raw answer", bit_length(task.symbols))
    return directions


def _positions(task: Copying, directions: Directions, gram: int) -> PositionCode:
    """Each position knows its own number and those before it; only places with `gram` symbols before them are tagged.

    Before the first token stands nothing: numbers below 0 come round and are no position's, or what is found there is
    at a place that is not tagged.
    """
    (one,), (tag,) = directions["one"], directions["tag"]

    def segment(name: str, start: int, length: int, tagged: bool) -> SegmentCode:
        fields = []
        for back, columns in enumerate([directions["position"], *(directions[_name(b + 1)] for b in range(gram))]):
            fields.append(DigitField(columns.start, 1, 2 ** len(columns), len(columns), offset=start - back))
        return SegmentCode(name, length, tuple(fields), ((one, 1.0), (tag, 1.0 if tagged else -1.0)))

    segments = (
        segment("first symbols", 0, gram, tagged=False),
        segment("text", gram, task.length - gram, tagged=True),
        segment("separator and copy", task.length, task.done + 1, tagged=False),
    )
    return PositionCode(tuple(part for part in segments if part.length))
