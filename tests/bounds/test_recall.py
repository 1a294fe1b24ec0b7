"""The recall ceiling against its reference values, and against every encoder there is at tiny sizes."""

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.bounds.recall import accuracy_ceiling, bits_to_recall, pairs_recallable
from hopbound.errors import InputError


def test_reference_values() -> None:
    """σ = 65,536 and V = 8192: 5,041 pairs without error; .847, .576, .320 at 1.25, 2 and 4 times as many."""
    assert pairs_recallable(8192, 65_536) == 5_041
    assert accuracy_ceiling(5_041, 8192, 65_536) == 1.0
    assert accuracy_ceiling(5_042, 8192, 65_536) < 1.0
    found = [round(accuracy_ceiling(round(5_041.23 * times), 8192, 65_536), 3) for times in (1.25, 2, 4)]
    assert found == [0.847, 0.576, 0.320]


@cache
def optimum(pairs: int, bits: int) -> float:
    """The best mean accuracy over all encoders of binary values: every way to give each table one of 2^bits states.

    A decoder answers each key with the value that most tables of a state have.
    """
    tables = list(product((0, 1), repeat=pairs))
    best = 0
    states = min(2**bits, len(tables))

    def score(members: list[tuple[int, ...]]) -> int:
        ones = [sum(table[i] for table in members) for i in range(pairs)]
        return sum(max(one, len(members) - one) for one in ones)

    def place(index: int, groups: list[list[tuple[int, ...]]]) -> None:
        nonlocal best
        if index == len(tables):
            best = max(best, sum(score(group) for group in groups))
            return
        for group in groups:
            group.append(tables[index])
            place(index + 1, groups)
            group.pop()
        if len(groups) < states:  # states are alike: a new one is opened in one way only
            groups.append([tables[index]])
            place(index + 1, groups)
            groups.pop()

    place(0, [])
    return best / (pairs * len(tables))


@pytest.mark.parametrize("pairs", [1, 2, 3])
@pytest.mark.parametrize("bits", [0, 1, 2, 3])
def test_no_encoder_is_above_the_ceiling(pairs: int, bits: int) -> None:
    ceiling = accuracy_ceiling(pairs, 2, bits)
    assert optimum(pairs, bits) <= ceiling
    if bits >= pairs:
        assert optimum(pairs, bits) == ceiling == 1.0
    if bits == 0:
        assert optimum(pairs, bits) == 0.5
        assert ceiling == pytest.approx(0.5, abs=1e-6)  # flat there: the needed bits grow with the square


@given(st.integers(1, 10**6), st.integers(2, 10**5), st.integers(0, 10**7))
def test_the_ceiling_and_its_inverses_agree(pairs: int, values: int, bits: int) -> None:
    ceiling = accuracy_ceiling(pairs, values, bits)
    assert 1 / values <= ceiling <= 1
    held = pairs_recallable(values, bits)
    assert held is not None
    assert (held >= pairs) == (ceiling == 1.0)
    assert (bits_to_recall(pairs, values) <= bits) == (ceiling == 1.0)
    if ceiling > 1 / values + 1e-6:
        at_ceiling = pairs_recallable(values, bits, ceiling - 1e-9)
        assert at_ceiling is None or at_ceiling >= pairs


@given(st.integers(1, 10**4), st.integers(2, 10**4), st.integers(0, 10**5))
def test_the_ceiling_falls_with_pairs_and_rises_with_bits(pairs: int, values: int, bits: int) -> None:
    ceiling = accuracy_ceiling(pairs, values, bits)
    assert accuracy_ceiling(pairs + 1, values, bits) <= ceiling + 1e-12
    assert accuracy_ceiling(pairs, values, bits + 1) >= ceiling - 1e-12


@pytest.mark.parametrize(
    ("pairs", "values", "bits", "field"),
    [
        (0, 2, 1, "pairs"),
        (True, 2, 1, "pairs"),
        (1, 1, 1, "values"),
        (1, 2, -1, "state_bits"),
        (1, 2, float("nan"), "state"),
    ],
)
def test_wrong_input(pairs: int, values: int, bits: float, field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}"):
        accuracy_ceiling(pairs, values, bits)


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, float("nan"), True])
def test_wrong_accuracy(accuracy: float) -> None:
    with pytest.raises(InputError, match="accuracy"):
        pairs_recallable(2, 10, accuracy)
    with pytest.raises(InputError, match="accuracy"):
        bits_to_recall(1, 2, accuracy)
