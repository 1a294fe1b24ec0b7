"""Families with windows or chunks and no recurrence."""

from typing import Any

from hopbound.architecture import mixer_spec
from hopbound.catalog.blocks.softmax import ALL_HEADS, Heads, full, window
from hopbound.catalog.families.family import Family
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block
from hopbound.catalog.schedules import (
    FULL,
    SLIDING,
    Words,
    all_alike,
    every,
    flags,
    gated_window,
    listed,
    rope_gate,
    ruled,
    spaced,
    window_everywhere,
)
from hopbound.catalog.schedules.repeats import dory_halved, loops
from hopbound.catalog.schedules.sharing import last_layers_share
from hopbound.catalog.schedules.tiles import counted_tiles


def wide_global(fields: Fields) -> Block:
    """Gemma 4's full layers: a wider head, and fewer key-value heads where keys are values."""
    override = fields.raw.get("per_layer_config")
    if override is not None:  # newer files say it layer by layer
        return full()(fields)
    changed: dict[str, Any] = {"head_dim": fields.number("global_head_dim")}
    fewer = fields.maybe("num_global_key_value_heads")
    if fewer is not None and fields.flag("attention_k_eq_v", derived=True):
        changed["num_key_value_heads"] = fewer
    return full()(fields.at(fields.index, changed))


def step_window(fields: Fields) -> Block:
    """Step 3.5's windows: heads of their own, in a field or in `attention_other_setting`."""
    other = fields.child("attention_other_setting")
    changed = {}
    if other is not None:
        changed["num_attention_heads"] = other.number("num_attention_heads")
        if other.has("num_attention_groups", "num_key_value_heads"):
            groups = other.number("num_attention_groups", "num_key_value_heads")
            changed |= {"num_attention_groups": groups, "num_key_value_heads": groups}  # the file may use either name
        if other.has("head_dim"):
            changed["head_dim"] = other.number("head_dim")
    elif (heads := fields.maybe("num_sliding_attention_heads")) is not None:
        changed["num_attention_heads"] = heads
    return window()(fields.at(fields.index, changed))


def laguna_full(fields: Fields) -> Block:
    """Laguna's full layers, whose heads a list may give."""
    return full()(_listed_heads(fields))


def laguna_window(fields: Fields) -> Block:
    """Laguna's windows, whose heads a list may give."""
    return window()(_listed_heads(fields))


def _listed_heads(fields: Fields) -> Fields:
    heads = fields.numbers("num_attention_heads_per_layer", least=1)
    if heads is None:
        return fields
    if fields.index >= len(heads):
        raise fields.error("num_attention_heads_per_layer", f"{len(heads)} numbers", f"one for layer {fields.index}")
    return fields.at(fields.index, {"num_attention_heads": heads[fields.index]})


MIMO = Heads(value_dim=("v_head_dim",))


def mimo_window(fields: Fields) -> Block:
    """MiMo's windows: twice the key-value heads unless the file gives them, `sliding_window_size` tokens and one."""
    heads = fields.number("swa_num_attention_heads", derived=fields.number("num_attention_heads"))
    twice = 2 * fields.number("num_key_value_heads")
    dim = fields.number("swa_head_dim", derived=fields.number("head_dim"))
    kv_heads = fields.number("swa_num_key_value_heads", derived=twice)
    if heads % kv_heads:
        raise fields.error("swa_num_key_value_heads", kv_heads, f"a divisor of {heads}")
    size = fields.maybe("sliding_window_size")
    width = fields.number("sliding_window") if size is None else size + 1
    value = fields.number("swa_v_head_dim", derived=fields.number("v_head_dim", derived=dim))
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": dim, "value_dim": value, "w": width}
    return Block(mixers=(mixer_spec("window", sizes),))


def prefixed(fields: Fields, layers: int | None) -> Words | None:
    """Cohere's mixtures: the first dense layers have a pattern of their own."""
    dense = fields.maybe("first_k_dense_replace", least=0) or 0
    rest = every("sliding_window_pattern", derived=4)
    if not dense or layers is None or dense > layers:
        return rest(fields, layers)
    first = every("prefix_dense_sliding_window_pattern", derived=1)(fields, dense)
    later = rest(fields, layers - dense) if layers > dense else None
    words = (first.words if first else ()) + (later.words if later else ())
    return Words(words, "sliding_window_pattern", fields.has("sliding_window_pattern"))


def exaone_pattern(fields: Fields, layers: int | None) -> Words | None:
    """EXAONE 4: a pattern, unless `sliding_window` is null, where the class needs a list."""
    if fields.maybe("sliding_window") is None:
        raise fields.error("layer_types", None, "a list: sliding_window is null, so the pattern says nothing")
    return every("sliding_window_pattern")(fields, layers)


def reference_window(fields: Fields) -> Block:
    """A window beside which all tokens of the prompt stay in sight: full attention as far as prompts go."""
    fields.notes.say("reference_sliding_attention keeps every token of the prompt: counted as full attention")
    return full(Heads(head_dim=()))(fields)


