"""Files as older versions of transformers saved them, and types beside its causal language models."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from transformers import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from hopbound.catalog import Model, read_config
from tests.catalog import oracle
from tests.catalog.held import Case, check, full, window
from tests.catalog.test_resolver import check as check_words
from tests.catalog.variants import Variant, variants

NESTED = ("text_config", "decoder", "encoder", "thinker_config")


def written_before_five(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The same file in the spelling of transformers 4: `torch_dtype`, and rotary fields at the top."""
    old = {name: value for name, value in raw.items() if name not in ("dtype", "rope_parameters")}
    for name, value in old.items():
        if isinstance(value, dict) and name in NESTED:
            old[name] = written_before_five(value)
    rope = raw.get("rope_parameters") or {}
    theta = rope.get("rope_theta", 10000.0) if isinstance(rope, Mapping) else 10000.0
    return {
        **old,
        "torch_dtype": "float16",
        "rope_theta": theta,
        "rope_scaling": None,
    }


def held(model: Model) -> list[tuple[Any, ...]]:
    """All that a reading says of each layer."""
    return [(layer.kinds, layer.layer, layer.kv_shared_from, layer.conv_allocated) for layer in model.layers]


@pytest.mark.parametrize("model_type", oracle.CASES)
def test_the_spelling_of_version_four_gives_the_same_layers(model_type: str) -> None:
    today = {**oracle.saved(oracle.small_config(model_type)), "dtype": "float16"}
    old, new = read_config(written_before_five(today)), read_config(today)
    assert held(old) == held(new)
    assert old.precisions == new.precisions
    assert old.context == new.context
    assert old.precisions.kv == 16


# Their words are compared in test_resolver; minus those that it refuses.
WRITTEN = [v for v in variants() if v.name not in ("nemotron_h:absent", "gemma4_text:all shared")]


@pytest.mark.parametrize("variant", WRITTEN, ids=lambda variant: variant.name)
def test_every_variant_in_the_spelling_of_version_four(variant: Variant) -> None:
    old, new = read_config(written_before_five(variant.raw_before)), read_config(dict(variant.raw_before))
    assert held(old) == held(new)
    assert old.precisions.kv == 16


@pytest.mark.parametrize(("word", "bits"), [("float32", 32), ("torch.bfloat16", 16), ("float16", 16)])
@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
def test_the_dtype_by_either_name(name: str, word: str, bits: int) -> None:
    raw = {"model_type": "llama", "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6, name: word}
    assert read_config(raw).precisions.kv == bits


# Types that are the text part of a multimodal model, or no causal language model of transformers' list.
_SIZES = {"num_hidden_layers": 12, "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2}
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "diffusion_gemma": {},
    "diffusion_gemma_text": {},
    "mistral4": {},
    "mistral_large4": {},
    "muse_glimmer": {},
    "muse_glimmer_text": {},
    "muse_spark_text": {},
    "neomme": {**_SIZES, "head_dim": 32},
    "qwen2_vl": {},
    "qwen2_vl_text": {},
    "qwen2_5_vl": {},
    "qwen2_5_vl_text": {},
    "step3p5": {},
    "unlimited_ocr_text": {},
}


def config_of(model_type: str, **more: Any) -> PretrainedConfig:
    """A small configuration."""
    given = {**BESIDE[model_type], **more}
    if not given:
        return oracle.small_config(model_type)
    with oracle.quiet():
        return CONFIG_MAPPING[model_type](**given)


@pytest.mark.parametrize("model_type", BESIDE)
@pytest.mark.parametrize("spelling", ["whole", "differences", "version four"])
def test_types_beside_the_causal_ones_give_the_resolvers_layers(model_type: str, spelling: str) -> None:
    config = config_of(model_type)
    words, windows = oracle.resolved(config), oracle.windows(config)
    assert words is not None
    assert windows is not None
    raw = oracle.saved_diff(config) if spelling == "differences" else oracle.saved(config)
    check_words(written_before_five(raw) if spelling == "version four" else raw, words, windows)


def test_qwen2_vl_nests_its_text_model_since_version_five() -> None:
    text = {**_SIZES, "use_sliding_window": True, "max_window_layers": 9, "sliding_window": 20}
    flat = read_config({"model_type": "qwen2_vl", **text})
    nested = read_config({"model_type": "qwen2_vl", "text_config": {"model_type": "qwen2_vl_text", **text}})
    assert held(flat) == held(nested)
    assert flat.of_kind("window") == (9, 10, 11)


def test_muse_spark_nests_its_text_model() -> None:
    inner = oracle.saved(config_of("muse_spark_text"))
    nested = read_config({"model_type": "muse_spark", "text_config": inner})
    assert held(nested) == held(read_config(inner))


T5GEMMA = {
    "num_hidden_layers": 3,
    "hidden_size": 96,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 20,
    "sliding_window": 32,
    "model_type": "t5_gemma_module",
}
BY_HAND = (
    Case(
        name="t5gemma",  # the decoder's fields, every other layer with a window
        config={"encoder": {**T5GEMMA, "num_hidden_layers": 7}, "decoder": T5GEMMA},
        layers=(window(2 * 2 * 20, 32), full(2 * 2 * 20), window(2 * 2 * 20, 32)),
    ),
    Case(
        name="t5_gemma_module",
        config={**T5GEMMA, "layer_types": ["full_attention", "full_attention", "sliding_attention"]},
        layers=(full(2 * 2 * 20), full(2 * 2 * 20), window(2 * 2 * 20, 32)),
    ),
    Case(
        name="prophetnet",
        config={"num_decoder_layers": 2, "num_encoder_layers": 5, "hidden_size": 96, "num_decoder_attention_heads": 6},
        layers=2 * (full(2 * 96),),
    ),
    Case(
        name="xlnet",
        config={"n_layer": 2, "d_model": 96, "n_head": 6, "d_head": 16},
        layers=2 * (full(2 * 6 * 16),),
    ),
    Case(
        name="gpt-sw3",
        config={"n_layer": 2, "n_embd": 96, "n_head": 6, "n_positions": 2048},
        layers=2 * (full(2 * 96),),
    ),
    Case(
        name="step3p5:released",
        config={
            **_SIZES,
            "num_hidden_layers": 2,
            "num_attention_groups": 2,
            "head_dim": 20,
            "sliding_window": 32,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "num_nextn_predict_layers": 1,
            "attention_other_setting": {"num_attention_heads": 9, "num_attention_groups": 3, "head_dim": 20},
        },
        layers=(full(2 * 2 * 20), window(2 * 3 * 20, 32)),
    ),
)


@pytest.mark.parametrize("case", BY_HAND, ids=lambda case: case.name)
@pytest.mark.parametrize("spelling", ["dtype", "torch_dtype"])
def test_sizes_by_hand(case: Case, spelling: str) -> None:
    check(case, **{spelling: "bfloat16"})


@pytest.mark.parametrize("change", [{"layer_types": ["full_attention"]}, {"num_key_value_heads": 4}])
def test_damage_to_a_nested_decoder_is_refused(change: dict[str, Any]) -> None:
    case = replace(BY_HAND[0], config={"decoder": {**T5GEMMA, **change}})
    with pytest.raises(ValueError, match=r"^decoder\."):
        read_config(case.raw)
