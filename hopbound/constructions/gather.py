r"""The gather: tokens learn what the tokens right before them are.

- *Convolution*: tap j, 1 ≤ j < kernel, of channels of its own for each j: exact, whatever stands elsewhere.
- *Token shift*: one tap, j = 1.
- *Full attention or a window*: head j looks up the position of its token less j by the exact look-up of `lookup.py`.
  Every position carries the digits of its own position (the key) and of those before it (the queries), all by rule.

What attention returns is off by at most 2ε (`lookup.py`); the map after the layer restores ±1. At the first tokens,
before which fewer stand, what is gathered means nothing: they are told apart by their position codes.
"""

from collections.abc import Sequence
from typing import Any

from hopbound.architecture import MixerSpec
from hopbound.architecture.sizes import Attention, Columns, GatedHeads, WindowAttention
from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.lookup import OPEN, sharpness, upward
from hopbound.mixers import CausalConvolution, Mixer, SoftmaxAttention
from hopbound.mixers.shift import TokenShift

GATHERS = ("conv", "shift", "full", "window")


def gather_room(spec: MixerSpec, bits: int, position_bits: int) -> int | str:
    """How many tokens before it a layer lets each token learn, or why none.

    Args:
        spec: of the mixer.
        bits: digits of a token.
        position_bits: digits of a position.
    """
    if spec.name not in GATHERS:
        return f"{spec.name} brings no token what stands before it; {', '.join(GATHERS)} do"
    if isinstance(spec, Columns):
        most = min(spec.kernel - 1, spec.channels // bits)
        return most or f"{spec.name} has {spec.channels} channels and width {spec.kernel}; {bits} digits need as many"
    assert isinstance(spec, Attention | WindowAttention)
    if position_bits > spec.head_dim:
        return f"a position has {position_bits} digits, head_dim is {spec.head_dim}"
    if bits > spec.value_dim:
        return f"a token has {bits} digits, a head {spec.value_dim} value channels"
    most = spec.heads if isinstance(spec, Attention) else min(spec.heads, spec.w - 1)
    return most or "a window of one token brings nothing"


def write_gather(
    mixer: Mixer[Any, Any],
    directions: Directions,
    *,
    source: range,
    targets: Sequence[range],
    positions: range,
    before: Sequence[range],
    in_sight: int,
) -> None:
    """Let a zeroed mixer bring `source` of the token j places before to `targets[j - 1]`.

    Args:
        mixer: one of `GATHERS`, all weights zero.
        directions: of the residual stream; has "one".
        source: a token's digits.
        targets: where those of the token 1, 2, .. places before go.
        positions: digits of each token's own position (attention only).
        before: digits of the position 1, 2, .. places before (attention only).
        in_sight: how many positions there are, at most.
    """
    if isinstance(mixer, CausalConvolution | TokenShift):
        for number, target in enumerate(targets):
            channels = range(number * len(source), (number + 1) * len(source))
            if isinstance(mixer, CausalConvolution):
                mixer.filter[number + 1, channels.start : channels.stop] = 1.0
            else:
                mixer.share[channels.start : channels.stop] = 1.0
            copy(mixer.inner.weight, channels, source)
            copy(mixer.out.weight, target, channels)
        return
    assert isinstance(mixer, SoftmaxAttention)
    spec: GatedHeads = mixer.spec
    dim, value_dim = spec.head_dim, spec.value_dim
    seen = min(in_sight, spec.w) if isinstance(spec, WindowAttention) else in_sight
    beta = upward(sharpness(seen) / mixer.scale)
    for head in range(spec.kv_heads):
        copy(mixer.key.weight, range(head * dim, head * dim + len(positions)), positions)
        copy(mixer.value.weight, range(head * value_dim, head * value_dim + len(source)), source)
    for head, (target, asked) in enumerate(zip(targets, before, strict=True)):
        copy(mixer.query.weight, range(head * dim, head * dim + len(asked)), asked, beta)
        copy(mixer.out.weight, target, range(head * value_dim, head * value_dim + len(source)))
    if mixer.gate is not None:
        mixer.gate.weight[:, directions["one"]] = OPEN
