"""Families with recurrences or short convolutions: alone, beside attention, or in turn with it."""

from dataclasses import replace

from hopbound.architecture import Precisions, mixer_spec
from hopbound.catalog.blocks.recurrent import (
    InParallel,
    Mamba,
    Mamba2,
    ShortConv,
    gated_delta,
    gated_delta_by_width,
    kimi_delta,
    lightning,
    lightning_of_width,
    ling_delta,
    rglru,
    rwkv4,
    xlstm,
)
from hopbound.catalog.blocks.softmax import DEFINED, PLAIN, Heads, full, latent, window
from hopbound.catalog.blocks.sparse import IndexedLatent
from hopbound.catalog.families.family import Family, float_columns, model_state
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block
from hopbound.catalog.precision import bits_of
from hopbound.catalog.schedules import (
    FULL,
    LINEAR,
    SLIDING,
    Words,
    all_alike,
    every,
    flags,
    letters,
    listed,
    marked,
    named_indices,
    period_and_offset,
    ruled,
    spaced,
    tiles,
)
from hopbound.catalog.schedules.repeats import core_loop
from hopbound.catalog.schedules.sharing import shared_weights

LONG_CONTEXT = 16384
INDEXED, HYBRID, HYBRID_SLIDING = "indexed_attention", "hybrid", "hybrid_sliding"

_MAMBA = Mamba(expand="mamba_expand", state="mamba_d_state", conv="mamba_d_conv")
_BAMBA = Mamba2(
    heads="mamba_n_heads",
    head_dim="mamba_d_head",
    state="mamba_d_state",
    groups="mamba_n_groups",
    conv="mamba_d_conv",
    expand="mamba_expand",
)
_FALCON_H1 = replace(_BAMBA, inner="mamba_d_ssm")
_ZAMBA2 = Mamba2(
    heads="n_mamba_heads",
    head_dim="mamba_headdim",
    state="mamba_d_state",
    groups="mamba_ngroups",
    conv="mamba_d_conv",
    expand="mamba_expand",
    recomputed=True,
)
_NEMOTRON = Mamba2(
    heads="mamba_num_heads",
    head_dim="mamba_head_dim",
    state="ssm_state_size",
    groups="n_groups",
    conv="conv_kernel",
)
_MAMBA2 = Mamba2(
    heads="num_heads", head_dim="head_dim", state="state_size", groups="n_groups", conv="conv_kernel", expand="expand"
)
# The input of the shared attention is two hidden states side by side.
_ZAMBA_ATTENTION = full(Heads(head_dim=("attention_head_dim",), times=2))
_ZAMBA2_ATTENTION = full(Heads(head_dim=(), times=2))


def olmo_rule(i: int, layers: int) -> str:
    """One layer in four, and the last one of a stack that is shorter."""
    return FULL if i % 4 == 3 or (layers < 4 and i == layers - 1) else LINEAR


def zamba2_list(fields: Fields, layers: int | None) -> Words | None:
    """The class's own list, which is that of one size alone."""
    if layers is not None and layers != 54:
        raise fields.error("layers_block_type", None, f"a list: that of the class has 54 layers, not {layers}")
    five = [*(5 * [LINEAR]), HYBRID]
    end = [*(4 * [LINEAR]), HYBRID, *(3 * [LINEAR]), HYBRID, *(2 * [LINEAR])]
    return Words((LINEAR, *(7 * five), *end), "the list of its class", False)


def long_context(fields: Fields) -> Fields:
    """Zamba 2: a flag stands for 16,384 tokens, whatever the file gives beside it."""
    if not fields.flag("use_long_context", derived=False):
        return fields
    return fields.at(fields.index, {"max_position_embeddings": LONG_CONTEXT})


def nemotron_list(fields: Fields, layers: int | None) -> Words | None:
    """Without a pattern or a list nothing says what the layers are."""
    raise fields.error("hybrid_override_pattern", None, "a letter a layer, or the list layers_block_type")


def nemotron_precisions(fields: Fields, bits: int) -> Precisions:
    """The state's dtype has a field of its own."""
    word = fields.text("mamba_ssm_cache_dtype") or "float32"
    return Precisions(activation=bits, kv=bits, state=bits_of(fields, "mamba_ssm_cache_dtype", word))


def xlstm_precisions(fields: Fields, bits: int) -> Precisions:
    """The cache is allocated in the model's dtype."""
    fields.notes.say("state is counted in the model's dtype, in which it is allocated; it is computed in float32")
    return model_state(fields, bits)


