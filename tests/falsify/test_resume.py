"""A search that is stopped and goes on ends as one that was not; a file of another search is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hopbound.architecture import Defaults, parse_schedule
from hopbound.errors import InputError, RejectedError
from hopbound.falsify import Fooled, SearchResult, Subject, break_model, random_subject
from hopbound.falsify.families import RandomChanges
from hopbound.falsify.search import Checkpoint, find_pair
from hopbound.tasks import FunctionAnswerer, FunctionComposition

from .plain import built_decoder

TASK = FunctionComposition(hops=2, m=4, n=(2,))


class StoppedError(Exception):
    pass


def stopping(after: int) -> Callable[[int], None]:
    def progress(tried: int) -> None:
        if tried >= after:
            raise StoppedError

    return progress


def rarely_wrong(prompts: np.ndarray) -> np.ndarray:
    """Right, but where the tokens come to 0 modulo 4,001: the start of the search finds nothing."""
    code = (prompts @ np.arange(5, 5 + prompts.shape[1]) ** 5 + 17) % 4_001
    return np.where(code == 0, 0, TASK.oracle(prompts))


@pytest.mark.parametrize("stops", [[100], [3_000], [700, 2_000, 6_000]])
def test_a_stopped_search_ends_as_one_that_was_not(stops: list[int], tmp_path: Path) -> None:
    model = FunctionAnswerer(rarely_wrong)
    whole = find_pair(model, TASK, max_prompts=60_000)
    checkpoint = Checkpoint(tmp_path / "search.json", {"what": "this"})
    for stop in stops:
        with pytest.raises(StoppedError):
            find_pair(model, TASK, max_prompts=60_000, checkpoint=checkpoint, progress=stopping(stop))
    again = find_pair(model, TASK, max_prompts=60_000, checkpoint=checkpoint)
    assert whole.pair is not None
    assert again.pair is not None
    assert again.pair.to_json() == whole.pair.to_json()
    assert again.tried == whole.tried
    assert whole.prompts_tried > 1_000
    assert find_pair(model, TASK, max_prompts=60_000, checkpoint=checkpoint).tried == whole.tried


def test_what_is_done_is_not_asked_again(tmp_path: Path) -> None:
    asked: list[int] = []

    def counting(prompts: np.ndarray) -> np.ndarray:
        asked.append(len(prompts))
        return TASK.oracle(prompts)

    checkpoint = Checkpoint(tmp_path / "search.json", {})
    whole = find_pair(FunctionAnswerer(counting), TASK, max_prompts=9_000, checkpoint=checkpoint)
    assert sum(asked) == whole.prompts_tried
    asked.clear()
    assert find_pair(FunctionAnswerer(counting), TASK, max_prompts=9_000, checkpoint=checkpoint) == whole
    assert sum(asked) <= 4 * RandomChanges(TASK, 0).size


def test_a_model_that_is_always_wrong_and_never_alike(tmp_path: Path) -> None:
    """The pair that was kept is the result, whether the search was stopped between or not."""
    model = FunctionAnswerer(lambda prompts: (TASK.oracle(prompts) + 1) % TASK.answers)
    whole = find_pair(model, TASK)
    assert whole.pair is not None
    assert whole.pair.fooled is Fooled.BOTH_WRONG
    assert whole.pair.model_answer is None
    checkpoint = Checkpoint(tmp_path / "search.json", {})
    with pytest.raises(StoppedError):
        find_pair(model, TASK, checkpoint=checkpoint, progress=stopping(1_100))
    again = find_pair(model, TASK, checkpoint=checkpoint)
    assert again.pair is not None
    assert again.pair.to_json() == whole.pair.to_json()


def test_nothing_found_is_resumed_too(tmp_path: Path) -> None:
    subject = Subject(built_decoder("2*full", FunctionComposition(hops=1, m=3)), FunctionComposition(1, 3), None, {})
    whole = break_model(subject, max_prompts=1_500)
    with pytest.raises(StoppedError):
        break_model(subject, max_prompts=1_500, resume=tmp_path / "s.json", progress=stopping(700))
    result = break_model(subject, max_prompts=1_500, resume=tmp_path / "s.json")
    assert result == SearchResult(None, whole.prompts_tried)
    assert result.tried == whole.tried


def test_a_file_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    architecture = parse_schedule("2*linear", Defaults(head_dim=8))
    # A pair is found at once, before anything is kept: what is kept of a search is written by hand.
    Checkpoint(path, {"seed": 1}).save(Checkpoint(tmp_path / "none.json", {}).load())
    with pytest.raises(InputError, match="resume"):
        break_model(random_subject(architecture, TASK, 0), resume=path)
    assert json.loads(path.read_text(encoding="utf-8"))["search"] == {"seed": 1}


@pytest.mark.parametrize(
    "change",
    [{"schema": "other"}, {"state": None}, {"state": {"stage": 0}}, {"state": 7}],
    ids=str,
)
def test_a_file_that_is_no_search_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    checkpoint = Checkpoint(path, {})
    checkpoint.save(checkpoint.load())
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change))
    with pytest.raises(RejectedError):
        checkpoint.load()


@pytest.mark.parametrize("value", [None, "1", 0.5, []], ids=str)
def test_counts_are_whole_numbers(value: object, tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    checkpoint = Checkpoint(path, {})
    checkpoint.save(checkpoint.load())
    document = json.loads(path.read_text(encoding="utf-8"))
    document["state"]["round"] = value
    path.write_text(json.dumps(document))
    with pytest.raises(RejectedError):
        checkpoint.load()
