"""The first number of hops that is provably impossible for a stack, and from which length, in closed form.

Theorem A speaks of one hop more than there are full layers, Theorem B of as many where no bounded layer stands before
the second of them, counting of one hop where all that crosses a cut is a state. The closed forms (Corollaries A', B' of
`closed_forms`) cost a few multiplications, for any depth; the search of `prove` finds shorter lengths and certificates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from hopbound.architecture import Architecture, LayerBits, runs
from hopbound.bounds import closed_forms, counting, theorem_a, theorem_b

ROUNDING = 1e-9  # relative, to which a scale is found, from above


@dataclass(frozen=True)
class FirstImpossible:
    """What the closed forms say of a stack.

    Attributes:
        hops: the smallest number of hops that some theorem speaks of.
        theorem: `counting`, `A'` or `B'`.
        log2_length: log2 of the prompt length from which that many hops are impossible.
    """

    hops: int
    theorem: str
    log2_length: float


@dataclass(frozen=True)
class Scale:
    """By how much a stack is too large for a bound at a length.

    Attributes:
        knob: what is scaled: `state` (bits of the bounded layers), `width` (summaries of the full ones) or `both`.
        factor: the actual size over the largest that is certified, rounded up by at most one part in 10^9; None where
            not even one bit a layer is.
    """

    knob: str
    factor: float | None


def first_impossible(architecture: Architecture) -> FirstImpossible | None:
    """The first number of hops that is certified impossible, with the shortest closed-form length.

    Args:
        architecture: the stack.

    Returns:
        None where the theorems do not speak of the stack: a mixer of it is outside their model, or its sizes hold for
        prompts shorter than the bounds' only.
    """
    if architecture.exclusions():
        return None
    return _first(architecture.layer_bits(), architecture.length_limit)


def first_hops(architecture: Architecture) -> int | None:
    """The smallest number of hops that some theorem speaks of, at whatever length; None where none does.

    Args:
        architecture: the stack.
    """
    if architecture.exclusions():
        return None
    found = _first(architecture.layer_bits(), None)
    return None if found is None else found.hops


def _first(readings: Sequence[tuple[LayerBits, ...]], limit: int | None) -> FirstImpossible | None:
    found = [one for layers in readings for one in _of_reading(layers)]
    within = [one for one in found if limit is None or one.log2_length <= log2(limit)]
    return min(within, key=lambda one: (one.hops, one.log2_length), default=None)


def _of_reading(layers: tuple[LayerBits, ...]) -> list[FirstImpossible]:
    stack = runs(layers)
    F = len(stack.summaries)
    bits = counting.crossing_bits(stack.states, stack.summaries)
    found = []
    if bits is not None:
        m, _ = counting.smallest_sizes(max(bits, 1), 0, False)
        found.append(FirstImpossible(1, "counting", log2(m + 2)))
    for hops in (F, F + 1):
        for theorem in (theorem_a, theorem_b):
            for problem, _ in theorem.problems(stack, hops, False):
                length = closed_forms.log2_length(problem)
                found.append(FirstImpossible(hops, closed_forms.name(problem), length))
    return found


def scales(architecture: Architecture, first: FirstImpossible, tokens: int) -> tuple[Scale, ...]:
    """By what factors state, width, and both exceed what is certified, in closed form, on `tokens` tokens.

    Args:
        architecture: the stack.
        first: as `first_impossible` gives it.
        tokens: the length in question, at least 1.

    Returns:
        One entry for each of `state`, `width` and `both` that the stack has; none where its sizes do not hold for so
        many tokens. A factor of 1 means that the stack as it is is certified.
    """
    limit = architecture.length_limit
    if limit is not None and tokens > limit:
        return ()
    readings = architecture.layer_bits()
    kinds = {layer.kind for layer in readings[0] if layer.bits}
    knobs = {"state": ("bounded",), "width": ("full",), "both": ("bounded", "full")}
    return tuple(
        Scale(knob, _factor(readings, turned, first.hops, log2(tokens)))
        for knob, turned in knobs.items()
        if kinds.issuperset(turned)
    )


def scaled(layers: tuple[LayerBits, ...], turned: tuple[str, ...], factor: float) -> tuple[LayerBits, ...]:
    """The layers with the bits of the turned kinds divided, rounded up: what holds something keeps at least one bit.

    Args:
        layers: a reading of a stack.
        turned: `bounded`, `full` or both.
        factor: at least 1.
    """
    return tuple(
        LayerBits(one.kind, max(1, ceil(one.bits / factor))) if one.kind in turned and one.bits else one
        for one in layers
    )


def _factor(
    readings: Sequence[tuple[LayerBits, ...]], turned: tuple[str, ...], hops: int, log2_tokens: float
) -> float | None:
    """The smallest factor by which the turned layers are divided until the bound holds; None if none is enough."""

    def enough(factor: float) -> bool:
        found = _first([scaled(layers, turned, factor) for layers in readings], None)
        return found is not None and found.hops <= hops and found.log2_length <= log2_tokens

    if enough(1.0):
        return 1.0
    low, high = 1.0, float(max(layer.bits for layers in readings for layer in layers if layer.kind in turned))
    if not enough(high):
        return None
    while high > low * (1 + ROUNDING):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
