"""Codes by rule: residual-stream coordinates of positions and tokens as ±1 binary digits, computed and never tabled.

A built model must know which function and which address a position belongs to. A table of n rows would make prompts
of a million tokens expensive and hide the rule; `model.json` stores the rule instead: segments of the prompt, in each a
few digit fields of the place in the segment, and constants.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopbound.errors import RejectedError


@dataclass(frozen=True)
class DigitField:
    """`bits` binary digits of `(x // divisor) % modulus`, least significant first, as ±1 from `column` on.

    Where `negated`, of the number's complement `-(x // divisor) % modulus`: what adds up with it to 0. An `offset` is
    added to x first: a position can so know the number of one before or behind it.
    """

    column: int
    divisor: int
    modulus: int
    bits: int
    negated: bool = False
    offset: int = 0

    def encode(self, x: Int[Tensor, "*shape"], dtype: torch.dtype) -> Float[Tensor, "*shape bits"]:
        """The digits of each x."""
        number = (x + self.offset) // self.divisor
        number = (-number if self.negated else number) % self.modulus
        digits = (number[..., None] >> torch.arange(self.bits, device=x.device)) & 1
        return (2 * digits - 1).to(dtype)

    @property
    def columns(self) -> range:
        """The stream's columns that hold it."""
        return range(self.column, self.column + self.bits)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; `negated` and `offset` are written only where they say something, as older files were."""
        fields = asdict(self)
        return {name: value for name, value in fields.items() if value or name not in ("negated", "offset")}

    @classmethod
    def from_json(cls, value: object, width: int) -> "DigitField":
        """From `to_json`, within a stream of `width` columns.

        Raises:
            RejectedError: other keys, or numbers that are none or out of range.
        """
        given = {"negated": False, "offset": 0, **value} if isinstance(value, dict) else value
        fields = exactly(given, "digit field", ("column", "divisor", "modulus", "bits", "negated", "offset"))
        if not isinstance(fields["negated"], bool):
            raise RejectedError(f"negated: {repr(fields['negated'])[:80]}, expected true or false")
        field = cls(
            whole(fields["column"], "column", 0),
            whole(fields["divisor"], "divisor", 1),
            whole(fields["modulus"], "modulus", 1),
            whole(fields["bits"], "bits", 0, 62),
            fields["negated"],
            whole(fields["offset"], "offset", -(2**40)),
        )
        if field.column + field.bits > width:
            raise RejectedError(f"column: {field.column} + {field.bits} digits, expected at most {width} columns")
        return field


@dataclass(frozen=True)
class TokenCode:
    """Digit fields of the token's number; every other column is 0."""

    fields: tuple[DigitField, ...]

    def encode(self, tokens: Int[Tensor, "*shape"], width: int, dtype: torch.dtype) -> Float[Tensor, "*shape width"]:
        """Stream coordinates of each token."""
        x = torch.zeros(*tokens.shape, width, dtype=dtype, device=tokens.device)
        for field in self.fields:
            x[..., field.column : field.column + field.bits] = field.encode(tokens, dtype)
        return x

    def columns(self) -> frozenset[int]:
        """The columns that depend on the token."""
        return frozenset(column for field in self.fields for column in field.columns)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"fields": [field.to_json() for field in self.fields]}

    @classmethod
    def from_json(cls, value: object, width: int) -> "TokenCode":
        """From `to_json`; RejectedError as `DigitField.from_json`."""
        fields = listed(exactly(value, "token code", ("fields",))["fields"], "token fields")
        return cls(tuple(DigitField.from_json(field, width) for field in fields))


@dataclass(frozen=True)
class SegmentCode:
    """`length` positions in a row: digit fields of the place in the segment (from 0), and constants (column, value)."""

    name: str
    length: int
    fields: tuple[DigitField, ...]
    constants: tuple[tuple[int, float], ...]

    def parts(
        self, places: Int[Tensor, " places"], dtype: torch.dtype
    ) -> Iterator[tuple[slice, Float[Tensor, "places columns"]]]:
        """Columns, and what they hold at places in the segment."""
        for field in self.fields:
            yield slice(field.column, field.column + field.bits), field.encode(places, dtype)
        for column, value in self.constants:
            yield slice(column, column + 1), torch.full((len(places), 1), value, dtype=dtype, device=places.device)

    @classmethod
    def from_json(cls, value: object, width: int) -> "SegmentCode":
        """From a segment of `PositionCode.to_json`; RejectedError as `DigitField.from_json`."""
        parts = exactly(value, "segment", ("name", "length", "fields", "constants"))
        constants = []
        for constant in listed(parts["constants"], "constants"):
            if not isinstance(constant, list) or len(constant) != 2 or not isinstance(constant[1], int | float):
                raise RejectedError(f"constant: {constant!r}, expected a column and a number")
            constants.append((whole(constant[0], "constant's column", 0, width - 1), finite(constant[1], "constant")))
        fields = tuple(DigitField.from_json(field, width) for field in listed(parts["fields"], "fields"))
        return cls(str(parts["name"]), whole(parts["length"], "length", 0), fields, tuple(constants))


