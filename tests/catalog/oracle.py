"""The layers of every causal language model of transformers, by transformers' own reckoning.

This module and its neighbours `variants` and `tiny` know transformers and nothing of hopbound: what the catalogue reads
out of a config.json is compared with them.

Words of transformers (`cache_utils.get_layer_types_and_kwargs`), one for each layer of the cache: `full_attention`,
`sliding_attention`, `chunked_attention`, `indexed_attention`, `linear_attention`, `conv`, `hybrid`, ...; `dummy` stands
for a layer that keeps nothing, be it a bare MLP or one that reads the keys and values of an earlier layer.
"""

import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from transformers import PretrainedConfig
from transformers.cache_utils import get_layer_types_and_kwargs
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils.logging import get_verbosity, set_verbosity

LAYERS = 12  # shows every pattern of the families at least once, their longest period is six

# The small value of a field, where its class declares an integer for it.
_SMALL = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim"), 96),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), LAYERS),
    **dict.fromkeys(("decoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("encoder_layers", "num_encoder_layers"), 3),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads", "attention_heads"), 6),
    **dict.fromkeys(("decoder_attention_heads", "encoder_attention_heads"), 6),
    "num_key_value_heads": 2,
    "head_dim": 20,
    "vocab_size": 101,
}


def _every(period: int, offset: int, hit: str, miss: str) -> list[str]:
    return [hit if i % period == offset else miss for i in range(LAYERS)]


