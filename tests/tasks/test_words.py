"""Parity and words over permutations, against plain Python; what all tasks of independent tokens have in common."""

import doctest
import hashlib
import itertools
import math

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import MinInnerProduct, Parity, PermutationWords, min_ip, parity, parse_task, permutation_words
from hopbound.tasks.independent import IndependentTokens

SMALL: list[IndependentTokens] = [
    Parity(1),
    Parity(6),
    MinInnerProduct(1, 2),
    MinInnerProduct(2, 3),
    PermutationWords(2, 3),
    PermutationWords(3, 3),
    PermutationWords(4, 1, "alternating"),
    PermutationWords(3, 3, "symmetric"),
    PermutationWords(5, 3, "cyclic"),
]
every_task = pytest.mark.parametrize("task", SMALL, ids=lambda task: task.identity)


def plain_answer(task: IndependentTokens, prompt: list[int]) -> int:
    """The definitions, token by token."""
    if isinstance(task, Parity):
        return prompt.count(1) % 2
    if isinstance(task, MinInnerProduct):
        return min(bin(vector & prompt[-1]).count("1") for vector in prompt[:-1])
    assert isinstance(task, PermutationWords)
    k = task.points
    if task.letters == "transpositions":
        letters = [list(range(k))]
        for i in range(k):
            for j in range(i + 1, k):
                letters.append([j if x == i else i if x == j else x for x in range(k)])
    elif task.letters == "cyclic":
        letters = [[(x + shift) % k for x in range(k)] for shift in range(k)]
    else:
        letters = [list(one) for one in itertools.permutations(range(k))]
        if task.letters == "alternating":
            letters = [g for g in letters if np.linalg.det(np.eye(k)[g]) > 0]
    point = prompt[-1] - len(letters)
    for letter in prompt[-2::-1]:
        point = letters[letter][point]
    return point


@pytest.mark.parametrize("module", [min_ip, parity, permutation_words])
def test_worked_examples(module: object) -> None:
    result = doctest.testmod(module)  # pyright: ignore[reportArgumentType]
    assert result.attempted > 0
    assert result.failed == 0


@every_task
def test_all_instances_against_plain_python(task: IndependentTokens) -> None:
    batch = task.enumerate(0, task.instances)
    assert len({tuple(row) for row in batch.prompts.tolist()}) == task.instances
    assert task.instances == math.prod(values**length for _, length, _, values in task.stretches)
    assert math.isclose(task.log2_instances, math.log2(task.instances))
    assert batch.answers.tolist() == [plain_answer(task, row) for row in batch.prompts.tolist()]
    assert bool(task.valid(batch.prompts).all())


@every_task
def test_batches_do_not_matter(task: IndependentTokens) -> None:
    for draw in (lambda start, count: task.sample(5, "train", start, count), lambda s, c: task.adversarial(5, s, c)):
        whole = draw(0, 41)
        parts = [draw(start, min(7, 41 - start)) for start in range(0, 41, 7)]
        np.testing.assert_array_equal(np.concatenate([part.prompts for part in parts]), whole.prompts)
        assert bool(task.valid(whole.prompts).all())


def test_golden_samples() -> None:
    found = {}
    for text in ("parity[length=20]", "permutation_words[points=5,length=9,letters=symmetric]"):
        task = parse_task(text)
        made = task.sample(1, "golden", 0, 50).prompts, task.adversarial(1, 0, 50).prompts
        found[task.name] = hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in made)).hexdigest()[:16]
    assert found == {"parity": "7a26cfd5ae5ac480", "permutation_words": "972b5c5591ebfcc9"}


@pytest.mark.parametrize("letters", ["transpositions", "symmetric", "alternating", "cyclic"])
def test_adversarial_words(letters: permutation_words.Letters) -> None:
    task = PermutationWords(5, 11, letters)
    batch = task.adversarial(0, 0, 64)
    for number, (prompt, answer) in enumerate(zip(batch.prompts.tolist(), batch.answers.tolist(), strict=True)):
        family = task.adversarial_family(number)
        word, point = prompt[:-1], prompt[-1] - len(task.permutations)
        if family == "one letter repeated":
            assert len(set(word)) == 1
        elif family == "there and back":
            assert answer == point
        elif family == "one move":
            assert sum(letter != 0 for letter in word) <= 1
        elif number % 2:
            before = batch.prompts[number - 1].tolist()
            assert sum(a != b for a, b in zip(prompt, before, strict=True)) == 1


