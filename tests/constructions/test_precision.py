"""Numbers of few bits: the rounding against exact fractions and against torch's own types; what is found by running."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import parse_schedule
from hopbound.constructions import build
from hopbound.constructions.precision import (
    SignificandBits,
    is_exact,
    precision_report,
    rounded,
    smallest_precision,
)
from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition

from .examples import build as built

TASK = FunctionComposition(1, 8, ())


def nearest(x: float, bits: int) -> Fraction:
    """By exact arithmetic: the nearest multiple of 2^(e - bits + 1), ties to the even one, for 2^e ≤ |x| < 2^(e+1)."""
    exact = Fraction(x)
    if exact == 0:
        return exact
    exponent = 0
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - bits + 1)
    return round(exact / unit) * unit  # Python rounds halves to even


@given(st.floats(-1e30, 1e30, allow_subnormal=False), st.integers(1, 52))
def test_rounding_is_to_the_nearest_ties_to_even(x: float, bits: int) -> None:
    assert Fraction(float(rounded(torch.tensor([x], dtype=torch.float64), bits))) == nearest(x, bits)


@pytest.mark.parametrize(("bits", "dtype"), [(8, torch.bfloat16), (11, torch.float16), (24, torch.float32)])
def test_rounding_is_that_of_the_types(bits: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(10_000, generator=generator, dtype=torch.float64)
    x = torch.cat([x[x.abs() > 1e-3], torch.tensor([torch.inf, -torch.inf, 0.0, 1 + 2.0**-bits, 1 + 3 * 2.0**-bits])])
    assert torch.equal(rounded(x, bits), x.to(dtype).double())
    assert bool(rounded(torch.tensor([torch.nan], dtype=torch.float64), bits).isnan().all())


@pytest.mark.parametrize("bits", [3, 8, 20])
def test_every_result_has_so_many_bits(bits: int) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, 4, 5, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    with SignificandBits(bits):
        a, b = a * 1, b * 1
        held = torch.zeros(3, dtype=torch.float64)
        held[1:] += 1 / torch.tensor([3.0, 7.0], dtype=torch.float64)  # through a view
        attended = torch.nn.functional.scaled_dot_product_attention(a, b, b, is_causal=True)
        results = [a + b, a @ b.transpose(-1, -2), a.softmax(-1), a.exp().cumsum(1), held, attended, *a.max(dim=-1)[:1]]
    for result in results:
        assert torch.equal(result, rounded(result, bits))


def test_with_all_bits_attention_is_that_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 5, 6, generator=generator, dtype=torch.float64) for _ in range(3))
    masks = [None, torch.ones(5, 5, dtype=torch.bool).tril(1), torch.randn(5, 5, generator=generator).double()]
    for mask in masks:
        for scale in (None, 1.0):
            attend = torch.nn.functional.scaled_dot_product_attention
            wanted = attend(q, k, v, attn_mask=mask, is_causal=mask is None, scale=scale)
            with SignificandBits(53):
                found = attend(q, k, v, attn_mask=mask, is_causal=mask is None, scale=scale)
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("schedule", ["2*full", "gdn full", "retnet full"])
def test_built_models_are_exact_in_every_type(schedule: str) -> None:
    """And in emulated arithmetic of bfloat16's 8 bits, every operation of attention and recurrences included."""
    decoder = built(schedule, TASK).decoder
    report = precision_report(decoder, TASK)
    assert report.dtypes == dict.fromkeys(("bfloat16", "float16", "float32", "float64"), True)
    assert report.beyond_range == ()
    assert report.significand_bits is not None
    assert report.significand_bits <= 8
    assert "bfloat16 yes, float16 yes, float32 yes" in str(report)
    assert not is_exact(decoder, TASK, bits=report.significand_bits - 1)


def test_digits_that_stand_behind_a_one_need_the_bits_in_between() -> None:
    """The fetched digits become 1 ± 2^-12, which takes 13 bits; the map reads 2^12 times what is beyond 1."""
    decoder = built("2*full", TASK).decoder
    block = decoder.each_block()[0]
    value, pointwise = block.each_mixer()[0].get_parameter("value.weight"), block.pointwise
    assert pointwise is not None
    with torch.no_grad():
        value[value.ne(0).any(dim=1), 0] = 2.0**12  # column 0 is 1 everywhere
        value *= 2.0**-12
        pointwise.rise.weight.mul_(2.0**12)
        pointwise.rise.bias.sub_(2.0 * 2.0**12)
    bits = smallest_precision(decoder, TASK)
    assert bits is not None
    assert 13 <= bits <= 16


def test_what_a_type_cannot_hold_is_said() -> None:
    decoder = built("2*full", TASK).decoder
    with torch.no_grad():
        decoder.each_block()[0].each_mixer()[0].get_parameter("query.weight")[0, 0] = 2.0**17
    report = precision_report(decoder, TASK)
    assert (report.beyond_range, report.dtypes["float16"]) == (("float16",), False)
    assert "float16 no (a weight is beyond its range)" in str(report)


def test_build_says_it_and_keeps_it() -> None:
    result = build(parse_schedule("2*full[heads=1,head_dim=24]"), FunctionComposition(1, 4, ()), precision=True)
    assert result.precision is not None
    assert result.precision.to_json()["significand_bits"] == result.precision.significand_bits
    half = build(parse_schedule("2*full[heads=1,head_dim=24]"), FunctionComposition(1, 4, ()), dtype=torch.float16)
    assert half.verdict == "possible"
    assert half.verification.dtype == "float16"


def test_a_type_that_cannot_hold_the_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopbound.constructions.lookup.sharpness", lambda _: 2.0**17)
    with pytest.raises(InputError, match="dtype: got 'float16'"):
        build(parse_schedule("2*full[heads=1,head_dim=24]"), FunctionComposition(1, 4, ()), dtype=torch.float16)
