"""Tokens numbered by those that count, with the tokens of a cache before the new ones."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Numbering:
    """All tokens until now, and the last ones, whose outputs are wanted.

    Attributes:
        counts: which of all count; None: all do.
        number: of each token among those that count, from 0; that of one that does not is of no use.
        own: the numbers of the last tokens.
        visible: for each of the last tokens, which are not after it and count; one that does not count sees itself.
    """

    counts: Bool[Tensor, "batch total"] | None
    number: Int[Tensor, "batch total"]
    own: Int[Tensor, "batch time"]
    visible: Bool[Tensor, "batch time total"]


def numbered(
    x: Float[Tensor, "batch time width"],
    before: int,
    held: Bool[Tensor, "batch before"] | None,
    mask: Bool[Tensor, "batch time"] | None,
) -> Numbering:
    """Number the tokens `x` behind `before` cached ones.

    Args:
        x: the new tokens.
        before: how many tokens the cache holds.
        held: which of these count; None: all.
        mask: which of the new ones count; None: all.
    """
    batch, time = x.shape[:2]
    place = torch.arange(before + time, device=x.device)
    itself = place[before:, None] == place
    visible, number = (place[before:, None] >= place).expand(batch, -1, -1), place.expand(batch, -1)
    counts = None
    if held is not None or mask is not None:
        parts = (held, before), (mask, time)
        all_of = (x.new_ones(batch, size, dtype=torch.bool) if part is None else part for part, size in parts)
        counts = torch.cat(list(all_of), dim=1)
        number = counts.cumsum(dim=1) - 1
        visible = (visible & counts[:, None, :]) | itself
    return Numbering(counts, number, number[:, before:], visible)
