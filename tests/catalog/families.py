"""The sizes of the tiny models: pairwise different where the classes let them be."""

from collections.abc import Mapping
from typing import Any

import pytest

FULL, SLIDING, LINEAR, HYBRID = "full_attention", "sliding_attention", "linear_attention", "hybrid"

# What a class gets for each of these fields for which it declares an integer. Widths of experts are multiples of eight,
# which torch's grouped products of bfloat16 matrices need.
GENERIC: Mapping[str, int] = {
    **dict.fromkeys(("hidden_size", "n_embd"), 72),
    **dict.fromkeys(("intermediate_size", "ffn_hidden_size", "dense_intermediate_size", "intermediate_size_mlp"), 104),
    **dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size"), 24),
    **dict.fromkeys(("shared_expert_intermediate_size", "shared_intermediate_size"), 40),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer"), 4),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head"), 6),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "num_shared_experts"), 1),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), 101),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "context_length"), 256),
    "num_key_value_heads": 2,
    "head_dim": 28,
    "sliding_window": 8,
    "kv_lora_rank": 26,
    "q_lora_rank": 22,
    "qk_nope_head_dim": 14,
    "qk_rope_head_dim": 10,
    "v_head_dim": 18,
    "index_head_dim": 12,
    "index_n_heads": 3,
    "index_topk": 5,
}

_DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 10,
    "linear_value_head_dim": 14,
    "linear_conv_kernel_dim": 5,
}
_MAMBA = {"mamba_d_state": 11, "mamba_d_conv": 5}
_MAMBA2 = {**_MAMBA, "mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_chunk_size": 16}
_MHA = {"num_key_value_heads": 6}
_GQA = {"num_key_value_heads": 2}
_INKLING = {
    "num_hidden_layers": 6,
    "sliding_window_size": 8,
    "swa_head_dim": 20,
    "swa_num_attention_heads": 6,
    "swa_num_key_value_heads": 3,
    "conv_kernel_size": 5,
}

