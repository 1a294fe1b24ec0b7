"""Which mixer can make which move, and under which conditions: one rule for each, in tables by move and name.

A *move* is what one layer does for the chain of hops (see `planning.py`). A rule looks at a mixer's sizes and returns
either the *limits* that the task's codes must keep, or the reason why these sizes do not do at all. The gadget behind
each rule is in `hopbound/constructions`; a mixer without a rule has none, and `WITHOUT` says why where more is to be
said than that.

Value codes have one digit a value channel. Behind a short convolution, and in lightning attention, values pass through
silu: a digit is then told from a constant that takes one more channel.

A *packed* recall holds several entries of z_1 in a row of the state, as binary digits of its numbers: `limits.DIGITS`
in each, or as many as the number has bits where these are fewer. How much of m fits depends on the value's bits then.

A *branch* takes a head for each value that i_{t+1} may have, and one more. A *gather* takes a head for each query part;
whoever looks up the *row* that it brought reads all its entries.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from hopbound.architecture import MixerSpec, Precisions
from hopbound.architecture.sizes import (
    ChannelState,
    Columns,
    EvictingAttention,
    GlobalWindowAttention,
    GroupedHeads,
    GroupedState,
    LatentAttention,
    MatrixState,
    SelectiveAttention,
    WindowAttention,
)
from hopbound.limits import Code, HeadsLimit, Limit, TaskSizes, packed_digits

FADED = 40.0  # a recall makes up for fixed decays up to e^40; float32 and bfloat16 hold more than e^80


class Move(Enum):
    """What one layer does for the chain of hops."""

    FETCH = "fetch"
    LOOK_UP = "look up"
    LOOK_AHEAD = "look ahead"
    CARRY = "carry"
    RECALL = "recall"
    RECALL_PACKED = "recall packed"
    BRANCH = "branch"
    GATHER = "gather"
    LOOK_UP_ROW = "look up row"

    @property
    def is_common(self) -> bool:
        """Whether planners use it unasked: its limits speak of one hop's codes, or of m, alone."""
        return self is not Move.RECALL_PACKED and not self.takes_many_heads

    @property
    def takes_many_heads(self) -> bool:
        """Whether it is one of those that make two hops in a layer."""
        return self in (Move.BRANCH, Move.GATHER, Move.LOOK_UP_ROW)


# The limits within which a mixer makes a move, or why its sizes let it make none. A rule gets a spec of its name's
# family (the table in `architecture/specs.py`).
Limits = tuple[Limit, ...]
Rule = Callable[[Any], Limits | str]


def _values(channels: int, *, taken: int = 0) -> Limit:
    """One channel a digit; some may be taken, by the constant of activated values or by marks."""
    return Limit(Code.VALUE, channels - taken, f"value channels less {taken}" if taken else "value channels")


# -- look-ups: softmax over addresses ----------------------------------------------------------------------------------


def _look_up_by_heads(spec: GroupedHeads) -> Limits:
    return Limit(Code.ADDRESS, spec.head_dim, "head_dim"), _values(spec.kv_heads * spec.value_dim)


def _look_up_by_latents(spec: LatentAttention) -> Limits:
    """Digits of the address stand in the shared key and, as many as are left, in the latent beside the value's."""
    return (
        Limit(Code.ADDRESS, spec.rope_dim + spec.value_dim, "rope_dim + value_dim"),
        _values(min(spec.heads * spec.value_dim, spec.latent)),
        Limit(Code.ADDRESS_AND_VALUE, spec.latent + spec.rope_dim, "latent + rope_dim"),
    )


def _look_up_by_index(spec: SelectiveAttention) -> Limits:
    """The address is best by its index score; of several chosen tokens the softmax must tell it as well."""
    if spec.k == 1 or spec.index_dim <= spec.head_dim:
        code = Limit(Code.ADDRESS, spec.index_dim, "index_dim")
    else:
        code = Limit(Code.ADDRESS, spec.head_dim, "head_dim")
    return code, _values(spec.kv_heads * spec.value_dim)


