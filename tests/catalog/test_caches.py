"""What the catalogue says of tiny models against the tensors that their caches hold, layer by layer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from hopbound.architecture.sizes import Attention, CompressedAttention
from hopbound.catalog import Model, ModelLayer, read_config
from tests.catalog import oracle
from tests.catalog.families import CASES, FAMILIES
from tests.catalog.tiny import UNFILLED, LayerCount, counted, heeds, tensors, tiny_config, written

SPELLINGS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "whole": lambda family: counted(family).raw,
    "differences": lambda family: oracle.saved_diff(tiny_config(family)),
    "written": lambda family: json.loads(json.dumps(written(family))),
}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What one layer keeps, in elements.

    Attributes:
        kv_per_token: what each token adds for ever, index keys included.
        index_per_token: the index keys among them.
        window_per_token: what each token adds to a window.
        window_tokens: the earlier tokens that a window keeps; None without one.
        recurrent: of recurrent states.
        conv_needed: of convolutions, the columns that the next token depends on.
        conv_allocated: of convolutions, the columns that there is room for.
        held: everything after `UNFILLED` tokens, what waits to be pooled included.
    """

    kv_per_token: Fraction
    index_per_token: Fraction
    window_per_token: int
    window_tokens: int | None
    recurrent: int
    conv_needed: int
    conv_allocated: int
    held: int


def by_tensors(count: LayerCount) -> Kept:
    return Kept(
        kv_per_token=count.kv_per_token,
        index_per_token=count.index_per_token,
        window_per_token=count.window_per_token,
        window_tokens=count.window_tokens_kept,
        recurrent=count.fixed_recurrent,
        conv_needed=count.conv_needed,
        conv_allocated=count.fixed_conv,
        held=count.held,
    )


def by_catalogue(layer: ModelLayer) -> Kept:
    windowed = layer.window is not None and layer.kv_shared_from is None
    return Kept(
        kv_per_token=layer.kv_elements_for_ever,
        index_per_token=sum(
            (Fraction(getattr(mixer, "index_dim", 0), mixer.elements.kv_every) for mixer in layer.layer.mixers),
            Fraction(0),
        ),
        window_per_token=_window_per_token(layer) if windowed else 0,
        window_tokens=layer.window - 1 if windowed and layer.window is not None else None,
        recurrent=layer.state_elements,
        conv_needed=layer.conv_elements,
        conv_allocated=layer.conv_allocated,
        held=layer.kv_elements_at(UNFILLED) + layer.state_elements + layer.conv_allocated,
    )


def _window_per_token(layer: ModelLayer) -> int:
    for mixer in layer.layer.mixers:
        if isinstance(mixer, CompressedAttention):  # whose `kv_elements` are those of the pooled entries
            return mixer.head_dim
    return int(layer.kv_elements)


# The catalogue lists layers as they run; these caches hold the repeated passes after all first ones.
REPEATED_LAST = frozenset({"dory", "inkling2_loop_text"})


def cached_layers(model: Model) -> list[ModelLayer]:
    """The layers in the order of transformers' cache."""
    if model.model_type not in REPEATED_LAST:
        return list(model.layers)
    seen: set[int] = set()
    first, again = [], []
    for layer in model.layers:
        if layer.kv_shared_from is not None:  # a pass that reads the cache of a later one
            continue
        source = layer.index if layer.weights_from is None else layer.weights_from
        (again if source in seen else first).append(layer)
        seen.add(source)
    return first + again


def _of_every_head(layer: ModelLayer, kept: Kept) -> Kept:
    attention = layer.layer.mixers[0]
    assert isinstance(attention, Attention)
    one = attention.heads * (attention.head_dim + attention.value_dim)
    return replace(kept, kv_per_token=Fraction(one), held=one * UNFILLED)


def _of_every_token(layer: ModelLayer, kept: Kept) -> Kept:
    if layer.window is None:
        return kept
    one = kept.window_per_token
    return replace(kept, kv_per_token=Fraction(one), window_per_token=0, window_tokens=None, held=one * UNFILLED)


# Where transformers keeps more than the model needs: why the catalogue is right, and what there is instead.
KEEPS_MORE: Mapping[str, tuple[str, Callable[[ModelLayer, Kept], Kept]]] = {
    "falcon:grouped": (
        "FalconAttention._split_heads copies the key and value of a group to each of its heads before the cache",
        _of_every_head,
    ),
    "gpt_neo": (
        "local layers mask all but window_size tokens (GPTNeoSelfAttention.bias) in a cache of full length",
        _of_every_token,
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("family", CASES)
def test_the_catalogue_says_what_the_tensors_hold(family: str, spelling: str) -> None:
    model = read_config(dict(SPELLINGS[spelling](family)), family)
    layers, counts = cached_layers(model), counted(family).layers
    expected = [by_catalogue(layer) for layer in layers]
    if family in KEEPS_MORE:
        _, change = KEEPS_MORE[family]
        changed = [change(layer, kept) for layer, kept in zip(layers, expected, strict=True)]
        assert changed != expected  # no entry outlives its reason
        expected = changed
    assert [by_tensors(count) for count in counts] == expected


def test_falcon_caches_copies() -> None:
    for layer in tensors("falcon:grouped", 9):
        for held in layer.values():
            groups = held.unflatten(1, (3, 2))
            assert torch.equal(groups[:, :, 0], groups[:, :, 1])


def test_gpt_neo_caches_tokens_that_local_layers_do_not_see() -> None:
    def without(kept: int) -> Callable[[list[dict[str, Tensor]]], None]:
        def spoil(layers: list[dict[str, Tensor]]) -> None:
            for layer in layers[1::2]:
                for held in layer.values():
                    held[..., :-kept, :] = 99.0

        return spoil

    assert not heeds("gpt_neo", 32, without(7))  # with the token itself the window of 8
    assert heeds("gpt_neo", 32, without(6))


def test_deepseek_v4_caches_the_one_vector_of_its_windows_twice() -> None:
    window = tensors("deepseek_v4", 9)[0]
    assert torch.equal(window["keys"], window["values"])
    assert window["keys"].data_ptr() != window["values"].data_ptr()


# Precisions that are the engine's, not the model's.
WIDER: Mapping[tuple[str, str], str] = {
    ("dots3_note_text", "index"): "Dots3NoteTextIndexer rotates by a float32 table and does not round the result back",
}
DTYPES = {16: "bfloat16", 32: "float32"}


@pytest.mark.parametrize("family", CASES)
def test_the_catalogue_says_in_which_precision(family: str) -> None:
    raw = counted(family).raw
    precisions = read_config(dict(raw)).precisions
    bits = {
        "kv": precisions.kv,
        "index": precisions.kv,
        "window": precisions.kv,
        "recurrent": precisions.state,
        "conv": precisions.activation,
    }
    for count in counted(family).layers:
        for kind, dtype in count.dtypes.items():
            if kind in bits:  # the buffers of pooled blocks (other) have no field of their own
                expected = "float32" if (raw["model_type"], kind) in WIDER else DTYPES[bits[kind]]
                assert (kind, dtype) == (kind, expected)


def test_exceptions_are_of_families() -> None:
    assert set(KEEPS_MORE) <= set(FAMILIES)
    assert {model_type for model_type, _ in WIDER} <= set(FAMILIES)
