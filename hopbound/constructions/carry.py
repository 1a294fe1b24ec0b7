r"""The carry: a bounded layer brings what the token of z_0 knows to the last token.

Only the token of z_0 writes; its function digits say who it is. With B function digits, t·c is B at this token and at
most B - 2 elsewhere (t: its digits, c: the code of z_0).

- *Linear attention.* First key coordinate 64 (t·c - B) + 32: 32 at the token, at most -96 elsewhere, where elu + 1 is
  exactly 0 in float32 and float64; all other key coordinates are -64. The read divides by its own normaliser:
  v · 33 / (33 + 1e-6).
- *Delta rule, gated or not.* Constant key; strength sigmoid(512 (2 (t·c - B) + 1)): exactly 1 at the token and
  exactly 0 elsewhere in float32 and float64. The decay is held at exactly 1 by a rate of softplus(-128).
- *Convolution.* One tap, at the distance from the last token to the token of z_0 (1: they are neighbours).
- *Window.* The exact look-up of `lookup.py` among the tokens of the window.
"""

from typing import Any

from torch import Tensor

from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.lookup import write_lookup
from hopbound.decoder.codes import signs
from hopbound.mixers import CausalConvolution, DeltaNet, GatedDeltaNet, LinearAttention, Mixer, SoftmaxAttention

NOTHING = -64.0  # a key coordinate at which φ = elu + 1 is exactly zero
SURE = 512.0  # the sigmoid of ±SURE is exactly 1 or 0
DISTANCE = 1  # from the last token back to the token of z_0


def write_carry(mixer: Mixer[Any, Any], directions: Directions, source: range, target: range) -> None:
    """Let a zeroed bounded mixer bring `source` of the token of z_0 to `target` of the last token."""
    (one,) = directions["one"]
    if isinstance(mixer, SoftmaxAttention):
        sight = mixer.reach + 1
        write_lookup(mixer, directions, tag=0, compared=(), source=source, target=target, in_sight=sight)
    elif isinstance(mixer, CausalConvolution):
        channels = range(len(source))
        copy(mixer.inner.weight, channels, source)
        mixer.filter[DISTANCE, : len(source)] = 1.0
        copy(mixer.out.weight, target, channels)
    elif isinstance(mixer, LinearAttention):
        spec = mixer.spec
        for head in range(spec.heads):
            first = head * spec.head_dim
            mixer.key.weight[first : first + spec.head_dim, one] = NOTHING
            _start_score(mixer.key.weight, directions, row=first, scale=64.0, offset=32.0)
        write_values(mixer, source, target)
    elif isinstance(mixer, DeltaNet | GatedDeltaNet):
        spec = mixer.spec
        for head in range(spec.heads):
            mixer.key.weight[head * spec.head_dim, one] = 1.0
            mixer.query.weight[head * spec.head_dim, one] = 1.0
            _start_score(mixer.strength.weight, directions, row=head, scale=2 * SURE, offset=SURE)
        hold(mixer)
        write_values(mixer, source, target)
    else:
        raise TypeError(f"no carry for {type(mixer).__name__}")


def hold(mixer: DeltaNet | GatedDeltaNet) -> None:
    """Keep the state of a gated mixer for ever: α = exp(-softplus(-128)) is exactly 1."""
    if isinstance(mixer, GatedDeltaNet):
        mixer.rate_bias.fill_(-128.0)


def write_values(mixer: LinearAttention | DeltaNet | GatedDeltaNet, source: range, target: range) -> None:
    """Spread the digits `source` over the heads' values and bring them back as `target`."""
    copy(mixer.value.weight, range(len(source)), source)
    copy(mixer.out.weight, target, range(len(source)))


def _start_score(weight: Tensor, directions: Directions, *, row: int, scale: float, offset: float) -> None:
    """Let `row` of a projection be scale (t·c - B) + offset: offset at the token of z_0, far below 0 elsewhere."""
    (one,) = directions["one"]
    tag = directions["tag"]
    for column, digit in zip(tag, signs(0, len(tag)), strict=True):
        weight[row, column] = scale * digit
    weight[row, one] = offset - scale * len(tag)
