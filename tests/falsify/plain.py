"""The task's definition and the model's forward pass once more, as plainly as they can be written."""

from collections.abc import Sequence
from math import prod

import numpy as np
import torch

from hopbound.architecture import Defaults, parse_schedule
from hopbound.constructions.composition import build_composition
from hopbound.decoder import Decoder
from hopbound.falsify import FoolingPair, random_subject
from hopbound.tasks import FunctionComposition, Task


def path(task: Task, prompt: Sequence[int]) -> tuple[list[int], list[int]]:
    """i_0..i_L of a prompt in hard order with the query in one token, and the positions that are read on the way."""
    assert isinstance(task, FunctionComposition)
    values = task.values
    domains = [task.m] + [fan * size for fan, size in zip(task.n, values[:-1], strict=True)]
    assert len(prompt) == sum(domains) + 2
    *_, i, query = prompt
    found, read = [i], []
    for hop in range(1, task.hops + 1):
        start = sum(domains[hop:])  # z_L stands first, z_1 last
        part = 0 if hop == 1 else query // prod(task.n[: hop - 2]) % task.n[hop - 2]
        address = i if hop == 1 else part * values[hop - 2] + i
        read.append(start + address)
        i = prompt[start + address]
        found.append(i)
    return found, read


def right_answer(task: Task, prompt: Sequence[int]) -> int:
    return path(task, prompt)[0][-1]


def plain_answers(decoder: Decoder, prompts: np.ndarray) -> list[int]:
    """The whole sequence through every layer, nothing on demand; the largest logit at the last token."""
    logits, _ = decoder(torch.from_numpy(prompts))
    return logits[:, -1].argmax(dim=-1).tolist()


def is_fooling(decoder: Decoder, pair: FoolingPair) -> bool:
    first, second = pair.prompts.tolist()
    changed = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    right = [right_answer(pair.task, prompt) for prompt in (first, second)]
    return (
        len(changed) == 1
        and changed[0] < len(first) - 2  # in a function, neither the start nor the query
        and right[0] != right[1]
        and plain_answers(decoder, pair.prompts) == [pair.model_answer] * 2
    )


def built_decoder(schedule: str, task: FunctionComposition, *, overfill: bool = False, head_dim: int = 24) -> Decoder:
    architecture = parse_schedule(schedule, Defaults(head_dim=head_dim))
    return build_composition(architecture, task, overfill=overfill).decoder


def random_decoder(schedule: str, task: FunctionComposition, seed: int = 0) -> Decoder:
    return random_subject(parse_schedule(schedule, Defaults(head_dim=8)), task, seed).decoder
