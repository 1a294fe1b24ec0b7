"""Named directions of the residual stream: each coordinate belongs to a name, weights are written between names."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Directions:
    """Coordinates handed out in order; a name is a range of them."""

    spans: dict[str, range] = field(default_factory=dict)
    width: int = 0

    def add(self, name: str, size: int) -> range:
        """Hand out `size` coordinates under a new name."""
        if name in self.spans:
            raise ValueError(f"direction {name!r} is taken")
        self.spans[name] = range(self.width, self.width + size)
        self.width += size
        return self.spans[name]

    def __getitem__(self, name: str) -> range:
        return self.spans[name]

    def low(self, name: str, bits: int) -> range:
        """The first `bits` coordinates of a name: the least significant digits of a code."""
        span = self.spans[name]
        if bits > len(span):
            raise ValueError(f"direction {name!r} has {len(span)} coordinates, {bits} were asked for")
        return span[:bits]

    def to_json(self) -> dict[str, list[int]]:
        """Name to [first coordinate, number of coordinates]."""
        return {name: [span.start, len(span)] for name, span in self.spans.items()}


def copy(weight: Tensor, rows: Sequence[int], columns: Sequence[int], scale: float = 1.0) -> None:
    """Let row r of a projection read column c, one to one along both."""
    if len(rows) != len(columns):
        raise ValueError(f"{len(rows)} rows cannot copy {len(columns)} columns")
    for row, column in zip(rows, columns, strict=True):
        weight[row, column] = scale


def coarse(weight: float) -> float:
    """The nearest number that bfloat16 holds, so that the same weights work in every type; off by 2^-9 of itself."""
    return float(torch.tensor(weight, dtype=torch.float64).to(torch.bfloat16))
