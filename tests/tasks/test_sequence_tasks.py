"""Tasks that ask at several tokens: each against its definition in plain Python, over all sequences that there are."""

import doctest
import importlib
import itertools
import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import (
    NOT_ASKED,
    SEQUENCE_TASKS,
    TASKS,
    DyckNext,
    GroupWords,
    KHop,
    Match3,
    ModularCounting,
    MultiQueryRecall,
    SequenceTask,
    SparseAveraging,
    format_task,
    parse_sequence_task,
    sequence_task_from_json,
)
from hopbound.tasks.mqar import _weights
from hopbound.tasks.sizes import distinct

Row = list[int]


def counting(task: Any, row: Row) -> Row:
    return [row[: i + 1].count(1) % task.modulus for i in range(len(row))]


def group_words(task: Any, row: Row) -> Row:
    points = range(int(task.group[1:]))
    if task.group[0] == "C":
        found = [tuple((x + shift) % len(points) for x in points) for shift in points]
    else:
        found = list(itertools.permutations(points))
    if task.group[0] == "A":
        found = [one for one in found if sum(a > b for a, b in itertools.combinations(one, 2)) % 2 == 0]
    product, labels = tuple(points), []
    for element in row:
        product = tuple(product[found[element][x]] for x in points)
        labels.append(found.index(product))
    return labels


def dyck_next(task: Any, row: Row) -> Row | None:
    def within(tokens: Row) -> bool:
        stack: Row = []
        for token in tokens:
            if token < task.kinds:
                stack.append(token)
            elif not stack or stack.pop() != token - task.kinds:
                return False
            if len(stack) > task.depth:
                return False
        return True

    if not within(row):
        return None
    labels = []
    for i in range(len(row)):
        allowed = {token for token in range(2 * task.kinds) if within([*row[: i + 1], token])}
        closers = [token - task.kinds for token in allowed if token >= task.kinds]
        opens = 0 in allowed
        labels.append(0 if not closers else 1 + closers[0] + (task.kinds if opens else 0))
    return labels


def match3(task: Any, row: Row) -> Row:
    def triple(i: int) -> bool:
        sums = (row[i] + row[j] + row[k] for j in range(i + 1) for k in range(i + 1))
        return any(total % task.modulus == 0 for total in sums)

    return [int(triple(i)) for i in range(len(row))]


def averaging(task: Any, row: Row) -> Row | None:
    n, q = task.positions, task.q
    digits, labels = row[:n], [NOT_ASKED] * len(row)
    if any(token >= task.digits for token in digits) or any(token < task.digits for token in row[n:]):
        return None
    for start in range(n, len(row), q):
        named = {token - task.digits for token in row[start : start + q]}
        if len(named) < q:
            return None
        labels[start + q - 1] = sum(digits[position] for position in named)
    return labels


def k_hop(task: Any, row: Row) -> Row:
    def find(i: int) -> int | None:
        places = [j for j in range(1, i + 1) if row[j - 1] == row[i]]
        return max(places, default=None)

    labels = []
    for i in range(len(row)):
        place: int | None = i
        for _ in range(task.hops):
            place = None if place is None else find(place)
        labels.append(NOT_ASKED if place is None else row[place])
    return labels


def recall(task: Any, row: Row) -> Row | None:
    first_value = task.filler + task.keys
    bound, labels = {}, [NOT_ASKED] * len(row)
    for key, value in zip(row[0 : 2 * task.pairs : 2], row[1 : 2 * task.pairs : 2], strict=True):
        if not task.filler <= key < first_value <= value or key in bound:
            return None
        bound[key] = value
    asked = [token for token in row[2 * task.pairs :] if token >= task.filler]
    if sorted(asked) != sorted(bound):
        return None
    for place, token in enumerate(row[2 * task.pairs :], start=2 * task.pairs):
        if token in bound:
            labels[place] = bound[token] - first_value
    return labels


