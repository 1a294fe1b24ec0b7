"""Masked recall and selective copying: prompts, right answers, all of them, adversarial families."""

import doctest
import hashlib

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import (
    MASKED_FAMILIES,
    SELECTIVE_FAMILIES,
    FunctionAnswerer,
    MaskedRecall,
    SelectiveCopying,
    accuracy,
    masked_recall,
    parse_task,
    selective_copying,
)

SMALL = [
    MaskedRecall(1, 2, 2),
    MaskedRecall(2, 1, 2, gap=1),
    MaskedRecall(2, 2, 2, gap=1),
    SelectiveCopying(0, 1, 2),
    SelectiveCopying(3, 1, 2),
    SelectiveCopying(2, 2, 2, noise=2),
    SelectiveCopying(1, 3, 3),
]
LARGE = [MaskedRecall(9, 5, 30, gap=17), SelectiveCopying(40, 12, 7, noise=3)]


def named(tasks: list[MaskedRecall | SelectiveCopying]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("task", tasks, ids=lambda task: task.identity)


def by_definition(task: MaskedRecall | SelectiveCopying, prompt: list[int]) -> int:
    """Plain Python: a dictionary, or a list of the symbols."""
    if isinstance(task, MaskedRecall):
        mask, *rest = prompt
        *pairs, q = rest[task.gap :]
        return dict(zip(pairs[0::2], pairs[1::2], strict=True))[q ^ mask]
    *text, asked = prompt
    symbols = [(place, token) for place, token in enumerate(text) if token >= task.symbols]
    place, token = symbols[asked]
    assert place >= task.far
    return token - task.symbols


@pytest.mark.parametrize("module", [masked_recall, selective_copying])
def test_worked_examples_of_the_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # pyright: ignore[reportArgumentType]
    assert result.attempted > 0
    assert result.failed == 0


@named(SMALL)
def test_all_instances_are_all_prompts(task: MaskedRecall | SelectiveCopying) -> None:
    batch = task.enumerate(0, task.instances)
    rows = {tuple(row) for row in batch.prompts.tolist()}
    assert len(rows) == task.instances
    grid = np.indices((task.vocabulary_size,) * task.prompt_length).reshape(task.prompt_length, -1).T
    assert rows == {tuple(row) for row in grid[task.valid(grid)].tolist()}
    assert batch.answers.tolist() == [by_definition(task, row) for row in batch.prompts.tolist()]
    assert task.log2_instances == pytest.approx(np.log2(task.instances))


@named([*SMALL, *LARGE])
def test_the_oracle_is_the_definition(task: MaskedRecall | SelectiveCopying) -> None:
    for batch in (task.sample(0, "test", 0, 200), task.adversarial(0, 0, 200)):
        assert task.oracle(batch.prompts).tolist() == [by_definition(task, row) for row in batch.prompts.tolist()]
        assert batch.answers.tolist() == task.oracle(batch.prompts).tolist()
        assert task.valid(batch.prompts).all()


@named(LARGE)
def test_bytes_do_not_depend_on_batches(task: MaskedRecall | SelectiveCopying) -> None:
    for draw in (lambda i, k: task.sample(3, "train", i, k), lambda i, k: task.adversarial(3, i, k)):
        whole = draw(1000, 60).prompts
        parts = [draw(start, 1).prompts for start in range(1000, 1060)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_golden_bytes() -> None:
    golden = []
    for task in LARGE:
        made = task.sample(1, "train", 0, 50).prompts.tobytes() + task.adversarial(1, 0, 50).prompts.tobytes()
        golden.append(hashlib.sha256(made).hexdigest()[:16])
    assert golden == ["966d433e55fe8e53", "d2ab76f4978a4b1d"]


@named(LARGE)
def test_baselines_miss(task: MaskedRecall | SelectiveCopying) -> None:
    batch = task.sample(0, "test", 0, 2000)
    for name, function in task.baselines().items():
        assert accuracy(FunctionAnswerer(function), batch) < 0.4, name


@named([*SMALL[1:3], *SMALL[4:], *LARGE])
def test_changes_change_one_token_and_the_answer(task: MaskedRecall | SelectiveCopying) -> None:
    for pairs in task.changes(task.sample(0, "test", 0, 40), 0):
        assert ((pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1).all()
        assert (task.oracle(pairs[:, 0].copy()) != task.oracle(pairs[:, 1].copy())).all()


@named(LARGE)
def test_the_first_token_matters(task: MaskedRecall | SelectiveCopying) -> None:
    """What the bound on windows alone rests on."""
    pairs = next(iter(task.changes(task.sample(0, "test", 0, 200), 0)))
    assert len(pairs) > 0
    assert (pairs[:, 0, 0] != pairs[:, 1, 0]).all()
    assert (pairs[:, 0, 1:] == pairs[:, 1, 1:]).all()


def test_the_families_are_what_they_say() -> None:
    masked, selective = LARGE
    assert isinstance(masked, MaskedRecall)
    assert isinstance(selective, SelectiveCopying)
    batch = masked.adversarial(0, 0, 5 * len(MASKED_FAMILIES))
    for number, prompt in enumerate(batch.prompts):
        mask, wanted = prompt[0], prompt[0] ^ prompt[-1]
        match masked.adversarial_family(number):
            case "no mask":
                assert mask == 0
            case "all bits":
                assert mask == masked.keys - 1
            case "one bit":
                assert int(mask).bit_count() == 1
            case "first pair":
                assert wanted == prompt[masked.first_key]
            case "last pair":
                assert wanted == prompt[-3]
            case "echo":
                assert (prompt[1 : masked.first_key] == (mask ^ (masked.keys - 1))).all()
    batch = selective.adversarial(0, 0, 5 * len(SELECTIVE_FAMILIES))
    for number, prompt in enumerate(batch.prompts):
        is_symbol = prompt[:-1] >= selective.symbols
        place = np.flatnonzero(is_symbol)[prompt[-1]]
        match selective.adversarial_family(number):
            case "dense":
                assert is_symbol.all()
            case "sparse":
                assert is_symbol.sum() == 1
            case "crowded far":
                assert is_symbol[: selective.far].all()
            case "first recent":
                assert place == selective.far
            case "last recent":
                assert place == selective.tokens - 1


@pytest.mark.parametrize(
    "text",
    [
        "masked_recall[pairs=5,bits=2,values=2]",
        "masked_recall[pairs=1,bits=0,values=2]",
        "masked_recall[pairs=1,bits=2,values=1]",
        "masked_recall[pairs=1,bits=2,values=2,gap=-1]",
        "selective_copying[far=2,recent=0,symbols=2]",
        "selective_copying[far=2,recent=1,symbols=1]",
        "selective_copying[far=2,recent=1,symbols=2,noise=3]",
    ],
)
def test_infeasible_sizes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="a whole number from"):
        parse_task(text)


@pytest.mark.parametrize(
    ("task", "prompt", "said"),
    [
        (MaskedRecall(2, 2, 3), [0, 1, 0, 1, 0, 1], "bound twice"),
        (MaskedRecall(2, 2, 3), [3, 1, 0, 0, 0, 0], "not there"),
        (MaskedRecall(2, 2, 3), [4, 1, 0, 0, 0, 0], "mask and gap: got"),
        (SelectiveCopying(1, 2, 4), [1, 4, 4, 0], "neither noise nor a symbol"),
        (SelectiveCopying(1, 2, 4), [4, 4, 0, 0], "not there"),
        (SelectiveCopying(1, 2, 4), [4, 0, 0, 1], "not there"),
    ],
)
def test_what_is_no_prompt_is_refused(task: MaskedRecall | SelectiveCopying, prompt: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        task.oracle(np.array([prompt]))


def test_places_and_smaller_tasks() -> None:
    masked, selective = MaskedRecall(2, 2, 3, gap=1), SelectiveCopying(2, 3, 4)
    assert [masked.place(i) for i in range(7)] == [
        ("mask", 0), ("gap", 0), ("key", 0), ("value", 0), ("key", 1), ("value", 1), ("query", 0),
    ]  # fmt: skip
    assert [selective.place(i)[0] for i in range(6)] == ["far"] * 2 + ["recent"] * 3 + ["query"]
    for task in (masked, selective):
        lengths = [one.prompt_length for one in task.smaller()]
        assert lengths == sorted(lengths)
        assert max(lengths) < task.prompt_length
    assert masked.path(np.array([[3, 0, 1, 1, 0, 2, 2]])) == [[3, 2, 1, 1]]
    assert selective.path(np.array([[5, 0, 7, 0, 4, 2]])) == [[2, 2, 0]]
