"""Copying: texts with unique n-grams, right answers, all of them, adversarial families."""

import doctest
import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.errors import InputError
from hopbound.tasks import COPYING_FAMILIES, Copying, FunctionAnswerer, accuracy, copying, parse_task
from hopbound.tasks.copying import unique_text

SIZES = [Copying(4, 3, 2), Copying(3, 2, 0), Copying(4, 4, 1, 1), Copying(5, 3, 3, 2), Copying(10, 2, 4, 3)]
LARGE = [Copying(30, 9, 11), Copying(40, 6, 20, 3), Copying(90, 2, 50, 7)]


def grams(text: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(text[start : start + size]) for start in range(len(text) - size + 1)]


def by_definition(task: Copying, prompt: list[int]) -> int:
    """Plain lists: the text, the separator, the copy."""
    text, separator, copied = prompt[: task.length], prompt[task.length], prompt[task.length + 1 :]
    assert separator == task.symbols
    assert text[: len(copied)] == copied
    if task.unique:
        assert len(set(grams(text, task.unique))) == task.length - task.unique + 1
    return text[len(copied)]


def test_worked_example_of_the_docstring() -> None:
    result = doctest.testmod(copying)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("task", SIZES, ids=lambda task: task.identity)
def test_all_instances_are_all_texts(task: Copying) -> None:
    batch = task.enumerate(0, task.instances)
    wanted = {
        text
        for text in itertools.product(range(task.symbols), repeat=task.length)
        if not task.unique or len(set(grams(list(text), task.unique))) == task.length - task.unique + 1
    }
    assert {tuple(row) for row in batch.prompts[:, : task.length].tolist()} == wanted
    assert len(batch) == len(wanted) == task.instances
    assert task.log2_instances == pytest.approx(np.log2(task.instances))
    assert batch.answers.tolist() == [by_definition(task, row) for row in batch.prompts.tolist()]


@pytest.mark.parametrize("task", [*SIZES, *LARGE], ids=lambda task: task.identity)
def test_the_oracle_is_the_definition(task: Copying) -> None:
    for batch in (task.sample(0, "test", 0, 200), task.adversarial(0, 0, 200)):
        assert task.oracle(batch.prompts).tolist() == [by_definition(task, row) for row in batch.prompts.tolist()]
        assert batch.answers.tolist() == task.oracle(batch.prompts).tolist()


@given(st.data())
def test_every_drawn_text_becomes_a_unique_one(data: st.DataObject) -> None:
    """Up to the longest that there is, a de Bruijn sequence, whatever is drawn; what is unique is left as it is."""
    symbols, gram = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 4))
    length = data.draw(st.integers(gram, symbols**gram + gram - 1))
    drawn = data.draw(st.lists(st.integers(0, symbols - 1), min_size=length, max_size=length))
    text = unique_text(drawn, symbols, gram)
    assert len(text) == length
    assert set(text) <= set(range(symbols))
    assert len(set(grams(text, gram))) == length - gram + 1
    assert unique_text(text, symbols, gram) == text


@pytest.mark.parametrize("task", LARGE, ids=lambda task: task.identity)
def test_bytes_do_not_depend_on_batches(task: Copying) -> None:
    for draw in (lambda i, k: task.sample(3, "train", i, k), lambda i, k: task.adversarial(3, i, k)):
        whole = draw(1000, 60).prompts
        parts = [draw(start, 1).prompts for start in range(1000, 1060)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_golden_bytes() -> None:
    task = LARGE[1]
    made = task.sample(1, "train", 0, 50).prompts.tobytes() + task.adversarial(1, 0, 50).prompts.tobytes()
    assert hashlib.sha256(made).hexdigest()[:16] == "18d8b82edd795c72"


def test_long_repeats_stand_just_below_n() -> None:
    """Bigrams before the asked symbol occur twice, with different symbols behind, where trigrams are unique."""
    task = Copying(60, 40, 30, 3)
    batch = task.adversarial(0, 0, 4 * len(COPYING_FAMILIES))
    for number, (prompt, answer) in enumerate(zip(batch.prompts.tolist(), batch.answers, strict=True)):
        text = prompt[: task.length]
        match task.adversarial_family(number):
            case "long repeat":
                assert text[28:30] == text[:2]
                assert text[2] != answer
            case "low symbols":
                assert np.mean(np.array(text) < 8) > 0.5
            case "cycle":
                assert (np.diff(text[:40]) % 40 == 1).all()


def test_baselines_miss() -> None:
    task = Copying(60, 6, 40, 4)
    for batch in (task.sample(0, "test", 0, 1000), task.adversarial(0, 0, 1000)):
        for name, function in task.baselines().items():
            assert accuracy(FunctionAnswerer(function), batch) < 0.6, name


def test_changes_change_one_token_and_the_answer() -> None:
    for task in LARGE:
        for pairs in task.changes(task.sample(0, "test", 0, 40), 0):
            assert ((pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1).all()
            assert (task.oracle(pairs[:, 0].copy()) != task.oracle(pairs[:, 1].copy())).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("copying[length=3,symbols=4,done=3]", "done: got 3"),
        ("copying[length=1,symbols=4,done=0]", "length: got 1"),
        ("copying[length=11,symbols=2,done=3,unique=3]", "at most 10 for unique 3-grams"),
        ("copying[length=4,symbols=1,done=3]", "symbols: got 1"),
    ],
)
def test_infeasible_sizes_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_task(text)


def test_too_many_texts_are_not_counted() -> None:
    task = Copying(40, 6, 20, 3)
    with pytest.raises(InputError, match="at most 1048576, to be listed"):
        task.enumerate(0, 1)
    assert task.log2_instances == pytest.approx(40 * np.log2(6))


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([0, 1, 0, 2, 2, 0], "separator: got"),
        ([0, 1, 0, 2, 3, 1], "copy: got"),
        ([0, 1, 3, 2, 3, 0], "text: got"),
        ([0, 0, 0, 1, 3, 0], "a 2-gram that occurs twice"),
        ([0, 1, 0, 2, 3], "shape"),
    ],
)
def test_what_is_no_prompt_is_refused(prompt: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Copying(4, 3, 1, 2).oracle(np.array([prompt]))


def test_places_and_smaller_tasks() -> None:
    task = Copying(4, 3, 2, 2)
    assert [task.place(i) for i in (0, 4, 6)] == [("text", 0), ("separator", 0), ("copy", 1)]
    assert [one.prompt_length for one in task.smaller()] == [6]
    assert [one.prompt_length for one in LARGE[2].smaller()] == []


def test_grams_of_more_digits_than_a_word() -> None:
    """50 symbols in a row out of a thousand do not fit into 63 bits: they are told apart all the same."""
    task = Copying(120, 1000, 3, 50)
    batch = task.sample(0, "test", 0, 20)
    assert batch.answers.tolist() == [by_definition(task, row) for row in batch.prompts.tolist()]
    constant = np.zeros((1, task.prompt_length), dtype=np.int64)
    constant[:, task.length] = task.symbols
    with pytest.raises(InputError, match="occurs twice"):
        task.oracle(constant)
