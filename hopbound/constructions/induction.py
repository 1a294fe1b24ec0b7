r"""The induction pair: recall of any number of pairs by two layers, the second of which sees all of them.

*First layer* (`gather.py`): every token learns the digits of the token before it, so a value learns its key; the map
after the layer restores ±1. *Second layer* (`lookup.py`): the last token looks up its own digits among what the values
have learned, and returns the value's digits. This is the induction head of arXiv 2209.11895, with weights.

*Why it is exact.* The position code says which tokens are values (the tag, +1 there and -1 elsewhere); keys are
distinct, so that the address (value, key) is that of one token, and the others differ from it in a digit at least: in
the tag, or in one of the key's ⌈log₂ K⌉ digits. Then the returned digits are off by at most 2ε (`lookup.py`), and the
margin is 2 - 4ε at least, however many pairs there are; the stack's only limits are the digits that are compared, 1 +
⌈log₂ K⌉, within the key dimension and those of a key and a value within the value channels.

*Beyond.* With fewer digits than a key has (forced), keys that agree in the digits kept share an address, and the answer
is a mean of two values.
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
from hopbound.tasks import Recall, Task


def key_bits(task: Recall) -> int:
    """Digits of a key."""
    return max(1, bit_length(task.keys))


def pair_directions(task: Recall, compared: int) -> Directions:
    """Coordinates that both recalls have: tokens, positions, and the first `compared` digits of the token before."""
    directions = Directions()
    directions.add("one", 1)
    directions.add("tag", 1)
    directions.add("position", bit_length(task.prompt_length))
    directions.add("position before", bit_length(task.prompt_length))
    directions.add("token", max(key_bits(task), bit_length(task.values)))
    directions.add("raw key", compared)
    directions.add("raw answer", bit_length(task.values))
    return directions


def pair_positions(task: Recall, directions: Directions) -> PositionCode:
    """A value is tagged +1; where a key stands before it, "position before" says."""
    (one,), (tag,) = directions["one"], directions["tag"]
    own, before = directions["position"], directions["position before"]
    pairs = SegmentCode(
        "pairs",
        2 * task.pairs,
        (
            DigitField(tag, 1, 2, 1),
            DigitField(own.start, 1, 2 ** len(own), len(own)),
            DigitField(before.start + 1, 2, 2 ** len(own), len(own) - 1),
        ),
        ((one, 1.0), (before.start, -1.0)),
    )
    return PositionCode((pairs, SegmentCode("query", 1, (), ((one, 1.0), (tag, -1.0)))))


def token_field(directions: Directions) -> DigitField:
    """All digits of a token."""
    token = directions["token"]
    return DigitField(token.start, 1, 2 ** len(token), len(token))


def gather_refusal(spec: MixerSpec, task: Recall, digits: int) -> str | None:
    """Why a mixer cannot let each value learn so many digits of its key."""
    room = gather_room(spec, digits, bit_length(task.prompt_length))
    return room if isinstance(room, str) else None


class Induction(Construction[Recall]):
    """Recall by the induction pair."""

    name: ClassVar[str] = "induction pair"
    task: ClassVar[type[Task]] = Recall
    about: ClassVar[str] = "every value learns its key, then the last token looks its own key up"
    source: ClassVar[str] = "hopbound/constructions/induction.py; the circuit is arXiv 2209.11895's"
    examples: ClassVar[Sequence[Example]] = (
        Example(schedule="2*full[heads=1,head_dim=8]", task="recall[pairs=2,keys=3,values=3]"),
        Example(
            schedule="conv[channels=16,kernel=2] full[heads=1,head_dim=24]",
            task="recall[pairs=65536,keys=65536,values=256]",
        ),
        Example(
            schedule="conv[channels=4,kernel=2] full[heads=1,head_dim=4]",
            task="recall[pairs=8,keys=16,values=16]",
            fits=False,
        ),
        Example(
            schedule="conv[channels=3,kernel=2] full[heads=1,head_dim=8]",
            task="recall[pairs=8,keys=16,values=16]",
            fits=False,
        ),
    )

    def refusal(self, architecture: Architecture, task: Recall) -> str | None:
        """Layers that are missing, or too narrow for all digits of a key."""
        found = self._layers(architecture, task, key_bits(task))
        return found if isinstance(found, str) else None

    def fatal_refusal(self, architecture: Architecture, task: Recall) -> str | None:
        """Forced weights compare as many digits as there is room for, one at least."""
        found = self._layers(architecture, task, 1)
        return found if isinstance(found, str) else None

    def write(self, architecture: Architecture, task: Recall, dtype: torch.dtype) -> Built:
        """A gather, a map that restores its digits, a look-up."""
        fitting = (
            (digits, layers)
            for digits in range(key_bits(task), 0, -1)
            if not isinstance(layers := self._layers(architecture, task, digits), str)
        )
        digits, ((first, gathering), (second, asking)) = next(fitting)
        directions = pair_directions(task, digits)
        directions.add("key", digits)
        raw, clean, answer = directions["raw key"], directions["key"], directions["raw answer"]
        config = plain_config(
            architecture,
            task,
            directions,
            tokens=TokenCode((token_field(directions),)),
            positions=pair_positions(task, directions),
            answer=answer,
            hidden={first: 2 * digits},
        )
        decoder = Decoder.zeros(config)
        blocks, asked = decoder.each_block(), directions.low("token", digits)
        with torch.no_grad():
            write_gather(
                blocks[first].each_mixer()[gathering],
                directions,
                source=asked,
                targets=[raw],
                positions=directions["position"],
                before=[directions["position before"]],
                in_sight=task.prompt_length,
            )
            write_clean(*map_of(decoder, first), raw, clean)
            look_up = LookUp(
                tag=1,
                compared=[(asked, clean)],
                source=directions.low("token", bit_length(task.values)),
                target=answer,
                in_sight=task.prompt_length,
            )
            write_lookup(blocks[second].each_mixer()[asking], directions, look_up)
        steps = f"layer {first + 1} gathers keys", f"layer {second + 1} looks the key up"
        return finished(decoder, self.name, steps, directions, dtype)

    @staticmethod
    def _layers(architecture: Architecture, task: Recall, digits: int) -> tuple[Place, Place] | str:
        """The layers that gather and look up where so many digits of a key are compared, or why there are none."""
        return pair_of_layers(
            architecture,
            lambda spec: gather_refusal(spec, task, digits),
            lambda spec: look_up_refusal(
                spec, address=1 + digits, value=bit_length(task.values), distance=task.prompt_length - 1
            ),
        )
