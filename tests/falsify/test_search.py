"""Fooling pairs are found where the theory says there are some, nowhere else, and they really fool."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Defaults, parse_schedule
from hopbound.falsify import (
    SearchResult,
    Subject,
    break_model,
    find_pair,
    find_smallest_pair,
    fools,
    judge,
    random_subject,
    simplify,
)
from hopbound.tasks import FunctionAnswerer, FunctionComposition

from .plain import built_decoder, is_fooling, path, plain_answers, random_decoder, right_answer

TASK = FunctionComposition(hops=2, m=4, n=(2,))
RANDOM_STACKS = ["4*linear", "full", "2*full", "linear full", "gdn conv", "delta|full window[w=3]", "mlp full mlp"]


@pytest.mark.parametrize("bounded", ["linear", "delta", "gdn"])
@pytest.mark.parametrize("head_dim", [2, 4])
def test_a_state_with_one_address_too_many_is_found_out(bounded: str, head_dim: int) -> None:
    task = FunctionComposition(hops=2, m=head_dim + 1, n=(2,))
    decoder = built_decoder(f"2*{bounded}[head_dim={head_dim},value_dim=8] full", task, overfill=True)
    result = find_pair(decoder, task, max_prompts=5_000)
    assert result.pair is not None
    assert result.prompts_tried <= 5_000
    assert is_fooling(decoder, result.pair)


@pytest.mark.parametrize(
    ("schedule", "task"),
    [
        ("3*full", TASK),
        ("linear 2*full", TASK),
        ("full linear full", FunctionComposition(hops=2, m=3, n=(3,), values=(2,))),
        ("2*full", FunctionComposition(hops=1, m=9)),
    ],
)
def test_no_pair_against_a_correct_model(schedule: str, task: FunctionComposition) -> None:
    subject = Subject(built_decoder(schedule, task), task, None, {})
    result = break_model(subject, max_prompts=5_000)
    assert result.pair is None
    assert 4_000 < result.prompts_tried <= 5_000
    assert sum(result.tried.values()) == result.prompts_tried
    assert set(result.tried) >= {"adversarial examples", "random examples", "gradient-guided"}


@pytest.mark.parametrize("schedule", RANDOM_STACKS)
def test_random_weights_are_found_out(schedule: str) -> None:
    decoder = random_decoder(schedule, TASK)
    for result in (find_pair(decoder, TASK, max_prompts=2_000), find_smallest_pair(decoder, TASK, max_prompts=2_000)):
        assert result.pair is not None
        assert is_fooling(decoder, result.pair)


def test_the_smallest_pair_has_the_smallest_sizes_first() -> None:
    found = find_smallest_pair(random_decoder("4*linear", TASK), TASK)
    assert found.pair is not None
    assert found.pair.task == FunctionComposition(hops=2, m=2, n=(1,))


def test_the_task_itself_is_asked_where_no_smaller_one_has_a_pair() -> None:
    # A model that is right at smaller sizes and at the task's own takes every 3 for a 2.
    smaller = {
        task.prompt_length: task
        for task in (FunctionComposition(hops=2, m=m, n=(n,)) for n in (1, 2) for m in (2, 3, 4))
        if task != TASK
    }

    def misread(prompts: np.ndarray) -> np.ndarray:
        task = smaller.get(prompts.shape[1], TASK)
        answers = np.array([right_answer(task, prompt) for prompt in prompts.tolist()])
        return np.where((answers == 3) & (task == TASK), 2, answers)

    result = find_smallest_pair(FunctionAnswerer(misread), TASK, max_prompts=4_000)
    assert result.pair is not None
    assert result.pair.task == TASK
    assert sorted(result.pair.right_answers) == [2, 3]


def test_the_search_ends_at_the_stated_number_of_prompts() -> None:
    asked = 0

    def oracle(prompts: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += len(prompts)
        return TASK.oracle(prompts)

    reported: list[int] = []
    result = find_pair(FunctionAnswerer(oracle), TASK, max_prompts=1_000, progress=reported.append)
    assert (result, asked) == (SearchResult(None, 1_000), 1_000)
    assert reported == sorted(reported)
    assert reported[-1] == 1_000


def written(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("schedule", ["2*linear", "full"])
def test_the_same_seed_writes_the_same_bytes(schedule: str, tmp_path: Path) -> None:
    architecture = parse_schedule(schedule, Defaults(head_dim=8))
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        break_model(random_subject(architecture, TASK, seed), out=tmp_path / name, seed=seed)
    assert written(tmp_path / "a") == written(tmp_path / "b")
    assert set(written(tmp_path / "a")) == {"pair.json", "pair-model/model.json", "pair-model/model.safetensors"}
    assert written(tmp_path / "a") != written(tmp_path / "c")


def test_nothing_is_written_where_nothing_is_found(tmp_path: Path) -> None:
    subject = Subject(built_decoder("3*full", TASK), TASK, None, {})
    assert break_model(subject, out=tmp_path / "none", max_prompts=500).pair is None
    assert list(tmp_path.iterdir()) == []


tasks = st.builds(
    lambda m, rest: FunctionComposition(
        hops=1 + len(rest), m=m, n=tuple(n for n, _ in rest), values=tuple(v for _, v in rest)
    ),
    st.integers(2, 5),
    st.lists(st.tuples(st.integers(1, 3), st.integers(2, 4)), max_size=2),
).filter(lambda task: task.answers >= 2)


@given(tasks, st.integers(0, 10), st.integers(0, 1000))
def test_visited_changes_change_one_visited_entry_and_the_answer(
    task: FunctionComposition, seed: int, row: int
) -> None:
    batch = task.sample(seed, "test", 0, 16)
    for hop in range(1, task.hops + 1):
        pairs = task.visited_changes(batch, hop, row)
        left = {tuple(prompt) for prompt in batch.prompts.tolist()}
        for first, second in pairs.tolist():
            assert tuple(first) in left
            (changed,) = [i for i in range(len(first)) if first[i] != second[i]]
            assert changed == path(task, first)[1][hop - 1] == path(task, second)[1][hop - 1]
            assert 0 <= second[changed] < task.values[hop - 1]
            assert right_answer(task, first) != right_answer(task, second)


@given(tasks, st.integers(0, 10), st.integers(0, 1000))
def test_visited_changes_leave_out_only_what_cannot_be_changed(task: FunctionComposition, seed: int, row: int) -> None:
    batch = task.sample(seed, "test", 0, 16)
    for hop in range(1, task.hops + 1):
        kept = {tuple(prompt) for prompt in task.visited_changes(batch, hop, row)[:, 0].tolist()}
        for prompt in batch.prompts.tolist():
            place = path(task, prompt)[1][hop - 1]
            others = [[*prompt[:place], value, *prompt[place + 1 :]] for value in range(task.values[hop - 1])]
            changeable = any(right_answer(task, other) != right_answer(task, prompt) for other in others)
            assert (tuple(prompt) in kept) == changeable


def zeroed(prompts: np.ndarray, position: int) -> np.ndarray:
    result = prompts.copy()
    result[:, position] = 0
    return result


def still_settable(answerer: FunctionAnswerer, task: FunctionComposition, prompts: np.ndarray) -> list[int]:
    """Positions that could be set to 0 in both prompts, one at a time, and the pair would still fool."""
    same = [i for i in range(prompts.shape[1]) if prompts[0, i] == prompts[1, i] != 0]
    least = judge(task, answerer, prompts[None])[0]
    return [i for i in same if judge(task, answerer, zeroed(prompts, i)[None])[0] >= least]


def hashing(task: FunctionComposition, salt: int) -> FunctionAnswerer:
    """A model without sense: few answers, each a function of all tokens together."""
    weights = np.random.default_rng(salt).integers(0, 1000, task.prompt_length)
    return FunctionAnswerer(lambda prompts: (prompts @ weights // 7) % 2)


def some_pairs(task: FunctionComposition, answerer: FunctionAnswerer, salt: int) -> np.ndarray:
    """At most four pairs that fool the answerer."""
    pairs = task.visited_changes(task.sample(salt, "test", 0, 64), task.hops, 0)
    return pairs[fools(task, answerer, pairs)][:4]


@given(tasks, st.integers(0, 50))
def test_simplified_pairs_still_fool(task: FunctionComposition, salt: int) -> None:
    answerer = hashing(task, salt)
    for pair in some_pairs(task, answerer, salt):
        simple, trials = simplify(answerer, task, pair)
        assert fools(task, answerer, simple[None])[0]
        assert trials >= 0
        assert (simple != 0).sum() <= (pair != 0).sum()
        assert np.flatnonzero(simple[0] != simple[1]).tolist() == np.flatnonzero(pair[0] != pair[1]).tolist()


@given(tasks, st.integers(0, 50))
def test_simplified_pairs_are_minimal(task: FunctionComposition, salt: int) -> None:
    answerer = hashing(task, salt)
    for pair in some_pairs(task, answerer, salt):
        simple, _ = simplify(answerer, task, pair)
        assert still_settable(answerer, task, simple) == []


def test_the_answers_on_demand_are_those_of_the_plain_forward_pass() -> None:
    decoder = random_decoder("full gdn", TASK)
    prompts = TASK.sample(0, "test", 0, 100).prompts
    assert decoder.answer(prompts).tolist() == plain_answers(decoder, prompts)
