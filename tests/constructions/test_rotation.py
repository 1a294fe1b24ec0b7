"""Shifts by rotations: right where the bound on rounding says so, wrong where the drift is as large as the margin."""

import math

import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import Example, build
from hopbound.constructions.rotation import DRIFT, ShiftsByRotation
from hopbound.errors import InputError
from hopbound.tasks import PermutationWords
from tests.constructions.cases import beyond, check_fatal, check_refused, fitting, run

ROTATION = ShiftsByRotation()
SCHEDULE = "deltaproduct[heads=1,head_dim=2,steps=2,beta=2]"


@pytest.mark.parametrize("example", fitting(ROTATION))
def test_the_examples_are_answered(example: Example) -> None:
    assert run(ROTATION, example).verified


@pytest.mark.parametrize("example", beyond(ROTATION))
def test_beyond_the_limits(example: Example) -> None:
    check_refused(ROTATION, example)


@pytest.mark.parametrize("points", [2, 3, 4, 6, 11])
def test_the_margin_is_that_of_a_polygon(points: int) -> None:
    result = build(parse_schedule(SCHEDULE), PermutationWords(points, 3, "cyclic"))
    assert result.built.construction == "rotation"
    assert result.verification.accuracy == 1.0
    assert math.isclose(result.verification.smallest_margin, 1 - math.cos(math.tau / points), abs_tol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("points", [5, 60])
def test_the_drift(points: int, dtype: torch.dtype) -> None:
    """The right logit is the length of the corner: it is off by far less than the bound, and in float64 by nothing."""
    task = PermutationWords(points, 3_000, "cyclic")
    model = ROTATION.write(parse_schedule(SCHEDULE), task, dtype).decoder
    batch = task.adversarial(0, 0, 16)
    logits = torch.cat(list(model.logits_of(batch.prompts)))
    off = float((logits.gather(1, torch.from_numpy(batch.answers)[:, None]) - 1).abs().max())
    assert off < task.length * (2.0**-20 if dtype is torch.float32 else 2.0**-49)
    assert off < task.length * DRIFT / 2


def test_how_long_words_may_be() -> None:
    stack = parse_schedule(SCHEDULE)
    assert ROTATION.refusal(stack, PermutationWords(5, 22_642, "cyclic")) is None
    reason = ROTATION.refusal(stack, PermutationWords(5, 22_643, "cyclic"))
    assert reason == "rounding may add up to a wrong corner, 5 points are safe for 22642 letters"
    assert "safe for 179 letters" in str(ROTATION.refusal(stack, PermutationWords(60, 180, "cyclic")))


def test_coarse_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"dtype: got 'torch\.bfloat16', expected float32 or float64"):
        ROTATION.write(parse_schedule(SCHEDULE), PermutationWords(5, 3, "cyclic"), torch.bfloat16)


def test_fatal_refusals() -> None:
    assert "no rotations" in str(ROTATION.fatal_refusal(parse_schedule(SCHEDULE), PermutationWords(3, 2)))
    for schedule, reason in (
        ("deltaproduct[heads=1,head_dim=2,steps=2,conv=4,beta=2]", "stands behind a convolution"),
        ("deltaproduct[heads=1,head_dim=1,steps=2,beta=2]", "two coordinates and two steps"),
        ("gdn[heads=1,head_dim=2,beta=2]", "two coordinates and two steps"),
        ("deltaproduct[heads=1,head_dim=2,steps=2]", "no eigenvalue -1"),
        ("deltaproduct[heads=1,head_dim=2,value_dim=1,steps=2,beta=2]", "2 value digits"),
    ):
        found = ROTATION.fatal_refusal(parse_schedule(schedule), PermutationWords(5, 2, "cyclic"))
        assert found is not None
        assert reason in found
    check_fatal(ROTATION, "2*full", "permutation_words[points=3,length=2,letters=cyclic]", "no layer writes by a delta")
