"""A construction on the examples that it names, for the tests of each."""

from math import log2

import pytest
import torch
from _pytest.mark import ParameterSet

from hopbound.architecture import parse_schedule
from hopbound.constructions import Construction, Example, Verification, verify_model
from hopbound.constructions.verification import EXHAUSTIVE_UP_TO
from hopbound.errors import InputError
from hopbound.tasks import parse_task


def fitting(construction: Construction) -> list[ParameterSet]:
    """The examples within the limits; those of which not all instances are asked are slow tests."""
    return [_parameter(one) for one in construction.examples if one.fits]


def beyond(construction: Construction) -> list[ParameterSet]:
    """The examples one step beyond a limit, likewise."""
    return [_parameter(one) for one in construction.examples if not one.fits]


def _parameter(example: Example) -> ParameterSet:
    long = parse_task(example.task).log2_instances > log2(EXHAUSTIVE_UP_TO)
    return pytest.param(example, marks=[pytest.mark.slow] if long else [], id=f"{example.schedule} {example.task}")


def run(construction: Construction, example: Example, dtype: torch.dtype = torch.float32) -> Verification:
    """Write the weights, whether they fit or not, and ask them."""
    task = parse_task(example.task)
    built = construction.write(parse_schedule(example.schedule), task, dtype)
    assert built.construction == construction.name
    return verify_model(built.decoder, task)


def check_refused(construction: Construction, example: Example) -> None:
    """Refused with a reason in one line, not fatally, and for a reason: forced weights fail."""
    architecture, task = parse_schedule(example.schedule), parse_task(example.task)
    reason = construction.refusal(architecture, task)
    assert reason
    assert "\n" not in reason
    assert construction.fatal_refusal(architecture, task) is None
    found = run(construction, example)
    assert found.accuracy < 1.0
    assert not found.verified


def check_fatal(construction: Construction, schedule: str, task: str, reason: str) -> None:
    """Refused, and no forcing gets around it."""
    from hopbound.constructions import write_weights

    architecture = parse_schedule(schedule)
    found = construction.fatal_refusal(architecture, parse_task(task))
    assert found == construction.refusal(architecture, parse_task(task))
    assert found is not None
    assert reason in found
    for overfill in (False, True):
        with pytest.raises(InputError, match="schedule: got"):
            write_weights(architecture, parse_task(task), overfill=overfill)
