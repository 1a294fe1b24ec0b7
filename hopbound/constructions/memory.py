r"""The memory: a recurrence as a table, for the carry (one entry) and the recall (one for each address of z_1).

Entry a is written by the one token at which column `keys[a]` of the stream is 1; at all other tokens it is 0. The last
token reads it, if `queries[a]` is 1 there. No other entry has a part in what is read, for the key of every other token
is exactly 0 in the coordinate that is asked; and what was written stays: the decay is exactly 1, or it is fixed and
known. In the symbols of the mixers' files, with κ = 1 at the writer and 0 elsewhere:

| mixer | key coordinate | decay | read |
|---|---|---|---|
| linear | 128 κ - 65: φ = 64 at the writer, exactly 0 elsewhere | none | sum and normaliser share the factor |
| delta, DeltaProduct | κ, strength 1: one step a token | none | unit keys: v itself |
| gdn, kda | κ, strength 1 | exp(-softplus(-128)) = 1 | v itself |
| gla | κ | sigmoid(512) = 1 | query √d_k |
| hgrn2 | 1 - f with f = sigmoid(512 - 1024 κ) | f = 1 where no one writes | silu(32) = 32 |
| rwkv6 | κ | exp(-exp(-128)) = 1 | the state before the reader |
| rwkv7 | κ, nothing taken away (a = 0) | exp(-0.61 sigmoid(-512)) = 1 | v itself |
| mlstm | κ, input gate 1 | sigmoid(512) = 1 | normaliser n·q ≥ 1 cancels the query's size |
| loglinear | κ | exp(-softplus(-128)) = 1 | every level has the same weight |
| mamba2 | B = κ, Δ = softplus(32) = 32 | exp(-e^{-128} Δ) = 1 | C |
| mamba | the same; κ and the query are channels of their own | as Mamba-2 | C |
| retnet, lightning | κ | γ a token | query γ^{-age} |

*Activated values.* Where silu stands after the projections (short convolutions, whose only tap is the token itself, and
lightning attention), numbers are ±32: silu(32) = 32 and silu(-32) = 0 to 4e-13. A digit is then 2 v / 32 - c / 32, c a
constant 32 that is written and read beside it.

*Packed tables* (`packing.py`): several tokens write under one key, and what is read is the sum of what they wrote,
whole numbers from 0 on, which silu leaves alone. A normaliser counts the writers: the token of z_0 writes nothing but
key, as much of it as makes the count the same power of two T for each key, and the output is T times as large. The
delta rule takes away from what is there; at the strength e = sigmoid(-15.25) = 2^-22 (1 - 2^-10) it adds e v, up to the
factor 1 - e for each later writer, and the output is 2^22 times as large.

All weights are numbers of bfloat16; a query that makes up for √d_k or γ is rounded to one, off by at most 2^-9.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hopbound.constructions.directions import Directions, coarse
from hopbound.mixers import GatedDeltaNet, LinearAttention, Mixer
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.mixers.gla import GatedLinearAttention
from hopbound.mixers.hgrn2 import Hgrn2
from hopbound.mixers.kda import KimiDeltaAttention
from hopbound.mixers.lightning import LightningAttention
from hopbound.mixers.loglinear import LogLinearAttention
from hopbound.mixers.mamba import Mamba
from hopbound.mixers.mamba2 import Mamba2
from hopbound.mixers.mlstm import MLstm
from hopbound.mixers.recurrence import Recurrence
from hopbound.mixers.retnet import Retention
from hopbound.mixers.rwkv6 import Rwkv6
from hopbound.mixers.rwkv7 import Rwkv7

NOTHING = -65.0  # a key coordinate at which φ = elu + 1 is exactly zero
FEATURE = 64.0  # φ at a writer's key
GENTLE, GENTLY = -15.25, 2.0**-22  # a strength before the sigmoid, and after it up to 2^-10 of itself
SURE = 512.0  # the sigmoid of ±SURE is exactly 1 or 0
HELD = -128.0  # softplus and exp of it vanish beside 1: a decay that is exactly 1
LARGE = 32.0  # silu and softplus leave it as it is, and silu of -LARGE is nothing


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a memory holds, in columns of the residual stream.

    Attributes:
        keys: entry a is written by the one token where this column is 1; elsewhere it is 0.
        queries: entry a is what the last token reads if this column is 1 there.
        ages: how many tokens after its writer the last token stands, for each entry.
        source: columns of the writer that are returned.
        target: columns of the last token that receive them.
        writers: of a packed table, how many tokens write under each key; empty: one each.
        filler: of a packed table, a column that is 1 at one token with an empty source, and 0 elsewhere.
    """

    keys: Sequence[int]
    queries: Sequence[int]
    ages: Sequence[int]
    source: range
    target: range
    writers: Sequence[int] = ()
    filler: int | None = None

    @property
    def packed(self) -> bool:
        """Whether sums of whole numbers are read."""
        return bool(self.writers)

    @property
    def count(self) -> int:
        """T: what every key's count of writers is filled up to."""
        return 1 << (max(self.writers, default=1) - 1).bit_length()


