"""GGUF files as llama.cpp's conversion writes them: the keys of published models, from their config.json.

What each converter writes is stated here independently of the reader, class by class of `conversion/` in
github.com/ggml-org/llama.cpp; values come from the config.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter

Config = Mapping[str, Any]
Keys = dict[str, Any]


def write(file: Path, architecture: str, keys: Mapping[str, Any], *, tensor: bool = False) -> Path:
    """A file with these keys: ints, floats, bools, strings and lists, those of the architecture without its name."""
    writer = GGUFWriter(file, architecture)
    for key, value in keys.items():
        full = key if key.startswith(("general.", "split.", "tokenizer.")) else f"{architecture}.{key}"
        match value:
            case bool():
                writer.add_bool(full, value)
            case int():
                writer.add_uint32(full, value)
            case float():
                writer.add_float32(full, value)
            case str():
                writer.add_string(full, value)
            case _:
                writer.add_array(full, value)
    if tensor:
        writer.add_tensor("token_embd.weight", np.ones((3, 5), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def base(c: Config) -> Keys:
    """What every converter of a transformer writes."""
    keys = {
        "block_count": c["num_hidden_layers"],
        "context_length": c["max_position_embeddings"],
        "embedding_length": c.get("hidden_size", 2048),
        "feed_forward_length": c.get("intermediate_size", 8192),
        "attention.head_count": c["num_attention_heads"],
        "attention.head_count_kv": c.get("num_key_value_heads", c["num_attention_heads"]),
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e6,
        "general.file_type": 15,
        "tokenizer.ggml.tokens": ["a", "bc", ""],
        "tokenizer.ggml.token_type": [1, 2, 3],
    }
    if "head_dim" in c:
        keys |= {"attention.key_length": c["head_dim"], "attention.value_length": c["head_dim"]}
    return keys


def windowed(c: Config) -> Keys:
    return base(c) | {"attention.sliding_window": c["sliding_window"]}


def unwindowed(c: Config) -> Keys:
    """Phi 3's converter writes 0 for no window."""
    return base(c) | {"attention.sliding_window": 0}


def gemma3n(c: Config) -> Keys:
    pattern = [word == "sliding_attention" for word in c["layer_types"]]
    return windowed(c) | {
        "attention.shared_kv_layers": c["num_kv_shared_layers"],
        "attention.sliding_window_pattern": pattern,
    }


def gemma4(c: Config) -> Keys:
    pattern = [word == "sliding_attention" for word in c["layer_types"]]
    heads = [c["num_key_value_heads"] if window else c["num_global_key_value_heads"] for window in pattern]
    return windowed(c) | {
        "attention.shared_kv_layers": c["num_kv_shared_layers"],
        "attention.sliding_window_pattern": pattern,
        "attention.head_count_kv": heads,
        "attention.key_length": c["global_head_dim"],
        "attention.value_length": c["global_head_dim"],
        "attention.key_length_swa": c["head_dim"],
        "attention.value_length_swa": c["head_dim"],
    }


def listed_windows(c: Config) -> Keys:
    pattern = [word == "sliding_attention" for word in c["layer_types"]]
    return windowed(c) | {"attention.sliding_window_pattern": pattern}


def with_zeros(c: Config, attending: Callable[[int], bool]) -> Keys:
    heads = [c["num_key_value_heads"] if attending(i) else 0 for i in range(c["num_hidden_layers"])]
    return base(c) | {"attention.head_count_kv": heads}


