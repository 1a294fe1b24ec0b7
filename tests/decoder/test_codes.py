"""Codes by rule against python's own integer arithmetic."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopbound.decoder import DigitField, PositionCode, ReadoutCode, SegmentCode, TokenCode, bit_length, signs
from hopbound.errors import RejectedError

fields = st.builds(
    DigitField,
    column=st.integers(0, 5),
    divisor=st.integers(1, 50),
    modulus=st.integers(1, 300),
    bits=st.integers(0, 12),
    negated=st.booleans(),
)


def digits(number: int, bits: int) -> list[float]:
    """The binary digits as ±1, least significant first, from python's text form."""
    text = f"{number:0{bits or 1}b}"[::-1][:bits]
    return [1.0 if digit == "1" else -1.0 for digit in text]


@given(fields, st.lists(st.integers(0, 2**40), min_size=1, max_size=8))
def test_digit_field(field: DigitField, numbers: list[int]) -> None:
    encoded = field.encode(torch.tensor(numbers), torch.float64).tolist()
    sign = -1 if field.negated else 1
    expected = [divmod(sign * divmod(x, field.divisor)[0], field.modulus)[1] for x in numbers]
    assert encoded == [digits(number, field.bits) for number in expected]
    assert list(field.columns) == [field.column + j for j in range(field.bits)]


@given(st.integers(0, 2**20), st.integers(0, 20))
def test_signs(number: int, bits: int) -> None:
    assert [float(sign) for sign in signs(number, bits)] == digits(number, bits)


@given(st.integers(1, 2**20))
def test_bit_length_is_the_least_that_tells_apart(count: int) -> None:
    bits = bit_length(count)
    assert 2**bits >= count
    assert bits == 0 or 2 ** (bits - 1) < count


def test_token_code_leaves_other_columns_at_zero() -> None:
    code = TokenCode((DigitField(1, 1, 4, 2), DigitField(4, 3, 2, 1)))
    x = code.encode(torch.tensor([[0, 5]]), 6, torch.float32)
    assert x.tolist() == [[[0, -1, -1, 0, -1, 0], [0, 1, -1, 0, 1, 0]]]
    assert code.columns() == {1, 2, 4}


def test_position_code_starts_anew_in_each_segment() -> None:
    code = PositionCode(
        (
            SegmentCode("a", 3, (DigitField(0, 1, 4, 2),), ((2, 0.5),)),
            SegmentCode("b", 2, (DigitField(0, 1, 2, 1),), ()),
        )
    )
    assert code.length == 5
    x = code.encode(torch.arange(6), 3, torch.float32)
    assert x.tolist() == [[-1, -1, 0.5], [1, -1, 0.5], [-1, 1, 0.5], [-1, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_position_code_of_any_selection_in_any_order() -> None:
    code = PositionCode((SegmentCode("a", 30, (DigitField(1, 3, 5, 3),), ((0, 1.0),)), SegmentCode("b", 9, (), ())))
    whole = code.encode(torch.arange(39), 5, torch.float64)
    chosen = torch.tensor([38, 0, 29, 30, 7, 7])
    assert torch.equal(code.encode(chosen, 5, torch.float64), whole[chosen])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_are_largest_for_the_answer_that_stands_there(dtype: torch.dtype) -> None:
    code = ReadoutCode(DigitField(2, 1, 11, 4))
    x = torch.zeros(11, 8, dtype=dtype)
    x[:, 2:6] = DigitField(0, 1, 11, 4).encode(torch.arange(11), dtype)
    logits = code.logits(x, 11)
    assert logits.dtype is torch.float32
    assert logits.argmax(dim=1).tolist() == list(range(11))
    gaps = logits.topk(2, dim=1).values
    assert (gaps[:, 0] - gaps[:, 1]).min() == 2


@given(st.lists(fields, max_size=3))
def test_json_round_trips(some: list[DigitField]) -> None:
    tokens = TokenCode(tuple(some))
    assert TokenCode.from_json(json.loads(json.dumps(tokens.to_json())), 10**6) == tokens
    positions = PositionCode((SegmentCode("z", 7, tuple(some), ((0, 1.0), (3, -0.5))), SegmentCode("w", 1, (), ())))
    assert PositionCode.from_json(json.loads(json.dumps(positions.to_json())), 10**6) == positions
    for field in some:
        assert ReadoutCode.from_json(json.loads(json.dumps(ReadoutCode(field).to_json())), 10**6) == ReadoutCode(field)


@pytest.mark.parametrize("modulus", [3, 8, 10, 1_000_000])
def test_a_negated_field_holds_the_number_that_adds_up_to_zero(modulus: int) -> None:
    x = torch.arange(0, modulus, max(1, modulus // 50))
    field = DigitField(0, 1, modulus, bit_length(modulus), negated=True)
    places = 2 ** torch.arange(field.bits, dtype=torch.float64)
    numbers = ((field.encode(x, torch.float64) + 1) / 2) @ places
    assert ((x + numbers.long()) % modulus == 0).all()


def test_fields_are_written_as_before_unless_they_are_negated() -> None:
    plain, negated = DigitField(1, 2, 3, 2), DigitField(1, 2, 3, 2, negated=True)
    assert plain.to_json() == {"column": 1, "divisor": 2, "modulus": 3, "bits": 2}
    assert negated.to_json() == {**plain.to_json(), "negated": True}
    assert DigitField.from_json(plain.to_json(), 8) == plain
    for wrong in ({**plain.to_json(), "negated": 1}, {**plain.to_json(), "inverted": True}):
        with pytest.raises(RejectedError):
            DigitField.from_json(wrong, 8)


def test_an_offset_is_added_first() -> None:
    """Places know the numbers of those before them; what is below 0 comes round."""
    places = torch.arange(8)
    plain, before = DigitField(0, 1, 8, 3), DigitField(0, 1, 8, 3, offset=-3)
    assert torch.equal(before.encode(places, torch.float32)[3:], plain.encode(places, torch.float32)[:-3])
    assert before.encode(places, torch.float32)[0].tolist() == [1.0, -1.0, 1.0]  # 5
    assert DigitField.from_json(before.to_json(), 3) == before
    assert "offset" not in plain.to_json()