def bidirectional(fields: Fields) -> Fields:
    """Gemma's two-sided models, whose window is half to either side."""
    value = fields.raw.get("use_bidirectional_attention")
    if value in (None, False, "vision"):
        return fields
    if value not in (True, "all"):
        raise fields.error("use_bidirectional_attention", value, "true, false, 'vision' or 'all'")
    half = fields.number("sliding_window") // 2 + 1
    fields.notes.say(f"two-sided attention (use_bidirectional_attention): read as causal, with windows of {half}")
    return fields.at(fields.index, {"sliding_window": half})


WINDOW_FAMILIES = (
    Family(
        types=(
            "mistral",
            "mixtral",
            "phi3",
            "phimoe",
            "phi4_multimodal",
            "starcoder2",
            "ministral3",
            "doge",
            "moshi",
            "ministral",
        ),
        schedule=(listed(), window_everywhere),
    ),
    Family(
        types=("qwen2", "qwen3", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"),
        schedule=(listed(), gated_window()),
    ),
    Family(types=("qwen2_moe",), schedule=(listed(), gated_window(below=True))),
    Family(types=("qwen3_moe",), schedule=(listed(), gated_window(everywhere=True))),
    Family(types=("dots1",), schedule=(listed(), gated_window(gated=False))),
    Family(types=("smollm3",), schedule=(listed(), rope_gate(SLIDING, gate="sliding_window", turns=0))),
    Family(
        types=("llama4_text",),
        schedule=(listed(), rope_gate("chunked_attention", gate="attention_chunk_size", turns=1)),
    ),
    Family(types=("gemma2", "vaultgemma", "t5_gemma_module", "gpt_oss"), schedule=(listed(), spaced(2))),
    Family(types=("gemma3_text",), schedule=(listed(), every("sliding_window_pattern")), before=bidirectional),
    Family(
        types=("gemma3n_text",),
        schedule=(listed(), spaced(5)),
        after=(last_layers_share("num_kv_shared_layers"),),
    ),
    Family(
        types=("gemma4_text", "gemma4_unified_text", "diffusion_gemma", "diffusion_gemma_text"),
        schedule=(listed(), spaced(6, last=True)),
        layers={FULL: wide_global},
        before=bidirectional,
        after=(last_layers_share("num_kv_shared_layers"),),
    ),
    Family(types=("cohere2",), schedule=(listed(), every("sliding_window_pattern"))),
    Family(types=("cohere2_moe",), schedule=(listed(), prefixed)),
    Family(types=("cohere_compass_text", "mellum"), schedule=(listed(beyond=("num_mtp_layers",)), all_alike())),
    Family(types=("olmo3",), schedule=(listed(), spaced(4))),
    Family(types=("exaone4", "exaone_moe"), schedule=(listed(), exaone_pattern)),
    Family(types=("afmoe",), schedule=(listed(), every("global_attn_every_n_layers"))),
    Family(types=("cwm", "granite_swa", "granitemoe_swa"), schedule=(listed(), spaced(4, at=0))),
    Family(
        types=("modernbert-decoder",),
        schedule=(listed(), every("global_attn_every_n_layers", at=0, derived=3)),
        layers={FULL: full(ALL_HEADS), SLIDING: window("local_attention", where=ALL_HEADS, halved=True)},
    ),
    Family(
        types=("mimo_v2_flash", "mimo_v2"),
        schedule=(
            listed(),
            flags("hybrid_layer_pattern", {0: FULL, 1: SLIDING}),
            ruled(lambda i, n: FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING, "the rule of its class"),
        ),
        layers={FULL: full(MIMO), SLIDING: mimo_window},
    ),
    Family(
        types=("muse_glimmer", "muse_spark", "muse_glimmer_text", "muse_spark_text"),
        schedule=(listed(), ruled(lambda i, n: FULL if (n - 1 - i) % 4 == 0 else SLIDING, "the rule of its class")),
    ),
    Family(
        types=("flint",),
        schedule=(
            listed(),
            ruled(lambda i, n: FULL if i < 2 or i % 4 == 1 or i == n - 1 else SLIDING, "the rule of its class"),
        ),
    ),
    Family(types=("kolibri1",), schedule=(listed(), spaced(5))),
    Family(types=("beam",), schedule=(listed(), spaced(6, last=True))),
    Family(
        types=("dory",),
        schedule=(listed(), spaced(4)),
        before=dory_halved,
        after=(loops(start="n_input_layers", core="n_recurrent_layers", end="n_output_layers"),),
    ),
    Family(types=("laguna",), layers={FULL: laguna_full, SLIDING: laguna_window}),
    Family(
        types=("step3p5", "step3p5_text"),
        schedule=(listed(beyond=("num_nextn_predict_layers",)), all_alike()),
        layers={SLIDING: step_window},
        aliases={"num_attention_groups": "num_key_value_heads"},
    ),
    Family(
        types=("neomme",),
        schedule=(listed(), spaced(6, last=True)),
    ),
    Family(
        types=("gpt_neo",),
        schedule=(counted_tiles("attention_types", {"global": FULL, "local": SLIDING}, ("global", "local")),),
        layers={FULL: full(ALL_HEADS), SLIDING: window("window_size", where=ALL_HEADS)},
        notes=("a window needs its last tokens only; common engines cache all of them for this class",),
    ),
    Family(
        types=("unlimited_ocr_text",),
        schedule=(
            listed(),
            ruled(lambda i, n: "reference_sliding_attention", "the rule of its class"),
        ),
        layers={"reference_sliding_attention": reference_window},
    ),
)
