"""What every registered task keeps to, and the pieces of the abstract task."""

import json

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import (
    TASKS,
    Batch,
    Copying,
    Dyck,
    FunctionAnswerer,
    FunctionComposition,
    MaskedRecall,
    MinInnerProduct,
    Parity,
    ParityRetrieval,
    PermutationWords,
    Recall,
    SelectiveCopying,
    StateRecall,
    Task,
    TwoSum,
    accuracy,
    task_from_json,
)
from hopbound.tasks.task import instance_digits

EXAMPLES: list[Task] = [
    FunctionComposition(1, 3),
    FunctionComposition(2, 2, (2,)),
    FunctionComposition(2, 3, (2,), values=(2,), order="easy"),
    FunctionComposition(3, 2, (1, 2), values=(3, 2), query="many"),
    FunctionComposition(2, 2, (2,), distribution="permutations"),
    FunctionComposition(2, 2, (2,), distribution="sparse"),
    Copying(4, 3, 2),
    Copying(5, 3, 3, unique=2),
    Recall(2, 3, 3),
    MaskedRecall(2, 1, 2, gap=1),
    SelectiveCopying(2, 2, 3, noise=2),
    TwoSum(5, 4),
    Parity(5),
    PermutationWords(3, 4),
    Dyck(2, 3, 7),
    StateRecall(3, 2, 4),
    MinInnerProduct(2, 3),
    ParityRetrieval(2, 5),
]

every_task = pytest.mark.parametrize("task", EXAMPLES, ids=lambda task: task.identity)


def test_every_registered_task_has_an_example() -> None:
    assert {type(task) for task in EXAMPLES} == set(TASKS.values())
    assert all(kind.name == name for name, kind in TASKS.items())


@every_task
def test_json_round_trip(task: Task) -> None:
    read = task_from_json(json.loads(json.dumps(task.to_json())))
    assert read == task
    assert read.identity == task.identity
    assert type(task).from_json(task.to_json()) == task


def test_identities_differ() -> None:
    assert len({task.identity for task in EXAMPLES}) == len(EXAMPLES)


@every_task
def test_json_keys_are_strict(task: Task) -> None:
    whole = task.to_json()
    with pytest.raises(InputError, match="task keys: got"):
        type(task).from_json(whole | {"color": "red"})
    for key in whole.keys() - {"distribution"}:  # without it, composition is uniform
        with pytest.raises(InputError, match=r"task keys: got|task: got None"):
            task_from_json({other: value for other, value in whole.items() if other != key})


@pytest.mark.parametrize("name", ["juggling", 3, None, ["composition"]])
def test_unknown_names_are_refused(name: object) -> None:
    with pytest.raises(InputError, match=r"task: got .*, expected one of composition"):
        task_from_json({"task": name})


@every_task
def test_samples_are_prompts_with_the_oracle_s_answers(task: Task) -> None:
    batch = task.sample(0, "train", 1020, 10)
    assert batch.prompts.shape == (10, task.prompt_length)
    assert batch.prompts.min() >= 0
    assert batch.prompts.max() < task.vocabulary_size
    assert batch.answers.max() < task.answers
    np.testing.assert_array_equal(batch.answers, task.oracle(batch.prompts))
    assert len(task.sample(0, "train", 0, 0)) == 0


@every_task
def test_the_oracle_solves_and_the_baselines_answer(task: Task) -> None:
    batch = task.sample(0, "train", 0, 500)
    assert accuracy(FunctionAnswerer(task.oracle), batch) == 1.0
    for name, function in task.baselines().items():
        answers = function(batch.prompts)
        assert answers.shape == (500,), name
        assert answers.dtype == np.int64, name
        assert answers.min() >= 0, name
        assert answers.max() < task.answers, name


@every_task
def test_enumeration_goes_to_the_last_instance_and_no_further(task: Task) -> None:
    last = task.instances - 1
    assert len(task.enumerate(last, 1)) == 1
    assert len(task.enumerate(task.instances, 0)) == 0
    with pytest.raises(InputError, match=rf"start \+ count: got {last + 2}, expected at most the {last + 1} instances"):
        task.enumerate(last, 2)


def test_digits_have_the_last_column_fastest() -> None:
    digits = instance_digits(0, 12, np.array([2, 3, 2]), 12)
    assert digits.tolist() == [[a, b, c] for a in range(2) for b in range(3) for c in range(2)]


def test_numbers_beyond_63_bits_are_refused() -> None:
    big = FunctionComposition(1, 100)
    assert big.instances == 100**101
    assert len(big.enumerate(2**63 - 3, 2)) == 2
    with pytest.raises(InputError, match="expected at most 9223372036854775807"):
        big.enumerate(2**63 - 3, 3)
    with pytest.raises(InputError, match="expected at most 9223372036854775807"):
        big.enumerate(10**30, 1)
    with pytest.raises(InputError, match="start: got -1"):
        big.enumerate(-1, 1)


def test_batches_hold_int64_of_fitting_shapes() -> None:
    prompts, answers = np.zeros((3, 4), dtype=np.int64), np.zeros(3, dtype=np.int64)
    assert len(Batch(prompts, answers)) == 3
    for wrong in (prompts[0], prompts.astype(np.int32)):
        with pytest.raises(InputError, match="prompts: got"):
            Batch(wrong, answers)  # pyright: ignore[reportArgumentType]
    for wrong in (answers[:2], answers.astype(np.float64)):
        with pytest.raises(InputError, match="answers: got"):
            Batch(prompts, wrong)  # pyright: ignore[reportArgumentType]


def test_accuracy_counts_right_answers() -> None:
    batch = Batch(np.zeros((4, 1), dtype=np.int64), np.array([0, 1, 0, 2]))
    assert accuracy(FunctionAnswerer(lambda prompts: np.zeros(len(prompts), dtype=np.int64)), batch) == 0.5
    with pytest.raises(InputError, match=r"answers given: got \(1,\), expected shape \(4,\)"):
        accuracy(FunctionAnswerer(lambda prompts: prompts[0]), batch)
    empty = Batch(np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.int64))
    with pytest.raises(InputError, match="batch: got 'no examples'"):
        accuracy(FunctionAnswerer(lambda prompts: prompts[:, 0]), empty)