def write_memory(mixer: Mixer[Any, Any], directions: Directions, table: Table) -> None:
    """Let a zeroed recurrence hold a table, and hold it until the last token.

    With more entries than the state has room for, entry a shares the key of a modulo the room (`overfill`).

    Args:
        mixer: one of `MEMORIES`; all weights zero.
        directions: of the residual stream; has "one".
        table: what to hold.
    """
    (one,) = directions["one"]
    MEMORIES[mixer.spec.name](mixer, one, table)


# -- matrix states -----------------------------------------------------------------------------------------------------


def _linear(mixer: LinearAttention, one: int, table: Table) -> None:
    """No token writes in a coordinate without an entry, so that it does not matter what is asked there."""
    mixer.key.weight[:, one] = NOTHING
    rise = FEATURE - 1.0 - NOTHING
    _write_keys(mixer.query.weight, mixer, [one] * len(table.queries), NOTHING)
    _write_keys(mixer.key.weight, mixer, table.keys, rise)
    _write_keys(mixer.query.weight, mixer, table.queries, rise)
    _fill(mixer, table, FEATURE, first=rise - FEATURE)
    _write_values(mixer, one, table, factor=1.0 / table.count)


def _delta(mixer: DeltaRecurrence | DeltaProduct, one: int, table: Table) -> None:
    """Strength 1 is beta · sigmoid: of SURE for beta = 1, of 0 for beta = 2."""
    if table.packed:
        mixer.strength.weight[:, one] = GENTLE
    elif mixer.spec.beta == 1:
        mixer.strength.weight[:, one] = SURE
    if isinstance(mixer, GatedDeltaNet | KimiDeltaAttention):
        mixer.rate_bias.fill_(HELD)
    _write_plain(mixer, one, table, gain=GENTLY * mixer.spec.beta if table.packed else 1.0)


def _gla(mixer: GatedLinearAttention, one: int, table: Table) -> None:
    mixer.gate_bias.fill_(SURE)
    _write_plain(mixer, one, table, scale=mixer.spec.head_dim**-0.5)


def _hgrn2(mixer: Hgrn2, one: int, table: Table) -> None:
    """Keys are complements of decays: silu, where it stands before them, leaves no strong negative number, only 0."""
    activated, half = bool(mixer.spec.conv), 0.5
    mixer.key.weight[:, one] = SURE
    _write_keys(mixer.key.weight, mixer, table.keys, -SURE if activated else -2 * SURE)
    _write_keys(mixer.query.weight, mixer, table.queries, LARGE)
    _write_values(mixer, one, table, factor=LARGE * (half if activated else 1.0))


def _rwkv6(mixer: Rwkv6, one: int, table: Table) -> None:
    mixer.rate_bias.fill_(HELD)
    _write_plain(mixer, one, table)


def _rwkv7(mixer: Rwkv7, one: int, table: Table) -> None:
    mixer.rate_bias.fill_(-SURE)
    mixer.share_bias.fill_(-SURE)
    _write_plain(mixer, one, table)


def _mlstm(mixer: MLstm, one: int, table: Table) -> None:
    mixer.forget.bias.fill_(SURE)
    _write_keys(mixer.key.weight, mixer, table.keys, LARGE)
    _write_keys(mixer.query.weight, mixer, table.queries, upward_power(mixer.spec.head_dim**0.5))
    _fill(mixer, table, LARGE)
    _write_values(mixer, one, table, factor=1.0 / table.count)


def _loglinear(mixer: LogLinearAttention, one: int, table: Table) -> None:
    mixer.rate_bias.fill_(HELD)
    mixer.share.bias.fill_(LARGE)
    _write_plain(mixer, one, table, gain=LARGE)


def _retnet(mixer: Retention, one: int, table: Table) -> None:
    _write_plain(mixer, one, table, scale=mixer.spec.head_dim**-0.5, losses=(-mixer.log_rates).tolist())


def _lightning(mixer: LightningAttention, one: int, table: Table) -> None:
    _write_plain(mixer, one, table, losses=mixer.slopes.tolist())


def _write_plain(
    mixer: Recurrence[Any],
    one: int,
    table: Table,
    *,
    scale: float = 1.0,
    losses: Sequence[float] = (),
    gain: float = 1.0,
) -> None:
    """Keys and queries in proportion to the columns.

    The query makes up for a fixed `scale` of at most 1 and for fixed losses, what is brought back for a `gain`.
    """
    factor = LARGE if _activated(mixer) else 1.0
    _write_keys(mixer.key.weight, mixer, table.keys, factor)
    for head in range(mixer.spec.key_heads):
        for entry, (column, age) in enumerate(zip(table.queries, table.ages, strict=True)):
            row = head * mixer.spec.head_dim + entry % mixer.spec.head_dim
            lost = losses[head] * age if losses else 0.0
            mixer.query.weight[row, column] = factor * coarse(math.exp(lost) / scale)
    unit = isinstance(mixer, DeltaRecurrence | DeltaProduct)
    _write_values(mixer, one, table, factor=gain if unit else gain * factor * factor)


