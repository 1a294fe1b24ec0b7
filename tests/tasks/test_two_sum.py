"""2-Sum: right answers by the definition, every instance once, families that keep what they promise."""

import doctest
import hashlib
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.errors import InputError
from hopbound.tasks import TWO_SUM_FAMILIES, FunctionAnswerer, TwoSum, accuracy, format_task, parse_task, two_sum

SIZES = [(2, 3), (3, 4), (5, 7), (6, 100), (40, 3), (33, 10**6)]
every_size = pytest.mark.parametrize(("n", "modulus"), SIZES)


def naive_answer(prompt: list[int], modulus: int) -> int:
    """The definition: does any token, the last one included, add up to a multiple of M with the last one?"""
    for x in prompt:
        total = x + prompt[-1]
        while total >= modulus:
            total -= modulus
        if total == 0:
            return 1
    return 0


def test_worked_example_of_the_docstring() -> None:
    result = doctest.testmod(two_sum)
    assert result.attempted > 0
    assert result.failed == 0


@given(st.integers(3, 50), st.data())
def test_the_oracle_is_the_definition(modulus: int, data: st.DataObject) -> None:
    prompt = data.draw(st.lists(st.integers(0, modulus - 1), min_size=2, max_size=8))
    assert TwoSum(len(prompt), modulus).oracle(np.array([prompt])).tolist() == [naive_answer(prompt, modulus)]


@pytest.mark.parametrize(("n", "modulus"), [(2, 3), (3, 4), (4, 5)])
def test_every_instance_occurs_once(n: int, modulus: int) -> None:
    task = TwoSum(n, modulus)
    batch = task.enumerate(0, task.instances)
    assert batch.prompts.tolist() == [list(prompt) for prompt in product(range(modulus), repeat=n)]
    assert batch.answers.tolist() == [naive_answer(prompt, modulus) for prompt in batch.prompts.tolist()]
    assert task.log2_instances == pytest.approx(np.log2(len(batch)))


@every_size
def test_bytes_do_not_depend_on_batches(n: int, modulus: int) -> None:
    task = TwoSum(n, modulus)
    for draw in (lambda start, count: task.sample(3, "train", start, count), lambda *r: task.adversarial(3, *r)):
        whole = draw(1015, 43)
        for start, count in ((1015, 9), (1024, 1), (1025, 33)):
            part = draw(start, count)
            np.testing.assert_array_equal(part.prompts, whole.prompts[start - 1015 :][:count])
            np.testing.assert_array_equal(part.answers, whole.answers[start - 1015 :][:count])


def test_golden_samples() -> None:
    task = TwoSum(9, 1000)
    digests = [
        hashlib.sha256(batch.prompts.astype("<i8").tobytes()).hexdigest()[:16]
        for batch in (task.sample(0, "train", 0, 50), task.adversarial(0, 0, 50))
    ]
    assert digests == ["10f97effb768063f", "673c6349d1d42c4d"]


@every_size
def test_half_of_the_samples_have_a_partner(n: int, modulus: int) -> None:
    task = TwoSum(n, modulus)
    batch = task.sample(0, "train", 0, 4000)
    alone = 2 * batch.prompts[:, -1] % modulus != 0
    assert abs(batch.answers[alone].mean() - 0.5) < 0.05
    assert batch.answers[~alone].all()
    hits = batch.prompts[alone & (batch.answers == 1)]
    places = (hits[:, :-1] == -hits[:, -1:] % modulus).argmax(axis=1)
    assert set(places.tolist()) == set(range(n - 1))  # each place is planted


