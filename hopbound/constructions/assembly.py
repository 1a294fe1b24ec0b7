"""What constructions for single tasks share: the config of a decoder without weights, layers that fit, their maps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import WindowAttention
from hopbound.constructions.construction import Built
from hopbound.constructions.directions import Directions
from hopbound.decoder import Decoder, DecoderConfig, DigitField, PositionCode, ReadoutCode, TokenCode
from hopbound.decoder.model import PointwiseMap
from hopbound.moves import Code, Limits, Move, limits
from hopbound.tasks import Task


def plain_config(
    architecture: Architecture,
    task: Task,
    directions: Directions,
    *,
    tokens: TokenCode | None = None,
    positions: PositionCode | None = None,
    answer: range | None = None,
    hidden: Mapping[int, int] = MappingProxyType({}),
) -> DecoderConfig:
    """The config of a decoder that is written by hand: no norms, ReLU maps, scores as they are.

    Args:
        architecture: the stack.
        task: what it is for.
        directions: of the residual stream.
        tokens: the rule of the tokens; None: a table.
        positions: the rule of the positions; None: it knows none.
        answer: columns of the last token that hold the answer's binary digits; None: a table reads it.
        hidden: units of the map after a layer; none where a layer is not named.
    """
    return DecoderConfig(
        schedule=str(architecture),
        precisions=architecture.precisions,
        vocabulary=task.vocabulary_size,
        answers=task.answers,
        width=directions.width,
        hidden=tuple(hidden.get(layer, 0) for layer in range(len(architecture.layers))),
        activation="relu",
        norm="none",
        scores="one",
        tokens=tokens,
        positions=positions,
        readout=None if answer is None else ReadoutCode(DigitField(answer.start, 1, task.answers, len(answer))),
    )


def finished(
    decoder: Decoder, construction: str, steps: Sequence[str], directions: Directions, dtype: torch.dtype
) -> Built:
    """The decoder with its weights, in their type, and what they are."""
    decoder = decoder.to(dtype).eval().requires_grad_(False)
    return Built(decoder=decoder, construction=construction, steps=tuple(steps), directions=directions)


def map_of(decoder: Decoder, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights and biases of the map after a layer: into its units, out of them."""
    pointwise = decoder.each_block()[layer].pointwise
    assert isinstance(pointwise, PointwiseMap)
    return pointwise.rise.weight, pointwise.rise.bias, pointwise.fall.weight, pointwise.fall.bias


Place = tuple[int, int]
"""A mixer of a stack: the number of its layer, and its own there."""


def mixers_of(architecture: Architecture) -> Iterator[tuple[Place, MixerSpec]]:
    """All mixers, from the first layer to the last."""
    for number, layer in enumerate(architecture.layers):
        for index, spec in enumerate(layer.mixers):
            yield (number, index), spec


def pair_of_layers(
    architecture: Architecture, first: Callable[[MixerSpec], str | None], second: Callable[[MixerSpec], str | None]
) -> tuple[Place, Place] | str:
    """A mixer that can make the first step and one in a later layer that can make the second, or why there are none.

    Args:
        architecture: the stack.
        first: why a mixer cannot make the first step; None if it can.
        second: the same of the second step.
    """
    reasons: list[str] = []
    ready: Place | None = None
    for place, spec in mixers_of(architecture):
        if ready is not None and place[0] > ready[0]:
            reason = second(spec)
            if reason is None:
                return ready, place
            reasons.append(reason)
        if ready is None:
            reason = first(spec)
            if reason is None:
                ready = place
            else:
                reasons.append(reason)
    return "; ".join(dict.fromkeys(reasons)) or "one layer more"


def look_up_refusal(spec: MixerSpec, *, address: int, value: int, distance: int) -> str | None:
    """Why a mixer cannot look up an address of so many digits, so many tokens back; None if it can.

    Args:
        spec: of the mixer.
        address: digits that are compared.
        value: digits that are returned.
        distance: how far back the farthest address stands.
    """
    if isinstance(spec, WindowAttention) and spec.name == "window":
        if spec.w <= distance:
            return f"a window of {spec.w} tokens does not reach {distance} back"
        if address > spec.head_dim or value > spec.kv_heads * spec.value_dim:
            channels = spec.kv_heads * spec.value_dim
            return f"{address} digits are compared, {value} returned; the window has {spec.head_dim} and {channels}"
        return None
    return first_exceeded(
        limits(spec, Move.LOOK_UP),
        {Code.ADDRESS: address, Code.VALUE: value, Code.ADDRESS_AND_VALUE: address + value},
    )


def first_exceeded(found: Limits | str, needed: Mapping[Code, int]) -> str | None:
    """Which limit is exceeded, and by what; None if none of those that are named is."""
    if isinstance(found, str):
        return found
    for limit in found:
        if needed.get(limit.code, 0) > limit.most:
            return limit.exceeded(needed[limit.code])
    return None