# What single types need besides: values that their checks accept, or a schedule with both kinds of layers.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "bamba": {"mamba_n_heads": 8, "attn_layer_indices": [3, 8]},
    "cohere2_moe": {"first_k_dense_replace": 2},
    "dory": {"n_input_layers": 4, "n_output_layers": 4},
    "dots3_note": {"vision_config": {"adapter_out_dim": 96}, "audio_config": {"adapter_out_dim": 96}},
    "dots3_note_text": {"num_key_value_heads": 6},
    "gemma3n_text": {"num_kv_shared_layers": 4},
    "gemma4_text": {"num_kv_shared_layers": 3, "attention_k_eq_v": True, "num_global_key_value_heads": 3},
    "glm5_next_text": {"num_key_value_heads": 6},
    "gpt_neo": {"attention_types": [[["global", "local"], LAYERS // 2]]},
    "granitemoehybrid": {"mamba_n_heads": 8, "layer_types": _every(5, 2, "full_attention", "linear_attention")},
    "hrm_text": {"num_hidden_layers": 3},
    "inkling2_loop_text": {"loop_layer_index_start": 6, "loop_layer_index_end": 12},
    "jamba": {"attn_layer_period": 5, "attn_layer_offset": 2},
    "lfm2": {"full_attn_idxs": [2, 5, 8]},
    "lfm2_moe": {"layer_types": _every(4, 2, "full_attention", "conv")},
    "mamba2": {"num_heads": 8, "head_dim": 24},
    "mimo_v2_flash": {"num_attention_heads": 8},
    "minimax_m3_vl_text": {"layer_types": _every(6, 0, "full_attention", "minimax_m3_sparse")},
    "musicgen": {"decoder": {"num_hidden_layers": LAYERS, "num_attention_heads": 6, "hidden_size": 96}},
    "musicgen_melody": {"decoder": {"num_hidden_layers": LAYERS, "num_attention_heads": 6, "hidden_size": 96}},
    "nemotron_h": {"layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"] * (LAYERS // 4)},
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 32,
        "indexer_budget": 64,
        "indexer_compress_ratio": 16,
    },
    "xlm": {"causal": True, "is_encoder": False},
    "zamba2": {"layers_block_type": _every(5, 3, "hybrid", "linear_attention")},
}
# The drafters of Gemma 4 nest a text configuration, all of whose layers read the model that they draft for.
_DRAFTER_TEXT = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "num_kv_shared_layers": LAYERS}

UNRESOLVED: Mapping[str, str] = {
    "blt": "four stacks of layers (patcher, encoder, global, decoder), none of them the configuration's own",
    "gemma4_assistant": "a drafter: its layers read the keys and values of the model that it drafts for",
    "gemma4_unified_assistant": "a drafter: its layers read the keys and values of the model that it drafts for",
    "prophetnet": "its num_hidden_layers are those of the encoder",
    "reformer": "attn_layers (local, lsh) are unknown to the resolver, which says full attention",
    "rwkv": "keeps a state of its own, without layer_types, which the resolver takes for full attention",
    "xlnet": "keeps memories of hidden states instead of keys and values",
    "xlstm": "keeps a state of its own, without layer_types, which the resolver takes for full attention",
}
CASES: tuple[str, ...] = tuple(name for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if name not in UNRESOLVED)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences transformers' logger, which minds small vocabularies and old spellings."""
    before = get_verbosity()
    set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        set_verbosity(before)


def _arguments(model_type: str) -> dict[str, Any]:
    """Keyword arguments of a small configuration."""
    config_class = CONFIG_MAPPING[model_type]
    text = config_class.sub_configs_defaults.get("text_config")
    if text is not None:
        own = _DRAFTER_TEXT if model_type.endswith("_assistant") else {}
        nested = {"text_config": {**_arguments(text.model_type), "model_type": text.model_type, **own}}
        return {**nested, **_OWN.get(model_type, {})}
    declared = {field.name: field.default for field in dataclasses.fields(config_class)}
    arguments = {name: value for name, value in _SMALL.items() if type(declared.get(name)) is int}
    if "is_decoder" in declared and not declared.get("is_encoder_decoder", False):
        arguments["is_decoder"] = True
    return {**arguments, **_OWN.get(model_type, {})}


def small_config(model_type: str) -> PretrainedConfig:
    """A configuration of few layers and small sizes.

    Args:
        model_type: any type of transformers' `CONFIG_MAPPING`.
    """
    with quiet():
        return CONFIG_MAPPING[model_type](**_arguments(model_type))


def from_raw(raw: Mapping[str, Any]) -> PretrainedConfig:
    """The configuration that transformers reads from a file.

    Args:
        raw: the file's object, `model_type` included.
    """
    with quiet():
        config_class = CONFIG_MAPPING[raw["model_type"]]
        return config_class.from_dict(config_class._decode_special_floats(json.loads(json.dumps(raw))))


def _cache_layers(config: PretrainedConfig) -> list[tuple[str, dict[str, Any]]] | None:
    """The word and the arguments of each of the cache's layers, or None for a type of `UNRESOLVED`."""
    if config.model_type in UNRESOLVED:
        return None
    with quiet():
        return list(zip(*get_layer_types_and_kwargs(config.get_text_config(decoder=True)), strict=True))


def resolved(config: PretrainedConfig) -> tuple[str, ...] | None:
    """The kinds of the cache's layers, or None for a type of `UNRESOLVED`.

    Args:
        config: of the whole model; a nested text configuration is found.
    """
    layers = _cache_layers(config)
    return None if layers is None else tuple(word for word, _ in layers)


def windows(config: PretrainedConfig) -> tuple[int | None, ...] | None:
    """The window (or chunk) of each of the cache's layers, None for those without, or None for `UNRESOLVED` types.

    Args:
        config: of the whole model; a nested text configuration is found.
    """
    layers = _cache_layers(config)
    return None if layers is None else tuple(arguments.get("sliding_window") for _, arguments in layers)


def saved(config: PretrainedConfig) -> dict[str, Any]:
    """All fields as transformers 5 spells them in a config.json."""
    return json.loads(config.to_json_string(use_diff=False))


def saved_diff(config: PretrainedConfig) -> dict[str, Any]:
    """What `save_pretrained` writes: the fields that differ from the class's defaults."""
    return json.loads(config.to_json_string(use_diff=True))