DEFINITIONS: dict[type, Callable[[Any, Row], Row | None]] = {
    ModularCounting: counting,
    GroupWords: group_words,
    DyckNext: dyck_next,
    Match3: match3,
    SparseAveraging: averaging,
    KHop: k_hop,
    MultiQueryRecall: recall,
}
SMALL: list[SequenceTask] = [
    ModularCounting(2, 6),
    ModularCounting(3, 5),
    GroupWords("S3", 3),
    GroupWords("C4", 3),
    GroupWords("A4", 2),
    DyckNext(2, 2, 5),
    DyckNext(1, 1, 4),
    DyckNext(1, 3, 6),
    Match3(4, 5),
    Match3(3, 8),
    SparseAveraging(3, 2),
    SparseAveraging(2, 1, digits=3, questions=2),
    SparseAveraging(3, 3),
    KHop(1, 3, 5),
    KHop(2, 2, 6),
    KHop(3, 2, 7),
    MultiQueryRecall(5, 3, 1),
    MultiQueryRecall(6, 4, 1, filler=2),
    MultiQueryRecall(7, 6, 2, alpha=0.5),
]
LARGE: list[SequenceTask] = [
    ModularCounting(7, 50),
    GroupWords("S5", 40),
    GroupWords("A5", 30),
    GroupWords("C30", 20),
    DyckNext(3, 4, 40),
    Match3(16, 300),
    SparseAveraging(20, 3, digits=4, questions=5),
    KHop(3, 4, 60),
    MultiQueryRecall(64, 40, 6, alpha=0.1, filler=20),
    MultiQueryRecall(8192, 64, 8),
]
small = pytest.mark.parametrize("task", SMALL, ids=format_task)
every_task = pytest.mark.parametrize("task", [*SMALL, *LARGE], ids=format_task)


def test_every_task_of_this_kind_is_here() -> None:
    kinds = set(SEQUENCE_TASKS.values()) - set(TASKS.values())
    assert {type(task) for task in SMALL} == {type(task) for task in LARGE} == set(DEFINITIONS) == kinds
    assert all(kind.name == name for name, kind in SEQUENCE_TASKS.items())


@pytest.mark.parametrize("kind", DEFINITIONS, ids=lambda kind: kind.name)
def test_worked_examples(kind: type) -> None:
    result = doctest.testmod(importlib.import_module(kind.__module__))
    assert result.attempted > 0
    assert result.failed == 0


@small
def test_all_sequences(task: SequenceTask) -> None:
    """Which sequences of tokens are the task's, with which labels, how many they are, that each is drawn."""
    rows = [list(row) for row in itertools.product(range(task.vocabulary_size), repeat=task.prompt_length)]
    expected = {tuple(row): DEFINITIONS[type(task)](task, row) for row in rows}
    right = {row: labels for row, labels in expected.items() if labels is not None}
    assert math.isclose(2**task.log2_instances, len(right), rel_tol=1e-9)
    assert task.labels(np.array(list(right), dtype=np.int64)).tolist() == list(right.values())
    wrong = [row for row, labels in expected.items() if labels is None]
    for row in wrong[:: max(1, len(wrong) // 300)]:
        with pytest.raises(InputError):
            task.labels(np.array([row], dtype=np.int64))
    made = task.labelled(0, "train", 0, 200_000)
    drawn = dict(zip(map(tuple, made.tokens.tolist()), made.labels.tolist(), strict=True))
    assert drawn == right
    answers = {label for labels in right.values() for label in labels} - {NOT_ASKED}
    assert answers == set(range(task.answers))


@every_task
def test_labels_of_examples(task: SequenceTask) -> None:
    made = task.labelled(1, "test", 1000, 400)
    assert made.tokens.shape == (400, task.prompt_length)
    assert 0 <= made.tokens.min() <= made.tokens.max() < task.vocabulary_size
    assert NOT_ASKED <= made.labels.min() <= made.labels.max() < task.answers
    np.testing.assert_array_equal(made.labels, task.labels(made.tokens))
    definition = DEFINITIONS[type(task)]
    assert made.labels[:60].tolist() == [definition(task, row) for row in made.tokens[:60].tolist()]
    assert len(task.labelled(1, "test", 5, 0)) == 0


@every_task
def test_batches_do_not_matter(task: SequenceTask) -> None:
    whole = task.labelled(5, "train", 1000, 41)
    parts = [task.labelled(5, "train", 1000 + low, min(7, 41 - low)) for low in range(0, 41, 7)]
    np.testing.assert_array_equal(np.concatenate([part.tokens for part in parts]), whole.tokens)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), whole.labels)


