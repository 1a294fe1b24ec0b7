"""Files of flash-linear-attention with softmax attention: alone, in listed layers, or over one shared cache.

Source: fla 0.6.0, `layers/*.py` (what the caches get) and `models/*/configuration_*.py` (defaults).
"""

from dataclasses import replace

from tests.catalog.held import Case, Held, full, recurrent, window

_TWO = {"num_hidden_layers": 2, "hidden_size": 96}
_HEADS = {**_TWO, "num_heads": 6, "num_kv_heads": 2}  # heads of 16
_KV = 2 * 2 * 16
_LATENT = {**_TWO, "num_heads": 4, "kv_lora_rank": 26, "qk_rope_head_dim": 10, "qk_nope_head_dim": 14, "v_head_dim": 18}
_NSA = {"block_size": 16, "block_counts": 2, "window_size": 8}
_NULL = {"num_kv_heads": None, "head_dim": None, "window_size": None}
_SPARSE = Held(kinds=("sparse",), kv=_KV)
_NATIVE = replace(_SPARSE, window=8)  # one of its three branches


def _with_columns(layer: Held, channels: int, kernel: int) -> Held:
    return replace(layer, conv=(kernel - 1) * channels, allocated=kernel * channels)


def _with_gates(layer: Held, state: int) -> Held:
    return replace(layer, state=state)


ALONE = tuple(
    Case(name=name, config=config, layers=(layer, layer))
    for name, config, layer in (
        ("transformer", _HEADS, full(_KV)),
        ("transformer:window", {**_HEADS, "window_size": 20}, window(_KV, 20)),
        ("transformer:no shared heads", {**_TWO, "num_heads": 6, "num_kv_heads": None}, full(2 * 96)),
        ("bitnet", _HEADS, full(_KV)),
        ("bitnet:window", {**_HEADS, "window_size": 20}, window(_KV, 20)),
        # The model of transformers of this name.
        ("bitnet:transformers", {**_TWO, "num_attention_heads": 6, "num_key_value_heads": 3}, full(2 * 3 * 16)),
        ("parallax", _HEADS, full(_KV)),
        ("parallax:window", {**_HEADS, "window_size": 20}, window(_KV, 20)),
        ("stickbreaking_attn", _HEADS, full(_KV)),
        ("stickbreaking", _HEADS, full(_KV)),
        ("deltaformer", _HEADS, full(_KV)),
        ("cat", {**_HEADS, "max_chunk_size": 4}, full(_KV)),
        ("wall_transformer", _HEADS, full(_KV)),
        # Six gates a token and key channel, and one more for each head.
        ("wall_transformer:window", {**_HEADS, "window_size": 20}, _with_gates(window(_KV, 20), 19 * 6 * 16)),
        (
            "wall_transformer:scalar gate",
            {**_HEADS, "window_size": 20, "use_scalar_gate": True},
            _with_gates(window(_KV, 20), 19 * 6 * 17),
        ),
        ("forgetting_transformer", _HEADS, full(_KV + 6)),
        ("forgetting_transformer:window", {**_HEADS, "window_size": 20}, _with_gates(window(_KV, 20), 19 * 6)),
        ("forgetting_transformer:one token", {**_HEADS, "window_size": 1}, window(_KV, 1)),
        ("path_attn", _HEADS, _with_columns(full(_KV), 32, 3)),
        ("path_attn:gate", {**_HEADS, "use_forget_gate": True}, _with_columns(full(_KV + 6), 32, 3)),
        ("path_attn:no convolution", {**_HEADS, "use_w_shortconv": False}, full(_KV)),
        ("mla", _LATENT, full(4 * (24 + 18))),
        ("mla:window", {**_LATENT, "window_size": 20}, window(4 * (24 + 18), 20)),
        ("mla:defaults", _TWO, full(16 * (128 + 64 + 128))),
        ("nsa", {**_HEADS, **_NSA, "head_dim": 16}, _NATIVE),
        ("nsa:wide heads", {**_HEADS, **_NSA, "head_dim": 30}, replace(_NATIVE, kv=2 * 2 * 30)),
        ("nsa:null", {**_TWO, **_NSA, **_NULL, "num_heads": 6}, replace(_NATIVE, kv=2 * 96, window=1)),
        ("nsa:defaults", _TWO, replace(_NATIVE, kv=2 * 4 * 32, window=512)),
        ("moba", {**_HEADS, "moba_chunk_size": 16, "moba_topk": 2}, _SPARSE),
        ("moba:defaults", _HEADS, _SPARSE),
    )
)

_GLA = {"num_hidden_layers": 4, "hidden_size": 96, "num_heads": 4}
_LAYER = recurrent(4 * 12 * 24)
_SHIFTED = {"num_hidden_layers": 2, "hidden_size": 96, "attn": {"layers": [1], "num_heads": 6, "num_kv_heads": 3}}


def _shifts(state: int) -> Held:
    return Held(kinds=("recurrent",), state=state, conv=2 * 96, allocated=2 * 96)


