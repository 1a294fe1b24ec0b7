r"""Which hidden units of a map stay shut wherever the tokens have nothing to do, whatever the layer's mixers write.

An attention head returns a weighted mean of values. Where the values read coordinates of the embedding alone, what the
head adds to a coordinate c of the stream is at most

    Σ_j |W_o[c, j]| Σ_i |W_v[j, i]| max |x_i|

in absolute value, a gate by a sigmoid included. A ReLU whose input is negative by more than that at a position is 0
there without the attention being computed: its other inputs, of the embedding, are enough to know so.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.decoder.codes import PositionCode, SegmentCode
from hopbound.decoder.model import Block, Decoder, PointwiseMap
from hopbound.mixers import SoftmaxAttention

SPARE = 1 + 2.0**-6  # for sums that are rounded


def embedding_bounds(decoder: Decoder) -> Float[Tensor, " width"]:
    """The most that each coordinate of the embedding can be, in absolute value."""
    config, bounds = decoder.config, torch.zeros(decoder.config.width, dtype=torch.float64)
    if config.tokens is not None:
        for field in config.tokens.fields:
            bounds[list(field.columns)] += 1.0
    elif decoder.token_table is not None:
        bounds += decoder.token_table.weight.abs().amax(dim=0).double()
    if isinstance(config.positions, PositionCode):
        parts = [_segment_bounds(segment, config.width) for segment in config.positions.segments]
        return bounds + torch.stack(parts).amax(dim=0)
    if decoder.position_table is not None:
        bounds += decoder.position_table.weight.abs().amax(dim=0).double()
    return bounds


def _segment_bounds(segment: SegmentCode, width: int) -> Float[Tensor, " width"]:
    bounds = torch.zeros(width, dtype=torch.float64)
    for field in segment.fields:
        bounds[list(field.columns)] += 1.0
    for column, value in segment.constants:
        bounds[column] += abs(value)
    return bounds


def write_bounds(
    block: Block, unwritten: Bool[Tensor, " width"], embedded: Float[Tensor, " width"]
) -> Float[Tensor, " width"]:
    """The most that a layer's mixers can add to each coordinate, in absolute value; infinite where it is not known.

    Args:
        block: the layer.
        unwritten: coordinates that hold the embedding before it.
        embedded: the most that these can be.
    """
    total = torch.zeros_like(embedded)
    for mixer in block.each_mixer():
        if not isinstance(mixer, SoftmaxAttention):
            total = torch.where(mixer.writes(), torch.inf, total)
            continue
        spec, value = mixer.spec, mixer.value.weight.abs().double()
        read = (value[:, unwritten] @ embedded[unwritten]).masked_fill(value[:, ~unwritten].any(dim=1), torch.inf)
        heads = read.view(spec.kv_heads, spec.value_dim).repeat_interleave(spec.heads // spec.kv_heads, dim=0)
        out = mixer.out.weight.abs().double()
        total = total + torch.where(out > 0, out * heads.flatten(), 0.0).sum(dim=1)
    return total


def depending(pointwise: PointwiseMap, block: Block, wanted: Bool[Tensor, " width"]) -> Bool[Tensor, " hidden"]:
    """The units that write coordinates in `wanted` and read what the layer's mixers write."""
    written = torch.stack([mixer.writes() for mixer in block.each_mixer()]).any(dim=0)
    return pointwise.fall.weight[wanted].ne(0).any(dim=0) & pointwise.rise.weight[:, written].ne(0).any(dim=1)


def thresholds(
    pointwise: PointwiseMap,
    units: Bool[Tensor, " hidden"],
    unwritten: Bool[Tensor, " width"],
    bounds: Float[Tensor, " width"],
) -> Float[Tensor, " some"]:
    """For some units, what the embedding must add up to in their input, at most, so that they are shut.

    Args:
        pointwise: the map, of ReLUs without a gate.
        units: which.
        unwritten: coordinates that hold the embedding before the layer.
        bounds: as `write_bounds`.
    """
    rise = pointwise.rise.weight[units].abs().double()
    added = torch.where(rise > 0, rise * torch.where(unwritten, bounds, torch.inf), 0.0).sum(dim=1)
    return -pointwise.rise.bias[units].double() - SPARE * added
