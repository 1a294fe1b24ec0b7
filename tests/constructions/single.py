"""What holds for every example of a construction for a single task."""

import numpy as np
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import BuildResult, Construction, Example, build
from hopbound.decoder import Decoder
from hopbound.tasks import Task, parse_task

LEAST_MARGIN = {torch.float32: 1.99, torch.bfloat16: 1.9}


def check_example(
    construction: Construction, example: Example, dtype: torch.dtype = torch.float32, least: float | None = None
) -> BuildResult:
    """It is refused exactly if it does not fit, answers everything if it does, and fails where it is forced."""
    architecture, task = parse_schedule(example.schedule), parse_task(example.task)
    assert construction.fatal_refusal(architecture, task) is None
    assert (construction.refusal(architecture, task) is None) == example.fits
    result = build(architecture, task, dtype=dtype, overfill=not example.fits)
    assert result.built.construction == construction.name
    if example.fits:
        assert result.verification.accuracy == 1.0
        assert result.verification.smallest_margin >= (LEAST_MARGIN[dtype] if least is None else least)
    else:
        assert not result.verification.verified
        assert result.verification.accuracy < 1.0
    return result


def check_whole_forward(decoder: Decoder, task: Task, count: int = 8) -> None:
    """The plain forward over the whole sequence gives the logits that evaluation on demand gives."""
    prompts = np.concatenate([task.sample(0, "test", 0, count).prompts, task.adversarial(0, 0, count).prompts])
    whole = decoder(torch.from_numpy(prompts))[0][:, -1]
    on_demand = torch.cat(list(decoder.logits_of(prompts)))
    torch.testing.assert_close(on_demand, whole, atol=1e-3, rtol=1e-3)


def weights_survive_bfloat16(decoder: Decoder) -> bool:
    """Whether every weight is a number of bfloat16."""
    return all(torch.equal(weight, weight.bfloat16().to(weight.dtype)) for weight in decoder.parameters())
