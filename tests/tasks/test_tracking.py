"""Brackets, state-based recall and parity-conditioned retrieval, against plain Python."""

import doctest
import hashlib
import itertools
import math

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import Dyck, ParityRetrieval, StateRecall, Task, dyck, parity_retrieval, parse_task, state_recall

SMALL: list[Task] = [
    Dyck(1, 1, 5),
    Dyck(2, 3, 6),
    Dyck(3, 2, 1),
    Dyck(2, 10, 5),
    StateRecall(2, 2, 2),
    StateRecall(2, 3, 2),
    StateRecall(3, 2, 3),
    ParityRetrieval(1, 4, 3),
    ParityRetrieval(2, 5),
]
every_task = pytest.mark.parametrize("task", SMALL, ids=lambda task: task.identity)


def plain_answer(task: Task, prompt: list[int]) -> int | None:
    """The definitions, token by token; None for what is no prompt."""
    if isinstance(task, Dyck):
        stack: list[int] = []
        for token in prompt:
            if token < task.kinds:
                stack.append(token)
                if len(stack) > task.depth:
                    return None
            elif not stack or stack.pop() != token - task.kinds:
                return None
        return stack[-1] if stack else task.kinds
    tokens = iter(prompt)
    if isinstance(task, ParityRetrieval):
        even = [next(tokens) for _ in range(task.cells)]
        odd = [next(tokens) for _ in range(task.cells)]
        ones = sum(next(tokens) == task.values + 1 for _ in range(task.length))
        return (odd if ones % 2 else even)[next(tokens) - task.values - 2]
    assert isinstance(task, StateRecall)
    memory = [next(tokens) for _ in range(task.cells)]
    holds = [next(tokens) - task.values for _ in range(task.pointers)]
    pairs = [None, *itertools.combinations(range(task.pointers), 2)]
    for _ in range(task.swaps):
        pair = pairs[next(tokens) - task.values - task.cells]
        if pair is not None:
            holds[pair[0]], holds[pair[1]] = holds[pair[1]], holds[pair[0]]
    return memory[holds[next(tokens) - task.values - task.cells - len(pairs)]]


@pytest.mark.parametrize("module", [dyck, state_recall, parity_retrieval])
def test_worked_examples(module: object) -> None:
    result = doctest.testmod(module)  # pyright: ignore[reportArgumentType]
    assert result.attempted > 0
    assert result.failed == 0


@every_task
def test_all_instances_against_plain_python(task: Task) -> None:
    batch = task.enumerate(0, task.instances)
    assert len({tuple(row) for row in batch.prompts.tolist()}) == task.instances
    assert math.isclose(task.log2_instances, math.log2(task.instances))
    assert batch.answers.tolist() == [plain_answer(task, row) for row in batch.prompts.tolist()]
    assert bool(task.valid(batch.prompts).all())


@pytest.mark.parametrize("task", [one for one in SMALL if isinstance(one, Dyck)], ids=lambda task: task.identity)
def test_every_prefix_is_enumerated(task: Dyck) -> None:
    every = [list(row) for row in itertools.product(range(2 * task.kinds), repeat=task.length)]
    right = [row for row in every if plain_answer(task, row) is not None]
    assert task.enumerate(0, task.instances).prompts.tolist() == right
    assert task.valid(np.array(every)).tolist() == [plain_answer(task, row) is not None for row in every]


@every_task
def test_batches_do_not_matter(task: Task) -> None:
    for draw in (lambda start, count: task.sample(5, "train", start, count), lambda s, c: task.adversarial(5, s, c)):
        whole = draw(0, 41)
        parts = [draw(start, min(7, 41 - start)) for start in range(0, 41, 7)]
        np.testing.assert_array_equal(np.concatenate([part.prompts for part in parts]), whole.prompts)
        assert whole.answers.tolist() == [plain_answer(task, row) for row in whole.prompts.tolist()]


