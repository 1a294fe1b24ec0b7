"""Train and test: disjoint by the tokens alone, or counted."""

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.tasks import NOT_ASKED, FunctionComposition, Labelled, Parity, Recall, SequenceTask, TwoSum, splits
from hopbound.tasks.splits import (
    APART,
    FEW,
    examples_of,
    has_split,
    held_out,
    overlap,
    sequence_hashes,
    test_examples,
    training_examples,
)

EXHAUSTED = [Parity(12), Recall(2, 6, 7), FunctionComposition(2, 2, (2,)), TwoSum(4, 7)]
M = 2**64
GOLDEN = ["c89b98f1d8aa604a", "1b1842d2a4cdabc8", "7add3a8382a65148", "51020f277df533f0"]


def hash_of(row: list[int]) -> int:
    """The rule in whole numbers."""
    value = 0x9E3779B97F4A7C15 * (len(row) + 1) % M
    for token in row:
        value = (value + token) * 0x9E3779B97F4A7C15 % M
        value ^= value >> 32
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % M
    value = (value ^ value >> 27) * 0x94D049BB133111EB % M
    return value ^ value >> 31


def rows_of(tokens: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, tokens.tolist()))


def asked_rows(made: Labelled) -> set[tuple[int, ...]]:
    return rows_of(made.tokens[made.asked.any(axis=1)])


def test_hashes_that_must_never_change() -> None:
    tokens = np.array([[0, 0, 0], [1, 2, 3], [3, 2, 1], [2**32 - 1, 0, 7]], dtype=np.int64)
    assert [f"{value:016x}" for value in sequence_hashes(tokens).tolist()] == GOLDEN
    assert sequence_hashes(tokens).tolist() == [hash_of(row) for row in tokens.tolist()]


def test_hashes_depend_on_the_row_alone() -> None:
    tokens = TwoSum(40, 1000).labelled(0, "train", 0, 20_000).tokens
    whole = sequence_hashes(tokens)
    assert [hash_of(row) for row in tokens[::997].tolist()] == whole[::997].tolist()
    np.testing.assert_array_equal(sequence_hashes(np.asfortranarray(tokens)), whole)
    np.testing.assert_array_equal(sequence_hashes(tokens[::-1])[::-1], whole)
    np.testing.assert_array_equal(np.concatenate([sequence_hashes(tokens[i : i + 77]) for i in (0, 77)]), whole[:154])


@pytest.mark.parametrize("task", [Parity(16), TwoSum(3, 40), Recall(2, 20, 13)], ids=lambda task: task.name)
def test_one_in_so_many_is_held_out(task: Parity | TwoSum | Recall) -> None:
    """Of all instances: within five standard deviations of the binomial share; no two have the same hash."""
    count = task.instances
    tokens = task.enumerate(0, count).prompts
    share = held_out(tokens).sum()
    assert abs(share - count / APART) < 5 * (count * (1 / APART) * (1 - 1 / APART)) ** 0.5
    assert len(np.unique(sequence_hashes(tokens))) == count


@pytest.mark.parametrize("task", [*EXHAUSTED, Parity(9)], ids=lambda task: task.identity)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_first_examples_of_a_split(task: SequenceTask, split: str) -> None:
    """Those of the stream, one after the other, that belong to it."""
    drawn = task.labelled(2, split, 0, 60_000)
    belongs = held_out(drawn.tokens) == (split == "test") if has_split(task) else np.ones(60_000, dtype=np.bool_)
    for count in (0, 1, 1500):
        parts = list(examples_of(task, 2, split, count))
        assert sum(map(len, parts)) == count
        assert all(map(len, parts))
        if count:
            np.testing.assert_array_equal(np.concatenate([one.tokens for one in parts]), drawn.tokens[belongs][:count])
            np.testing.assert_array_equal(np.concatenate([one.labels for one in parts]), drawn.labels[belongs][:count])


