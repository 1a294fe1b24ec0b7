"""What the commands share: options, one-line errors, JSON on stdout, notes and progress on stderr."""

import json
import math
import sys
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbound.architecture import Defaults, Precisions
from hopbound.errors import InputError

if TYPE_CHECKING:
    from hopbound.catalog import Model

_DEFAULTS = Defaults()

HeadsOption = Annotated[int, typer.Option("--heads", help="Heads of a mixer that does not give them.")]
HeadDimOption = Annotated[int, typer.Option("--head-dim", help="Head dimension d: d_k = d_v = d where not given.")]
WindowOption = Annotated[int, typer.Option("--window", help="Window of a window layer that does not give it.")]
KernelOption = Annotated[int, typer.Option("--kernel", help="Width of a convolution that does not give it.")]
BitsOption = Annotated[
    int | None,
    typer.Option("--bits", help="Bits of every number. Default: 16 for activations and caches, 32 for sums."),
]
KvBitsOption = Annotated[int | None, typer.Option("--kv-bits", help="Bits of a cached key or value.")]
StateBitsOption = Annotated[int | None, typer.Option("--state-bits", help="Bits of a number of recurrent state.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]

DEFAULT_HEADS = _DEFAULTS.heads
DEFAULT_HEAD_DIM = _DEFAULTS.head_dim
DEFAULT_WINDOW = _DEFAULTS.window
DEFAULT_KERNEL = _DEFAULTS.kernel


class SizesKind(StrEnum):
    """Value sizes of the task: any, or the paper's."""

    free = "free"
    paper = "paper"


def precisions(bits: int | None) -> Precisions:
    """`--bits` for everything, or the defaults."""
    return Precisions() if bits is None else Precisions.uniform(bits)


def read_model(
    source: str, defaults: Defaults, bits: int | None, kv_bits: int | None, state_bits: int | None
) -> "Model":
    """The model that a user names, in the precisions that are asked for.

    Raises:
        InputError: as `catalog.read_model`; bits out of range.
    """
    from hopbound.catalog import read_model as read

    return read(source, defaults).with_bits(every=bits, kv=kv_bits, state=state_bits)


def numbers(field: str, text: str | None) -> tuple[int, ...] | None:
    """A list of whole numbers, as in `--n 4,4`.

    Raises:
        InputError: something in it is no whole number.
    """
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(field, text, "whole numbers with commas between them") from error


def note(text: str) -> None:
    """A line on stderr."""
    print(text, file=sys.stderr, flush=True)


def _finite(value: Any) -> Any:
    """The value with infinities as null: JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(_finite(value), indent=1, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    """Plain lines on stdout."""
    for line in lines:
        print(line)


def table(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Lines with aligned columns.

    Args:
        rows: as many cells each.
        right: the columns that are aligned at their right end.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