def test_golden_samples() -> None:
    found = {}
    for text in (
        "dyck[kinds=3,depth=4,length=20]",
        "state_recall[cells=5,pointers=3,swaps=9,values=4]",
        "parity_retrieval[cells=5,length=9,values=4]",
    ):
        task = parse_task(text)
        made = task.sample(1, "golden", 0, 50).prompts, task.adversarial(1, 0, 50).prompts
        found[task.name] = hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in made)).hexdigest()[:16]
    assert found == {
        "dyck": "64904b63da012e9a",
        "state_recall": "292fc208420e31da",
        "parity_retrieval": "80c6e79cdfd0cfac",
    }


@every_task
def test_pairs_of_examples(task: Task) -> None:
    """Families named `.. apart` differ in one token; those that differ in what is read, in the answer."""
    assert isinstance(task, Dyck | StateRecall | ParityRetrieval)
    batch = task.adversarial(0, 0, 64)
    for number in range(1, 64, 2):
        family, differ = task.adversarial_family(number), batch.prompts[number] != batch.prompts[number - 1]
        open_none = isinstance(task, Dyck) and (task.kinds == 1 or batch.answers[number] == task.kinds)
        if family.endswith(" apart") and family != "memories apart" and not open_none:
            assert int(differ.sum()) == 1
            if family in ("one cell apart", "one kind apart"):
                assert batch.answers[number] != batch.answers[number - 1]


@every_task
def test_changes_change_one_token_and_the_answer(task: Task) -> None:
    pairs = [*task.changes(task.sample(0, "test", 0, 20), 3)]
    assert pairs or (isinstance(task, Dyck) and task.kinds == 1)
    for found in pairs:
        assert ((found[:, 0] != found[:, 1]).sum(axis=1) == 1).all()
        assert (task.oracle(found[:, 0]) != task.oracle(found[:, 1])).all()


def test_baselines_are_shortcuts() -> None:
    for text, most in (
        ("dyck[kinds=8,depth=4,length=101]", 0.8),
        ("state_recall[cells=50,pointers=5,swaps=100,values=50]", 0.3),
        ("parity_retrieval[cells=50,length=100,values=50]", 0.6),
    ):
        task = parse_task(text)
        batch = task.sample(0, "test", 0, 1000)
        for name, shortcut in task.baselines().items():
            assert float(np.mean(shortcut(batch.prompts) == batch.answers)) < most, (text, name)


def test_smaller_tasks() -> None:
    for task, lengths in ((Dyck(2, 3, 8), [1, 2, 4]), (StateRecall(3, 2, 4), [7, 8]), (ParityRetrieval(2, 4), [6, 7])):
        assert [one.prompt_length for one in task.smaller()] == lengths
    assert Dyck(2, 3, 8).place(5) == ("bracket", 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dyck[kinds=0,depth=2,length=4]", "kinds: got 0"),
        ("dyck[kinds=1,depth=256,length=4]", "depth: got 256, expected a whole number from 1 to 255"),
        ("dyck[kinds=1,depth=2,length=0]", "length: got 0"),
        ("state_recall[cells=1,pointers=2,swaps=1]", "cells: got 1"),
        ("state_recall[cells=2,pointers=1,swaps=1]", "pointers: got 1"),
        ("state_recall[cells=2,pointers=2,swaps=0]", "swaps: got 0"),
        ("state_recall[cells=2,pointers=2,swaps=1,values=1]", "values: got 1"),
        ("parity_retrieval[cells=0,length=1]", "cells: got 0"),
        ("parity_retrieval[cells=1,length=0]", "length: got 0"),
        ("parity_retrieval[cells=1,length=1,values=1]", "values: got 1"),
    ],
)
def test_sizes_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_task(text)


def test_prompts_that_are_no_prefixes() -> None:
    task = Dyck(2, 1, 2)
    for wrong in ([0, 1], [2, 0], [0, 3], [0, 4], [-1, 0]):
        with pytest.raises(InputError, match="prompt: got"):
            task.oracle(np.array([[0, 2], wrong]))
    with pytest.raises(InputError, match="prompts: got"):
        task.oracle(np.zeros((1, 3), dtype=np.int64))