@every_task
def test_json_and_text_are_read_back(task: SequenceTask) -> None:
    read = sequence_task_from_json(json.loads(json.dumps(task.to_json())))
    assert read == task
    assert read.identity == task.identity
    assert parse_sequence_task(format_task(task)) == task
    whole = task.to_json()
    with pytest.raises(InputError, match="task keys: got"):
        type(task).from_json(whole | {"color": "red"})
    for key in whole:
        with pytest.raises(InputError, match=r"task keys: got|task: got None"):
            sequence_task_from_json({other: value for other, value in whole.items() if other != key})


@every_task
def test_labels_look_back_alone(task: SequenceTask) -> None:
    """What stands behind a token does not change its label: two examples with the same start have the same labels."""
    made = task.labelled(0, "train", 0, 600)
    for length in range(1, task.prompt_length + 1):
        known: dict[bytes, int] = {}
        for tokens, labels in zip(made.tokens, made.labels, strict=True):
            label = int(labels[length - 1])
            assert known.setdefault(tokens[:length].tobytes(), label) == label


@pytest.mark.parametrize("task", LARGE, ids=format_task)
def test_shortcuts_answer_and_do_not_solve(task: SequenceTask) -> None:
    made = task.labelled(0, "train", 0, 2000)
    asked = made.asked
    assert asked.any()
    for name, function in task.shortcuts().items():
        given = function(made.tokens)
        assert given.shape == made.tokens.shape, name
        assert given.dtype == np.int64, name
        where = asked & (given != NOT_ASKED)
        assert given[where].min() >= 0, name
        assert given[where].max() < task.answers, name
        assert (given[asked] == made.labels[asked]).mean() < 0.95, name


