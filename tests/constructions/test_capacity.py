"""The curve beyond the capacity: exact up to it, and what is measured is what a plain delta rule gives."""

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions.associative import AssociativeMemory
from hopbound.constructions.capacity import curve_beyond, randomise_keys
from hopbound.errors import InputError
from hopbound.tasks import Recall


def stack(name: str, dim: int = 8):
    return parse_schedule(f"shift[channels=4] {name}[heads=1,head_dim={dim}]")


@pytest.mark.parametrize("name", ["linear", "delta", "gdn"])
def test_exact_up_to_the_capacity_and_not_beyond(name: str) -> None:
    curve = curve_beyond(stack(name), (-7, -4, 0, 1, 8), instances=100)
    assert [one.pairs for one in curve] == [1, 4, 8, 9, 16]
    assert [one.orthogonal for one in curve[:3]] == [1.0] * 3
    assert all(one.orthogonal < 1.0 for one in curve[3:])
    assert curve[0].random == 1.0
    assert curve[-1].random < 0.9
    assert curve_beyond(stack(name), (1,), instances=100) == curve[3:4]


def test_random_keys_are_read_as_a_plain_delta_rule_reads_them() -> None:
    """Numpy, a token at a time: S += k (v - k S), answers by the signs of q S."""
    task = Recall(10, 10, 16)
    built = AssociativeMemory().write(stack("delta"), task, torch.float32)
    randomise_keys(built.decoder, built.directions, seed=5)
    columns = built.directions["key"]
    weight = built.decoder.each_block()[1].each_mixer()[0].get_parameter("key.weight")
    vectors = weight[:, columns.start : columns.stop].double().numpy().T
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    batch = task.sample(0, "test", 0, 100)
    expected = []
    for prompt in batch.prompts:
        memory = np.zeros((8, 4))
        for key, value in zip(prompt[0:-1:2], prompt[1:-1:2], strict=True):
            digits = np.array([2.0 * (value >> bit & 1) - 1 for bit in range(4)])
            memory += np.outer(vectors[key], digits - vectors[key] @ memory)
        expected.append(sum(1 << bit for bit, read in enumerate(vectors[prompt[-1]] @ memory) if read > 0))
    np.testing.assert_array_equal(built.decoder.answer(batch.prompts), expected)


@pytest.mark.parametrize("schedule", ["2*full[heads=1,head_dim=8]", "shift[channels=4] gla[heads=1,head_dim=8]"])
def test_other_stacks_are_refused(schedule: str) -> None:
    with pytest.raises(InputError, match="linear, delta or gdn"):
        curve_beyond(parse_schedule(schedule), (0,))
