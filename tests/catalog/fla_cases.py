"""Files of flash-linear-attention and what their layers hold, by hand arithmetic on the sizes of its layers.

The sizes are pairwise different where the classes let them be. Fields that stand at the default of their class are left
out where an older file would not have them.

Source: fla 0.6.0, `layers/*.py` (what the caches get) and `models/*/configuration_*.py` (defaults).
"""

from collections.abc import Mapping
from dataclasses import replace

from tests.catalog.held import Case, Held, recurrent

_TWO = {"num_hidden_layers": 2, "hidden_size": 96}
_HEADS = {**_TWO, "num_heads": 6, "num_kv_heads": 2}  # heads of 16


def _both(name: str, config: Mapping[str, object], layer: Held, *, state_bits: int = 32) -> Case:
    """A stack of two layers that are alike."""
    return Case(name=name, config={**_TWO, **config}, layers=(layer, layer), state_bits=state_bits)


_DELTA = {"num_heads": 2, "num_v_heads": 6, "head_dim": 12, "expand_v": 1.5, "conv_size": 3}  # values of 18
_DELTA_CHANNELS = 2 * (2 * 12) + 6 * 18
_SLOTS = {"num_heads": 4, "num_slots": 10}

MATRICES = (
    _both("gla", {"num_heads": 4, "expand_k": 0.5, "expand_v": 1.0}, recurrent(4 * 12 * 24)),
    _both("gla:defaults", {}, recurrent(4 * 12 * 24)),
    _both(
        "gla:convolutions",
        {"num_heads": 6, "num_kv_heads": 2, "expand_k": 0.5, "expand_v": 2, "use_short_conv": True, "conv_size": 3},
        recurrent(6 * 8 * 32, 48 + 48 // 3 + 192 // 3, 3),  # queries are not shared
    ),
    _both("retnet", {"num_heads": 4, "expand_v": 1.5}, recurrent(4 * 24 * 36)),
    _both("retnet:defaults", {}, recurrent(8 * 12 * 24)),
    # Its class takes the field and builds no convolution.
    _both("retnet:convolutions", {"num_heads": 4, "use_short_conv": True, "conv_size": 3}, recurrent(4 * 24 * 48)),
    _both("linear_attn", {"num_heads": 3, "expand_k": 0.5, "expand_v": 1.5}, recurrent(3 * 16 * 48)),
    _both("linear_attn:defaults", {}, recurrent(4 * 24 * 24)),
    _both("delta_net", {"num_heads": 3, "expand_v": 2.0, "conv_size": 5}, recurrent(3 * 32 * 64, 96 + 96 + 192, 5)),
    _both("delta_net:defaults", {}, recurrent(16 * 6 * 6, 3 * 96, 4)),
    _both("delta_net:no convolutions", {"num_heads": 3, "use_short_conv": False}, recurrent(3 * 32 * 32)),
    _both("hgrn2", {"num_heads": None, "expand_ratio": 24}, recurrent(4 * 24 * 24)),
    _both("hgrn2:heads", {"num_heads": 6, "expand_ratio": 20}, recurrent(6 * 20 * 16)),
    _both("hgrn2:ratio null", {"num_heads": 3, "expand_ratio": None}, recurrent(3 * 32 * 32)),
    _both(
        "hgrn2:convolutions",
        {"num_heads": 6, "expand_ratio": 20, "use_short_conv": True, "conv_size": 3},
        recurrent(6 * 20 * 16, 120 + 120 + 96, 3),
    ),
)
DELTA_RULES = (
    _both("gated_deltanet", _DELTA, recurrent(6 * 12 * 18, _DELTA_CHANNELS, 3)),
    _both("gated_deltanet:defaults", {}, recurrent(6 * 256 * 512, 2 * 6 * 256 + 6 * 512, 4)),
    _both("comba", _DELTA, recurrent(6 * 12 * 18, _DELTA_CHANNELS, 3)),
    _both("comba:defaults", {}, recurrent(6 * 256 * 512, 2 * 6 * 256 + 6 * 512, 4)),
    _both(
        "gated_deltaproduct",
        {"num_heads": 2, "head_dim": 12, "expand_v": 1.5, "num_householder": 3, "conv_size": 3},
        recurrent(2 * 12 * 18, 24 + 3 * (24 + 36), 3),
    ),
    _both("gated_deltaproduct:defaults", {}, recurrent(6 * 256 * 512, 2 * 6 * 256 + 6 * 512, 4)),  # one step
    # The model does not hand this field to its layers.
    _both(
        "gated_deltaproduct:value heads",
        {"num_heads": 2, "head_dim": 12, "expand_v": 2.0, "num_householder": 1, "num_v_heads": 6},
        recurrent(2 * 12 * 24, 24 + 24 + 48, 4),
    ),
    _both("kda", _DELTA, recurrent(6 * 12 * 18, _DELTA_CHANNELS, 3)),
    _both("kda:defaults", {}, recurrent(16 * 128 * 128, 3 * 16 * 128, 4)),
    # The preconditioner is that of the key heads here, and of the value heads there.
    _both("precond_gated_deltanet", _DELTA, recurrent(6 * 12 * 18 + 2 * 12, _DELTA_CHANNELS, 3)),
    _both("precond_kda", _DELTA, recurrent(6 * 12 * 18 + 6 * 12, _DELTA_CHANNELS, 3)),
    _both("precond_kda:defaults", {}, recurrent(16 * 128 * 128 + 16 * 128, 3 * 16 * 128, 4)),
)
OTHERS = (
    _both("hgrn", {"expand_ratio": 2}, recurrent(192), state_bits=16),
    _both("hgrn:defaults", {}, recurrent(96), state_bits=16),
    _both("hgrn:convolutions", {"use_short_conv": True, "conv_size": 3}, recurrent(96, 2 * 96, 3), state_bits=16),
    _both("gsa", _SLOTS, recurrent(10 * (4 * 24 + 4 * 24))),
    _both("gsa:old names", {**_SLOTS, "exapnd_k": 0.5, "exapnd_v": 2}, recurrent(10 * (48 + 192))),
    _both("gsa:slots null", {"num_heads": 4, "num_slots": None}, recurrent(24 * (96 + 96))),
    _both(
        "gsa:convolutions",
        {**_SLOTS, "num_kv_heads": 2, "expand_k": 0.5, "use_short_conv": True, "conv_size": 3},
        recurrent(10 * (48 + 96), 48 + 24 + 48, 3),
    ),
    _both("abc", _SLOTS, recurrent(10 * (48 + 96))),
    _both("abc:old names", {**_SLOTS, "exapnd_k": 1, "exapnd_v": 2}, recurrent(10 * (96 + 192))),
    _both("abc:convolutions", {**_SLOTS, "use_short_conv": True}, recurrent(10 * (48 + 96), 48 + 48 + 96, 4)),
    _both("raven", _SLOTS, recurrent(10 * (96 + 96))),
    _both("raven:defaults", {}, recurrent(64 * (96 + 96))),
    _both("lightnet", {"num_heads": None, "expand_ratio": 24}, recurrent(4 * 24 * 24 + 4 * 24)),
    _both("lightnet:ratio null", {"num_heads": 3, "expand_ratio": None}, recurrent(3 * 32 * 32 + 3 * 32)),
    _both(
        "lightnet:convolutions",
        {"num_heads": 6, "expand_ratio": 20, "use_short_conv": True, "conv_size": 3},
        recurrent(6 * 20 * 16 + 6 * 20, 120 + 120 + 96, 3),
    ),
    _both("mesa_net", {"num_heads": 3, "head_dim": 14, "conv_size": 3}, recurrent(2 * 3 * 14 * 14, 2 * 3 * 14, 3)),
    _both("mesa_net:defaults", {}, recurrent(2 * 16 * 128 * 128, 2 * 16 * 128, 4)),
    # Three memories and the shared one, each with convolutions of its own.
    _both(
        "mom",
        {"num_heads": 2, "head_dim": 12, "expand_v": 1.5, "num_memories": 3, "conv_size": 3},
        recurrent(4 * 2 * 12 * 18, 4 * 2 * (12 + 12 + 18), 3),
    ),
    _both(
        "mom:not shared",
        {"num_heads": 2, "head_dim": 12, "num_memories": 3, "shared_mem": False},
        recurrent(3 * 2 * 12 * 12, 3 * 2 * (12 + 12 + 12), 4),
    ),
    _both("rodimus", {"hidden_size": 90, "block_type": "rodimus", "expand_ratio": 10}, recurrent(184 * 10, 184, 4)),
    _both(
        "rodimus:plus",
        {"hidden_size": 90, "expand_ratio": 10, "ska_attn": {"num_heads": 5, "window_size": 20}, "conv_size": 3},
        replace(
            recurrent(184 * 10, 184, 3), kinds=("recurrent", "window"), window=20, window_kv=18 + 90
        ),  # one key for all heads
    ),
    _both(
        "rwkv6",
        {"num_heads": 3, "expand_k": 0.5, "expand_v": 1.0},
        Held(kinds=("recurrent",), state=3 * 16 * 32, conv=2 * 96, allocated=2 * 96),
    ),
    _both(
        "rwkv7",
        {"head_dim": 16, "num_heads": 32},
        Held(kinds=("recurrent",), state=6 * 16 * 16, conv=2 * 96, allocated=2 * 96),
    ),
    _both(
        "rwkv7:dimension null",
        {"head_dim": None, "num_heads": 3, "value_dim": 96},
        Held(kinds=("recurrent",), state=3 * 32 * 32, conv=2 * 96, allocated=2 * 96),
    ),
    _both(
        "rwkv7:defaults",
        {"hidden_size": 128, "num_heads": 8},
        Held(  # heads of 64 by default
            kinds=("recurrent",), state=2 * 64 * 64, conv=2 * 128, allocated=2 * 128
        ),
    ),
    _both(
        "mamba",
        {"state_size": 11, "conv_kernel": 3, "expand": 2, "intermediate_size": 192},
        recurrent(192 * 11, 192, 3),
    ),
    _both(
        "mamba2",
        {"state_size": 11, "conv_kernel": 3, "expand": 2, "num_heads": 8, "head_dim": 24, "n_groups": 2},
        recurrent(8 * 24 * 11, 192 + 2 * 2 * 11, 3),
    ),
    # State, angles, last key and last value of each head.
    _both("mamba3", {"state_size": 20, "head_dim": 24}, recurrent(8 * (24 * 20 + 5 + 20 + 24))),
    _both(
        "mamba3:ranks",
        {"state_size": 20, "head_dim": 24, "rope_fraction": 1.0, "is_mimo": True, "mimo_rank": 3},
        recurrent(8 * (24 * 20 + 10 + 3 * 20 + 24)),
    ),
    # The token itself, and sums over 1, 2, 4, ... 64 tokens: enough for 100.
    _both(
        "log_linear_mamba2",
        {"state_size": 11, "conv_kernel": 3, "num_heads": 8, "head_dim": 24, "max_position_embeddings": 100},
        recurrent(8 * 8 * 24 * 11, 192 + 2 * 11, 3),
    ),
)
