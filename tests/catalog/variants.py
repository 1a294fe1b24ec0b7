"""Schedules that a family's configurations can spell in several ways, older files' spellings among them.

Each variant is a flat JSON object as a file on the hub holds it; the words are those that transformers' class finds in
it. Sizes that have no bearing on the schedule stand at the class's defaults, which costs nothing: no model is built.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.catalog.oracle import from_raw, resolved, windows

FULL, SLIDING, LINEAR, INDEXED = "full_attention", "sliding_attention", "linear_attention", "indexed_attention"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to write a schedule.

    Attributes:
        name: model type and what is special, `qwen2:windowed`.
        raw_before: the config.json.
        words: transformers' words for the layers of the cache, `dummy` for those that keep nothing.
        windows: the window or chunk of each layer, None for those without.
    """

    name: str
    raw_before: Mapping[str, Any]
    words: tuple[str, ...]
    windows: tuple[int | None, ...]


def _cycle(*words: str, layers: int) -> list[str]:
    return [words[i % len(words)] for i in range(layers)]


# model type -> name -> fields
_CHOICE = {
    "indexer_n_heads": 4,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 256,
    "indexer_budget": 64,
    "indexer_compress_ratio": 16,
}

_FIELDS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "afmoe": {"every third": {"num_hidden_layers": 8, "global_attn_every_n_layers": 3, "sliding_window": 33}},
    "bailing_hybrid": {
        "groups of four": {"num_hidden_layers": 10, "layer_group_size": 4},
        "listed": {"num_hidden_layers": 4, "layer_types": [LINEAR, FULL, FULL, LINEAR]},
    },
    "bamba": {
        "indices": {"num_hidden_layers": 9, "attn_layer_indices": [0, 2, 5]},
        "no indices": {"num_hidden_layers": 5, "attn_layer_indices": None},
        "empty indices": {"num_hidden_layers": 5, "attn_layer_indices": []},
    },
    "cohere2": {
        "pattern of three": {"num_hidden_layers": 8, "sliding_window_pattern": 3, "sliding_window": 17},
        "pattern and list": {
            "num_hidden_layers": 4,
            "sliding_window_pattern": 3,
            "layer_types": [FULL, SLIDING, SLIDING, FULL],
        },
    },
    "cohere2_moe": {
        "dense prefix": {"num_hidden_layers": 9, "first_k_dense_replace": 3, "sliding_window_pattern": 3},
        "dense prefix with a pattern": {
            "num_hidden_layers": 9,
            "first_k_dense_replace": 4,
            "prefix_dense_sliding_window_pattern": 2,
        },
    },
    "cohere_compass_text": {
        "pattern without effect": {"num_hidden_layers": 6, "sliding_window_pattern": 2, "sliding_window": 16},
        "listed": {"num_hidden_layers": 4, "layer_types": [SLIDING, FULL] * 2, "sliding_window": 16},
    },
    "cwm": {"absent": {"num_hidden_layers": 6, "sliding_window": 24, "layer_types": None}},
    "deepseek_v3": {"as released": {"num_hidden_layers": 5, "first_k_dense_replace": 3, "num_nextn_predict_layers": 1}},
    "deepseek_v32": {
        "old word": {"num_hidden_layers": 3, "layer_types": ["deepseek_sparse_attention"] * 3},
        "absent": {"num_hidden_layers": 4, "index_topk": 64},
    },
    "deepseek_v4": {
        "ratios": {"num_hidden_layers": 6, "compress_ratios": [0, 0, 4, 128, 4, 128], "sliding_window": 16},
        "ratios with a layer more": {"num_hidden_layers": 5, "compress_ratios": [0, 0, 4, 128, 4, 0]},
        "absent": {"num_hidden_layers": 7},
    },
    "dory": {
        "attention and mlp apart": {
            "num_hidden_layers": 12,
            "layer_types": [
                word for kind in (SLIDING, FULL, SLIDING, SLIDING, FULL, SLIDING) for word in (kind, "mlp")
            ],
            "n_input_layers": 4,
            "n_recurrent_layers": 4,
            "n_output_layers": 4,
        },
        "absent": {"num_hidden_layers": 9, "n_input_layers": 3, "n_output_layers": 2, "n_recurrent_loops": 3},
    },
    "dots1": {
        "windowed from the second": {"num_hidden_layers": 6, "max_window_layers": 2, "sliding_window": 12},
        "no window": {"num_hidden_layers": 6, "max_window_layers": 2, "sliding_window": None},
    },
    "dots3_note_text": {
        "absent": {"num_hidden_layers": 7, "sliding_window_size": 32},
        "no windows": {"num_hidden_layers": 7, "use_sliding_window": False},
        "not sparse": {"num_hidden_layers": 7, "use_dsa": False},
        "listed in old words": {"num_hidden_layers": 4, "layer_types": [FULL, SLIDING, SLIDING, FULL]},
    },
    "exaone4": {
        "pattern of three": {"num_hidden_layers": 8, "sliding_window_pattern": 3, "sliding_window": 20},
        "no window": {"num_hidden_layers": 4, "sliding_window": None, "layer_types": [FULL] * 4},
    },
    "falcon_h1": {"as released": {"num_hidden_layers": 4, "attn_layer_indices": None}},
    "falcon_mamba": {"as released": {"num_hidden_layers": 4, "expand": 16, "intermediate_size": 8192}},
    "gemma2": {
        "absent": {"num_hidden_layers": 5, "sliding_window": 40},
        "listed": {"num_hidden_layers": 3, "layer_types": [FULL, FULL, SLIDING]},
    },
    "gemma3_text": {
        "pattern of four": {"num_hidden_layers": 9, "sliding_window_pattern": 4, "sliding_window": 512},
        "private pattern": {"num_hidden_layers": 9, "_sliding_window_pattern": 4, "sliding_window": 512},
        "bidirectional": {"num_hidden_layers": 7, "use_bidirectional_attention": True, "sliding_window": 64},
    },
    "gemma3n_text": {
        "three shared": {"num_hidden_layers": 12, "num_kv_shared_layers": 3, "sliding_window": 48},
        "none shared": {"num_hidden_layers": 10, "num_kv_shared_layers": 0},
    },
    "gemma4_text": {
        "shared": {"num_hidden_layers": 14, "num_kv_shared_layers": 5},
        "all shared": {"num_hidden_layers": 8, "num_kv_shared_layers": 8},
        "last is forced": {"num_hidden_layers": 8, "global_head_dim": 384},
        "sizes by layer": {
            "num_hidden_layers": 6,
            "per_layer_config": {"05": {"head_dim": 512, "num_key_value_heads": 1}},
        },
        "windows by layer": {"num_hidden_layers": 6, "per_layer_config": {"1": {"sliding_window": 99}}},
        "bidirectional": {"num_hidden_layers": 6, "use_bidirectional_attention": "all", "sliding_window": 64},
    },
    "glm5_next_text": {
        "old word": {"num_hidden_layers": 5, "layer_types": [LINEAR, FULL, LINEAR, LINEAR, FULL]},
        "absent": {"num_hidden_layers": 9, "linear_attn_config": {"head_dim": 64, "num_heads": 8}},
    },
    "glm_moe_dsa": {
        "shared indexers": {"num_hidden_layers": 8, "index_topk_freq": 4, "index_skip_topk_offset": 2},
        "indexers by letters": {"num_hidden_layers": 6, "index_topk_pattern": "FFSSFS"},
    },
    "gpt_neo": {"as released": {"num_layers": 6, "attention_types": [[["global", "local"], 3]]}},
    "gpt_oss": {"listed": {"num_hidden_layers": 4, "layer_types": [FULL, SLIDING, SLIDING, FULL], "sliding_window": 9}},
    "granitemoehybrid": {
        "old name and words": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "mamba", "attention", "mamba"]},
        "old words": {"num_hidden_layers": 3, "layer_types": ["attention", "mamba", "attention"]},
        "absent": {"num_hidden_layers": 4},
    },
    "hrm_text": {
        "old count": {"num_hidden_layers": 2, "H_cycles": 3, "L_cycles": 2},
        "both counts": {"num_hidden_layers": 18, "num_layers_per_stack": 2, "H_cycles": 3, "L_cycles": 2},
    },
    "inkling_text": {
        "local ids": {"num_hidden_layers": 5, "local_layer_ids": [0, 1, 3], "sliding_window_size": 14},
        "absent": {"num_hidden_layers": 13},
    },
    "inkling2_text": {"absent": {"num_hidden_layers": 12, "sliding_window_size": 14}},
    "inkling2_loop_text": {"loop_config": {"num_hidden_layers": 18, "loop_config": {"core_start": 6, "core_end": 12}}},
    "jamba": {
        "every fourth from one": {"num_hidden_layers": 10, "attn_layer_period": 4, "attn_layer_offset": 1},
        "as released": {"num_hidden_layers": 16},
    },
    "kimi_linear": {
        "counted from one": {
            "num_hidden_layers": 7,
            "linear_attn_config": {
                "full_attn_layers": [4, 7],
                "kda_layers": [1, 2, 3, 5, 6],
                "head_dim": 128,
                "num_heads": 32,
                "short_conv_kernel_size": 4,
            },
        },
        "absent": {"num_hidden_layers": 9},
        "list wins": {
            "num_hidden_layers": 3,
            "layer_types": [FULL, LINEAR, LINEAR],
            "linear_attn_config": {"full_attn_layers": [3], "kda_layers": [1, 2]},
        },
    },
    "laguna": {"listed": {"num_hidden_layers": 5, "layer_types": _cycle(FULL, SLIDING, SLIDING, layers=5)}},
    "lara_mini": {"absent": {"num_hidden_layers": 11, "sliding_window": 21}},
    "lfm2": {
        "indices": {"num_hidden_layers": 6, "full_attn_idxs": [1, 4]},
        "absent": {"num_hidden_layers": 4},
        "listed": {"num_hidden_layers": 4, "layer_types": ["conv", "conv", FULL, "conv"], "full_attn_idxs": [0]},
    },
    "lfm2_moe": {"listed": {"num_hidden_layers": 4, "layer_types": ["conv", "conv", FULL, "conv"]}},
    "lfm3": {
        "absent": {"num_hidden_layers": 9, "sliding_window": 31},
        "listed": {"num_hidden_layers": 3, "layer_types": ["conv", SLIDING, FULL]},
    },
    "llama4_text": {
        "ropes": {"num_hidden_layers": 6, "no_rope_layers": [1, 0, 1, 1, 0, 1], "attention_chunk_size": 64},
        "every third": {"num_hidden_layers": 7, "no_rope_layer_interval": 3, "attention_chunk_size": 64},
        "no chunks": {"num_hidden_layers": 6, "attention_chunk_size": None},
        "empty ropes": {"num_hidden_layers": 6, "no_rope_layers": [], "attention_chunk_size": 64},
    },
    "longcat_flash": {"as released": {"num_layers": 3}, "layers of the cache": {"num_hidden_layers": 6}},
    "mamba2": {"as released": {"num_hidden_layers": 4}},
    "mellum": {"listed": {"num_hidden_layers": 4, "layer_types": [SLIDING, SLIDING, SLIDING, FULL]}},
    "mimo_v2_flash": {
        "pattern without effect": {
            "num_hidden_layers": 8,
            "hybrid_layer_pattern": [0, 1, 1, 0, 1, 1, 1, 0],
            "sliding_window_size": 128,
        },
        "listed": {"num_hidden_layers": 4, "layer_types": [FULL, SLIDING, SLIDING, FULL], "sliding_window": 65},
    },
    "minimax": {
        "absent": {"num_hidden_layers": 5},
        "listed": {"num_hidden_layers": 4, "layer_types": [LINEAR, LINEAR, LINEAR, FULL]},
        "old list without effect": {"num_hidden_layers": 4, "attn_type_list": [0, 0, 0, 1]},
    },
    "minimax_m3_vl_text": {
        "frequencies": {"num_hidden_layers": 4, "sparse_attention_config": {"sparse_attention_freq": [0, 1, 1, 1]}},
        "absent": {"num_hidden_layers": 4},
    },
    "ministral": {
        "listed": {"num_hidden_layers": 3, "layer_types": [SLIDING, FULL, SLIDING], "sliding_window": 77},
        "no window": {"num_hidden_layers": 3, "sliding_window": None},
    },
    "mistral": {
        "no window": {"num_hidden_layers": 3, "sliding_window": None},
        "window": {"num_hidden_layers": 3, "sliding_window": 128},
        "default window": {"num_hidden_layers": 3},
        "listed": {"num_hidden_layers": 3, "layer_types": [SLIDING, FULL, SLIDING], "sliding_window": 77},
    },
    "mistral_large4_text": {
        "shared": {
            "num_hidden_layers": 6,
            "kv_source_layers": [0, 1, 1, 3, 3, 3],
            "indexer_types": ["full", "full", "full", "full", "shared", "shared"],
        }
    },
    "mixtral": {"window": {"num_hidden_layers": 3, "sliding_window": 4096}},
    "modernbert-decoder": {
        "every fourth": {"num_hidden_layers": 9, "global_attn_every_n_layers": 4, "local_attention": 50},
    },
    "nemotron_h": {
        "letters": {"hybrid_override_pattern": "M-M*-MEM*E", "num_hidden_layers": 10},
        "letters of another number": {"hybrid_override_pattern": "MM*-", "num_hidden_layers": 52},
        "listed in old words": {"layers_block_type": ["mamba", "moe", "attention", "mlp", "mamba"]},
        "absent": {},
    },
    "olmo_hybrid": {
        "absent": {"num_hidden_layers": 9},
        "three layers": {"num_hidden_layers": 3},
        "listed": {"num_hidden_layers": 3, "layer_types": [FULL, LINEAR, LINEAR]},
    },
    "olmo3": {"absent": {"num_hidden_layers": 9, "sliding_window": 55}},
    "phi3": {"window": {"num_hidden_layers": 3, "sliding_window": 2047}, "none": {"num_hidden_layers": 3}},
    "qwen2": {
        "windowed": {
            "num_hidden_layers": 8,
            "use_sliding_window": True,
            "max_window_layers": 5,
            "sliding_window": 100,
        },
        "window not used": {"num_hidden_layers": 8, "use_sliding_window": False, "max_window_layers": 5},
        "no window": {
            "num_hidden_layers": 8,
            "use_sliding_window": True,
            "max_window_layers": 5,
            "sliding_window": None,
        },
        "listed": {
            "num_hidden_layers": 3,
            "use_sliding_window": True,
            "max_window_layers": 0,
            "layer_types": [FULL, SLIDING, FULL],
        },
    },
    "qwen2_moe": {"windowed": {"num_hidden_layers": 8, "use_sliding_window": True, "max_window_layers": 5}},
    "qwen3": {"windowed": {"num_hidden_layers": 6, "use_sliding_window": True, "max_window_layers": 2}},
    "qwen3_moe": {
        "windowed": {"num_hidden_layers": 4, "use_sliding_window": True, "sliding_window": 64, "max_window_layers": 2},
        "window not used": {"num_hidden_layers": 4, "use_sliding_window": False, "sliding_window": 64},
    },
    "qwen3_next": {
        "every third": {"num_hidden_layers": 8, "full_attention_interval": 3},
        "absent": {"num_hidden_layers": 9},
        "list wins": {
            "num_hidden_layers": 3,
            "full_attention_interval": 2,
            "layer_types": [FULL, LINEAR, LINEAR],
        },
    },
    "qwen3_5_text": {"every third": {"num_hidden_layers": 8, "full_attention_interval": 3}},
    "qwen3_5_moe_text": {"every fifth": {"num_hidden_layers": 11, "full_attention_interval": 5}},
    "qwen4_exp_text": {
        "old word": {"num_hidden_layers": 4, "layer_types": [LINEAR, LINEAR, FULL, LINEAR], **_CHOICE},
        "older word": {"num_hidden_layers": 3, "layer_types": [LINEAR, "qwen_sparse_attention", LINEAR], **_CHOICE},
        "every third": {"num_hidden_layers": 7, "full_attention_interval": 3, **_CHOICE},
    },
    "recurrent_gemma": {
        "tiled": {"num_hidden_layers": 7, "block_types": ["attention", "recurrent"], "attention_window_size": 19},
        "private name without effect": {"num_hidden_layers": 5, "_block_types": ["recurrent", "attention"]},
    },
    "smollm3": {
        "windows where no rope": {
            "num_hidden_layers": 6,
            "use_sliding_window": True,
            "sliding_window": 32,
            "no_rope_layers": [1, 1, 0, 1, 0, 1],
        },
        "every third": {
            "num_hidden_layers": 7,
            "use_sliding_window": True,
            "sliding_window": 32,
            "no_rope_layer_interval": 3,
        },
        "window not used": {"num_hidden_layers": 8, "sliding_window": 32},
    },
    "starcoder2": {"window": {"num_hidden_layers": 3, "sliding_window": 4096}},
    "vaultgemma": {"absent": {"num_hidden_layers": 5, "sliding_window": 512}},
    "zamba": {
        "every third from one": {"num_hidden_layers": 12, "attn_layer_period": 3, "attn_layer_offset": 1},
        "listed in old words": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "mamba", "hybrid", "mamba"]},
    },
    "zamba2": {
        "listed in old words": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
        "absent": {"num_hidden_layers": 54},
    },
    "zaya": {
        "windowed": {
            "num_hidden_layers": 4,
            "layer_types": ["hybrid_sliding", "hybrid"] * 2,
            "sliding_window": 23,
        },
    },
}


def _all() -> Iterator[Variant]:
    for model_type, named in _FIELDS.items():
        for name, fields in named.items():
            raw = {"model_type": model_type, **fields}
            config = from_raw(raw)
            words, kept = resolved(config), windows(config)
            assert words is not None
            assert kept is not None
            yield Variant(name=f"{model_type}:{name}", raw_before=raw, words=words, windows=kept)


def variants() -> list[Variant]:
    """All variants, with the words that transformers finds."""
    return list(_all())