def zaya(kind: str) -> InParallel:
    """Zaya: attention beside two stacked convolutions of its queries and keys, and half of a delayed value."""

    def helper(fields: Fields) -> Block:
        sizes = PLAIN.sizes(fields)
        columns = fields.number("cca_time0") - 1 + fields.number("cca_time1") - 1
        width = sizes["kv_heads"] * sizes["head_dim"]
        mixer = mixer_spec(
            "recurrence",
            {
                "state": max(width // 2, 1),
                "columns": columns * (sizes["heads"] + sizes["kv_heads"]) * sizes["head_dim"],
                "channels": width,
            },
        )
        return Block(mixers=(mixer,), helpers=(mixer,))

    return InParallel((full(PLAIN) if kind == HYBRID else window(), helper))


def inkling_full(fields: Fields) -> Block:
    """Inkling: attention with short convolutions on keys, values, and both halves of the layer."""
    attention = full(PLAIN)(fields)
    sizes = PLAIN.sizes(fields)
    return _with_columns(fields, attention, 2 * sizes["kv_heads"] * sizes["head_dim"])


_INKLING_WINDOW = Heads(
    heads=("swa_num_attention_heads",), kv_heads=("swa_num_key_value_heads",), head_dim=("swa_head_dim",)
)


def inkling_window(fields: Fields) -> Block:
    """The same over a window, with heads of its own."""
    attention = window("sliding_window_size", where=_INKLING_WINDOW)(fields)
    sizes = _INKLING_WINDOW.sizes(fields)
    return _with_columns(fields, attention, 2 * sizes["kv_heads"] * sizes["head_dim"])


def _with_columns(fields: Fields, attention: Block, channels: int) -> Block:
    total = channels + 2 * fields.number("hidden_size")
    conv = mixer_spec("conv", {"channels": total, "kernel": fields.number("conv_kernel_size")})
    return Block.beside(attention.mixers, conv)


def inkling_rule(fields: Fields, layers: int | None) -> Words | None:
    """Layers with a window are listed, or are all but one in six."""
    given = marked("local_layer_ids", word=HYBRID_SLIDING, other=HYBRID)(fields, layers)
    return given or spaced(6, HYBRID, HYBRID_SLIDING)(fields, layers)


_QSA_FIELDS = ("indexer_kv_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio")


def qsa(fields: Fields) -> Block:
    """Qwen4's attention over the blocks that an index chooses; over all of the past where the file has no index."""
    if fields.items("ple_layer_ids"):
        fields.notes.say("ple_layer_ids: the convolution state of these layers' embeddings is left out")
    if not any(fields.has(name) for name in _QSA_FIELDS):
        fields.notes.say("no indexer fields: attention over the whole past")
        return full(PLAIN)(fields)
    fields.notes.say("three positions a token that the index keeps as integers are left out")
    keys, dim, budget, block = (fields.number(name) for name in _QSA_FIELDS)
    if budget % block:
        raise fields.error("indexer_compress_ratio", block, f"a divisor of indexer_budget={budget}")
    sizes = PLAIN.sizes(fields) | {"k": budget // block, "block": block, "index_dim": keys * dim}
    return Block(mixers=(mixer_spec("indexed", sizes),))


def glm_indexed(fields: Fields) -> Block:
    """GLM-5.3's choice of tokens: two index keys and one number a token."""
    return IndexedLatent(extra=1, times=2)(fields)


_QWEN_WORDS = {LINEAR: gated_delta}
_WINDOW_OF_STATE = window("attention_window_size", where=DEFINED)

RECURRENT_FAMILIES = (
    Family(
        types=("mamba", "falcon_mamba"),
        layers={LINEAR: Mamba(inner=("intermediate_size",), expand="expand", state="state_size", conv="conv_kernel")},
        schedule=(listed(), all_alike(LINEAR)),
        context=(),
    ),
    Family(types=("mamba2",), layers={LINEAR: _MAMBA2}, schedule=(listed(), all_alike(LINEAR)), context=()),
    Family(
        types=("jamba",),
        layers={FULL: full(DEFINED), LINEAR: _MAMBA},
        schedule=(
            listed("layer_types", "layers_block_type"),
            period_and_offset("attn_layer_period", "attn_layer_offset"),
        ),
    ),
    Family(
        types=("zamba",),
        layers={LINEAR: _MAMBA, HYBRID: InParallel((_MAMBA, _ZAMBA_ATTENTION))},
        schedule=(
            listed("layers_block_type", "layer_types"),
            period_and_offset("attn_layer_period", "attn_layer_offset", word=HYBRID, start=(LINEAR, LINEAR, HYBRID)),
        ),
        after=(shared_weights(HYBRID, ""),),
    ),
    Family(
        types=("zamba2",),
        layers={LINEAR: _ZAMBA2, HYBRID: InParallel((_ZAMBA2, _ZAMBA2_ATTENTION))},
        schedule=(listed("layers_block_type", "layer_types"), zamba2_list),
        before=long_context,
        after=(shared_weights(HYBRID, "num_mem_blocks"),),
    ),
    Family(
        types=("bamba",),
        layers={FULL: full(DEFINED), LINEAR: _BAMBA},
        schedule=(
            listed("layer_types", "layers_block_type"),
            marked("attn_layer_indices", word=FULL, other=LINEAR),
            all_alike(LINEAR),
        ),
    ),
    Family(
        types=("granitemoehybrid",),
        layers={FULL: full(DEFINED), LINEAR: _BAMBA},
        schedule=(listed("layer_types", "layers_block_type"), all_alike(LINEAR)),
    ),
    Family(
        types=("falcon_h1",),
        layers={HYBRID: InParallel((full(PLAIN), _FALCON_H1))},
        schedule=(listed("layer_types", "layers_block_type"), all_alike(HYBRID)),
    ),
    Family(
        types=("nemotron_h",),
        layers={LINEAR: _NEMOTRON},
        schedule=(
            listed("layers_block_type", "layer_types", own_length=True),
            letters("hybrid_override_pattern", {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe"}),
            nemotron_list,
        ),
        precisions=nemotron_precisions,
        aliases={
            "mamba_n_groups": "n_groups",
            "mamba_d_conv": "conv_kernel",
            "attention_head_dim": "head_dim",
        },
    ),
    Family(
        types=("recurrent_gemma",),
        layers={LINEAR: rglru, SLIDING: _WINDOW_OF_STATE},
        schedule=(
            tiles(
                ("recurrent", "recurrent", "attention"),
                name="block_types",
                meaning={"recurrent": LINEAR, "attention": SLIDING},
            ),
        ),
        context=(),
    ),
    Family(
        types=("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"),
        layers=_QWEN_WORDS,
        schedule=(listed(), every("full_attention_interval", other=LINEAR, derived=4)),
    ),
    Family(
        types=("lara_mini",),
        layers=_QWEN_WORDS,
        schedule=(listed(), tiles((LINEAR, SLIDING, LINEAR, FULL, SLIDING))),
    ),
    Family(
        types=("olmo_hybrid",),
        layers={LINEAR: gated_delta_by_width},
        schedule=(listed(), ruled(olmo_rule, "the rule of its class (one layer in 4)")),
    ),
    Family(
        types=("qwen4_exp_text",),
        layers={INDEXED: qsa, LINEAR: gated_delta},
        schedule=(
            listed(legacy={FULL: INDEXED}),
            every("full_attention_interval", word=INDEXED, other=LINEAR, derived=4),
        ),
    ),
    Family(
        types=("kimi_linear",),
        layers={FULL: latent, LINEAR: kimi_delta},
        schedule=(
            listed(),
            named_indices("linear_attn_config", {"full_attn_layers": FULL, "kda_layers": LINEAR}, first=1),
            ruled(lambda i, n: FULL if i and i % 4 == 0 else LINEAR, "the rule of its class (one layer in 4)"),
        ),
        context=("max_position_embeddings", "model_max_length"),
    ),
    Family(
        types=("bailing_hybrid",),
        layers={FULL: latent, LINEAR: ling_delta},
        schedule=(listed(), every("layer_group_size", other=LINEAR)),
        context=("max_position_embeddings", "model_max_length"),
    ),
    Family(
        types=("glm5_next_text",),
        layers={INDEXED: glm_indexed, LINEAR: kimi_delta},
        schedule=(
            listed(legacy={FULL: INDEXED}),
            ruled(lambda i, n: INDEXED if i % 4 == 3 else LINEAR, "the rule of its class (one layer in 4)"),
        ),
    ),
    Family(
        types=("minimax", "minimax_text_01", "minimax_m1"),
        layers={LINEAR: lightning},
        schedule=(
            listed(),
            flags("attn_type_list", {1: FULL, 0: LINEAR}),
            ruled(lambda i, n: LINEAR if i % 2 else FULL, "the rule of its class (every other layer)"),
        ),
        precisions=model_state,
    ),
    Family(
        types=("bailing_moe_linear",),
        layers={LINEAR: lightning_of_width},
        schedule=(listed(), every("layer_group_size", other=LINEAR, tail=True)),
    ),
    Family(
        types=("lfm2", "lfm2_moe"),
        layers={FULL: full(DEFINED), "conv": ShortConv("conv_L_cache")},
        schedule=(listed(), marked("full_attn_idxs", word=FULL, other="conv"), all_alike()),
    ),
    Family(
        types=("lfm3",),
        layers={"conv": ShortConv("conv_L_cache")},
        schedule=(
            listed(),
            ruled(
                lambda i, n: FULL if i % 4 == 2 else SLIDING if i % 4 == 0 and i > 0 else "conv",
                "the rule of its class",
            ),
        ),
    ),
    Family(
        types=("xlstm",),
        layers={LINEAR: xlstm},
        schedule=(all_alike(LINEAR),),
        count=("num_hidden_layers", "num_blocks"),
        context=(),
        precisions=xlstm_precisions,
        aliases={"embedding_dim": "hidden_size"},
    ),
    Family(types=("rwkv",), layers={LINEAR: rwkv4}, schedule=(all_alike(LINEAR),), context=()),
    Family(
        types=("zaya",),
        layers={HYBRID: zaya(HYBRID), HYBRID_SLIDING: zaya(HYBRID_SLIDING)},
        schedule=(listed(), all_alike(HYBRID)),
        precisions=model_state,
    ),
    Family(
        types=("inkling_text", "inkling2_text"),
        layers={HYBRID: inkling_full, HYBRID_SLIDING: inkling_window},
        schedule=(listed(), inkling_rule),
        precisions=float_columns,
    ),
    Family(
        types=("inkling2_loop_text",),
        layers={HYBRID: inkling_full, HYBRID_SLIDING: inkling_window},
        schedule=(listed(), inkling_rule),
        precisions=float_columns,
        after=(core_loop,),
    ),
)
