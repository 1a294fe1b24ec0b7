"""One full layer on two functions: below every protocol at tiny sizes, and never below the published constant."""

from itertools import combinations, product
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Precisions, parse_schedule
from hopbound.bounds.ceiling import Ceiling, Question
from hopbound.bounds.two_functions import ceiling, error_floor
from hopbound.errors import InputError


@pytest.mark.parametrize(("n", "bits"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2)])
def test_no_protocol_errs_less(n: int, bits: int) -> None:
    """Every set of 2^b tables of answers: each f is best answered by the one that agrees with it most often."""
    tables = np.array(list(product(range(n), repeat=n)))
    agree = (tables[:, None] == tables[None]).mean(axis=2)
    best = max(agree[list(kept)].max(axis=0).mean() for kept in combinations(range(len(tables)), 2**bits))
    assert 1 - best >= error_floor(n, bits)
    assert (1 - best == 0) == (error_floor(n, bits) == 0)


@given(st.integers(2, 10**9), st.floats(0, 1))
def test_the_published_constant_follows(n: int, share: float) -> None:
    bits = int(share * n * log2(n))
    rest = n * log2(n) - bits
    if rest > 1e-6 * bits:  # where R itself is known in floating point
        assert error_floor(n, bits) >= rest / (3 * n * log2(n)) * (1 - 1e-9)


def test_the_published_constant_follows_for_every_small_size() -> None:
    for n in range(2, 40):
        for bits in range(int(n * log2(n)) + 1):
            rest = n * log2(n) - bits
            assert error_floor(n, bits) >= rest / (3 * n * log2(n)) * (1 - 1e-9)


@given(st.integers(2, 1000), st.integers(0, 9000))
def test_more_bits_never_raise_the_floor(n: int, bits: int) -> None:
    assert error_floor(n, bits + 1) <= error_floor(n, bits) + 1e-11
    assert 0 <= error_floor(n, bits) <= 1 - 1 / n


def test_a_stack() -> None:
    single = parse_schedule("mlp full[heads=1,head_dim=4] mlp", precisions=Precisions.uniform(4))
    found = ceiling(single, Question(16))
    assert isinstance(found, Ceiling)
    assert found.numbers == {"summary_bits": 24, "error": error_floor(16, 24)}
    assert found.numbers["error"] > 0.3
    for other in ("2*full", "linear full", "full conv", "linear", "nsa[k=2,block=4]"):
        assert not isinstance(ceiling(parse_schedule(other), Question()), Ceiling)


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="values"):
        error_floor(1, 0)
    with pytest.raises(InputError, match="summary_bits"):
        error_floor(2, -1)
