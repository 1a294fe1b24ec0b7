"""Families with latent attention, and with attention over chosen or pooled tokens."""

from typing import Any

from hopbound.catalog.blocks.softmax import latent, latent_if_rotary, latent_window
from hopbound.catalog.blocks.sparse import (
    Compressed,
    IndexedBlocks,
    IndexedLatent,
    indexed_one_in_four,
    single_key_window,
)
from hopbound.catalog.families.family import Family
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block
from hopbound.catalog.schedules import FULL, SLIDING, Words, all_alike, flags, listed, ruled
from hopbound.catalog.schedules.repeats import twice
from hopbound.catalog.schedules.sharing import listed_sources

INDEXED = "indexed_attention"
HEAVY, CHOSEN = "heavily_compressed_attention", "compressed_sparse_attention"


def value_by_width(fields: Fields) -> Block:
    """MiniCPM 3: the value dimension is width over heads where it is not given."""
    if fields.maybe("v_head_dim") is not None:
        return latent(fields)
    width, heads = fields.number("hidden_size"), fields.number("num_attention_heads")
    if width % heads:
        raise fields.error("num_attention_heads", heads, f"a divisor of hidden_size={width}")
    fields.notes.assume("v_head_dim", width // heads)
    return latent(fields.at(fields.index, {"v_head_dim": width // heads}))


def note_schedule(fields: Fields, layers: int | None) -> Words | None:
    """dots3-note: layers 0 and 1 and one in four choose tokens, the others have windows."""
    windows = fields.flag("use_sliding_window", derived=True)
    word = FULL if fields.flag("use_dsa", derived=True) is False else INDEXED
    rule = ruled(lambda i, n: word if not windows or i < 2 or i % 4 == 1 else SLIDING, "the rule of its class")
    return rule(fields, layers)


def note_words(fields: Fields) -> Fields:
    """Older files call layers that choose tokens `full_attention`."""
    words = fields.words("layer_types")
    if words is None or ("use_dsa" not in fields.raw and "per_layer_config" in fields.raw):
        return fields
    old, new = (FULL, INDEXED) if fields.flag("use_dsa", derived=True) else (INDEXED, FULL)
    return fields.at(fields.index, {"layer_types": [new if word == old else word for word in words]})


_SWA = {
    "num_attention_heads": 64,
    "kv_lora_rank": 1024,
    "head_dim": 256,
    "qk_nope_head_dim": 192,
    "v_head_dim": 128,
}


def note_window(fields: Fields) -> Block:
    """dots3-note's windows over a latent of their own (`swa_…`, or the layer's own fields in newer files)."""
    width = fields.maybe("sliding_window")
    changed: dict[str, Any] = {"sliding_window": fields.number("sliding_window_size") if width is None else width}
    if "per_layer_config" not in fields.raw:
        own = {name: fields.number(f"swa_{name}", derived=value) for name, value in _SWA.items()}
        rope = own["head_dim"] - own["qk_nope_head_dim"]
        own["qk_rope_head_dim"] = fields.number("swa_qk_rope_head_dim", derived=rope)
        changed |= own
    return latent_window(fields.at(fields.index, changed))


MINIMAX_SPARSE = IndexedBlocks(k="index_topk_blocks", block="index_block_size", index_dim="index_head_dim")


def minimax_sparse(fields: Fields) -> Block:
    """MiniMax-M3: sizes of the index in `sparse_attention_config`, or flat."""
    inner = fields.child("sparse_attention_config")
    names = {
        "index_head_dim": "sparse_index_dim",
        "index_block_size": "sparse_block_size",
        "index_topk_blocks": "sparse_topk_blocks",
    }
    changed = {}
    if inner is not None:
        changed = {flat: inner.number(name) for flat, name in names.items() if inner.has(name)}
    return MINIMAX_SPARSE(fields.at(fields.index, changed))


def mistral_indexed(fields: Fields) -> Block:
    """Mistral Large 4's choice of tokens; its layers without rotary positions keep no rotary part."""
    return IndexedLatent()(latent_if_rotary(fields))


def mistral_latent(fields: Fields) -> Block:
    """The same without a choice."""
    return latent(latent_if_rotary(fields))


def longcat_layers(fields: Fields) -> Fields:
    """LongCat: two attention blocks a layer, which newer files count in `num_hidden_layers`."""
    blocks = fields.raw.get("num_hidden_layers")
    if blocks is None:
        return fields
    both = fields.checked("num_hidden_layers", blocks)
    layers = fields.raw.get("num_layers")
    if both % 2 or (layers is not None and both != 2 * fields.number("num_layers")):
        raise fields.error("num_hidden_layers", both, "twice num_layers")
    return fields.at(fields.index, {"num_layers": both // 2})


LATENT_FAMILIES = (
    Family(
        types=("deepseek_v2", "deepseek_v3", "axk1", "youtu", "sarvam_mla", "glm4_moe_lite", "mistral4"),
        layers={FULL: latent},
    ),
    Family(types=("minicpm3",), layers={FULL: value_by_width}),
    Family(
        types=("longcat_flash",),
        layers={FULL: latent},
        schedule=(all_alike(),),
        count=("num_layers",),
        before=longcat_layers,
        after=(twice,),
        notes=("each layer holds two attention blocks, listed one after the other",),
    ),
    Family(
        types=("deepseek_v32", "glm_moe_dsa", "axk2"),
        layers={INDEXED: IndexedLatent(), FULL: latent},
        schedule=(listed(), all_alike(INDEXED)),
    ),
    Family(
        types=("mistral_large4_text", "mistral_large4"),
        layers={INDEXED: mistral_indexed, FULL: mistral_latent},
        schedule=(listed(), all_alike(INDEXED)),
        after=(listed_sources("kv_source_layers"),),
    ),
    Family(
        types=("hy_v4",),
        layers={INDEXED: indexed_one_in_four, FULL: latent},
        schedule=(listed(), all_alike(INDEXED)),
    ),
    Family(
        types=("dots3_note_text",),
        layers={INDEXED: IndexedLatent(), FULL: latent, SLIDING: note_window},
        schedule=(listed(), note_schedule),
        before=note_words,
    ),
    Family(
        types=("deepseek_v4",),
        layers={HEAVY: Compressed(HEAVY), CHOSEN: Compressed(CHOSEN), SLIDING: single_key_window},
        schedule=(
            listed(beyond=("num_nextn_predict_layers",)),
            flags("compress_ratios", {0: SLIDING, 4: CHOSEN, 128: HEAVY}, beyond=("num_nextn_predict_layers",)),
            ruled(lambda i, n: CHOSEN if i >= 2 and i % 2 else HEAVY, "the rule of its class"),
        ),
    ),
    Family(
        types=("minimax_m3_vl_text", "minimax_m3"),
        layers={"minimax_m3_sparse": minimax_sparse},
        schedule=(
            listed(),
            flags("sparse_attention_freq", {0: FULL, 1: "minimax_m3_sparse"}, inside="sparse_attention_config"),
            all_alike(),
        ),
    ),
)