def jamba(c: Config) -> Keys:
    at, period = c["attn_layer_offset"], c["attn_layer_period"]
    return with_zeros(c, lambda i: i >= at and (i - at) % period == 0) | {
        "ssm.conv_kernel": c["mamba_d_conv"],
        "ssm.inner_size": c["mamba_expand"] * c["hidden_size"],
        "ssm.state_size": c["mamba_d_state"],
        "ssm.time_step_rank": -(c["hidden_size"] // -16),
    }


def _mamba2(heads: int, head_dim: int, state: int, groups: int, conv: int) -> Keys:
    return {
        "ssm.conv_kernel": conv,
        "ssm.inner_size": heads * head_dim,
        "ssm.state_size": state,
        "ssm.time_step_rank": heads,
        "ssm.group_count": groups,
    }


def _bamba(c: Config) -> Keys:
    names = ("mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv")
    return _mamba2(*(c[name] for name in names))


def bamba(c: Config) -> Keys:
    return with_zeros(c, lambda i: i in c["attn_layer_indices"]) | _bamba(c)


def granite_hybrid(c: Config) -> Keys:
    """Without rotary positions conversion takes a model to know no limit."""
    keys = with_zeros(c, lambda i: c["layer_types"][i] == "attention") | _bamba(c)
    return keys | {"context_length": 2**20}


def falcon_h1(c: Config) -> Keys:
    return base(c) | _bamba(c)


def nemotron_h(c: Config) -> Keys:
    letters = c["hybrid_override_pattern"]
    names = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel")
    widths = [1856 if letter in "E-" else 0 for letter in letters]
    return (
        with_zeros(c, lambda i: letters[i] == "*")
        | _mamba2(*(c[name] for name in names))
        | {"feed_forward_length": widths}
    )


def lfm2(c: Config) -> Keys:
    return with_zeros(c, lambda i: i in c["full_attn_idxs"]) | {"shortconv.l_cache": c["conv_L_cache"]}


def qwen3_next(c: Config) -> Keys:
    return base(c) | {
        "ssm.conv_kernel": c["linear_conv_kernel_dim"],
        "ssm.state_size": c["linear_key_head_dim"],
        "ssm.group_count": c["linear_num_key_heads"],
        "ssm.time_step_rank": c["linear_num_value_heads"],
        "ssm.inner_size": c["linear_value_head_dim"] * c["linear_num_value_heads"],
        "full_attention_interval": c.get("full_attention_interval", 4),
        "rope.dimension_count": c["head_dim"] // 4,
    }


def _latent(c: Config) -> Keys:
    return {
        "attention.head_count_kv": 1,
        "attention.kv_lora_rank": c["kv_lora_rank"],
        "attention.key_length": c["kv_lora_rank"] + c["qk_rope_head_dim"],
        "attention.key_length_mla": c["qk_nope_head_dim"] + c["qk_rope_head_dim"],
        "attention.value_length_mla": c["v_head_dim"],
        "rope.dimension_count": c["qk_rope_head_dim"],
    }


def deepseek2(c: Config) -> Keys:
    return base(c) | _latent(c) | {"attention.value_length": c["kv_lora_rank"]}


def glm_dsa(c: Config) -> Keys:
    return deepseek2(c) | {
        "block_count": c["num_hidden_layers"] + 1,
        "nextn_predict_layers": 1,
        "attention.indexer.head_count": c["index_n_heads"],
        "attention.indexer.key_length": c["index_head_dim"],
        "attention.indexer.top_k": c["index_topk"],
    }


def minicpm3(c: Config) -> Keys:
    return base(c) | {
        "attention.kv_lora_rank": c["kv_lora_rank"],
        "attention.key_length": c["qk_nope_head_dim"] + c["qk_rope_head_dim"],
        "rope.dimension_count": c["qk_rope_head_dim"],
    }


def kimi_linear(c: Config) -> Keys:
    inner = c["linear_attn_config"]
    heads = [int(i + 1 in inner["full_attn_layers"]) for i in range(c["num_hidden_layers"])]
    keys = base({**c, "max_position_embeddings": c["model_max_length"]}) | _latent(c)
    del keys["attention.value_length"]
    return keys | {
        "attention.head_count_kv": heads,
        "kda.head_dim": inner["head_dim"],
        "ssm.conv_kernel": inner["short_conv_kernel_size"],
    }


def mamba(c: Config) -> Keys:
    return {
        "context_length": 2**20,
        "embedding_length": c["hidden_size"],
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "block_count": c["num_hidden_layers"],
        "ssm.conv_kernel": c["conv_kernel"],
        "ssm.inner_size": c["intermediate_size"],
        "ssm.state_size": c["state_size"],
        "ssm.time_step_rank": c["time_step_rank"],
        "ssm.dt_b_c_rms": c["model_type"] == "falcon_mamba",
    }


def mamba2(c: Config) -> Keys:
    names = ("num_heads", "head_dim", "state_size", "n_groups", "conv_kernel")
    return {
        "context_length": 2**20,
        "embedding_length": c["hidden_size"],
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "block_count": c["num_hidden_layers"],
        **_mamba2(*(c[name] for name in names)),
    }


def rwkv6(c: Config) -> Keys:
    return {
        "context_length": 1048576,
        "embedding_length": c["hidden_size"],
        "block_count": c["num_hidden_layers"],
        "wkv.head_size": c["hidden_size"] // c["num_heads"],
        "rescale_every_n_layers": 6,
        "attention.head_count": 0,
    }


def rwkv7(c: Config) -> Keys:
    return {
        "context_length": 1048576,
        "embedding_length": c["hidden_size"],
        "block_count": c["num_hidden_layers"],
        "wkv.head_size": c["head_dim"],
        "attention.decay_lora_rank": 96,
        "attention.gate_lora_rank": 320,
        "attention.head_count": 0,
    }


CONVERSIONS: tuple[tuple[str, str, Callable[[Config], Keys]], ...] = (
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3next", qwen3_next),
    ("Qwen/Qwen3.5-27B (text)", "qwen35", qwen3_next),
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "kimi-linear", kimi_linear),
    ("tiiuae/falcon-mamba-7b", "mamba", mamba),
    ("state-spaces/mamba-2.8b-hf", "mamba", mamba),
    ("mistralai/Mamba-Codestral-7B-v0.1", "mamba2", mamba2),
    ("state-spaces/mamba2-2.7b", "mamba2", mamba2),
    ("ai21labs/Jamba-v0.1", "jamba", jamba),
    ("ai21labs/AI21-Jamba-1.5-Large", "jamba", jamba),
    ("ibm-ai-platform/Bamba-9B", "granitehybrid", bamba),
    ("ibm-granite/granite-4.0-h-small", "granitehybrid", granite_hybrid),
    ("tiiuae/Falcon-H1-7B-Instruct", "falcon-h1", falcon_h1),
    ("tiiuae/Falcon-H1-34B-Instruct", "falcon-h1", falcon_h1),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_h_moe", nemotron_h),
    ("nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", "nemotron_h", nemotron_h),
    ("LiquidAI/LFM2-1.2B", "lfm2", lfm2),
    ("RWKV/RWKV7-Goose-World3-2.9B-HF", "rwkv7", rwkv7),
    ("openai/gpt-oss-20b", "gpt-oss", windowed),
    ("google/gemma-3-27b-it", "gemma3", windowed),
    ("google/gemma-3n-E2B-it (text)", "gemma3n", gemma3n),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct (text)", "llama4", base),
    ("deepseek-ai/DeepSeek-V3.2-Exp", "glm-dsa", glm_dsa),
)
"""Published models, the architecture of their GGUF files, and the keys of these."""

