r"""The associative memory: recall by a recurrence alone, at exactly the rank of its state.

*First layer* (`gather.py`): every value learns its key; the map after the layer turns the key into a one-hot vector
("key", at values alone) and the last token's own number into another ("wanted key", there alone). *Second layer*
(`memory.py`): values are written under their keys, the last token reads.

*Capacity.* d_k different keys, and so d_k pairs, where d_k is the key dimension (Mamba: the state dimension): one-hot
keys are orthogonal, so that each value is read as it was written, all d_k of them at once. This is the most there can
be: written and read linearly, values that may be anything need keys and queries with k_i · q_j = 0 for i ≠ j and 1 for
i = j, for every pair of keys that may meet in a prompt; that is the identity matrix of rank K, and vectors of dimension
d_k make none of a rank above d_k (`bounds/rank.py`). For the delta rule the same holds where keys are orthogonal;
keys that are only independent are written exactly by no single pass: a later write moves what an earlier one left.

*Beyond.* With one key more (forced), key a shares the coordinate of a mod d_k: sums mix the two values, the delta rule
keeps the later one. `capacity.py` measures what random keys do instead.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.constructions.assembly import Place, finished, first_exceeded, map_of, pair_of_layers, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.gather import write_gather
from hopbound.constructions.induction import (
    gather_refusal,
    key_bits,
    pair_directions,
    pair_positions,
    token_field,
)
from hopbound.constructions.memory import MEMORIES, Table, write_memory
from hopbound.constructions.recall import write_one_hot
from hopbound.decoder import Decoder, PositionCode, SegmentCode, TokenCode
from hopbound.decoder.codes import bit_length
from hopbound.moves import Code, Limits, Move, limits
from hopbound.tasks import Recall, Task

FADING = ("retnet", "lightning")


def memory_limits(spec: MixerSpec) -> Limits | str:
    """What a recurrence can hold, or why it holds no table here."""
    if spec.name in FADING:
        return f"{spec.name} forgets at a fixed rate, and how long ago a key came is not known"
    if spec.name not in MEMORIES:
        return f"{spec.name} holds no table"
    return limits(spec, Move.RECALL)


def capacity(spec: MixerSpec) -> int | None:
    """How many pairs, with any values, a recurrence holds under orthogonal keys; None if it holds no table."""
    found = memory_limits(spec)
    if isinstance(found, str):
        return None
    return min(limit.most for limit in found if limit.code is Code.ENTRIES)


class AssociativeMemory(Construction[Recall]):
    """Recall from a state that holds all pairs."""

    name: ClassVar[str] = "associative memory"
    task: ClassVar[type[Task]] = Recall
    about: ClassVar[str] = "every value learns its key and is written under it; the last token reads"
    source: ClassVar[str] = "hopbound/constructions/associative.py"
    examples: ClassVar[Sequence[Example]] = (
        Example(
            schedule="conv[channels=2,kernel=2] linear[heads=1,head_dim=3]", task="recall[pairs=2,keys=3,values=3]"
        ),
        Example(schedule="conv[channels=2,kernel=2] gdn[heads=1,head_dim=3]", task="recall[pairs=3,keys=3,values=3]"),
        Example(schedule="shift[channels=6] linear[heads=1,head_dim=64]", task="recall[pairs=64,keys=64,values=256]"),
        Example(schedule="shift[channels=6] delta[heads=1,head_dim=64]", task="recall[pairs=64,keys=64,values=256]"),
        Example(
            schedule="conv[channels=6,kernel=2] gdn[heads=2,head_dim=64]",
            task="recall[pairs=64,keys=64,values=4096]",
        ),
        *(
            Example(
                schedule=f"conv[channels=4,kernel=2] {name}[heads=1,head_dim=7]",
                task="recall[pairs=8,keys=8,values=16]",
                fits=False,
            )
            for name in ("linear", "delta", "gdn")
        ),
    )

    def refusal(self, architecture: Architecture, task: Recall) -> str | None:
        """Layers that are missing, or more keys than the state holds."""
        found = self._layers(architecture, task, task.keys)
        return found if isinstance(found, str) else None

    def fatal_refusal(self, architecture: Architecture, task: Recall) -> str | None:
        """Forced weights let keys share coordinates."""
        found = self._layers(architecture, task, 1)
        return found if isinstance(found, str) else None

    def write(self, architecture: Architecture, task: Recall, dtype: torch.dtype) -> Built:
        """A gather, a map that makes one-hot keys, a memory."""
        found = self._layers(architecture, task, task.keys)
        if isinstance(found, str):
            found = self._layers(architecture, task, 1)
        assert not isinstance(found, str)
        (first, gathering), (second, holding) = found
        digits = key_bits(task)
        directions = pair_directions(task, digits)
        (asking,) = directions.add("asks", 1)
        keys, wanted = directions.add("key", task.keys), directions.add("wanted key", task.keys)
        pairs, query = pair_positions(task, directions).segments
        positions = PositionCode(
            (
                SegmentCode(pairs.name, pairs.length, pairs.fields, (*pairs.constants, (asking, -1.0))),
                SegmentCode(query.name, query.length, query.fields, (*query.constants, (asking, 1.0))),
            )
        )
        config = plain_config(
            architecture,
            task,
            directions,
            tokens=TokenCode((token_field(directions),)),
            positions=positions,
            answer=directions["raw answer"],
            hidden={first: 2 * task.keys},
        )
        decoder = Decoder.zeros(config)
        blocks, own = decoder.each_block(), directions.low("token", digits)
        with torch.no_grad():
            write_gather(
                blocks[first].each_mixer()[gathering],
                directions,
                source=own,
                targets=[directions["raw key"]],
                positions=directions["position"],
                before=[directions["position before"]],
                in_sight=task.prompt_length,
            )
            rise, rise_bias, fall, _ = map_of(decoder, first)
            (tag,) = directions["tag"]
            for unit, source, flag, target in ((0, directions["raw key"], tag, keys), (task.keys, own, asking, wanted)):
                write_one_hot(
                    rise, rise_bias, fall, first_unit=unit, digits=source, required=[(flag, 1)], target=target
                )
            table = Table(
                keys=keys,
                queries=wanted,
                ages=[1] * task.keys,
                source=directions.low("token", bit_length(task.values)),
                target=directions["raw answer"],
            )
            write_memory(blocks[second].each_mixer()[holding], directions, table)
        room = capacity(architecture.layers[second].mixers[holding])
        steps = f"layer {first + 1} gathers keys", f"layer {second + 1} holds {room} of {task.keys} keys"
        return finished(decoder, self.name, steps, directions, dtype)

    @staticmethod
    def _layers(architecture: Architecture, task: Recall, keys: int) -> tuple[Place, Place] | str:
        """The layers that gather and hold, if no more than so many keys had to be held; or why there are none."""
        bits = bit_length(task.values)
        needed = {Code.VALUE: bits, Code.ENTRIES_AND_VALUE: 2 * task.keys + bits}

        def holds(spec: MixerSpec) -> str | None:
            found = memory_limits(spec)
            reason = first_exceeded(found, needed)
            room = capacity(spec)
            if reason is None and room is not None and keys > room:
                return f"there are {keys} keys, the state of {spec.name} holds {room}"
            return reason

        return pair_of_layers(architecture, lambda spec: gather_refusal(spec, task, key_bits(task)), holds)
