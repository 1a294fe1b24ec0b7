"""The oracle covers all of transformers' causal language models and agrees with itself."""

import pytest
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tests.catalog.oracle import CASES, LAYERS, UNRESOLVED, from_raw, resolved, saved, saved_diff, small_config, windows
from tests.catalog.variants import FULL, LINEAR, SLIDING, variants

# Layers of the model that the cache holds several times, or none of.
MORE_CACHES = {"hrm_text": 3 * 2 * (3 + 1), "longcat_flash": 2 * LAYERS}


def test_every_type_is_a_case_or_has_a_reason() -> None:
    assert set(CASES) | set(UNRESOLVED) == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert not set(CASES) & set(UNRESOLVED)


@pytest.mark.parametrize("model_type", CASES)
def test_a_word_for_each_layer_that_survives_saving(model_type: str) -> None:
    config = small_config(model_type)
    words = resolved(config)
    assert words is not None
    assert len(words) == MORE_CACHES.get(model_type, LAYERS)
    kept = windows(config)
    assert kept is not None
    assert [window is not None for window in kept] == ["sliding" in word or "chunked" in word for word in words]
    for raw in (saved(config), saved_diff(config)):
        assert raw["model_type"] == config.model_type  # "gpt-sw3" is written as "gpt2"
        assert resolved(from_raw(raw)) == words
        assert windows(from_raw(raw)) == kept


@pytest.mark.parametrize("model_type", UNRESOLVED)
def test_the_others_have_small_configurations_too(model_type: str) -> None:
    config = small_config(model_type)
    assert resolved(config) is None
    assert saved(from_raw(saved(config))) == saved(config)


VARIANTS = {variant.name: variant for variant in variants()}


def test_variants_have_names_of_their_own_and_one_window_a_layer() -> None:
    assert len(VARIANTS) == len(variants()) > 100
    for variant in VARIANTS.values():
        assert len(variant.words) == len(variant.windows) > 0


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_survive_saving(name: str) -> None:
    config = from_raw(VARIANTS[name].raw_before)
    for raw in (saved(config), saved_diff(config)):
        assert resolved(from_raw(raw)) == VARIANTS[name].words
        assert windows(from_raw(raw)) == VARIANTS[name].windows


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("qwen2:windowed", "FFFFFSSS"),
        ("qwen2_moe:windowed", "SFSFSFFF"),  # every other of the first five, unlike qwen2
        ("qwen3_moe:windowed", "SSSS"),
        ("mistral:default window", "SSS"),
        ("kimi_linear:counted from one", "LLLFLLF"),
        ("nemotron_h:letters", "L-LF-L-LF-"),
        ("gemma4_text:shared", "SSSSSFSSS-----"),
        ("minimax:old list without effect", "FLFL"),
        ("smollm3:windows where no rope", "FFSFSF"),
    ],
)
def test_words_read_by_hand_from_the_classes(name: str, letters: str) -> None:
    spelled = {FULL: "F", SLIDING: "S", LINEAR: "L", "dummy": "-"}
    assert "".join(spelled[word] for word in VARIANTS[name].words) == letters