def _write_keys(weight: Tensor, mixer: Recurrence[Any], columns: Sequence[int], factor: float) -> None:
    """Entry a in coordinate a of every head that has keys; of several steps a token the first one alone."""
    dim = mixer.spec.head_dim
    stride = weight.shape[0] // mixer.spec.key_heads
    for head in range(mixer.spec.key_heads):
        for entry, column in enumerate(columns):
            weight[head * stride + entry % dim, column] = factor


def _fill(mixer: Recurrence[Any], table: Table, each: float, first: float = 0.0) -> None:
    """Fill up what each key counts to `table.count` writers of `each`; `first`: what the filler's key needs beside."""
    if table.filler is None:
        return
    for head in range(mixer.spec.key_heads):
        for entry, writers in enumerate(table.writers):
            if missing := table.count - writers:
                row = head * mixer.spec.head_dim + entry
                mixer.key.weight[row, table.filler] = coarse(each * missing + first)


def _activated(mixer: Recurrence[Any] | Mamba | Mamba2) -> bool:
    """Whether silu stands after the projections."""
    return mixer.short is not None or isinstance(mixer, LightningAttention)


def _write_values(mixer: Recurrence[Any], one: int, table: Table, *, factor: float = 1.0) -> None:
    """Digits spread over the heads' values, `value_dim` a head; of several steps a token in the first one."""
    spec = mixer.spec
    slots = [
        head * spec.steps * spec.value_dim + place for head in range(spec.heads) for place in range(spec.value_dim)
    ]
    write_digits(mixer, mixer.value.weight, slots, one, table, factor)


def write_digits(
    mixer: Recurrence[Any] | Mamba | Mamba2,
    value: Tensor,
    slots: Sequence[int],
    one: int,
    table: Table,
    factor: float,
) -> None:
    """Write the digits of `source` to rows of `value`, and bring back what is read of them, `factor` times as large.

    Args:
        mixer: whose short convolution, if there is one, is opened for the token itself.
        value: the projection.
        slots: its rows in the order of the channels that are read.
        one: the column that is 1 everywhere.
        table: source and target.
        factor: of what is read, without silu.
    """
    if mixer.short is not None:
        mixer.short.filter[0] = 1.0
    activated, constant = _activated(mixer), len(table.source)
    told = activated and not table.packed  # digits of either sign, by the constant
    for channel, (source, target) in enumerate(zip(table.source, table.target, strict=True)):
        value[slots[channel], source] = LARGE if activated else 1.0
        mixer.out.weight[target, channel] = ((2.0 if told else 1.0) / LARGE if activated else 1.0) / factor
        if told:
            mixer.out.weight[target, constant] = -1.0 / LARGE / factor
    if told:
        value[slots[constant], one] = LARGE


def upward_power(x: float) -> float:
    """The least power of two that is not below x, at least LARGE."""
    return max(LARGE, 2.0 ** math.ceil(math.log2(x)))


# -- state spaces ------------------------------------------------------------------------------------------------------


def _mamba2(mixer: Mamba2, one: int, table: Table) -> None:
    spec = mixer.spec
    mixer.log_rate.fill_(HELD)
    mixer.step_bias.fill_(LARGE)
    factor = LARGE if _activated(mixer) else 1.0
    for group in range(spec.groups):
        for entry, (key, query) in enumerate(zip(table.keys, table.queries, strict=True)):
            row = group * spec.state + entry % spec.state
            mixer.write.weight[row, key] = factor
            mixer.read.weight[row, query] = factor
    slots = range(spec.heads * spec.head_dim)
    write_digits(mixer, mixer.channel.weight, slots, one, table, LARGE * factor * factor)


def _mamba(mixer: Mamba, one: int, table: Table) -> None:
    """Channels: the digits, the constant where there is one, then the keys and the queries."""
    spec, activated = mixer.spec, _activated(mixer)
    mixer.log_rate.fill_(HELD)
    mixer.step.bias.fill_(LARGE)
    factor = LARGE if activated else 1.0
    first = len(table.source) + activated
    for entry, (key, query) in enumerate(zip(table.keys, table.queries, strict=True)):
        written, read = first + entry, first + len(table.keys) + entry
        mixer.channel.weight[written, key] = factor
        mixer.channel.weight[read, query] = factor
        mixer.write.weight[entry % spec.state, written] = 1.0
        mixer.read.weight[entry % spec.state, read] = 1.0
    write_digits(mixer, mixer.channel.weight, range(spec.channels), one, table, LARGE * factor * factor)


MEMORIES: Mapping[str, Callable[[Any, int, Table], None]] = {
    "linear": _linear,
    "delta": _delta,
    "deltaproduct": _delta,
    "gdn": _delta,
    "kda": _delta,
    "gla": _gla,
    "hgrn2": _hgrn2,
    "rwkv6": _rwkv6,
    "rwkv7": _rwkv7,
    "mlstm": _mlstm,
    "loglinear": _loglinear,
    "retnet": _retnet,
    "lightning": _lightning,
    "mamba2": _mamba2,
    "mamba": _mamba,
}
