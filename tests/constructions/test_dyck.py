"""Brackets by a counter and a stack: exact at any length, against a plain stack."""

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import Example, build
from hopbound.constructions.dyck import BracketStack
from hopbound.tasks import Dyck
from tests.constructions.cases import beyond, check_fatal, check_refused, fitting, run

STACK = BracketStack()
COUNTERS = [
    "mamba2[heads=1,head_dim=1,state=1]",
    "mamba2[heads=4,head_dim=2,state=3,groups=2]",
    "deltaproduct[heads=2,head_dim=2,steps=3,beta=2]",
]
KEEPERS = [
    "delta[heads=1,head_dim=3,value_dim=2]",
    "gdn[heads=2,head_dim=4,value_dim=1,beta=2]",
    "kda[heads=2,key_heads=1,head_dim=3,value_dim=1]",
    "full deltaproduct[heads=1,head_dim=5,value_dim=2,steps=2]",
]


@pytest.mark.parametrize("example", fitting(STACK))
def test_the_examples_are_answered_exactly(example: Example) -> None:
    found = run(STACK, example)
    assert found.accuracy == 1.0
    assert found.smallest_margin == 1.0


@pytest.mark.parametrize("example", beyond(STACK))
def test_beyond_the_limits(example: Example) -> None:
    check_refused(STACK, example)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("counter", COUNTERS)
def test_every_stack_in_every_type(counter: str, keeper: str, dtype: torch.dtype) -> None:
    result = build(parse_schedule(f"{counter} {keeper}"), Dyck(2, 3, 8), dtype=dtype)
    assert result.verification.exhaustive
    assert result.verification.accuracy == 1.0
    assert result.verification.smallest_margin == 1.0


@pytest.mark.parametrize("counter", COUNTERS)
def test_at_every_place_of_a_prefix(counter: str) -> None:
    task = Dyck(2, 3, 300)
    built = STACK.write(parse_schedule(f"{counter} {KEEPERS[0]}"), task, torch.float32)
    prompts = np.concatenate([task.sample(0, "test", 0, 4).prompts, task.adversarial(0, 0, 8).prompts])
    logits, _ = built.decoder(torch.from_numpy(prompts))
    for row, said in zip(prompts.tolist(), logits.argmax(dim=-1).tolist(), strict=True):
        stack: list[int] = []
        for token, answer in zip(row, said, strict=True):
            if token < 2:
                stack.append(token)
            else:
                assert stack.pop() == token - 2
            assert answer == (stack[-1] if stack else 2)


def test_the_deepest_brackets() -> None:
    """255 open at a time: the largest depth that the heights of a bfloat16 stream allow."""
    task = Dyck(2, 255, 600)
    schedule = "mamba2[heads=1,head_dim=1,state=1] delta[heads=1,head_dim=255,value_dim=2]"
    model = STACK.write(parse_schedule(schedule), task, torch.bfloat16).decoder
    batch = task.adversarial(0, 0, 16)
    np.testing.assert_array_equal(model.answer(batch.prompts), batch.answers)


def test_fatal_refusals() -> None:
    reason = "no layer with a delta rule without convolution above one that counts"
    for schedule in ("2*full", "delta mamba2", "mamba2[conv=4] delta", "mamba2 gdn[conv=4]", "2*gdn[beta=2]"):
        check_fatal(STACK, schedule, "dyck[kinds=2,depth=2,length=4]", reason)
