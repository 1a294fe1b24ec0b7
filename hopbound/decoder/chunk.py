"""Parts of the stream at consecutive positions, as evaluation on demand passes them on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

if TYPE_CHECKING:
    from hopbound.decoder.model import PointwiseMap


@dataclass(frozen=True)
class Chunk:
    """Part of the stream at consecutive positions, on the columns `columns`: position part plus token part.

    The token part is held on `token_columns` only (places in `columns`); a projection that reads none of them is the
    same for the whole batch and is computed once.
    """

    start: int
    columns: Int[Tensor, " columns"]
    token_columns: Int[Tensor, " some"]
    positions: Float[Tensor, "one time columns"]
    tokens: Float[Tensor, "batch time some"]

    @property
    def value(self) -> Float[Tensor, "any time columns"]:
        """The stream itself; the batch axis is 1 if no column depends on the token."""
        if not len(self.token_columns):
            return self.positions
        value = self.positions.expand(self.tokens.shape[0], -1, -1).clone()
        value[..., self.token_columns] += self.tokens
        return value

    def project(self, weight: Float[Tensor, "out width"]) -> Float[Tensor, "any time out"]:
        """The chunk under a projection; the batch axis is 1 if the projection reads no token column."""
        weight = weight[:, self.columns]
        projected = self.positions @ weight.T
        by_token = weight[:, self.token_columns]
        return projected + self.tokens @ by_token.T if by_token.any() else projected

    def weigh(
        self, weights: Float[Tensor, "batch heads queries time"], width: int
    ) -> Float[Tensor, "batch heads queries width"]:
        """Sums over the chunk's positions, weighted, of its columns, in a stream of `width` columns."""
        total = torch.zeros(*weights.shape[:3], width, dtype=weights.dtype)
        from_position = self.positions.ne(0).flatten(0, 1).any(dim=0)
        if from_position.any():
            positions = self.positions[:, None, :, from_position].to(weights.dtype)
            total[..., self.columns[from_position]] += matmul(weights, positions)
        if len(self.token_columns):
            total[..., self.columns[self.token_columns]] += weights @ self.tokens[:, None].to(weights.dtype)
        return total


def matmul(a: Float[Tensor, "batch heads p q"], b: Float[Tensor, "any some q r"]) -> Float[Tensor, "batch heads p r"]:
    """`a @ b`; where `b` is the same for the whole batch, one product without a copy for each example."""
    if b.shape[0] != 1:
        return a @ b
    batch, heads, rows, _ = a.shape
    product = a.transpose(0, 1).reshape(heads, batch * rows, -1) @ b[0]
    return product.view(heads, batch, rows, -1).transpose(0, 1)


def mapped(chunk: Chunk, pointwise: "PointwiseMap", need: Bool[Tensor, " width"]) -> Chunk:
    """The chunk after a position-wise map without a norm, on the columns needed after it."""
    units = pointwise.fall.weight[need].ne(0).any(dim=0)
    value = chunk.value
    hidden = pointwise.hidden(value, chunk.columns, units)
    columns = need.nonzero()[:, 0]
    added = hidden @ pointwise.fall.weight[columns][:, units].T + pointwise.fall.bias[columns]
    after = value[..., torch.searchsorted(chunk.columns, columns)] + added
    if not len(chunk.token_columns):
        return Chunk(chunk.start, columns, chunk.token_columns, after, chunk.tokens)
    positions = torch.zeros(1, value.shape[1], len(columns), dtype=value.dtype)
    return Chunk(chunk.start, columns, torch.arange(len(columns)), positions, after)


def replaced(
    chunk: Chunk,
    positions: Int[Tensor, " some"],
    columns: Bool[Tensor, " width"],
    known: Float[Tensor, "batch some columns"],
) -> Chunk:
    """The chunk with some columns replaced, those of them that it has, at some positions, those of them in it."""
    inside = (positions >= chunk.start) & (positions < chunk.start + chunk.positions.shape[1])
    shared = columns[chunk.columns]
    if not inside.any() or not shared.any():
        return chunk
    kept = torch.isin(columns.nonzero()[:, 0], chunk.columns)
    value = chunk.value.expand(known.shape[0], -1, -1).clone()
    rows = positions[inside] - chunk.start
    value[:, rows[:, None], shared.nonzero()[:, 0]] = known[:, inside][..., kept]
    still = torch.zeros_like(value[:1])
    return Chunk(chunk.start, chunk.columns, torch.arange(len(chunk.columns)), still, value)
