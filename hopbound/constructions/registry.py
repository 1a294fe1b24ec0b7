"""The constructions by the kind of task that they are for; function composition has a planner of its own."""

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.associative import AssociativeMemory
from hopbound.constructions.chain import ChainOfThought
from hopbound.constructions.composition import build_composition
from hopbound.constructions.composition_examples import EXAMPLES as COMPOSITION
from hopbound.constructions.construction import Built, Construction, Example, Mode
from hopbound.constructions.doubling import Doubling
from hopbound.constructions.dyck import BracketStack
from hopbound.constructions.encoder import Encoder
from hopbound.constructions.hybrid_copying import HybridCopying
from hopbound.constructions.hybrid_recall import HybridRecall
from hopbound.constructions.induction import Induction
from hopbound.constructions.ngram import NGramCopying
from hopbound.constructions.parity import ParityByReflection
from hopbound.constructions.permutation_words import WordsByReflections
from hopbound.constructions.rotation import ShiftsByRotation
from hopbound.constructions.tracked_lookup import ParityLookUp, TrackedLookUp
from hopbound.constructions.two_sum import TwoSumByOneLayer
from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition, Task

CONSTRUCTIONS: tuple[Construction, ...] = (
    Induction(),
    AssociativeMemory(),
    NGramCopying(),
    HybridRecall(),
    HybridCopying(),
    TwoSumByOneLayer(),
    ParityByReflection(),
    WordsByReflections(),
    ChainOfThought(),
    Encoder(),
    Doubling(),
    ShiftsByRotation(),
    BracketStack(),
    TrackedLookUp(),
    ParityLookUp(),
)


# Where the planner's constructions are proved, if not beside the others.
_PROVED = {"U2": "hopbound/constructions/rows.py", "U3": "hopbound/constructions/branching.py"}

# What each construction is shown on, those of the planner first: name, theorem, example.
EXAMPLES: tuple[tuple[str, str, Example], ...] = (
    *((name, _PROVED.get(name, "docs/theory.md"), one) for name, examples in COMPOSITION.items() for one in examples),
    *((each.name, each.source, one) for each in CONSTRUCTIONS for one in each.examples),
)


def constructions_for(task: Task, mode: Mode = Mode.PLAIN) -> tuple[Construction, ...]:
    """The constructions for tasks of this kind, run in this way, in the order in which they are tried."""
    return tuple(one for one in CONSTRUCTIONS if isinstance(task, one.task) and one.mode is mode)


def write_weights(
    architecture: Architecture,
    task: Task,
    *,
    dtype: torch.dtype = torch.float32,
    overfill: bool = False,
    mode: Mode = Mode.PLAIN,
) -> Built:
    """Weights with which `architecture` answers `task`, by the first construction that fits.

    Args:
        architecture: the stack.
        task: what is to be answered.
        dtype: of the weights.
        overfill: go beyond a construction's limits of size (it will fail: for demonstrations).
        mode: how the stack is run.

    Raises:
        InputError: none fits; one line that says why, and what would.
    """
    known = constructions_for(task, mode)
    for one in known:
        if one.refusal(architecture, task) is None:
            return one.write(architecture, task, dtype)
    if overfill:
        for one in known:
            if one.fatal_refusal(architecture, task) is None:
                return one.write(architecture, task, dtype)
    if isinstance(task, FunctionComposition) and mode is Mode.PLAIN and task.order == "hard":
        return build_composition(architecture, task, dtype=dtype, overfill=overfill)
    if not known:
        how = "" if mode is Mode.PLAIN else f" ({mode.value})"
        raise InputError("task", task.name, f"a task that a construction is for: none is for this one{how}")
    reasons = "; ".join(f"{one.name}: {one.refusal(architecture, task)}" for one in known)
    raise InputError("schedule", architecture.label, f"a stack for {task.name} ({reasons})")