def _branch_by_heads(spec: GroupedHeads) -> Limits:
    """Keys hold the addresses of two functions, in the same places."""
    return (
        Limit(Code.ADDRESS_OF_TWO, spec.head_dim, "head_dim"),
        HeadsLimit(Code.BRANCHES, spec.heads, "heads", group=spec.heads // spec.kv_heads, channels=spec.value_dim),
    )


def _gather_by_heads(spec: GroupedHeads) -> Limits:
    """Keys hold the addresses of every function in the same places: rows are gathered beside any other look-up."""
    return (
        Limit(Code.ADDRESS_OF_ALL, spec.head_dim, "head_dim"),
        HeadsLimit(
            Code.ENTRIES_OF_ROW, spec.heads, "heads", group=spec.heads // spec.kv_heads, channels=spec.value_dim
        ),
    )


_OF_FUNCTIONS = {Code.ADDRESS: Code.FUNCTION, Code.ADDRESS_AND_VALUE: Code.FUNCTION_AND_VALUE}
_OF_ROWS = {
    Code.ADDRESS: Code.ADDRESS_OF_ROW,
    Code.VALUE: Code.ROW,
    Code.ADDRESS_AND_VALUE: Code.ADDRESS_AND_ROW,
}


def _with_codes(rule: Rule, codes: Mapping[Code, Code]) -> Rule:
    """The same limits of other codes."""

    def other(spec: MixerSpec) -> Limits | str:
        limits = rule(spec)
        if isinstance(limits, str):
            return limits
        return tuple(replace(limit, code=codes.get(limit.code, limit.code)) for limit in limits)

    return other


def _of_functions(rule: Rule) -> Rule:
    """The same where the function's code alone is compared: there is one token of z_0."""
    return _with_codes(rule, _OF_FUNCTIONS)


# -- carries: only the token of z_0 writes -----------------------------------------------------------------------------


def _carry_by_columns(spec: Columns) -> Limits | str:
    return "a convolution of width 1 carries nothing" if spec.kernel < 2 else (_values(spec.channels),)


def _carry_by_window(spec: WindowAttention | GlobalWindowAttention) -> Limits | str:
    if spec.w < 2:
        return "a window of one token carries nothing"
    return _of_functions(_look_up_by_heads)(spec)


def _carry_by_cache(spec: EvictingAttention) -> Limits | str:
    if spec.recent < 1:
        return "where no token is safe for being recent, that of z_0 may be evicted at once"
    return _of_functions(_look_up_by_heads)(spec)


def _carry_by_matrix(spec: MatrixState) -> Limits:
    return (_values(spec.heads * spec.value_dim, taken=_activated(spec)),)


def _carry_by_features(spec: MatrixState) -> Limits | str:
    if spec.conv:
        return f"{spec.name} behind a convolution: no feature of an activated key is exactly zero, every token writes"
    return _carry_by_matrix(spec)


def _carry_by_groups(spec: GroupedState) -> Limits:
    return (_values(spec.heads * spec.head_dim, taken=_activated(spec)),)


def _carry_by_selective_channels(spec: ChannelState) -> Limits:
    """Everything is made from the channels: one opens the state for writing, one for reading."""
    return (_values(spec.channels, taken=2 + _activated(spec)),)


def _carry_by_gated_channels(spec: ChannelState) -> Limits:
    """The gates are made from the channels: one says which token writes."""
    return (_values(spec.channels, taken=1),)


def _carry_by_channels(spec: ChannelState) -> Limits:
    return (_values(spec.channels),)


def _activated(spec: MatrixState | GroupedState | ChannelState) -> int:
    """1 where values pass through silu."""
    return int(spec.conv > 0 or spec.name == "lightning")


# -- recalls: what each token of z_1 wrote under a key of its own stays, until it is read ------------------------------


def _recall_by_matrix(spec: MatrixState) -> Limits:
    return Limit(Code.ENTRIES, spec.head_dim, "key dimension"), *_carry_by_matrix(spec)


def _recall_by_features(spec: MatrixState) -> Limits | str:
    carried = _carry_by_features(spec)
    return carried if isinstance(carried, str) else _recall_by_matrix(spec)


def _recall_by_groups(spec: GroupedState) -> Limits:
    return Limit(Code.ENTRIES, spec.state, "state dimension"), *_carry_by_groups(spec)


def _recall_by_fading_matrix(spec: MatrixState) -> Limits:
    """Reading makes up for fixed decays, m + 1 of them between the first address and the last token."""
    most = int(FADED / fastest_loss(spec)) - 1
    if most < spec.head_dim:
        return Limit(Code.ENTRIES, most, f"decay, e^-{FADED:.0f} at most"), *_carry_by_matrix(spec)
    return _recall_by_matrix(spec)


def _recall_by_selective_channels(spec: ChannelState) -> Limits:
    """A channel for each key and each query beside those of the value."""
    together = Limit(Code.ENTRIES_AND_VALUE, spec.channels - _activated(spec), "channels")
    return Limit(Code.ENTRIES, spec.state, "state dimension"), together


def _recall_by_window(spec: WindowAttention | GlobalWindowAttention) -> Limits:
    """A look-up among the tokens in sight: those of z_1, of z_0 and the last one."""
    return Limit(Code.ENTRIES, spec.w - 2, "window less 2"), *_look_up_by_heads(spec)


def _recall_by_cache(spec: EvictingAttention) -> Limits:
    """The same among the recent tokens that the token before the last one left."""
    return Limit(Code.ENTRIES, spec.recent - 1, "recent tokens less 1"), *_look_up_by_heads(spec)


# -- packed recalls: states to which every token adds, and which keep what was added -----------------------------------


def _packed_by_matrix(spec: MatrixState) -> Limits:
    return (Limit(Code.PACKED, spec.heads * spec.value_dim, "value channels", rows=spec.head_dim),)


def _packed_by_features(spec: MatrixState) -> Limits | str:
    carried = _carry_by_features(spec)
    return carried if isinstance(carried, str) else _packed_by_matrix(spec)


def _packed_by_groups(spec: GroupedState) -> Limits:
    return (Limit(Code.PACKED, spec.heads * spec.head_dim, "value channels", rows=spec.state),)


def fastest_loss(spec: MatrixState) -> float:
    """The largest loss a token of a head with a fixed decay, as a logarithm."""
    return -math.log1p(-(2.0**-5)) if spec.name == "retnet" else 2.0 ** (-8 / spec.heads)


_LOOK_UP: dict[str, Rule] = {"full": _look_up_by_heads, "mla": _look_up_by_latents, "topk": _look_up_by_index}
_KEEPING = ("delta", "deltaproduct", "gdn", "kda", "gla", "hgrn2", "rwkv6", "rwkv7", "mlstm", "loglinear")
_FADING = ("retnet", "lightning")
_ADDING = tuple(name for name in _KEEPING if name != "hgrn2")  # the delta rule too, where it writes gently

RULES: Mapping[Move, Mapping[str, Rule]] = {
    Move.FETCH: {name: _of_functions(rule) for name, rule in _LOOK_UP.items()},
    Move.LOOK_UP: _LOOK_UP,
    Move.LOOK_AHEAD: _LOOK_UP,
    Move.CARRY: {
        "linear": _carry_by_features,
        **dict.fromkeys((*_KEEPING, *_FADING), _carry_by_matrix),
        "mamba2": _carry_by_groups,
        "mamba": _carry_by_selective_channels,
        "rglru": _carry_by_gated_channels,
        "rwkv4": _carry_by_channels,
        **dict.fromkeys(("conv", "shift"), _carry_by_columns),
        **dict.fromkeys(("window", "longformer"), _carry_by_window),
        **dict.fromkeys(("h2o", "adakv"), _carry_by_cache),
    },
    Move.RECALL: {
        "linear": _recall_by_features,
        **dict.fromkeys(_KEEPING, _recall_by_matrix),
        **dict.fromkeys(_FADING, _recall_by_fading_matrix),
        "mamba2": _recall_by_groups,
        "mamba": _recall_by_selective_channels,
        **dict.fromkeys(("window", "longformer"), _recall_by_window),
        **dict.fromkeys(("h2o", "adakv"), _recall_by_cache),
    },
    Move.RECALL_PACKED: {
        "linear": _packed_by_features,
        **dict.fromkeys(_ADDING, _packed_by_matrix),
        "mamba2": _packed_by_groups,
    },
    Move.BRANCH: {"full": _branch_by_heads},
    Move.GATHER: {"full": _gather_by_heads},
    Move.LOOK_UP_ROW: {name: _with_codes(rule, _OF_ROWS) for name, rule in _LOOK_UP.items()},
}

_NO_LOOK_UP = "{} makes no exact look-up here"
_REFUSALS = {
    Move.FETCH: _NO_LOOK_UP,
    Move.LOOK_UP: _NO_LOOK_UP,
    Move.LOOK_AHEAD: _NO_LOOK_UP,
    Move.CARRY: "{} has no built carry",
    Move.RECALL: "{} holds no table",
    Move.RECALL_PACKED: "{} holds no packed table",
    **dict.fromkeys((Move.BRANCH, Move.GATHER), "{} makes no look-ups at once here"),
    Move.LOOK_UP_ROW: _NO_LOOK_UP,
}


def _for(names: Sequence[str], reason: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


_NOT_LOOKED_UP = {
    **_for(("moba", "nsa"), "it chooses blocks by the mean of their keys, which the other tokens of a block move"),
    **_for(("bigbird", "tglobal"), "it does not see every address for itself"),
    **_for(("fox", "path", "dsa", "indexed", "compressed"), "it has sizes but no weights"),
}
WITHOUT: Mapping[Move, Mapping[str, str]] = {
    Move.FETCH: _NOT_LOOKED_UP,
    Move.LOOK_UP: _NOT_LOOKED_UP,
    Move.LOOK_AHEAD: _NOT_LOOKED_UP,
    Move.CARRY: {
        **_for(("chunk", "block"), "whether the last token shares a chunk with z_0 depends on the prompt's length"),
        **_for(("rfa", "poly"), "its features are never exactly zero, every token writes"),
        "recurrence": "it has sizes but no weights",
    },
    Move.RECALL: {
        **_for(("chunk", "block"), "whether the last token shares a chunk with z_1 depends on the prompt's length"),
        **_for(("rglru", "rwkv4"), "it reads its state without a query"),
        **_for(("rfa", "poly"), "its features are never exactly zero, keys are not told apart exactly"),
        "recurrence": "it has sizes but no weights",
    },
    Move.RECALL_PACKED: {
        "hgrn2": "a write empties its row",
        "mamba": "keys and queries take its channels",
        **_for(_FADING, "what is added later counts for more"),
    },
    **dict.fromkeys(
        (Move.BRANCH, Move.GATHER), _for(("mla", "topk"), "heads that ask for different addresses are not built")
    ),
    Move.LOOK_UP_ROW: _NOT_LOOKED_UP,
}


def limits(mixer: MixerSpec, move: Move, precisions: Precisions | None = None) -> Limits | str:
    """What a task must keep to for `mixer` to make `move`, or why it cannot make it at any sizes of the task.

    Args:
        mixer: the mixer.
        move: what it should do.
        precisions: bits of a number of its state, for what is packed; None: the usual ones.
    """
    rule = RULES[move].get(mixer.name)
    if rule is None:
        refusal, reason = _REFUSALS[move].format(mixer.name), WITHOUT[move].get(mixer.name)
        return f"{refusal}: {reason}" if reason else refusal
    found = rule(mixer)
    if isinstance(found, str):
        return found
    digits = packed_digits(precisions or Precisions())
    found = tuple(replace(limit, digits=digits) if limit.code is Code.PACKED else limit for limit in found)
    nothing = next((limit for limit in found if limit.most < 1), None)
    return found if nothing is None else nothing.exceeded(1)


def obstacle(
    mixer: MixerSpec,
    move: Move,
    hop: int,
    sizes: TaskSizes | None,
    *,
    overfill: bool = False,
    precisions: Precisions | None = None,
) -> str | None:
    """Why `mixer` cannot make `move` to the value of `hop` at these sizes; None if it can. Without sizes: at all.

    Args:
        mixer: the mixer.
        move: what it should do.
        hop: the value that the move brings.
        sizes: of the task; None leaves all size conditions out (a recall, a branch or a gather then never fits).
        overfill: let a recall hold more addresses than its state has room for, a branch leave values out, a row
            entries (it will fail: for demonstrations).
        precisions: as for `limits`.
    """
    found = limits(mixer, move, precisions)
    if isinstance(found, str):
        return found
    if sizes is None:
        if move.takes_many_heads:
            return "no number of heads is enough for any number of values"
        recalls = move in (Move.RECALL, Move.RECALL_PACKED)
        return "a state of fixed size holds no table of any size" if recalls else None
    for limit in found:
        if overfill and limit.forced(sizes, hop):
            continue
        needed = limit.needed(sizes, hop)
        if needed > limit.most:
            return limit.exceeded(needed)
    return None