@dataclass(frozen=True)
class PositionCode:
    """A rule for the positions of a prompt of fixed layout; every column that is not named is 0."""

    segments: tuple[SegmentCode, ...]

    @property
    def length(self) -> int:
        """Positions that the rule covers."""
        return sum(segment.length for segment in self.segments)

    def encode(
        self, positions: Int[Tensor, " places"], width: int, dtype: torch.dtype
    ) -> Float[Tensor, "places width"]:
        """Stream coordinates of each position."""
        x = torch.zeros(len(positions), width, dtype=dtype, device=positions.device)
        start = 0
        for segment in self.segments:
            within = (positions >= start) & (positions < start + segment.length)
            if torch.compiler.is_compiling():  # how many are inside is not known: all are encoded
                for columns, part in segment.parts(positions - start, dtype):
                    x[:, columns] = torch.where(within[:, None], part, x[:, columns])
            elif len(inside := within.nonzero()[:, 0]):
                for columns, part in segment.parts(positions[inside] - start, dtype):
                    x[inside, columns] = part
            start += segment.length
        return x

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "segments": [
                {
                    "name": segment.name,
                    "length": segment.length,
                    "fields": [field.to_json() for field in segment.fields],
                    "constants": [list(constant) for constant in segment.constants],
                }
                for segment in self.segments
            ]
        }

    @classmethod
    def from_json(cls, value: object, width: int) -> "PositionCode":
        """From `to_json`; RejectedError as `DigitField.from_json`."""
        segments = listed(exactly(value, "position code", ("segments",))["segments"], "segments")
        return cls(tuple(SegmentCode.from_json(segment, width) for segment in segments))


@dataclass(frozen=True)
class ReadoutCode:
    """Answers are read as binary digits: the logit of answer v is Σ_j code_j(v) · x[column + j]."""

    field: DigitField

    def logits(self, x: Float[Tensor, "*shape width"], answers: int) -> Float[Tensor, "*shape answers"]:
        """One logit an answer, in float32 at least."""
        wide = torch.promote_types(x.dtype, torch.float32)
        codes = self.field.encode(torch.arange(answers, device=x.device), wide)
        return x[..., self.field.column : self.field.column + self.field.bits].to(wide) @ codes.T

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return self.field.to_json()

    @classmethod
    def from_json(cls, value: object, width: int) -> "ReadoutCode":
        """From `to_json`; RejectedError as `DigitField.from_json`."""
        return cls(DigitField.from_json(value, width))


def exactly(value: object, name: str, keys: Sequence[str]) -> Mapping[str, Any]:
    """A JSON object with these keys and no others.

    Raises:
        RejectedError: it is none.
    """
    if not isinstance(value, dict) or set(value) != set(keys):
        raise RejectedError(f"{name}: {repr(value)[:80]}, expected an object with the keys {', '.join(keys)}")
    return value


def listed(value: object, name: str) -> list[Any]:
    """A JSON list.

    Raises:
        RejectedError: it is none.
    """
    if not isinstance(value, list):
        raise RejectedError(f"{name}: {repr(value)[:80]}, expected a list")
    return value


def whole(value: object, name: str, least: int, most: int = 2**40) -> int:
    """A whole number in a range.

    Raises:
        RejectedError: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RejectedError(f"{name}: {repr(value)[:80]}, expected a whole number from {least} to {most}")
    return value


def finite(value: object, name: str) -> float:
    """A number that float32 holds.

    Raises:
        RejectedError: it is none.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 2**127:
        raise RejectedError(f"{name}: {repr(value)[:80]}, expected a number below 2^127")
    return float(value)


def bit_length(count: int) -> int:
    """Binary digits that tell `count` things apart: ⌈log₂ count⌉."""
    return (count - 1).bit_length()


def signs(number: int, bits: int) -> Sequence[int]:
    """The ±1 digits of one number, least significant first."""
    return [1 if number >> j & 1 else -1 for j in range(bits)]
