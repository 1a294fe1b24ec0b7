"""What is asked: tasks (prompts and their right answers) and the things that can be asked."""

from hopbound.tasks.answerer import Answerer, FunctionAnswerer, accuracy
from hopbound.tasks.composition import ADVERSARIAL_FAMILIES, FunctionComposition, HopPath, Parts, Segment
from hopbound.tasks.copying import COPYING_FAMILIES, Copying
from hopbound.tasks.dyck import Dyck
from hopbound.tasks.dyck_next import DyckNext
from hopbound.tasks.group_words import GroupWords
from hopbound.tasks.k_hop import KHop
from hopbound.tasks.masked_recall import MASKED_FAMILIES, MaskedRecall
from hopbound.tasks.match3 import Match3
from hopbound.tasks.min_ip import MinInnerProduct
from hopbound.tasks.modular_counting import ModularCounting
from hopbound.tasks.mqar import MultiQueryRecall
from hopbound.tasks.parity import Parity
from hopbound.tasks.parity_retrieval import ParityRetrieval
from hopbound.tasks.permutation_words import PermutationWords
from hopbound.tasks.recall import RECALL_FAMILIES, Recall
from hopbound.tasks.registry import SEQUENCE_TASKS, TASKS, sequence_task_from_json, task_from_json
from hopbound.tasks.selective_copying import SELECTIVE_FAMILIES, SelectiveCopying
from hopbound.tasks.sequence import NOT_ASKED, LabelFunction, Labelled, SequenceTask
from hopbound.tasks.sparse_averaging import SparseAveraging
from hopbound.tasks.state_recall import StateRecall
from hopbound.tasks.task import AnswerFunction, Batch, Task
from hopbound.tasks.text import format_task, parse_sequence_task, parse_task
from hopbound.tasks.two_sum import TWO_SUM_FAMILIES, TwoSum

__all__ = [
    "ADVERSARIAL_FAMILIES",
    "COPYING_FAMILIES",
    "MASKED_FAMILIES",
    "NOT_ASKED",
    "RECALL_FAMILIES",
    "SELECTIVE_FAMILIES",
    "SEQUENCE_TASKS",
    "TASKS",
    "TWO_SUM_FAMILIES",
    "AnswerFunction",
    "Answerer",
    "Batch",
    "Copying",
    "Dyck",
    "DyckNext",
    "FunctionAnswerer",
    "FunctionComposition",
    "GroupWords",
    "HopPath",
    "KHop",
    "LabelFunction",
    "Labelled",
    "MaskedRecall",
    "Match3",
    "MinInnerProduct",
    "ModularCounting",
    "MultiQueryRecall",
    "Parity",
    "ParityRetrieval",
    "Parts",
    "PermutationWords",
    "Recall",
    "Segment",
    "SelectiveCopying",
    "SequenceTask",
    "SparseAveraging",
    "StateRecall",
    "Task",
    "TwoSum",
    "accuracy",
    "format_task",
    "parse_sequence_task",
    "parse_task",
    "sequence_task_from_json",
    "task_from_json",
]
