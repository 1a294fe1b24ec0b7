"""Words over permutations by reflections: exact at any length; keys of length √2 in their place drift."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import parse_schedule
from hopbound.constructions import Example, build
from hopbound.constructions.permutation_words import WordsByReflections, most_transpositions, transpositions
from hopbound.mixers.delta_rule import delta_rule
from hopbound.tasks import PermutationWords
from tests.constructions.cases import beyond, check_fatal, check_refused, fitting, run

WORDS = WordsByReflections()
SYMMETRIC = "deltaproduct[heads=1,head_dim=10,value_dim=3,steps=4,beta=2]"


@pytest.mark.parametrize("example", fitting(WORDS))
def test_the_examples_are_answered_exactly(example: Example) -> None:
    found = run(WORDS, example)
    assert found.accuracy == 1.0
    assert found.smallest_margin == 2.0


@pytest.mark.parametrize("example", beyond(WORDS))
def test_beyond_the_limits(example: Example) -> None:
    check_refused(WORDS, example)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("schedule", "task"),
    [
        ("delta[heads=1,head_dim=8,value_dim=2,beta=2]", PermutationWords(4, 3)),
        ("gdn[heads=3,head_dim=9,value_dim=1,key_heads=1,beta=2]", PermutationWords(4, 3)),
        ("mamba2 kda[heads=1,head_dim=8,value_dim=2,beta=2] full", PermutationWords(4, 3)),
        ("deltaproduct[heads=2,head_dim=8,value_dim=1,steps=3,beta=2]", PermutationWords(4, 2, "symmetric")),
        ("deltaproduct[heads=1,head_dim=8,value_dim=2,steps=2,beta=2]", PermutationWords(4, 2, "alternating")),
        ("deltaproduct[heads=1,head_dim=8,value_dim=2,steps=5,beta=2]", PermutationWords(4, 4, "cyclic")),
    ],
    ids=str,
)
def test_every_stack_in_every_type(schedule: str, task: PermutationWords, dtype: torch.dtype) -> None:
    result = build(parse_schedule(schedule), task, dtype=dtype)
    assert result.verification.exhaustive
    assert result.verification.accuracy == 1.0
    assert result.verification.smallest_margin == 2.0


def test_one_model_for_every_length() -> None:
    model = WORDS.write(parse_schedule(SYMMETRIC), PermutationWords(5, 1, "symmetric"), torch.float32).decoder
    for length in (1, 2, 31, 32, 33, 500):
        task = PermutationWords(5, length, "symmetric")
        batch = task.adversarial(3, 0, 16)
        np.testing.assert_array_equal(model.answer(batch.prompts), batch.answers)
        whole, _ = model(torch.from_numpy(batch.prompts))
        assert torch.equal(whole[:, -1], model.final_logits(torch.from_numpy(batch.prompts)))


@given(st.permutations(range(7)))
def test_a_permutation_is_the_product_of_its_transpositions(permutation: list[int]) -> None:
    swaps = transpositions(np.array(permutation))
    for point in range(7):
        image = point
        for i, j in reversed(swaps):
            image = {i: j, j: i}.get(image, image)
        assert image == permutation[point]


def test_as_many_transpositions_as_the_groups_need() -> None:
    assert [most_transpositions(PermutationWords(k, 1).permutations) for k in (2, 3, 9)] == [1, 1, 1]
    for k in (2, 3, 4, 5):
        assert most_transpositions(PermutationWords(k, 1, "symmetric").permutations) == k - 1
        assert most_transpositions(PermutationWords(k, 1, "cyclic").permutations) == k - 1
    assert [most_transpositions(PermutationWords(k, 1, "alternating").permutations) for k in (3, 4, 5)] == [2, 2, 4]


def drift(keys: torch.Tensor, start: torch.Tensor) -> float:
    """How far the delta rule with strength 2 takes a matrix from itself over swaps that make the identity."""
    time = keys.shape[0]
    nothing = torch.zeros(1, 1, time, start.shape[1])
    _, state = delta_rule(
        torch.zeros(1, 1, time, keys.shape[1]),
        torch.nn.functional.normalize(keys, dim=-1)[None, None],
        nothing,
        torch.full((1, 1, time), 2.0),
        None,
        start[None, None],
        chunk=32,
    )
    return float((state[0, 0] - start).abs().max())


def test_doubled_keys_do_not_drift_and_single_ones_do() -> None:
    """Why a point has two coordinates: 20,000 swaps of points 0 and 1 leave only such a matrix as it was."""
    single = torch.zeros(20_000, 3)
    single[:, 0], single[:, 1] = 1.0, -1.0
    doubled = single.repeat_interleave(2, dim=1)
    points = torch.eye(3).repeat_interleave(2, dim=0)
    assert drift(doubled, points) == 0.0
    assert drift(single, torch.eye(3)) > 1e-4


@pytest.mark.parametrize("points", [3, 4, 5])
def test_every_key_of_a_product_is_a_key(points: int) -> None:
    """What the entries of a chunk's inverse are made of: the swaps permute the keys, up to sign."""
    keys = {}
    for i, j in itertools.permutations(range(points), 2):
        key = np.zeros(2 * points)
        key[2 * i : 2 * i + 2], key[2 * j : 2 * j + 2] = 0.5, -0.5
        keys[i, j] = key
    for a, b in itertools.product(keys.values(), repeat=2):
        reflected = b - 2 * a * (a @ b)
        assert any((reflected == key).all() for key in keys.values())
        assert math.isclose(abs(2 * a @ b), round(abs(2 * a @ b)))


def test_fatal_refusals() -> None:
    task = "permutation_words[points=3,length=4]"
    check_fatal(WORDS, "2*full", task, "no layer writes by a delta rule")
    check_fatal(WORDS, "gdn[heads=1,head_dim=8,conv=4,beta=2]", task, "stands behind a convolution")