@pytest.mark.parametrize("task", EXHAUSTED, ids=lambda task: task.name)
def test_train_and_test_are_disjoint(task: SequenceTask) -> None:
    """On tasks so small that nearly all instances are drawn in both splits."""
    assert has_split(task)
    trained, tested = training_examples(task, 0, 0, 40_000), test_examples(task, 0, 2_000)
    assert asked_rows(trained).isdisjoint(rows_of(tested.tokens))
    assert rows_of(trained.tokens) & rows_of(tested.tokens)  # drawn, but not asked
    assert overlap(task, 0, 0, 40_000, tested.tokens) == 0
    np.testing.assert_array_equal(tested.labels, task.labels(tested.tokens))
    kept = trained.asked.any(axis=1)
    np.testing.assert_array_equal(trained.labels[kept], task.labels(trained.tokens)[kept])
    np.testing.assert_array_equal(kept, ~held_out(trained.tokens))


def test_other_seeds_and_splits_hold_out_the_same_sequences() -> None:
    task = Parity(12)
    trained = set().union(*(asked_rows(training_examples(task, seed, 0, 20_000)) for seed in range(3)))
    for seed, split in [(0, "test"), (5, "test"), (1, "validation")]:
        assert trained.isdisjoint(rows_of(test_examples(task, seed, 500, split).tokens))


def test_examples_do_not_depend_on_the_batch() -> None:
    task = Recall(3, 8, 5)
    whole = training_examples(task, 3, 1000, 3000)
    assert (~whole.asked.any(axis=1)).any()
    parts = [training_examples(task, 3, 1000 + low, 75) for low in range(0, 3000, 75)]
    np.testing.assert_array_equal(np.concatenate([part.tokens for part in parts]), whole.tokens)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), whole.labels)
    longest = test_examples(task, 3, 5000)
    for count in (0, 1, 63, 64, 1025):
        some = test_examples(task, 3, count)
        np.testing.assert_array_equal(some.tokens, longest.tokens[:count])
        np.testing.assert_array_equal(some.labels, longest.labels[:count])
    drawn = task.labelled(3, "test", 0, 2000)
    first = drawn.tokens[held_out(drawn.tokens)]
    np.testing.assert_array_equal(longest.tokens[: len(first)], first)


def test_few_instances_have_no_split_and_the_overlap_is_counted() -> None:
    task = Parity(9)
    assert not has_split(task)
    assert task.instances < FEW
    assert has_split(Parity(10))
    tested = test_examples(task, 0, 400)
    np.testing.assert_array_equal(tested.tokens, task.labelled(0, "test", 0, 400).tokens)
    trained = training_examples(task, 0, 100, 300)
    assert trained.asked[:, -1].all()
    seen = rows_of(trained.tokens)
    expected = sum(tuple(row) in seen for row in tested.tokens.tolist())
    assert 0 < expected < 400
    assert overlap(task, 0, 100, 300, tested.tokens) == expected
    assert overlap(task, 0, 0, 50_000, tested.tokens) == 400
    assert overlap(task, 0, 0, 0, tested.tokens) == 0


def test_equal_hashes_alone_are_no_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "sequence_hashes", lambda tokens: np.full(len(tokens), M - 1, dtype=np.uint64))
    task = Parity(20)
    tested = task.labelled(0, "test", 0, 100).tokens
    assert overlap(task, 0, 0, 100, tested) == len(rows_of(tested) & rows_of(task.labelled(0, "train", 0, 100).tokens))


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="split: got 'train', expected another split"):
        test_examples(Parity(12), 0, 1, "train")
    with pytest.raises(InputError, match="count: got -1"):
        test_examples(Parity(12), 0, -1)
    with pytest.raises(InputError, match="start: got -1"):
        overlap(Parity(12), 0, -1, 1, np.zeros((1, 12), dtype=np.int64))


def test_a_search_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "held_out", lambda tokens: np.zeros(len(tokens), dtype=np.bool_))
    with pytest.raises(InputError, match="count: got 5, expected at most 0: no more of"):
        test_examples(Parity(12), 0, 5)


def test_nothing_is_asked_in_what_is_held_out() -> None:
    made = training_examples(Parity(12), 0, 0, 1000)
    assert (made.labels[held_out(made.tokens)] == NOT_ASKED).all()