REFUSED = [
    ("mqar[vocabulary=4,length=9,pairs=1]", "vocabulary: got 4"),
    ("mqar[vocabulary=64,length=23,pairs=8]", "pairs: got 8, expected a whole number from 1 to 7"),
    ("mqar[vocabulary=10,length=64,pairs=8]", "pairs: got 8, expected at most 4, the keys"),
    ("mqar[vocabulary=64,length=24,pairs=8,alpha=0.005]", "alpha: got 0.005"),
    ("mqar[vocabulary=64,length=24,pairs=8,alpha=2]", "alpha: got 2"),
    ("mqar[vocabulary=64,length=24,pairs=8,alpha=high]", "alpha: got 'high'"),
    ("mqar[vocabulary=64,length=24,pairs=8,filler=61]", "filler: got 61, expected a whole number from 1 to 60"),
    ("modular_counting[modulus=1,length=5]", "modulus: got 1"),
    ("modular_counting[modulus=6,length=5]", "length: got 5, expected a whole number from 6"),
    ("group_words[group=S6,length=5]", "group: got 'S6', expected S2 to S5, A3 to A5, C2 to C256"),
    ("group_words[group=A2,length=5]", "group: got 'A2'"),
    ("group_words[group=Z257,length=5]", "group: got 'Z257'"),
    ("group_words[group=5,length=5]", "group: got 5"),
    ("group_words[group=S5,length=0]", "length: got 0"),
    ("dyck_next[kinds=0,depth=1,length=5]", "kinds: got 0"),
    ("dyck_next[kinds=1,depth=0,length=5]", "depth: got 0"),
    ("match3[length=1,modulus=5]", "length: got 1"),
    ("match3[length=4,modulus=3]", "modulus: got 3"),
    ("sparse_averaging[positions=4,q=5]", "q: got 5, expected a whole number from 1 to 4"),
    ("sparse_averaging[positions=4,q=2,digits=1]", "digits: got 1"),
    ("sparse_averaging[positions=4,q=2,questions=0]", "questions: got 0"),
    ("k_hop[hops=0,symbols=2,length=5]", "hops: got 0"),
    ("k_hop[hops=1,symbols=5,length=5]", "length: got 5, expected a whole number from 6"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_sizes_that_do_not_fit_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_sequence_task(text)
    assert str(refused.value).startswith(message)


@every_task
def test_other_shapes_and_tokens_are_refused(task: SequenceTask) -> None:
    tokens = task.labelled(0, "train", 0, 3).tokens
    for wrong in (tokens[:, 1:], tokens.astype(np.int32), tokens[0], tokens - 1 - tokens.max(), tokens + 2**23):
        with pytest.raises(InputError):
            task.labels(wrong)  # pyright: ignore[reportArgumentType]


# Particular tasks


def test_recall_over_ten_thousand_items() -> None:
    """No key is bound twice or stands before another value; one label for each query; all else is masked."""
    task = MultiQueryRecall(vocabulary=256, length=128, pairs=8)
    made = task.labelled(0, "train", 0, 10_000)
    first_key, first_value = task.filler, task.filler + task.keys
    for tokens, labels in zip(made.tokens.tolist(), made.labels.tolist(), strict=True):
        bound: dict[int, int] = {}
        asked = []
        for place, (token, after) in enumerate(zip(tokens, [*tokens[1:], 0], strict=True)):
            is_key = first_key <= token < first_value
            if is_key and after >= first_value:
                assert token not in bound
                assert place < 16
                bound[token] = after
                assert labels[place] == NOT_ASKED
            elif is_key:
                asked.append(token)
                assert labels[place] == bound[token] - first_value
            else:
                assert labels[place] == NOT_ASKED
        assert len(bound) == 8
        assert sorted(asked) == sorted(bound)


@pytest.mark.parametrize(("slots", "hundredths"), [(40, 1), (40, 50), (3, 100), (400, 0), (5000, 90)])
def test_weights_are_floors_of_powers(slots: int, hundredths: int) -> None:
    weights = _weights(slots, hundredths)
    largest = int(weights[0])
    assert largest == 2**24 if slots <= 256 else largest * slots <= 2**32 < 4 * largest * slots
    with localcontext(prec=60):
        exponent = Decimal(hundredths) / 100 - 1
        expected = [max(1, int(largest * Decimal(g) ** exponent)) for g in range(1, slots + 1)]
    assert weights.tolist() == expected


def test_gaps_follow_their_law() -> None:
    """How often each sequence of slots is taken, within five standard deviations of one weight after the other."""
    task, count = MultiQueryRecall(7, 8, 2, alpha=0.2), 40_000
    weights = [int(2**24 * g**-0.8) for g in range(1, 5)]
    made = task.labelled(3, "train", 0, count)
    slots = [np.argmax(made.tokens[:, 4:] == made.tokens[:, [key]], axis=1) for key in (0, 2)]
    for first, second in itertools.permutations(range(4), 2):
        share = weights[first] / sum(weights) * weights[second] / (sum(weights) - weights[first])
        found = ((slots[0] == first) & (slots[1] == second)).sum()
        assert abs(found - count * share) < 5 * math.sqrt(count * share * (1 - share))


@pytest.mark.parametrize(("count", "columns"), [(5, 5), (30, 5), (8, 3), (10**6, 20), (1, 1), (2, 1)])
def test_distinct_numbers_are_a_shuffle(count: int, columns: int) -> None:
    left = count - np.arange(columns)
    generator = np.random.Generator(np.random.Philox(1))
    choices = generator.integers(0, left, size=(200, columns))
    for row, given in zip(choices.tolist(), distinct(choices, count).tolist(), strict=True):
        cards = list(range(count)) if count < 100 else {}
        for column, choice in enumerate(row):
            taken = column + choice
            if isinstance(cards, dict):
                cards[taken], cards[column] = cards.get(column, column), cards.get(taken, taken)
            else:
                cards[taken], cards[column] = cards[column], cards[taken]
        assert given == [cards[column] for column in range(columns)]


def test_names_of_cyclic_groups() -> None:
    assert GroupWords("Z7", 5) == GroupWords("C7", 5)
    assert GroupWords("Z7", 5).identity == GroupWords("C7", 5).identity
    assert MultiQueryRecall(64, 24, 8, alpha=1) == MultiQueryRecall(64, 24, 8, alpha=1.0)
    assert MultiQueryRecall(64, 24, 8, alpha=1).identity == MultiQueryRecall(64, 24, 8, alpha=1.0).identity


def test_parity_is_counting_modulo_two() -> None:
    made = ModularCounting(2, 30).labelled(0, "train", 0, 100)
    for length in range(1, 31):
        answers = parse_sequence_task(f"parity[length={length}]").labels(made.tokens[:, :length].copy())[:, -1]
        np.testing.assert_array_equal(made.labels[:, length - 1], answers)


def test_half_of_the_triples_are_there() -> None:
    made = Match3(24, 2**16).labelled(0, "train", 0, 3000)
    assert 0.48 < made.labels[:, 2:].mean() < 0.52
