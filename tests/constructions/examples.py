"""Short ways to build a model and to ask it, for the tests of this folder."""

import numpy as np
import torch

from hopbound.architecture import Defaults, parse_schedule
from hopbound.constructions.composition import BuiltComposition, build_composition
from hopbound.decoder import Decoder
from hopbound.tasks import FunctionComposition


def build(
    schedule: str,
    task: FunctionComposition,
    dtype: torch.dtype = torch.float32,
    *,
    head_dim: int = 24,
    overfill: bool = False,
) -> BuiltComposition:
    return build_composition(
        parse_schedule(schedule, Defaults(head_dim=head_dim)), task, dtype=dtype, overfill=overfill
    )


def fraction_right(decoder: Decoder, task: FunctionComposition, count: int = 200, seed: int = 0) -> float:
    """Of `count` random instances and as many adversarial ones."""
    batches = [task.sample(seed, "test", 0, count), task.adversarial(seed, 0, count)]
    return float(np.mean([decoder.answer(batch.prompts) == batch.answers for batch in batches]))