IN_TURN = (
    Case(
        name="rwkv7:values by layer",
        config={"num_hidden_layers": 2, "hidden_size": 96, "head_dim": None, "num_heads": 3, "value_dim": [96, 192]},
        layers=(_shifts(3 * 32 * 32), _shifts(3 * 32 * 64)),
    ),
    Case(name="gla:null", config={**_GLA, "attn": None}, layers=4 * (_LAYER,)),
    Case(
        name="gla:one object",
        config={**_GLA, "attn": {"layers": [3, 1], "num_heads": 6, "num_kv_heads": 3, "window_size": None}},
        layers=(_LAYER, full(2 * 3 * 16), _LAYER, full(2 * 3 * 16)),
    ),
    Case(
        name="gla:several objects",
        config={
            **_GLA,
            "attn": [
                {"layers": [0], "num_heads": 6, "num_kv_heads": 2, "window_size": 20},
                {"layers": [2], "num_heads": 8, "rope_theta": 5e5},
            ],
        },
        layers=(window(2 * 2 * 16, 20), _LAYER, full(2 * 96), _LAYER),
    ),
    Case(name="gla:no layers", config={**_GLA, "attn": {"layers": [], "num_heads": 6}}, layers=4 * (_LAYER,)),
    Case(
        name="deltaformer:listed",
        config={**_HEADS, "attn": {"layers": [1], "num_heads": 6, "num_kv_heads": 3, "window_size": 20}},
        layers=(full(_KV), window(2 * 3 * 16, 20)),
    ),
    # The position-wise half of a block of RWKV keeps its last token whatever stands before it.
    Case(
        name="rwkv6:listed",
        config={**_SHIFTED, "num_heads": 3},
        layers=(_shifts(3 * 16 * 32), replace(full(2 * 3 * 16), conv=96, allocated=96)),
    ),
    Case(
        name="rwkv7:listed",
        config={**_SHIFTED, "head_dim": 16},
        layers=(_shifts(6 * 16 * 16), replace(full(2 * 3 * 16), conv=96, allocated=96)),
    ),
    Case(
        name="samba",
        config={
            "num_hidden_layers": 3,
            "hidden_size": 96,
            "state_size": 11,
            "conv_kernel": 3,
            "expand": 2,
            "attn": {"layers": [1], "num_heads": 6, "num_kv_heads": 3, "window_size": 20},
        },
        layers=(recurrent(192 * 11, 192, 3), window(2 * 3 * 16, 20), recurrent(192 * 11, 192, 3)),
    ),
    Case(
        name="samba:attention by default",
        config={"num_hidden_layers": 4, "hidden_size": 90, "state_size": 11, "conv_kernel": 3, "expand": 2},
        layers=2 * (recurrent(180 * 11, 180, 3), window(2 * 90, 2048)),
    ),
    Case(
        name="samba:no attention",
        config={
            "num_hidden_layers": 1,
            "hidden_size": 90,
            "state_size": 11,
            "conv_kernel": 3,
            "expand": 2,
            "attn": None,
        },
        layers=(recurrent(180 * 11, 180, 3),),
    ),
    Case(  # older versions saved the layers of the full depth with every model
        name="samba:uncut",
        config={
            "num_hidden_layers": 2,
            "hidden_size": 90,
            "state_size": 11,
            "conv_kernel": 3,
            "expand": 2,
            "transformers_version": "4.44.0",
            "attn": {
                "layers": [1, 3, 5, 7, 9, 11, 13, 15, 17],
                "num_heads": 18,
                "num_kv_heads": 18,
                "qkv_bias": False,
                "window_size": 2048,
                "rope_theta": 10000.0,
            },
        },
        layers=(recurrent(180 * 11, 180, 3), window(2 * 90, 2048)),
    ),
)

_CROSS = {"num_hidden_layers": 4, "hidden_size": 96, "num_self_decoder_layers": 2}
_SHARED = {**_CROSS, "cross_decoder_attn": {"num_heads": 6, "num_kv_heads": 3}}
_OWNER, _READER = full(2 * 3 * 16), Held(kinds=("full",), shared_from=2)

SHARED = (
    Case(
        name="yoco",
        config={
            **_SHARED,
            "self_decoder_attn": {
                "type": "gated_deltanet",
                "num_heads": 2,
                "num_v_heads": 4,
                "head_dim": 12,
                "expand_v": 1.5,
                "conv_size": 3,
            },
        },
        layers=(*2 * (recurrent(4 * 12 * 18, 2 * 24 + 4 * 18, 3),), _OWNER, _READER),
    ),
    Case(
        name="yoco:retention",
        config={**_SHARED, "self_decoder_attn": {"type": "gated_retention", "num_heads": 3}},
        layers=(*2 * (recurrent(3 * 32 * 32),), _OWNER, _READER),
    ),
    Case(
        name="yoco:windows",
        config={**_SHARED, "self_decoder_attn": {"type": "swa", "num_heads": 6, "num_v_heads": 2, "window_size": 20}},
        layers=(*2 * (window(2 * 2 * 16, 20),), _OWNER, _READER),
    ),
    Case(
        name="yoco:defaults",
        config=_CROSS,
        layers=(
            *2 * (recurrent(6 * 256 * 512, 2 * 6 * 256 + 6 * 512, 4),),
            full(2 * 96),
            Held(kinds=("full",), shared_from=2),
        ),
    ),
)
