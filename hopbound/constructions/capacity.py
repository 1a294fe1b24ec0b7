"""Beyond the capacity of a memory: what is read where more keys than dimensions have random keys, measured.

Up to d_k keys the associative memory (`associative.py`) has orthogonal keys and reads exactly. With d_k + j keys no
choice of keys is orthogonal, and what is read is a mixture; the sign of each digit may still be right. The weights here
are those of the memory with one difference: key and query of a symbol are a random vector instead of one axis. How many
answers are right is measured, and says nothing of other weights; `recall` in `hopbound ceilings` says what no weights
exceed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from hopbound.architecture import Architecture
from hopbound.constructions.associative import AssociativeMemory, capacity
from hopbound.constructions.directions import Directions
from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.mixers.linear import LinearAttention
from hopbound.mixers.recurrence import Recurrence
from hopbound.tasks import Recall


@dataclass(frozen=True)
class Beyond:
    """Accuracy of a memory that holds `pairs` pairs.

    Attributes:
        pairs: how many, and as many keys.
        orthogonal: accuracy with keys along the axes, which beyond the capacity share them.
        random: accuracy with random keys.
    """

    pairs: int
    orthogonal: float
    random: float


def curve_beyond(
    architecture: Architecture, extra: Iterable[int], *, values: int = 16, instances: int = 500, seed: int = 0
) -> tuple[Beyond, ...]:
    """Accuracy at d_k + j pairs for each j in `extra` (which may be below 0).

    Args:
        architecture: a gather and a linear attention or delta rule without convolution, in two layers.
        extra: the j.
        values: different values.
        instances: random ones for each j, every one with the same keys.
        seed: of keys and instances.

    Raises:
        InputError: the stack is another.
    """
    holder = architecture.layers[-1].mixers[0]
    room = capacity(holder)
    if room is None or len(architecture.layers) != 2 or holder.name not in ("linear", "delta", "gdn"):
        raise InputError("schedule", architecture.label, "a gather, then linear, delta or gdn")
    measured = []
    for pairs in (room + j for j in extra):
        task = Recall(pairs, pairs, values)
        batch = task.sample(seed, "beyond", 0, instances)
        built = AssociativeMemory().write(architecture, task, torch.float32)
        orthogonal = float(np.mean(built.decoder.answer(batch.prompts) == batch.answers))
        randomise_keys(built.decoder, built.directions, seed)
        random = float(np.mean(built.decoder.answer(batch.prompts) == batch.answers))
        measured.append(Beyond(pairs, orthogonal, random))
    return tuple(measured)


def randomise_keys(decoder: Decoder, directions: Directions, seed: int) -> None:
    """Give each symbol a random vector as key and query in the last layer of a built associative memory.

    For the delta rule normal entries, which the layer makes a unit vector; for linear attention, whose features are
    positive, features that are 0 or a positive number by a coin.

    Args:
        decoder: of `AssociativeMemory` in two layers.
        directions: its coordinates.
        seed: of the vectors.
    """
    memory = decoder.each_block()[-1].each_mixer()[0]
    assert isinstance(memory, Recurrence)
    keys, wanted = directions["key"], directions["wanted key"]
    dim, heads = memory.spec.head_dim, memory.spec.key_heads
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(dim, len(keys), generator=generator)
    if isinstance(memory, LinearAttention):
        # From exactly no feature (elu(-64) + 1 = 0) to 65, or not at all; one feature is there for every symbol.
        drawn = 128.0 * ((drawn > 0) | (torch.arange(dim)[:, None] == torch.arange(len(keys)) % dim))
    for head in range(heads):
        rows = slice(head * dim, (head + 1) * dim)
        memory.key.weight[rows, keys.start : keys.stop] = drawn
        memory.query.weight[rows, wanted.start : wanted.stop] = drawn
