"""Associative recall: prompts, right answers, all of them, adversarial families."""

import doctest
import hashlib

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import RECALL_FAMILIES, FunctionAnswerer, Recall, accuracy, parse_task, recall
from hopbound.tasks.sizes import distinct

SIZES = [Recall(1, 1, 2), Recall(2, 3, 3), Recall(3, 3, 2), Recall(2, 4, 2)]
every_size = pytest.mark.parametrize("task", SIZES, ids=lambda task: task.identity)


def by_dictionary(prompt: list[int]) -> int:
    """The definition: a dictionary from keys to values."""
    *pairs, asked = prompt
    bound = dict(zip(pairs[0::2], pairs[1::2], strict=True))
    assert len(bound) == len(pairs) // 2
    return bound[asked]


def test_worked_example_of_the_docstring() -> None:
    result = doctest.testmod(recall)
    assert result.attempted > 0
    assert result.failed == 0


@every_size
def test_all_instances_are_all_prompts(task: Recall) -> None:
    batch = task.enumerate(0, task.instances)
    rows = {tuple(row) for row in batch.prompts.tolist()}
    assert len(rows) == task.instances
    grid = np.indices((task.vocabulary_size,) * task.prompt_length).reshape(task.prompt_length, -1).T
    assert rows == {tuple(row) for row in grid[task.valid(grid)].tolist()}
    assert batch.answers.tolist() == [by_dictionary(row) for row in batch.prompts.tolist()]
    assert task.log2_instances == pytest.approx(np.log2(task.instances))


@pytest.mark.parametrize("task", [*SIZES, Recall(17, 40, 9)], ids=lambda task: task.identity)
def test_the_oracle_is_the_definition(task: Recall) -> None:
    for batch in (task.sample(0, "test", 0, 200), task.adversarial(0, 0, 200)):
        assert task.oracle(batch.prompts).tolist() == [by_dictionary(row) for row in batch.prompts.tolist()]
        assert batch.answers.tolist() == task.oracle(batch.prompts).tolist()
        assert task.valid(batch.prompts).all()


def test_bytes_do_not_depend_on_batches() -> None:
    task = Recall(5, 9, 7)
    for draw in (lambda i, k: task.sample(3, "train", i, k), lambda i, k: task.adversarial(3, i, k)):
        whole = draw(1000, 60).prompts
        parts = [draw(start, 1).prompts for start in range(1000, 1060)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_golden_bytes() -> None:
    task = Recall(6, 20, 11)
    made = task.sample(1, "train", 0, 50).prompts.tobytes() + task.adversarial(1, 0, 50).prompts.tobytes()
    assert hashlib.sha256(made).hexdigest()[:16] == "4f27812df033190a"


def test_the_families_are_what_they_say() -> None:
    task = Recall(12, 64, 50)
    batch = task.adversarial(0, 0, 10 * len(RECALL_FAMILIES))
    for number, (prompt, answer) in enumerate(zip(batch.prompts, batch.answers, strict=True)):
        keys, values, asked = prompt[0:-1:2], prompt[1:-1:2], prompt[-1]
        match task.adversarial_family(number):
            case "permutation":
                assert len(set(values.tolist())) == task.pairs
            case "first pair":
                assert asked == keys[0]
            case "last pair":
                assert asked == keys[-1]
            case "near keys":
                near = [(int(asked) ^ 1 << digit) for digit in range(6)]
                assert set(near) <= set(keys.tolist())
                assert (values == answer).sum() == 1
            case "echo":
                assert (np.delete(values, np.flatnonzero(keys == asked)) == asked % task.values).all()


def test_baselines_miss() -> None:
    task = Recall(8, 16, 16)
    batch = task.sample(0, "test", 0, 2000)
    for name, function in task.baselines().items():
        assert accuracy(FunctionAnswerer(function), batch) < 0.3, name


def test_changes_change_one_token_and_the_answer() -> None:
    task = Recall(4, 8, 3)
    for pairs in task.changes(task.sample(0, "test", 0, 40), 0):
        assert ((pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1).all()
        assert (task.oracle(pairs[:, 0].copy()) != task.oracle(pairs[:, 1].copy())).all()


def test_distinct_numbers_one_to_one() -> None:
    choices = np.array([[a, b, c] for a in range(4) for b in range(3) for c in range(2)])
    drawn = distinct(choices, 4)
    assert len({tuple(row) for row in drawn.tolist()}) == 24
    assert all(len(set(row)) == 3 for row in drawn.tolist())


@pytest.mark.parametrize(
    "text", ["recall[pairs=3,keys=2,values=2]", "recall[pairs=0,keys=2,values=2]", "recall[pairs=2,keys=2,values=1]"]
)
def test_infeasible_sizes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="a whole number from"):
        parse_task(text)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([0, 0, 0, 0, 0], "bound twice"),
        ([0, 0, 1, 0, 2], "not there"),
        ([0, 5, 1, 0, 1], "values: got"),
        ([9, 0, 1, 0, 1], "keys: got"),
        ([0, 0, 1], "shape"),
    ],
)
def test_what_is_no_prompt_is_refused(prompt: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Recall(2, 3, 3).oracle(np.array([prompt]))


def test_places_and_smaller_tasks() -> None:
    task = Recall(3, 8, 4)
    assert [task.place(i) for i in (0, 1, 4, 6)] == [("key", 0), ("value", 0), ("key", 2), ("query", 0)]
    assert [one.prompt_length for one in task.smaller()] == [3, 5]
    assert task.path(np.array([[4, 1, 0, 3, 2, 1, 0]])) == [[0, 1, 3]]
