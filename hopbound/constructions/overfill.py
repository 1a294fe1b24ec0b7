"""What happens between the sizes that are built and those that are certified impossible: accuracy beyond the capacity.

A table that does not fit is written all the same (`overfill`): two entries share a key, or the digits of a slot. How
many answers stay right then is measured, and says nothing of other weights; from the certified size on no weights are
right on all inputs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopbound.architecture import Architecture
from hopbound.claims import Move
from hopbound.constructions.composition import build_composition
from hopbound.errors import InputError
from hopbound.frontier import Capacity, capacity
from hopbound.tasks import FunctionComposition

MEMORIES = {Move.RECALL: "an entry a row", Move.RECALL_PACKED: "packed"}


@dataclass(frozen=True)
class Measured:
    """Accuracy of a memory that is made to hold m entries.

    Attributes:
        m: entries of z_1.
        memory: which kind, a value of `MEMORIES`.
        fits: whether it has room for them.
        accuracy: fraction of the instances that are answered right.
        chance: accuracy of guessing.
    """

    m: int
    memory: str
    fits: bool
    accuracy: float
    chance: float


@dataclass(frozen=True)
class Overfill:
    """Accuracy against m at one state.

    Attributes:
        label: of the stack.
        hops: 1 or 2.
        capacity: what is built, and what is certified impossible.
        instances: random ones, for each m.
        seed: of the instances.
        measured: by memory, then by rising m.
    """

    label: str
    hops: int
    capacity: Capacity
    instances: int
    seed: int
    measured: tuple[Measured, ...]

    def document(self) -> dict[str, Any]:
        """As a JSON object, for `report.overfill`."""
        return {
            "schema": "hopbound/overfill/1",
            "label": self.label,
            "hops": self.hops,
            "built": self.capacity.built,
            "impossible": self.capacity.impossible,
            "instances": self.instances,
            "seed": self.seed,
            "measured": [vars(one) for one in self.measured],
        }


def measure_overfill(
    architecture: Architecture, hops: int, grid: Iterable[int], *, instances: int = 200, seed: int = 0
) -> Overfill:
    """Accuracy of the built memories at each m, within their capacity and forced beyond it.

    Up to the capacity of a packed memory the one with an entry a row is measured too.

    Args:
        architecture: a stack that makes the hops by a recall alone.
        hops: 1 or 2.
        grid: the m to measure; the capacity and one more are added.
        instances: random ones for each m.
        seed: of the instances.

    Raises:
        InputError: the stack has no capacity: its hops need no table, or cannot be made.
    """
    found = capacity(architecture, hops)
    if found is None:
        raise InputError("schedule", architecture.label, "a stack whose state holds z_1, and with a certified m")
    sizes = sorted({*grid, found.built, found.built + 1})
    measured = []
    for m in sizes:
        task = FunctionComposition(hops, m, (1,) * (hops - 1))
        batch = task.sample(seed, "overfill", 0, instances)
        for overfill in (False, True) if m <= found.built else (True,):
            built = build_composition(architecture, task, overfill=overfill)
            (recall,) = {step.move for step in built.plan.steps} & set(MEMORIES)
            right = float(np.mean(built.decoder.answer(batch.prompts) == batch.answers))
            one = Measured(m, MEMORIES[recall], not overfill, right, task.chance)
            if not any((other.m, other.memory) == (m, one.memory) for other in measured):
                measured.append(one)
    measured.sort(key=lambda one: (one.memory, one.m))
    return Overfill(architecture.label, hops, found, instances, seed, tuple(measured))