_SMALL = {
    "num_hidden_layers": 9,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 999,
}
_DEEP = _SMALL | {"kv_lora_rank": 24, "qk_nope_head_dim": 12, "qk_rope_head_dim": 4, "v_head_dim": 20}
_WINDOW = _SMALL | {"sliding_window": 33, "head_dim": 16}
_LISTED = {"layer_types": ["sliding_attention", "full_attention", *(7 * ["sliding_attention"])]}
_GEMMA4 = {
    "layer_types": [*(4 * ["sliding_attention"]), "full_attention", *(3 * ["sliding_attention"]), "full_attention"],
    "global_head_dim": 32,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "num_kv_shared_layers": 3,
}
_EXAONE4 = {"num_hidden_layers": 64, "sliding_window": 4096, "sliding_window_pattern": "LLLG"}

SMALL: tuple[tuple[str, Config, Callable[[Config], Keys]], ...] = (
    ("llama", {"model_type": "llama", **_SMALL}, base),
    ("qwen2", {"model_type": "qwen2", **_SMALL}, base),
    ("qwen3", {"model_type": "qwen3", **_SMALL, "head_dim": 16}, base),
    ("minimax-m2", {"model_type": "minimax_m2", **_SMALL, "head_dim": 16}, base),
    ("gpt2", {"model_type": "gpt2", **_SMALL, "num_key_value_heads": 8}, base),
    ("gemma2", {"model_type": "gemma2", **_WINDOW}, windowed),
    ("gemma4", {"model_type": "gemma4_text", **_WINDOW, **_GEMMA4}, gemma4),
    ("cohere2", {"model_type": "cohere2", **_SMALL, "sliding_window": 33}, windowed),
    ("olmo2", {"model_type": "olmo3", **_SMALL, "sliding_window": 33}, windowed),
    ("olmo2", {"model_type": "olmo2", **_SMALL}, base),
    ("phi3", {"model_type": "phi3", **_SMALL, "sliding_window": 33}, windowed),
    ("phi3", {"model_type": "phi3", **_SMALL, "sliding_window": None}, unwindowed),
    ("afmoe", {"model_type": "afmoe", **_WINDOW}, windowed),
    ("exaone4", {"model_type": "exaone4", **_SMALL, **_EXAONE4}, windowed),
    ("exaone-moe", {"model_type": "exaone_moe", **_WINDOW, **_LISTED}, listed_windows),
    ("deepseek2", {"model_type": "deepseek_v3", **_DEEP}, deepseek2),
    ("mistral4", {"model_type": "mistral4", **_DEEP}, deepseek2),
    ("minicpm3", {"model_type": "minicpm3", **_DEEP, "v_head_dim": 8}, minicpm3),
    ("rwkv6", {"model_type": "rwkv6", **_SMALL, "num_heads": 4, "expand_k": 1.0, "expand_v": 1.0}, rwkv6),
)
"""Architectures without a published configuration: the fields of a config, and the keys."""