def test_adversarial_bits() -> None:
    batch = Parity(13).adversarial(0, 0, 64)
    for number, prompt in enumerate(batch.prompts.tolist()):
        family = Parity(13).adversarial_family(number)
        if family == "ones":
            assert sum(prompt[:-1]) == 12
        elif family == "single one":
            assert sum(prompt) == 1
        elif family == "alternating":
            assert all(a != b for a, b in itertools.pairwise(prompt))
        elif number % 2:
            assert int((batch.prompts[number] != batch.prompts[number - 1]).sum()) == 1
            assert batch.answers[number] != batch.answers[number - 1]


def test_adversarial_vectors() -> None:
    task = MinInnerProduct(5, 4)
    batch = task.adversarial(0, 0, 64)
    for number, (prompt, answer) in enumerate(zip(batch.prompts.tolist(), batch.answers.tolist(), strict=True)):
        family = task.adversarial_family(number)
        if family == "all alike":
            assert len(set(prompt[:-1])) == 1
            assert answer == bin(prompt[0] & prompt[-1]).count("1")
        elif family == "one bit less":
            assert len(set(prompt[:-1])) <= 2
        elif family == "ones ask":
            assert answer == min(bin(vector).count("1") for vector in prompt[:-1])
        elif number % 2:
            apart = batch.prompts[number] ^ batch.prompts[number - 1]
            assert bin(int(apart.sum())).count("1") == (apart != 0).sum() == 1


@every_task
def test_changes_change_one_token_and_the_answer(task: IndependentTokens) -> None:
    pairs = np.concatenate(list(task.changes(task.sample(0, "test", 0, 20), 3)))
    assert ((pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1).all()
    assert (task.oracle(pairs[:, 0]) != task.oracle(pairs[:, 1])).all()


def test_baselines_are_shortcuts() -> None:
    for task in (Parity(200), PermutationWords(5, 200, "symmetric")):
        batch = task.sample(0, "test", 0, 2000)
        for name, shortcut in task.baselines().items():
            assert abs(float(np.mean(shortcut(batch.prompts) == batch.answers)) - task.chance) < 0.05, name


def test_places_paths_and_smaller_tasks() -> None:
    task = PermutationWords(3, 5)
    assert [task.place(position) for position in (0, 4, 5)] == [("letter", 0), ("letter", 4), ("point", 0)]
    with pytest.raises(IndexError):
        task.place(6)
    with pytest.raises(KeyError):
        task.span("bit")
    batch = task.sample(0, "test", 0, 20)
    assert [path[-1] for path in task.path(batch.prompts)] == batch.answers.tolist()
    assert [one.prompt_length for one in task.smaller()] == [2, 3, 5]
    assert [one.prompt_length for one in Parity(8).smaller()] == [1, 2, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parity[length=0]", "length: got 0, expected a whole number from 1"),
        ("permutation_words[points=1,length=2]", "points: got 1, expected a whole number from 2 to 64"),
        (
            "permutation_words[points=6,length=2,letters=symmetric]",
            "points: got 6, expected a whole number from 2 to 5",
        ),
        ("permutation_words[points=2,length=2,letters=alternating]", "points: got 2, expected at least 3"),
        ("permutation_words[points=3,length=2,letters=braid]", "letters: got 'braid', expected one of transpositions"),
    ],
)
def test_sizes_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_task(text)


def test_prompts_that_are_none() -> None:
    task = PermutationWords(3, 2)
    for wrong, message in (
        (np.zeros((1, 2), dtype=np.int64), "prompts: got"),
        (np.zeros((1, 3), dtype=np.int32), "prompts: got"),
        (np.array([[0, 4, 4]]), "letter: got '0 to 4', expected values from 0 to 3"),
        (np.array([[0, 3, 3]]), "point: got '3 to 3', expected values from 4 to 6"),
    ):
        with pytest.raises(InputError, match=message):
            task.oracle(wrong)  # pyright: ignore[reportArgumentType]
    assert task.valid(np.array([[0, 4, 4], [0, 3, 4]])).tolist() == [False, True]
