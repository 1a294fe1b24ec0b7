"""The tasks by name."""

from collections.abc import Mapping

from hopbound.errors import InputError
from hopbound.tasks.composition import FunctionComposition
from hopbound.tasks.copying import Copying
from hopbound.tasks.dyck import Dyck
from hopbound.tasks.dyck_next import DyckNext
from hopbound.tasks.group_words import GroupWords
from hopbound.tasks.k_hop import KHop
from hopbound.tasks.masked_recall import MaskedRecall
from hopbound.tasks.match3 import Match3
from hopbound.tasks.min_ip import MinInnerProduct
from hopbound.tasks.modular_counting import ModularCounting
from hopbound.tasks.mqar import MultiQueryRecall
from hopbound.tasks.parity import Parity
from hopbound.tasks.parity_retrieval import ParityRetrieval
from hopbound.tasks.permutation_words import PermutationWords
from hopbound.tasks.recall import Recall
from hopbound.tasks.selective_copying import SelectiveCopying
from hopbound.tasks.sequence import SequenceTask
from hopbound.tasks.sparse_averaging import SparseAveraging
from hopbound.tasks.state_recall import StateRecall
from hopbound.tasks.task import Task
from hopbound.tasks.two_sum import TwoSum

TASKS: dict[str, type[Task]] = {
    FunctionComposition.name: FunctionComposition,
    Copying.name: Copying,
    MaskedRecall.name: MaskedRecall,
    Recall.name: Recall,
    SelectiveCopying.name: SelectiveCopying,
    TwoSum.name: TwoSum,
    Parity.name: Parity,
    PermutationWords.name: PermutationWords,
    Dyck.name: Dyck,
    ParityRetrieval.name: ParityRetrieval,
    StateRecall.name: StateRecall,
    MinInnerProduct.name: MinInnerProduct,
}

# With those that ask at several tokens of a sequence.
SEQUENCE_TASKS: dict[str, type[SequenceTask]] = {
    **TASKS,
    MultiQueryRecall.name: MultiQueryRecall,
    ModularCounting.name: ModularCounting,
    GroupWords.name: GroupWords,
    DyckNext.name: DyckNext,
    Match3.name: Match3,
    SparseAveraging.name: SparseAveraging,
    KHop.name: KHop,
}


def sequence_task_from_json(value: Mapping[str, object]) -> SequenceTask:
    """The task of any kind that `to_json` wrote, told by its name under `task`.

    Raises:
        InputError: the name is missing or unknown, or the rest does not fit the task of that name.
    """
    name = value.get("task") if isinstance(value, Mapping) else value
    if not isinstance(name, str) or name not in SEQUENCE_TASKS:
        raise InputError("task", name, f"one of {', '.join(sorted(SEQUENCE_TASKS))}")
    return SEQUENCE_TASKS[name].from_json(value)


def task_from_json(value: Mapping[str, object]) -> Task:
    """The same, for tasks with one answer alone.

    Raises:
        InputError: the name is missing or unknown, or the rest does not fit the task of that name.
    """
    name = value.get("task") if isinstance(value, Mapping) else value
    if not isinstance(name, str) or name not in TASKS:
        raise InputError("task", name, f"one of {', '.join(sorted(TASKS))}")
    return TASKS[name].from_json(value)
