"""Parity by one reflection: exact at any length, in any type, in chunks or token by token."""

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import Example, build
from hopbound.constructions.parity import ParityByReflection
from hopbound.decoder import Decoder
from hopbound.tasks import Parity
from tests.constructions.cases import beyond, check_fatal, check_refused, fitting, run

PARITY = ParityByReflection()
STACKS = [
    "delta[heads=1,head_dim=1,beta=2]",
    "gdn[heads=3,head_dim=2,value_dim=5,beta=2]",
    "gdn[heads=4,key_heads=2,head_dim=2,conv=4,beta=2]",
    "kda[heads=2,head_dim=3,beta=2]",
    "deltaproduct[heads=2,head_dim=3,steps=3,beta=2]",
    "full delta[heads=1,head_dim=1,beta=2] mlp",
]


def decoder(schedule: str, dtype: torch.dtype = torch.float32) -> Decoder:
    return PARITY.write(parse_schedule(schedule), Parity(9), dtype).decoder


@pytest.mark.parametrize("example", fitting(PARITY))
def test_the_examples_are_answered_exactly(example: Example) -> None:
    found = run(PARITY, example)
    assert found.accuracy == 1.0
    assert found.smallest_margin == 2.0


@pytest.mark.parametrize("example", beyond(PARITY))
def test_beyond_the_limits(example: Example) -> None:
    check_refused(PARITY, example)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("schedule", STACKS)
def test_every_stack_in_every_type(schedule: str, dtype: torch.dtype) -> None:
    task = Parity(9)
    built = build(parse_schedule(schedule), task, dtype=dtype)
    assert built.verdict == "possible"
    assert built.verification.exhaustive
    # Behind silu the numbers are silu(32), which is 32 in float32 and 32 - 4e-13 in float64.
    assert abs(built.verification.smallest_margin - 2.0) <= (1e-12 if dtype is torch.float64 else 0.0)


@pytest.mark.parametrize("schedule", STACKS[:5])
def test_one_model_for_every_length_and_every_place(schedule: str) -> None:
    """The weights do not know the length: at each token they say the parity so far, which plain Python counts."""
    bits = np.random.default_rng(0).integers(0, 2, (2, 777))
    logits, _ = decoder(schedule)(torch.from_numpy(bits))
    assert logits.argmax(dim=-1).tolist() == [[sum(row[: i + 1]) % 2 for i in range(777)] for row in bits.tolist()]
    assert torch.equal(logits.abs(), torch.ones_like(logits))


def test_token_by_token_gives_the_same_bits() -> None:
    bits = torch.from_numpy(np.random.default_rng(1).integers(0, 2, (3, 100)))
    model = decoder(STACKS[0])
    whole, _ = model(bits)
    state, steps = None, []
    for token in bits.split(1, dim=1):
        logits, state = model(token, state)
        steps.append(logits)
    assert torch.equal(torch.cat(steps, dim=1), whole)
    assert torch.equal(model.final_logits(bits), whole[:, -1])


def test_stacks_without_a_delta_rule_are_refused() -> None:
    check_fatal(PARITY, "3*mamba2 full", "parity[length=4]", "no layer writes by a delta rule")