# Of these all sizes are generic.
_GENERIC_ONLY = """
apertus arcee aria_text beam biogpt bitnet bloom cohere cohere2_moe ctrl cwm diffllama doge ernie4_5 ernie4_5_moe
exaone exaone4 exaone_moe flex_olmo flint gemma gemma4_unified_text glm glm4 glm4_moe gpt-sw3 gpt_neox
gpt_neox_japanese granite granite_swa granitemoe granitemoe_swa granitemoeshared hy_v3 hyperclovax internlm3
iquestcoder jais2 jetmoe kolibri1 laguna mellum minimax_m2 ministral3 mixtral moshi nanochat olmo olmo2 olmoe opt
persimmon phi phi3 phimoe qwen2_moe qwen3 qwen3_moe sarvam_mla sarvam_moe seed_oss solar_open starcoder2 vaultgemma
"""
_DORY = {"n_input_layers": 1, "n_output_layers": 1, "layer_types": [SLIDING, FULL, SLIDING, FULL]}

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    # recurrent and hybrid
    "bailing_hybrid": {**_MHA, "head_dim": 16, "short_conv_kernel_size": 5, "layer_group_size": 2},
    "bamba": {**_MAMBA2, "attn_layer_indices": [1, 3]},
    "falcon_h1": {**_MAMBA2, "mamba_d_ssm": 104, "mamba_d_head": 13, "head_dim": 28},
    "falcon_mamba": {"state_size": 11, "conv_kernel": 5},
    "glm5_next_text": {
        **_MHA,
        "linear_head_dim": 14,
        "linear_num_heads": 4,
        "linear_conv_kernel_dim": 5,
        "qk_rope_head_dim": 0,
        "index_topk": 8,
        "index_kpool": 4,
        "mlp_layer_types": ["dense", "dense", "sparse", "sparse"],
    },
    "granitemoehybrid": {**_MAMBA2, **_GQA, "layer_types": [LINEAR, FULL, LINEAR, FULL]},
    "inkling2_loop_text": {
        **_INKLING,
        "num_hidden_layers": 4,
        "layer_types": ["hybrid_sliding", HYBRID, "hybrid_sliding", HYBRID],
        "n_layers_per_attn_res_block": 1,
        "loop_layer_index_start": 1,
        "loop_layer_index_end": 3,
        "loop_num_passes": 2,
    },
    "inkling2_text": _INKLING,
    "inkling_text": _INKLING,
    "jamba": {**_MAMBA, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "kimi_linear": {
        **_MHA,
        "num_hidden_layers": 5,
        "linear_head_dim": 14,
        "linear_num_heads": 4,
        "linear_conv_kernel_dim": 5,
    },
    "lara_mini": {**_DELTA, "num_hidden_layers": 5},
    "lfm2": {"full_attn_idxs": [1, 3], "conv_L_cache": 5},
    "lfm2_moe": {"layer_types": ["conv", FULL, "conv", FULL], "conv_L_cache": 5},
    "lfm3": {"num_hidden_layers": 5, "conv_L_cache": 5},
    "mamba": {"state_size": 11, "conv_kernel": 5},
    "mamba2": {"state_size": 11, "conv_kernel": 5, "num_heads": 8, "head_dim": 18, "n_groups": 2, "chunk_size": 16},
    "minimax": {"head_dim": 28, "block_size": 16},
    "nemotron_h": {
        "ssm_state_size": 11,
        "conv_kernel": 5,
        "mamba_num_heads": 8,
        "mamba_head_dim": 13,
        "n_groups": 2,
        "chunk_size": 16,
        "moe_shared_expert_intermediate_size": 40,
        "layers_block_type": [LINEAR, "moe", FULL, "mlp", LINEAR],
    },
    "olmo_hybrid": {**_DELTA, **_GQA},
    "qwen3_5_moe_text": _DELTA,
    "qwen3_5_text": _DELTA,
    "qwen3_next": _DELTA,
    "qwen4_exp_text": {
        **_DELTA,
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 32,
        "indexer_budget": 8,
        "indexer_compress_ratio": 4,
    },
    "recurrent_gemma": {"num_key_value_heads": 2, "attention_window_size": 8, "conv1d_width": 5, "lru_width": 78},
    "rwkv": {"attention_hidden_size": 72},
    "xlstm": {"hidden_size": 128, "num_heads": 4, "chunk_size": 16},
    "zamba": {**_MAMBA, "num_hidden_layers": 5, "layers_block_type": [LINEAR, LINEAR, HYBRID, LINEAR, HYBRID]},
    "zamba2": {
        **_MAMBA,
        "n_mamba_heads": 8,
        "mamba_ngroups": 2,
        "chunk_size": 16,
        "num_key_value_heads": 2,
        "layers_block_type": [LINEAR, HYBRID, LINEAR, HYBRID],
    },
    "zaya": {
        "layer_types": [HYBRID, "hybrid_sliding"] * 2,
        "sliding_window": 8,
        "num_experts_per_tok": 1,
        "cca_time0": 3,
    },
    # attention only
    **{name: {} for name in _GENERIC_ONLY.split()},
    "afmoe": _GQA,
    "axk1": _MHA,
    "axk2": _MHA,
    "bert": {"is_decoder": True},
    "codegen": {"rotary_dim": 4},
    "cohere2": _GQA,
    "deepseek_v2": {**_MHA, "num_experts_per_tok": 2},
    "deepseek_v3": _MHA,
    "deepseek_v32": _MHA,
    "deepseek_v4": {
        "num_key_value_heads": 1,
        "head_dim": 32,
        "index_head_dim": 16,
        "layer_types": [
            SLIDING,
            "heavily_compressed_attention",
            "compressed_sparse_attention",
            "heavily_compressed_attention",
        ],
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
        "o_groups": 2,
        "o_lora_rank": 14,
        "num_hash_layers": 1,
    },
    "dory": _DORY,
    "dory:last loop": {**_DORY, "recurrent_kv_cache_mode": "last_loop"},
    "dots3_note_text": {
        **_MHA,
        "sliding_window": 8,
        "swa_num_attention_heads": 4,
        "swa_num_key_value_heads": 4,
        "swa_q_lora_rank": 20,
        "swa_kv_lora_rank": 32,
        "swa_head_dim": 24,
        "swa_qk_nope_head_dim": 16,
        "swa_v_head_dim": 14,
    },
    "dots3_note_text:windows of the class": {**_MHA, "sliding_window": 8},
    "falcon": {},
    "falcon:all heads": {"multi_query": False},
    "falcon:grouped": {"new_decoder_architecture": True, "num_kv_heads": 3},
    "gemma2": {},
    "gemma3_text": {"sliding_window_pattern": 2},
    "gemma3n_text": {
        "num_hidden_layers": 10,
        "num_kv_shared_layers": 4,
        "hidden_size_per_layer_input": 16,
        "laurel_rank": 8,
    },
    "gemma4_text": {
        "num_hidden_layers": 8,
        "layer_types": [SLIDING, FULL] * 4,
        "global_head_dim": 36,
        "attention_k_eq_v": True,
        "num_global_key_value_heads": 3,
        "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 16,
    },
    "glm_moe_dsa": {**_MHA, "index_topk_freq": 2},
    "gpt2": {},
    "gpt_bigcode": {},
    "gpt_bigcode:all heads": {"multi_query": False},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 8},
    "gpt_oss": {},
    "gptj": {"rotary_dim": 4},
    "helium": {"head_dim": 12},
    "hrm_text": {"num_hidden_layers": 2, "H_cycles": 2, "L_cycles": 2},
    "hunyuan_v1_dense": {"head_dim": 28},
    "hunyuan_v1_moe": {"head_dim": 28},
    "hy_v4": {**_MHA, "num_hidden_layers": 6},
    "llama": {**_GQA, "head_dim": 28},
    "llama4_text": {"attention_chunk_size": 8, "num_experts_per_tok": 1},
    "longcat_flash": {"num_layers": 2, "zero_expert_num": 2, "head_dim": 10},
    "minicpm3": _MHA,
    "ministral": {"head_dim": 28},
    "mimo_v2_flash": {"num_attention_heads": 8, "layer_types": [FULL, SLIDING, SLIDING, FULL]},
    "minimax_m3_vl_text": {
        "layer_types": [FULL, "minimax_m3_sparse"] * 2,
        "rotary_dim": 12,
        "index_n_heads": 2,
        "index_head_dim": 20,
        "index_block_size": 4,
        "index_topk_blocks": 2,
    },
    "mistral": {"head_dim": 28},
    "mistral_large4_text": _MHA,
    "mistral_large4_text:every third": {**_MHA, "no_rope_layer_interval": 3},
    "mistral_large4_text:shared": {
        **_MHA,
        "num_hidden_layers": 8,
        "kv_source_layers": [0, 1, 1, 3, 4, 4, 1, 3],
        "indexer_types": ["full", "full", "full", "full", "shared", "shared", "full", "shared"],
        "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0],
    },
    "modernbert-decoder": {"local_attention": 16},
    "nemotron": _GQA,
    "nemotron:wide heads": {**_GQA, "head_dim": 28},
    "olmo3": _GQA,
    "qwen2": {"use_sliding_window": True, "max_window_layers": 2},
    "qwen2_moe:windowed": {"use_sliding_window": True, "max_window_layers": 3},
    "qwen3_moe:windowed": {"use_sliding_window": True, "max_window_layers": 3},
    "roberta": {"is_decoder": True},
    "smollm3": {"use_sliding_window": True, "sliding_window": 8},
    "stablelm": {**_GQA, "partial_rotary_factor": 0.5},
    "youtu": _MHA,
    "glm4_moe_lite": _MHA,
}

# Counted in every run: between them they have everything that a cache can hold.
QUICK = (
    "bailing_hybrid",
    "deepseek_v4",
    "dory",
    "falcon:grouped",
    "gemma3n_text",
    "glm_moe_dsa",
    "gpt_neo",
    "llama",
    "mistral_large4_text",
    "qwen2",
    "qwen3_next",
    "zaya",
)
CASES = [pytest.param(family, marks=[] if family in QUICK else [pytest.mark.slow]) for family in FAMILIES]
