"""The inverse question: how small would a stack have to be for N tokens to be certified?

For real models the bounds are silent: their states and summaries are far too large for prompts that anyone has. What
is not silent is the other direction. One knob at a time is turned while all else stays: bits of every number, bits
of state in the bounded layers, heads of every mixer. The largest setting at which some prompt of at most N tokens is
certified comes with its certificate, and with the factor by which the stack is beyond it. The conditions of the
theorems are monotone in each knob; the search for sizes is not quite, so the setting is a lower bound on the largest.

The theorems know nothing of a bounded layer but its bits. To turn the state, each is replaced by the plainest one that
holds them, a convolution of width 2 over so many channels of one bit: a schedule that anyone can read and check.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import gcd, isqrt, log2
from typing import Literal

from hopbound.architecture import Architecture, Kind, Layer, MixerSpec, Precisions
from hopbound.architecture.sizes import SelectiveAttention
from hopbound.architecture.specs import mixer_spec
from hopbound.bounds.certificate import Sizes
from hopbound.bounds.prove import prove
from hopbound.bounds.verdict import Verdict
from hopbound.errors import InputError

Knob = Literal["precision", "state", "heads"]
MAX_SETTING = 4096  # bits a number, or heads
MAX_STATE = 2**36  # bits of state
RESOLUTION = 64  # states are found to one part in so many, other settings exactly


@dataclass(frozen=True)
class Limit:
    """How far one knob may be turned.

    Attributes:
        knob: `precision` (bits of every number), `state` (bits that the largest bounded layer holds, the others in
            proportion: recurrent states, windows, convolutions) or `heads` (of every mixer that has heads).
        actual: the stack's own setting, the largest where it has several.
        largest: the largest setting found at which the tokens are certified; 0 if none is.
        factor: `actual / largest`; None where not even the setting 1 is certified.
        verdict: the bound at `largest`, with its certificate; at the setting 1 where that is not enough.
    """

    knob: Knob
    actual: int
    largest: int
    factor: float | None
    verdict: Verdict


def limits(architecture: Architecture, hops: int, tokens: int, *, sizes: Sizes = "free") -> tuple[Limit, ...]:
    """The largest settings of each knob at which `hops` hops are certified impossible on at most `tokens` tokens.

    Args:
        architecture: the stack.
        hops: how many functions are composed.
        tokens: the length in question.
        sizes: `free` or `paper`.

    Returns:
        One entry a knob that the stack has; none where the theorems do not speak of the stack at all.

    Raises:
        InputError: `tokens` is no whole number from 1 on, or as `prove`.
    """
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise InputError("at", tokens, "a number of tokens, at least 1")
    found = []
    for knob, actual, turned in _knobs(architecture):
        limit = _limit(knob, actual, lambda setting, turned=turned: prove(turned(setting), hops, sizes=sizes), tokens)
        if limit is not None:
            found.append(limit)
    return tuple(found)


def _knobs(architecture: Architecture) -> Iterator[tuple[Knob, int, Callable[[int], Architecture]]]:
    """Each knob with the stack's own setting and the stack at another one."""
    precisions = architecture.precisions
    own = (precisions.activation, precisions.kv, precisions.state, precisions.summary)
    yield "precision", max(own), lambda bits: replace(architecture, precisions=Precisions.uniform(bits))
    held = max(
        (sum(mixer.state_bits(precisions) for mixer in layer.mixers) for layer in architecture.layers), default=0
    )
    if held:
        yield "state", held, lambda bits: _with_state(architecture, bits, held)
    heads = [getattr(mixer, "heads", 0) for layer in architecture.layers for mixer in layer.mixers]
    if any(heads):
        yield "heads", max(heads), lambda count: _with_heads(architecture, count)


def _with_state(architecture: Architecture, bits: int, held: int) -> Architecture:
    """The stack with `bits / held` of the state bits of each layer, rounded up, in convolutions of width 2."""
    precisions = architecture.precisions

    def changed(layer: Layer) -> Layer:
        own = sum(mixer.state_bits(precisions) for mixer in layer.mixers)
        if not own:
            return layer
        column = mixer_spec("conv", {"channels": -(-own * bits // held), "kernel": 2})
        return Layer((*(mixer for mixer in layer.mixers if mixer.kind is not Kind.BOUNDED), column))

    layers = tuple(map(changed, architecture.layers))
    return replace(architecture, layers=layers, precisions=replace(precisions, activation=1))


def _with_heads(architecture: Architecture, count: int) -> Architecture:
    """The stack with `count` heads in every mixer that has heads; key-value heads stay as far as they divide them."""

    def changed(mixer: MixerSpec) -> MixerSpec:
        if not hasattr(mixer, "heads"):
            return mixer
        fields = {"heads": count}
        if hasattr(mixer, "kv_heads"):
            fields["kv_heads"] = gcd(count, getattr(mixer, "kv_heads", 1))
        if isinstance(mixer, SelectiveAttention) and mixer.selections > 1:
            fields["selections"] = count
        return replace(mixer, **fields)

    layers = (replace(layer, mixers=tuple(map(changed, layer.mixers))) for layer in architecture.layers)
    return replace(architecture, layers=tuple(layers))


def _limit(knob: Knob, actual: int, bound: Callable[[int], Verdict], tokens: int) -> Limit | None:
    """The largest setting whose bound is at most `tokens`, by doubling and halving."""

    def enough(verdict: Verdict) -> bool:
        if verdict.prompt_length is not None:
            return verdict.prompt_length <= tokens
        return verdict.log2_prompt_length is not None and verdict.log2_prompt_length <= log2(tokens)

    best = bound(1)
    if best.kind == "no claim":
        return None
    if not enough(best):
        return Limit(knob, actual, 0, None, best)
    stride, most = (16, MAX_STATE) if knob == "state" else (2, MAX_SETTING)
    low, high = 1, stride
    while high <= most and enough(tried := bound(high)):
        low, high, best = high, stride * high, tried
    high = min(high, most + 1)
    while high - low > (max(1, low // RESOLUTION) if knob == "state" else 1):
        middle = isqrt(low * high) if high > 2 * low else (low + high) // 2
        if enough(tried := bound(middle)):
            low, best = middle, tried
        else:
            high = middle
    return Limit(knob, actual, low, actual / low, best)
