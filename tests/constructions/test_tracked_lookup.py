"""Track, then look up: hybrids answer what neither of their parts can."""

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.bounds.languages import FACTS, classify, word_problem
from hopbound.bounds.recall import accuracy_ceiling
from hopbound.constructions import Construction, Example, build
from hopbound.constructions.tracked_lookup import ParityLookUp, TrackedLookUp
from hopbound.tasks import ParityRetrieval, PermutationWords, StateRecall, Task, parse_task
from tests.constructions.cases import beyond, check_fatal, check_refused, fitting, run

TRACKED, PARITY = TrackedLookUp(), ParityLookUp()
CASES: list[tuple[Construction, str, Task]] = [
    (TRACKED, "delta[heads=1,head_dim=4,value_dim=2,beta=2] full[heads=1,head_dim=3]", StateRecall(3, 2, 3)),
    (
        TRACKED,
        "gdn[heads=2,head_dim=5,value_dim=1,beta=2] conv full[heads=2,kv_heads=1,head_dim=4,gate=1]",
        StateRecall(4, 2, 2, 3),
    ),
    (TRACKED, "deltaproduct[heads=1,head_dim=6,value_dim=1,beta=2] full", StateRecall(2, 3, 2, 5)),
    (TRACKED, "kda[heads=1,head_dim=4,value_dim=2,beta=2] full full", StateRecall(3, 2, 3)),
    (PARITY, "gdn[heads=1,head_dim=1,beta=2] full[heads=1,head_dim=3,value_dim=1]", ParityRetrieval(2, 5)),
    (PARITY, "2*gdn[heads=2,head_dim=2,conv=4,beta=2] full", ParityRetrieval(1, 4, 7)),
    (PARITY, "kda[heads=1,head_dim=3,beta=2] full[heads=2,head_dim=4,value_dim=1]", ParityRetrieval(2, 4, 3)),
]


@pytest.mark.parametrize(
    ("construction", "example"),
    [
        pytest.param(one, *case.values, marks=case.marks, id=case.id)
        for one in (TRACKED, PARITY)
        for case in fitting(one)
    ],
)
def test_the_examples_are_answered(construction: Construction, example: Example) -> None:
    found = run(construction, example)
    assert found.accuracy == 1.0
    assert found.smallest_margin > 1.99


@pytest.mark.parametrize(
    ("construction", "example"),
    [
        pytest.param(one, *case.values, marks=case.marks, id=case.id)
        for one in (TRACKED, PARITY)
        for case in beyond(one)
    ],
)
def test_beyond_the_limits(construction: Construction, example: Example) -> None:
    check_refused(construction, example)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize(("construction", "schedule", "task"), CASES, ids=str)
def test_every_stack_in_every_type(construction: Construction, schedule: str, task: Task, dtype: torch.dtype) -> None:
    result = build(parse_schedule(schedule), task, dtype=dtype)
    assert result.built.construction == construction.name
    assert result.verification.exhaustive
    assert result.verification.accuracy == 1.0
    assert result.verification.smallest_margin > (1.9 if dtype is torch.bfloat16 else 1.99)


@pytest.mark.parametrize(("construction", "schedule", "task"), CASES, ids=str)
def test_on_demand_is_the_whole_forward(construction: Construction, schedule: str, task: Task) -> None:
    decoder = construction.write(parse_schedule(schedule), task, torch.float64).decoder
    prompts = torch.from_numpy(task.adversarial(0, 0, 16).prompts)
    torch.testing.assert_close(decoder.final_logits(prompts), decoder(prompts)[0][:, -1])


def test_pointers_after_many_swaps() -> None:
    """Nothing grows with the number of swaps: the pointers are read as well after 5,000 of them as after one."""
    task = StateRecall(100, 5, 5_000, 256)
    schedule = "gdn[heads=1,head_dim=10,value_dim=7,beta=2] full[heads=1,head_dim=8]"
    result = TRACKED.write(parse_schedule(schedule), task, torch.float32)
    batch = task.adversarial(0, 0, 16)
    np.testing.assert_array_equal(result.decoder.answer(batch.prompts), batch.answers)


def test_neither_part_alone() -> None:
    """The states are too small for the memory, and the swaps are a word problem that attention is excluded from."""
    for construction in (TRACKED, PARITY):
        longest = max(construction.examples, key=lambda one: parse_task(one.task).prompt_length)
        task = parse_task(longest.task)
        assert isinstance(task, StateRecall | ParityRetrieval)
        bounded = parse_schedule(f"2*{longest.schedule.split()[0]}")
        assert accuracy_ceiling(task.cells, task.values, bounded.state_bits) < 0.5
    swaps = PermutationWords(5, 1).permutations.tolist()
    found = classify(word_problem(*(tuple(swap) for swap in swaps)))
    assert (found.kind, found.largest_group) == ("not solvable", 120)
    assert any("full" in fact.mixers and fact.excluded and fact.conditional for fact in FACTS if fact.speaks_of(found))


def test_fatal_refusals() -> None:
    task = "state_recall[cells=8,pointers=2,swaps=4,values=16]"
    for schedule, reason in (
        ("2*full", "no full layer above a delta rule"),
        ("full gdn[beta=2]", "no full layer above a delta rule"),
        ("gdn[conv=4,beta=2] full", "stands behind a convolution"),
        ("gdn[beta=2] full[heads=1,head_dim=3]", "address codes of 4 digits, full has head_dim=3"),
        ("gdn[beta=2] full[heads=1,head_dim=4,value_dim=2]", "value codes of 4 digits, full has 2 value channels"),
    ):
        check_fatal(TRACKED, schedule, task, reason)
    check_fatal(PARITY, "gdn[beta=2]", "parity_retrieval[cells=2,length=4]", "no full layer above a delta rule")
