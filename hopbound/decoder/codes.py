"""Codes by rule: residual-stream coordinates of positions and tokens as ±1 binary digits, computed and never tabled.

A built model must know which function and which address a position belongs to. A table of n rows would make prompts
of a million tokens expensive and hide the rule; `model.json` stores the rule instead: segments of the prompt, in each a
few digit fields of the place in the segment, and constants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class DigitField:
    """`bits` binary digits of `(x // divisor) % modulus`, least significant first, as ±1 from `column` on."""

    column: int
    divisor: int
    modulus: int
    bits: int

    def encode(self, x: Int[Tensor, "*shape"], dtype: torch.dtype) -> Float[Tensor, "*shape bits"]:
        """The digits of each x."""
        number = (x // self.divisor) % self.modulus
        digits = (number[..., None] >> torch.arange(self.bits, device=x.device)) & 1
        return (2 * digits - 1).to(dtype)

    @property
    def columns(self) -> range:
        """The stream's columns that hold it."""
        return range(self.column, self.column + self.bits)


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
        return {"fields": [asdict(field) for field in self.fields]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TokenCode":
        """From `to_json`."""
        return cls(tuple(DigitField(**field) for field in value["fields"]))


@dataclass(frozen=True)
class SegmentCode:
    """`length` positions in a row: digit fields of the place in the segment (from 0), and constants (column, value)."""

    name: str
    length: int
    fields: tuple[DigitField, ...]
    constants: tuple[tuple[int, float], ...]


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
            inside = ((positions >= start) & (positions < start + segment.length)).nonzero()[:, 0]
            if len(inside):
                place = positions[inside] - start
                for field in segment.fields:
                    x[inside, field.column : field.column + field.bits] = field.encode(place, dtype)
                for column, value in segment.constants:
                    x[inside, column] = value
            start += segment.length
        return x

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "segments": [
                {
                    "name": segment.name,
                    "length": segment.length,
                    "fields": [asdict(field) for field in segment.fields],
                    "constants": [list(constant) for constant in segment.constants],
                }
                for segment in self.segments
            ]
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "PositionCode":
        """From `to_json`."""
        return cls(
            tuple(
                SegmentCode(
                    segment["name"],
                    segment["length"],
                    tuple(DigitField(**field) for field in segment["fields"]),
                    tuple((column, value) for column, value in segment["constants"]),
                )
                for segment in value["segments"]
            )
        )


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
        return asdict(self.field)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "ReadoutCode":
        """From `to_json`."""
        return cls(DigitField(**value))


def bit_length(count: int) -> int:
    """Binary digits that tell `count` things apart: ⌈log₂ count⌉."""
    return (count - 1).bit_length()


def signs(number: int, bits: int) -> Sequence[int]:
    """The ±1 digits of one number, least significant first."""
    return [1 if number >> j & 1 else -1 for j in range(bits)]
