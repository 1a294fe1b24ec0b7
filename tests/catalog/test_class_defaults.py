"""`hopbound/catalog/defaults.json` says what the installed transformers declares."""

import json

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tests.catalog.class_defaults import ALIASES_KEY, FILE, VERSION_KEY, class_defaults, matters, minor_version, text


def saved() -> dict:
    return json.loads(FILE.read_text())


def test_the_file_is_current() -> None:
    version = saved()[VERSION_KEY]
    if minor_version() != version:
        pytest.skip(f"written from transformers {version}, installed is {minor_version()}")
    assert FILE.read_text() == text(class_defaults(), version), "run python -m tests.catalog.class_defaults"


def test_every_causal_language_model_has_an_entry() -> None:
    assert set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) <= set(saved())


def test_what_a_multimodal_entry_points_to_is_there() -> None:
    entries = saved()
    for key in ("text_config", "thinker_config"):
        inner = {entry[key] for entry in entries.values() if isinstance(entry, dict) and key in entry}
        assert inner
        assert inner <= set(entries)


def test_one_line_a_model_type() -> None:
    lines = FILE.read_text().splitlines()
    assert len(lines) == len(saved()) + 2
    assert lines[1:-1] == sorted(lines[1:-1], key=lambda line: json.loads("{" + line.rstrip(",") + "}").popitem()[0])
    assert FILE.stat().st_size < 200_000


@pytest.mark.parametrize(
    ("model_type", "field", "default"),
    [
        ("mistral", "sliding_window", 4096),
        ("qwen2", "max_window_layers", 28),
        ("qwen2", "use_sliding_window", False),
        ("qwen3_next", "full_attention_interval", 4),  # read from old files only
        ("gemma3_text", "sliding_window_pattern", 6),  # likewise
        ("gemma3n_text", "num_kv_shared_layers", 15),
        ("mamba2", "n_groups", 8),
        ("jamba", "attn_layer_offset", 4),
        ("recurrent_gemma", "block_types", ["recurrent", "recurrent", "attention"]),
        ("inkling2_text", "number_of_conv_states", 4),  # a constant of the class
        ("granitemoehybrid", "layer_types", None),
        ("llama", "max_position_embeddings", 2048),
        ("llama", "num_key_value_heads", None),  # means num_attention_heads, which is for the reader to derive
        ("xlstm", "qk_dim_factor", 0.5),
    ],
)
def test_known_defaults(model_type: str, field: str, default: object) -> None:
    assert saved()[model_type][field] == default


def test_aliases_are_those_of_the_class() -> None:
    assert saved()["gpt2"][ALIASES_KEY]["num_hidden_layers"] == "n_layer"
    for model_type, entry in saved().items():
        if isinstance(entry, dict) and model_type in CONFIG_MAPPING:
            assert entry.get(ALIASES_KEY, {}).items() <= CONFIG_MAPPING[model_type].attribute_map.items()


@pytest.mark.parametrize(
    "name", ["num_key_value_heads", "no_rope_layers", "qk_rope_head_dim", "conv_L_cache", "layer_types"]
)
def test_fields_that_matter(name: str) -> None:
    assert matters(name)


@pytest.mark.parametrize(
    "name", ["vocab_size", "bos_token_id", "rope_theta", "rms_norm_eps", "hidden_act", "use_cache"]
)
def test_fields_that_do_not(name: str) -> None:
    assert not matters(name)
