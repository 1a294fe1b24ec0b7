"""A stored pair is replayed to the last number, or refused with a reason."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.decoder import Decoder
from hopbound.errors import RejectedError
from hopbound.falsify import Fooled, FoolingPair, find_pair, fools, judge, replay
from hopbound.tasks import FunctionAnswerer, FunctionComposition

from ..places import Place, altered, get, places
from .plain import built_decoder, path, random_decoder, right_answer

TASK = FunctionComposition(hops=2, m=3, n=(2,), values=(2,))
OVERFILLED = FunctionComposition(hops=2, m=5, n=(2,))
KINDS = ["random", "overfilled"]


def task_of(kind: str) -> FunctionComposition:
    return TASK if kind == "random" else OVERFILLED


@cache
def found(kind: str) -> tuple[Decoder, FoolingPair]:
    if kind == "random":
        decoder, task = random_decoder("2*linear", TASK), TASK
    else:
        task = OVERFILLED
        decoder = built_decoder("2*delta[head_dim=4,value_dim=8] full", task, overfill=True)
    pair = find_pair(decoder, task).pair
    assert pair is not None
    return decoder, pair


def document(kind: str) -> dict[str, Any]:
    """As it comes from a file."""
    return json.loads(json.dumps(found(kind)[1].to_json()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_replayed(kind: str) -> None:
    replay(document(kind), found(kind)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_pair_is_what_the_definition_gives(kind: str) -> None:
    decoder, pair = found(kind)
    stored = document(kind)
    first, second = stored["prompts"]
    position = stored["changed"]["position"]
    function = int(stored["changed"]["function"].removeprefix("z_"))
    assert [i for i in range(len(first)) if first[i] != second[i]] == [position]
    assert stored["changed"]["values"] == [first[position], second[position]]
    assert stored["changed"]["address"] == position - sum(task_of(kind).domains[function:])
    assert stored["hops"] == [path(pair.task, prompt)[0] for prompt in (first, second)]
    assert stored["right_answers"] == [right_answer(pair.task, prompt) for prompt in (first, second)]
    assert decoder.answer(pair.prompts).tolist() == [stored["model_answer"]] * 2
    right = [answer == stored["model_answer"] for answer in stored["right_answers"]]
    assert [did == "right" for did in stored["model_did"]] == right


@pytest.mark.parametrize("change", [1, -1, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_no_number_can_be_changed(kind: str, change: int) -> None:
    stored = document(kind)
    numbers = [at for at in places(stored) if type(get(stored, at)) is int]
    assert len(numbers) > 30
    for at in numbers:
        with pytest.raises(RejectedError) as refused:
            replay(altered(stored, at, get(stored, at) + change), found(kind)[0])
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_prompts_cannot_be_swapped(kind: str) -> None:
    stored = document(kind)
    with pytest.raises(RejectedError):
        replay({**stored, "prompts": stored["prompts"][::-1]}, found(kind)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_right_is_not_fooled(kind: str) -> None:
    decoder = built_decoder("3*full", task_of(kind))
    with pytest.raises(RejectedError, match="not a fooling pair"):
        replay(document(kind), decoder)


@pytest.mark.parametrize("kind", KINDS)
def test_no_key_can_be_missing(kind: str) -> None:
    for at in places(document(kind)):
        if isinstance(at[-1], str):
            stored = document(kind)
            del get(stored, at[:-1])[at[-1]]
            with pytest.raises(RejectedError):
                replay(stored, found(kind)[0])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(KINDS), st.data(), json_values)
def test_whatever_is_written_into_a_pair(kind: str, data: st.DataObject, value: Any) -> None:
    stored = document(kind)
    check_alteration(kind, data.draw(st.sampled_from(list(places(stored)))), value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("prompts",), [[1], [1, 2]]),
        (("prompts",), []),
        (("prompts", 0, 0), 2**70),
        (("prompts", 0, 0), 0.5),
        (("prompts", 0, 0), -1),
        (("prompts", 0, 0), 10**6),
        (("task",), None),
        (("task",), []),
        (("task", "m"), 10**30),
        (("task", "order"), "easy"),
        (("task", "task"), "another"),
    ],
    ids=str,
)
def test_what_goes_wrong_easily(kind: str, at: Place, value: Any) -> None:
    check_alteration(kind, at, value)


def check_alteration(kind: str, at: Place, value: Any) -> None:
    """Refused, unless it says the same."""
    stored = document(kind)
    changed = altered(stored, at, value)
    if changed == stored:
        replay(changed, found(kind)[0])
        return
    with pytest.raises(RejectedError, match=r"\A[^\n]*\Z"):
        replay(changed, found(kind)[0])


def test_a_pair_for_larger_sizes_than_the_model_reads_is_refused() -> None:
    # As long as the model's prompts, but with more symbols: 10 in place of 8.
    small, large = FunctionComposition(hops=2, m=4, n=(2,)), FunctionComposition(hops=2, m=2, n=(5,))
    assert small.prompt_length == large.prompt_length
    prompts = large.sample(0, "test", 0, 2).prompts
    prompts[:, 0] = 9
    pair = FoolingPair(large, prompts, (0, 0))
    with pytest.raises(RejectedError):
        replay(pair.to_json(), random_decoder("full", small))


def test_equal_right_answers_are_no_fooling_pair() -> None:
    decoder, pair = found("random")
    assert fools(pair.task, decoder, pair.prompts[None]).tolist() == [True]
    assert fools(pair.task, decoder, pair.prompts[[0, 0]][None]).tolist() == [False]


def test_what_is_no_prompt_of_the_task_fools_nobody() -> None:
    decoder, pair = found("random")
    wrong = pair.prompts.copy()
    wrong[1, pair.positions[0]] = TASK.vocabulary_size
    assert fools(pair.task, decoder, np.stack([wrong, pair.prompts])).tolist() == [False, True]


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        *(((one, one), Fooled.ALIKE) for one in (0, 1, 2)),
        *((two, Fooled.BOTH_WRONG) for two in ((1, 0), (2, 0), (1, 2))),
        *((two, Fooled.NOT) for two in ((0, 1), (0, 2), (2, 1))),
    ],
)
def test_what_answers_to_two_prompts_mean(answers: tuple[int, int], verdict: Fooled) -> None:
    """The right answers are 0 and 1."""
    task = FunctionComposition(hops=1, m=3)
    prompts = np.array([[0, 2, 2, 0, 0], [1, 2, 2, 0, 0]])
    assert task.oracle(prompts).tolist() == [0, 1]
    said = FunctionAnswerer(lambda asked: np.array([answers[int(prompt[0])] for prompt in asked], dtype=np.int64))
    assert judge(task, said, prompts[None]).tolist() == [verdict]
    assert FoolingPair(task, prompts, answers).fooled is verdict
    if verdict is Fooled.NOT:
        return
    stored = json.loads(json.dumps(FoolingPair(task, prompts, answers).to_json()))
    assert stored["model_answer"] == (answers[0] if answers[0] == answers[1] else None)
    replay(stored, said)
    with pytest.raises(RejectedError, match="not a fooling pair"):
        replay(stored, FunctionAnswerer(task.oracle))


def test_a_pair_that_differs_in_several_tokens_is_told_in_full() -> None:
    task = FunctionComposition(hops=1, m=3)
    prompts = np.array([[0, 2, 2, 0, 0], [1, 0, 2, 0, 0]])
    stored = FoolingPair(task, prompts, (2, 2)).to_json()
    assert [stored["changed"]["position"], *(one["position"] for one in stored["further"])] == [0, 1]
    assert stored["matters"] == [[0, 3], [0, 3]]
