"""Rank: the witness of dependence is exact, the mixers obey it, and picking the largest entry goes beyond it."""

from math import cos, pi, sin

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import parse_schedule
from hopbound.bounds.ceiling import Ceiling, Question
from hopbound.bounds.rank import ceiling, dependence, mixer_rank, vectors_readable
from hopbound.errors import InputError

queries = st.integers(1, 4).flatmap(
    lambda f: st.lists(st.lists(st.integers(-3, 3), min_size=f, max_size=f), min_size=1, max_size=6)
)


@given(queries)
def test_a_dependence_is_found_exactly_where_there_is_one(vectors: list[list[int]]) -> None:
    found = dependence(vectors)
    assert (found is None) == (np.linalg.matrix_rank(np.array(vectors)) == len(vectors))
    if found is not None:
        assert any(found)
        assert all(sum(c * v[i] for c, v in zip(found, vectors, strict=True)) == 0 for i in range(len(vectors[0])))


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32))
def test_one_query_too_many_returns_dependent_vectors_whatever_the_state(f: int, d_v: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    q = torch.randint(-5, 6, (vectors_readable(f, d_v) + 1, f), generator=generator)
    S = torch.randint(-99, 100, (d_v, f), generator=generator)
    c = dependence(q.tolist())
    assert c is not None
    assert not (torch.tensor(c) @ (q @ S.T)).any()


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize("d_v", [1, 2, 3])
def test_as_many_queries_as_stated_reach_an_open_set(f: int, d_v: int) -> None:
    """The map from states to answers has full rank at a random state: all nearby tuples are answers."""
    generator = torch.Generator().manual_seed(17 * f + d_v)
    for normaliser in (False, True):
        N = vectors_readable(f, d_v, normaliser=normaliser)
        q = torch.rand(N, f, generator=generator, dtype=torch.float64) + 0.1

        def answers(state: torch.Tensor, q: torch.Tensor = q, normaliser: bool = normaliser) -> torch.Tensor:
            S, z = state[:-1], state[-1]
            return (q @ S.T / (q @ z)[:, None] if normaliser else q @ S.T).flatten()

        at = torch.rand(d_v + 1, f, generator=generator, dtype=torch.float64) + 0.1
        jacobian = torch.autograd.functional.jacobian(answers, at).reshape(N * d_v, -1)
        assert torch.linalg.matrix_rank(jacobian) == N * d_v
        assert (N + 1) * d_v > f * d_v + (f - 1) * normaliser


@pytest.mark.parametrize("values", [3, 10, 101])
def test_the_largest_entry_points_further_than_the_rank(values: int) -> None:
    """Two features, any number of values: keys on a circle, entry j of S q largest for the query at key j."""
    circle = [(cos(2 * pi * j / values), sin(2 * pi * j / values)) for j in range(values)]
    for i, q in enumerate(circle):
        read = [k[0] * q[0] + k[1] * q[1] for k in circle]
        assert max(range(values), key=read.__getitem__) == i
    assert vectors_readable(2, values) == 2


@pytest.mark.parametrize(
    ("schedule", "rank"),
    [
        ("delta[head_dim=8,value_dim=3]", 8),
        ("linear[head_dim=8,value_dim=3]", (8 * 3 + 7) // 3),
        ("linear[head_dim=8]", 8),
        ("mamba2[heads=2,head_dim=4,state=16]", 16),
        ("mamba[channels=4,state=16]", 16),
        ("loglinear[head_dim=4,levels=5]", 20),
        ("rglru", None),
        ("full", None),
    ],
)
def test_the_rank_of_a_mixer(schedule: str, rank: int | None) -> None:
    assert mixer_rank(parse_schedule(schedule).layers[0].mixers[0]) == rank


def test_a_stack_without_linear_reads_gets_no_ceiling() -> None:
    assert not isinstance(ceiling(parse_schedule("full window"), Question()), Ceiling)


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="features"):
        vectors_readable(0, 1)
    with pytest.raises(InputError, match="queries"):
        dependence([[1], [1, 2]])
