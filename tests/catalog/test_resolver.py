"""Every causal language model of transformers: the catalogue's layers against transformers' own resolver."""

from collections.abc import Mapping
from typing import Any

import pytest

from hopbound.catalog import ModelLayer, read_config
from hopbound.errors import InputError
from tests.catalog import oracle
from tests.catalog.variants import Variant, variants

# What a word of the resolver says of the kinds of a layer; attention beside a recurrence is in both lists.
KINDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "full_attention": (("full",),),
    "sliding_attention": (("window",),),
    "chunked_attention": (("chunked",),),
    "indexed_attention": (("sparse",),),
    "minimax_m3_sparse": (("sparse",),),
    "heavily_compressed_attention": (("sparse",),),
    "compressed_sparse_attention": (("sparse",),),
    "linear_attention": (("recurrent",),),
    "conv": (("conv",),),
    "hybrid": (("full",), ("full", "recurrent"), ("recurrent", "full")),
    "hybrid_sliding": (("window",),),
    "reference_sliding_attention": (("full",),),  # all tokens of the prompt stay in sight
}

# Where the two differ, and why the catalogue is right. Types whose every reading differs:
TYPES_THAT_DIFFER: Mapping[str, str] = {
    "dory": "its middle layers run several times, each time with a cache; the resolver counts them once",
    "gpt_neo": "local layers see 256 tokens; the resolver does not read attention_types: engines cache all of them",
    "inkling2_loop_text": "its middle layers run several times, each time with a cache; the resolver counts them once",
}
# Spellings that do:
SPELLINGS_THAT_DIFFER: Mapping[str, str] = {
    "minimax:old list without effect": "attn_type_list says what the released weights are; the class does not read it",
    "mimo_v2_flash:pattern without effect": "hybrid_layer_pattern likewise",
}
# Refused, where the class fills in what nothing in the file says:
REFUSED: Mapping[str, str] = {
    "nemotron_h:absent": "no pattern and no list: the class takes a stack of four layers that no model has",
    "gemma4_text:all shared": "a drafter, all of whose layers read the keys and values of another model",
}


def agrees(layer: ModelLayer, word: str) -> bool:
    if word == "dummy":
        return layer.kinds == ("mlp",) or layer.kv_shared_from is not None
    # A layer that chooses tokens keeps its index even where it reads another layer's keys and values.
    return layer.kinds in KINDS[word] and (layer.kv_shared_from is None or word == "indexed_attention")


def check(raw: Mapping[str, Any], words: tuple[str, ...], windows: tuple[int | None, ...]) -> None:
    model = read_config(dict(raw))
    assert len(model.layers) == len(words)
    pairs = list(zip(model.layers, words, strict=True))
    assert not [(layer.index, layer.kinds, word) for layer, word in pairs if not agrees(layer, word)]
    assert not [
        (layer.index, layer.window, window)
        for (layer, word), window in zip(pairs, windows, strict=True)
        if window is not None and word in ("sliding_attention", "hybrid_sliding", "chunked_attention")
        if layer.window != window
    ]


@pytest.mark.parametrize("model_type", [t for t in oracle.CASES if t not in TYPES_THAT_DIFFER])
@pytest.mark.parametrize("spelling", ["whole", "differences"])
def test_saved_configs_give_the_resolvers_layers(model_type: str, spelling: str) -> None:
    config = oracle.small_config(model_type)
    words, windows = oracle.resolved(config), oracle.windows(config)
    assert words is not None
    assert windows is not None
    check(oracle.saved(config) if spelling == "whole" else oracle.saved_diff(config), words, windows)


SPELLINGS = [variant for variant in variants() if variant.name.split(":")[0] not in TYPES_THAT_DIFFER]


@pytest.mark.parametrize(
    "variant",
    [v for v in SPELLINGS if v.name not in {**SPELLINGS_THAT_DIFFER, **REFUSED}],
    ids=lambda variant: variant.name,
)
def test_every_spelling_gives_the_resolvers_layers(variant: Variant) -> None:
    check(variant.raw_before, variant.words, variant.windows)


@pytest.mark.parametrize("variant", [v for v in SPELLINGS if v.name in REFUSED], ids=lambda variant: variant.name)
def test_what_the_file_does_not_say_is_refused(variant: Variant) -> None:
    with pytest.raises(InputError):
        read_config(dict(variant.raw_before))


def test_lists_that_the_class_does_not_read_count() -> None:
    by_name = {variant.name: variant.raw_before for variant in SPELLINGS}
    minimax = by_name["minimax:old list without effect"]
    full = tuple(i for i, one in enumerate(minimax["attn_type_list"]) if one == 1)
    assert read_config(dict(minimax)).of_kind("full") == full
    mimo = by_name["mimo_v2_flash:pattern without effect"]
    windows = tuple(i for i, one in enumerate(mimo["hybrid_layer_pattern"]) if one == 1)
    assert read_config(dict(mimo)).of_kind("window") == windows


@pytest.mark.parametrize("model_type", sorted(TYPES_THAT_DIFFER))
def test_layers_that_run_again_follow_the_resolvers_in_order(model_type: str) -> None:
    config = oracle.small_config(model_type)
    words = oracle.resolved(config)
    assert words is not None
    model = read_config(oracle.saved(config))
    if model_type == "gpt_neo":
        assert model.of_kind("window") == tuple(range(1, len(words), 2))
        assert model.of_kind("full") == tuple(range(0, len(words), 2))
        return
    once = [layer for layer in model.layers if layer.weights_from is None]
    assert len(once) == len(words) < len(model.layers)
    assert all(agrees(layer, word) for layer, word in zip(once, words, strict=True))
    for layer in model.layers:
        if layer.weights_from is not None:
            assert layer.layer == model.layers[layer.weights_from].layer