@every_size
def test_adversarial_pairs_keep_what_the_families_promise(n: int, modulus: int) -> None:
    task = TwoSum(n, modulus)
    batch = task.adversarial(1, 0, 280)
    assert batch.prompts.min() >= 0
    assert batch.prompts.max() < modulus
    assert batch.answers.tolist() == [0, 1] * 140
    for number in range(0, 280, 2):
        family = task.adversarial_family(number)
        no, yes = batch.prompts[number], batch.prompts[number + 1]
        assert naive_answer(no.tolist(), modulus) == 0
        assert naive_answer(yes.tolist(), modulus) == 1
        changed = np.flatnonzero(no != yes).tolist()
        partner = -no[-1] % modulus
        match family:
            case "itself":
                assert (changed, yes[-1]) == ([n - 1], 0)
                continue
            case "duplicates":
                assert (no == no[-1]).all()
                assert np.diff(changed).tolist() == [2] * (len(changed) - 1)
            case "off by one":
                assert {int(x - partner) % modulus for x in no[:-1]} <= {1, modulus - 1}
            case "one digit off" if modulus == 4:
                assert all(int(x ^ partner).bit_count() == 1 for x in no[:-1])
            case "zeros":
                assert not no[:-1].any()
            case "first place":
                assert changed == [0]
            case "last place":
                assert changed == [n - 2]
        assert (yes[changed] == partner).all()
        assert family == "duplicates" or len(changed) == 1
    assert {task.adversarial_family(number) for number in range(280)} == set(TWO_SUM_FAMILIES)


def test_digits_are_off_wherever_there_is_such_a_number() -> None:
    rows = TwoSum(50, 1000).adversarial(0, 2, 1).prompts
    partner = -rows[0, -1] % 1000
    assert sum(int(x ^ partner).bit_count() == 1 for x in rows[0, :-1]) > 40


@every_size
def test_changes_are_pairs_with_different_answers(n: int, modulus: int) -> None:
    task = TwoSum(n, modulus)
    for batch in (task.adversarial(0, 0, 56), task.sample(0, "falsify", 0, 56)):
        found = list(task.changes(batch, 5))
        assert sum(map(len, found)) >= 4 * int((batch.answers == 0).sum())
        for pairs in found:
            assert ((pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1).all()
            answers = [[naive_answer(prompt, modulus) for prompt in pair] for pair in pairs.tolist()]
            assert all(one != other for one, other in answers)


def test_smaller_tasks_are_shorter_first() -> None:
    lengths = [task.prompt_length for task in TwoSum(100, 9).smaller()]
    assert lengths == sorted(lengths)
    assert lengths[0] == 2
    assert lengths[-1] < 100
    assert all(task.vocabulary_size == 9 for task in TwoSum(100, 9).smaller())


def test_baselines_are_no_solutions() -> None:
    task = TwoSum(20, 1000)
    batch = task.adversarial(0, 0, 1400)
    assert accuracy(FunctionAnswerer(task.oracle), batch) == 1.0
    for name, function in task.baselines().items():
        assert accuracy(FunctionAnswerer(function), batch) < 0.9, name
    prompt = np.array([[5, 994, 4, 6]])  # the partner of 6 is 994
    said = {name: int(function(prompt)[0]) for name, function in TwoSum(4, 1000).baselines().items()}
    assert said == {"never": 0, "always": 1, "equal": 0, "the token before": 0, "off by one": 1, "low digits": 1}


def test_as_text() -> None:
    task = parse_task("two_sum[n=64,modulus=100]")
    assert task == TwoSum(64, 100)
    assert parse_task(format_task(task)) == task


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((1, 10), "n: got 1, expected a whole number from 2"),
        ((2, 2), "modulus: got 2, expected a whole number from 3"),
        ((2, 2**26 + 1), "modulus"),
        ((2.0, 10), "n: got 2.0"),
        ((True, 10), "n: got True"),
    ],
)
def test_infeasible_sizes_are_refused(sizes: tuple[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TwoSum(*sizes)


def test_wrong_prompts_are_refused() -> None:
    task = TwoSum(3, 10)
    for wrong in (np.zeros((1, 4), dtype=np.int64), np.full((1, 3), 10), np.full((1, 3), -1), np.zeros((1, 3))):
        with pytest.raises(InputError, match="prompts"):
            task.oracle(wrong)  # pyright: ignore[reportArgumentType]
    assert task.valid(np.array([[0, 9, 1], [0, 10, 1], [-1, 0, 0]])).tolist() == [True, False, False]
    with pytest.raises(InputError, match="task"):
        TwoSum.from_json({"task": "composition", "n": 3, "modulus": 10})
