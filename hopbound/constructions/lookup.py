r"""The exact look-up: softmax attention that returns what stands at one address, whatever stands elsewhere.

*Assumptions.* Every position carries the code of its own address as ±1 digits (function, query part, value part);
addresses of one function differ in at least one digit that the look-up compares, and those of other functions differ
in the function's digits. The query holds B digits of the wanted address.

*Scores.* Keys are codes, queries β times codes: the score is β (B - 2 · number of digits that differ), β B at the
match and at most β (B - 2) elsewhere; the gap 2β does not depend on B. With n positions in sight the other weights
sum to at most n e^{-2β}, so with

    2 β (1 - η) ≥ ln n + ln(1/ε)

the returned digits differ from the written ones by at most 2ε. η = 1/32 is what rounded query digits may lose: a digit
of the query that is off by η changes the gap by the factor 1 - η, and codes of positions and tokens are exact. ε is
2^-10, far below the 1/4 at which the position-wise sign (`clean`) stops restoring ±1.

*Addresses of several kinds.* Where the asking token's position says which function it asks for (`tag` names columns),
not every key has all the digits that are compared, and a query may hold digits that mean nothing there. The function's
digits then weigh 1 + B' each, B' the number of the others: a function that differs loses 2 (1 + B') and wins back at
most B' (1 + η), so that the gap is at least 2β as before.

*Value digits* are spread over the key-value heads, `value_dim` a head; all heads ask for the same address.

*Latents* (MLA). A key is the shared part and what is made from the latent: the first digits of the address stand in the
one, the others in the latent, beside the digits of the value.

*Chosen tokens* (top-k). The index score of the same codes is ReLU(B) times a constant at the match and at most
ReLU(B - 2) times it elsewhere, so that the match is among any k ≥ 1 chosen; for k = 1 the softmax has nothing to tell
apart, else it has k positions in sight.

Mixers that scale their scores by themselves (1/√d_k) get β times √d_k.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from hopbound.constructions.directions import Directions, coarse, copy
from hopbound.decoder.codes import signs
from hopbound.mixers import Mixer, SoftmaxMixer
from hopbound.mixers.eviction import Eviction
from hopbound.mixers.mla import MultiHeadLatentAttention
from hopbound.mixers.moba import MixtureOfBlockAttention
from hopbound.mixers.topk import TopkAttention

LEAK = 2.0**-10
ROUNDING = 1 / 32
OPEN = 512.0  # the sigmoid of it is exactly 1


def upward(weight: float) -> float:
    """The least number that bfloat16 holds, or the one after it, that is not below `weight`."""
    near = coarse(weight)
    return near if near >= weight else coarse(weight * (1 + 2.0**-7))


def sharpness(in_sight: int) -> float:
    """The least whole β with 2 β (1 - η) ≥ ln(in_sight) + ln(1/ε)."""
    return float(math.ceil((math.log(in_sight) - math.log(LEAK)) / (2 * (1 - ROUNDING))))


@dataclass(frozen=True, kw_only=True)
class LookUp:
    """What is looked up, in columns of the residual stream.

    Attributes:
        tag: number of the function (0: the start), or columns of the asking token that hold its digits.
        compared: pairs (columns of the query's digits, columns of the key's digits) beside the function's digits.
        source: columns that are returned from the address.
        target: columns of the asking token that receive them.
        in_sight: how many positions the softmax ranges over, at most.
    """

    tag: int | range
    compared: Sequence[tuple[range, range]]
    source: Sequence[int]
    target: Sequence[int]
    in_sight: int

    def key_columns(self, directions: Directions) -> list[int]:
        """The address that a position holds: function, then what else is compared."""
        return [*directions["tag"], *(column for _, key in self.compared for column in key)]

    def write_query(self, weight: Tensor, directions: Directions, *, row: int, scale: float) -> None:
        """Let rows of a projection, from `row` on, be the address that is asked for, times `scale`."""
        (one,) = directions["one"]
        if isinstance(self.tag, range):
            others = sum(len(asked) for asked, _ in self.compared)
            copy(weight, range(row, row + len(self.tag)), self.tag, upward(scale * (1 + others)))
            row += len(self.tag)
        else:
            for digit in signs(self.tag, len(directions["tag"])):
                weight[row, one] = scale * digit
                row += 1
        for asked, _ in self.compared:
            copy(weight, range(row, row + len(asked)), asked, scale)
            row += len(asked)


def write_lookup(mixer: Mixer[Any, Any], directions: Directions, look_up: LookUp) -> None:
    """Let a zeroed attention mixer look something up.

    Args:
        mixer: one with a rule for look-ups in `moves.py`, or for carries by a look-up among few; all weights zero.
        directions: of the residual stream; has "one" and "tag".
        look_up: what.
    """
    if isinstance(mixer, MultiHeadLatentAttention):
        _by_latents(mixer, directions, look_up)
        return
    assert isinstance(mixer, SoftmaxMixer | TopkAttention | MixtureOfBlockAttention | Eviction)
    if isinstance(mixer, TopkAttention):
        _choose(mixer, directions, look_up)
        look_up = replace(look_up, in_sight=min(look_up.in_sight, mixer.spec.k))
    _by_heads(mixer, directions, look_up)


def _by_heads(
    mixer: SoftmaxMixer[Any] | TopkAttention | MixtureOfBlockAttention | Eviction[Any],
    directions: Directions,
    look_up: LookUp,
) -> None:
    """All heads ask for the same address; a gate of the output stands open."""
    spec, beta = mixer.spec, upward(sharpness(look_up.in_sight) / mixer.scale)
    (one,) = directions["one"]
    if look_up.in_sight > 1:
        columns = look_up.key_columns(directions)
        for head in range(spec.heads):
            look_up.write_query(mixer.query.weight, directions, row=head * spec.head_dim, scale=beta)
        for head in range(spec.kv_heads):
            for digit, column in enumerate(columns):
                mixer.key.weight[head * spec.head_dim + digit, column] = 1.0
    group, source, target = spec.heads // spec.kv_heads, look_up.source, look_up.target
    for start in range(0, len(source), spec.value_dim):
        head, part = start // spec.value_dim, source[start : start + spec.value_dim]
        stored, read = head * spec.value_dim, head * group * spec.value_dim
        copy(mixer.value.weight, range(stored, stored + len(part)), part)
        copy(mixer.out.weight, target[start : start + len(part)], range(read, read + len(part)))
    if isinstance(mixer, SoftmaxMixer) and mixer.gate is not None:
        mixer.gate.weight[:, one] = OPEN


def _choose(mixer: TopkAttention, directions: Directions, look_up: LookUp) -> None:
    """One index query asks for the address: its score is the largest of all, by ReLU(B) > ReLU(B - 2)."""
    (one,) = directions["one"]
    look_up.write_query(mixer.index_query.weight, directions, row=0, scale=1.0)
    for digit, column in enumerate(look_up.key_columns(directions)):
        mixer.index_key.weight[digit, column] = 1.0
    mixer.index_weight.weight[0, one] = 1.0


def _by_latents(mixer: MultiHeadLatentAttention, directions: Directions, look_up: LookUp) -> None:
    """The first digits of an address are the shared key; the others and the value are the latent."""
    spec, beta = mixer.spec, upward(sharpness(look_up.in_sight) / mixer.scale)
    columns, source = look_up.key_columns(directions), look_up.source
    shared, latent = columns[: spec.rope_dim], columns[spec.rope_dim :]
    for digit, column in enumerate(shared):
        mixer.key.weight[digit, column] = 1.0
    for place, column in enumerate((*latent, *source)):
        mixer.latent.weight[place, column] = 1.0
    for head in range(spec.heads):
        look_up.write_query(mixer.query.weight, directions, row=head * mixer.dim, scale=beta)
        copy(
            mixer.key_of_latent.weight,
            range(head * spec.value_dim, head * spec.value_dim + len(latent)),
            _from(0, latent),
        )
    copy(mixer.value_of_latent.weight, range(len(source)), _from(len(latent), source))
    copy(mixer.out.weight, look_up.target, range(len(source)))


def _from(start: int, columns: Sequence[int]) -> range:
    """As many places as there are columns."""
    return range(start, start + len(columns))


def write_clean(rise: Tensor, rise_bias: Tensor, fall: Tensor, fall_bias: Tensor, raw: range, clean: range) -> None:
    """Let the first 2·len(raw) units of a ReLU map write clip(2 · raw, -1, 1) to `clean`: ±1 if |raw| ≥ 1/2.

    clip(u, -1, 1) = relu(u + 1) - relu(u - 1) - 1.
    """
    for index, (source, target) in enumerate(zip(raw, clean, strict=True)):
        up, down = 2 * index, 2 * index + 1
        rise[up, source] = rise[down, source] = 2.0
        rise_bias[up], rise_bias[down] = 1.0, -1.0
        fall[target, up], fall[target, down] = 1.0, -1.0
        fall_bias[target] = -1.0
