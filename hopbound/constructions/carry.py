r"""The carry: a bounded layer brings what the token of z_0 knows to the last token, which stands next to it.

Who the token of z_0 is, its position says: the column "start" is 1 there and 0 everywhere else.

- *Recurrences with a query*: the memory of `memory.py` with one entry, written where "start" is 1 and always asked for.
- *Convolution, token shift*: one tap, at the distance from the last token to the token of z_0.
- *Window, cache of recent tokens*: the exact look-up of `lookup.py` among the tokens in sight.
- *RG-LRU*: both gates are sigmoid(1024 start - 512), exactly 1 or 0. At the token a = exp(-8 softplus(32)) is 0 beside
  1, so that the channel takes its input; elsewhere a = 1 and nothing is added.
- *RWKV-4*: the key is 128 start and what the last token adds for itself e^{-512}: the average is that of the token's
  value with weight 1 and all others with at most e^{-128} each, nothing beside 1 even for 2^60 of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.lookup import LookUp, write_lookup
from hopbound.constructions.memory import HELD, LARGE, MEMORIES, SURE, Table, write_memory
from hopbound.mixers import CausalConvolution, Mixer
from hopbound.mixers.rglru import RgLru
from hopbound.mixers.rwkv4 import Rwkv4
from hopbound.mixers.shift import TokenShift

DISTANCE = 1  # from the last token back to the token of z_0


def write_carry(mixer: Mixer[Any, Any], directions: Directions, source: range, target: range, *, length: int) -> None:
    """Let a zeroed bounded mixer bring `source` of the token of z_0 to `target` of the last token.

    Args:
        mixer: one with a rule for carries in `moves.py`; all weights zero.
        directions: of the residual stream; has "one", "tag" and "start".
        source: columns at the token of z_0.
        target: columns at the last token.
        length: of the prompt.
    """
    name = mixer.spec.name
    if name in MEMORIES:
        keys, queries = directions["start"], directions["one"]
        write_memory(
            mixer, directions, Table(keys=keys, queries=queries, ages=[DISTANCE], source=source, target=target)
        )
    elif name in _CARRIES:
        _CARRIES[name](mixer, directions, source, target)
    else:
        write_lookup(mixer, directions, LookUp(tag=0, compared=(), source=source, target=target, in_sight=length))


def _convolution(mixer: CausalConvolution, directions: Directions, source: range, target: range) -> None:
    mixer.filter[DISTANCE, : len(source)] = 1.0
    copy(mixer.inner.weight, range(len(source)), source)
    copy(mixer.out.weight, target, range(len(source)))


def _shift(mixer: TokenShift, directions: Directions, source: range, target: range) -> None:
    mixer.share[: len(source)] = 1.0
    copy(mixer.inner.weight, range(len(source)), source)
    copy(mixer.out.weight, target, range(len(source)))


def _rglru(mixer: RgLru, directions: Directions, source: range, target: range) -> None:
    """One channel beside the digits holds "start", from which the gates are made."""
    (start,) = directions["start"]
    mark = len(source)
    if mixer.short is not None:
        mixer.short.filter[0] = 1.0
    mixer.rate.fill_(LARGE)
    for gate in (mixer.forget, mixer.admit):
        gate.weight[:, mark] = 2 * SURE
        gate.bias.fill_(-SURE)
    mixer.channel.weight[mark, start] = 1.0
    copy(mixer.channel.weight, range(len(source)), source)
    copy(mixer.out.weight, target, range(len(source)))


def _rwkv4(mixer: Rwkv4, directions: Directions, source: range, target: range) -> None:
    (one,), (start,) = directions["one"], directions["start"]
    mixer.log_rate.fill_(HELD)
    mixer.boost.fill_(-SURE)
    mixer.receptance.weight[:, one] = SURE
    mixer.key.weight[:, start] = -HELD
    copy(mixer.value.weight, range(len(source)), source)
    copy(mixer.out.weight, target, range(len(source)))


_CARRIES: Mapping[str, Callable[[Any, Directions, range, range], None]] = {
    "conv": _convolution,
    "shift": _shift,
    "rglru": _rglru,
    "rwkv4": _rwkv4,
}
