"""Copying against every encoder there is at tiny sizes, and against exact powers."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Precisions, parse_schedule
from hopbound.bounds.ceiling import Ceiling, Question
from hopbound.bounds.copying import ceiling, copying_ceiling, length_copyable
from hopbound.errors import InputError


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("symbols", [2, 3])
@pytest.mark.parametrize("bits", [0, 1, 2])
def test_no_encoder_is_above_the_ceiling_and_one_meets_it(length: int, symbols: int, bits: int) -> None:
    strings = list(product(range(symbols), repeat=length))
    best = 0
    for told in product(range(2**bits), repeat=len(strings)):  # an encoder: the state that each string leaves
        best = max(best, len(set(told)))  # the best decoder writes one of the strings of each state
        if best == min(2**bits, len(strings)):
            break
    assert best / len(strings) == pytest.approx(copying_ceiling(length, symbols, bits))


@given(st.integers(1, 200), st.integers(2, 1000), st.integers(0, 3000))
def test_against_exact_powers(length: int, symbols: int, bits: int) -> None:
    assert (length_copyable(symbols, bits) >= length) == (symbols**length <= 2**bits)
    assert (copying_ceiling(length, symbols, bits) == 1.0) == (symbols**length <= 2**bits)
    if symbols**length > 2**bits and length * symbols.bit_length() - bits < 900:
        assert copying_ceiling(length, symbols, bits) == pytest.approx(2**bits / symbols**length, rel=1e-9)


@given(st.integers(2, 1000), st.integers(0, 3000), st.floats(1e-6, 1))
def test_the_longest_string_is_copied_with_the_probability_wanted(symbols: int, bits: int, accuracy: float) -> None:
    longest = length_copyable(symbols, bits, accuracy)
    assert longest == 0 or copying_ceiling(longest, symbols, bits) >= accuracy * (1 - 1e-9)
    assert copying_ceiling(longest + 1, symbols, bits) < accuracy * (1 + 1e-9)


def test_a_stack() -> None:
    found = ceiling(parse_schedule("2*gdn[heads=1,head_dim=4]", precisions=Precisions.uniform(8)), Question(16))
    assert isinstance(found, Ceiling)
    assert found.numbers == {"symbols": 64, "state_bits": 2 * 16 * 8}
    assert not isinstance(ceiling(parse_schedule("gdn full"), Question()), Ceiling)


@pytest.mark.parametrize(
    ("length", "symbols", "bits", "field"),
    [
        (0, 2, 1, "length"),
        (1, 1, 1, "symbols"),
        (1, 2, -1, "state_bits"),
        (1, 2, 1.5, "state_bits"),
        (True, 2, 1, "length"),
    ],
)
def test_wrong_input(length: int, symbols: int, bits: int, field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}"):
        copying_ceiling(length, symbols, bits)
