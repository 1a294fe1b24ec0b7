"""The published configurations, and files that must be refused."""

import json
import random
from copy import deepcopy
from importlib.resources import files
from typing import Any

import pytest

from hopbound.analysis import analyze, document
from hopbound.catalog import Model, read_config
from hopbound.errors import InputError

PUBLISHED: list[dict[str, Any]] = json.loads(files("hopbound.catalog").joinpath("published.json").read_text("utf-8"))
LISTS = {
    "full_layers": "full",
    "window_layers": "window",
    "linear_layers": "recurrent",
    "chunked_layers": "chunked",
    "sparse_layers": "sparse",
    "conv_layers": "conv",
}


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry["name"])
def test_published_configs_give_the_expected_layers_and_sizes(entry: dict[str, Any]) -> None:
    model, expected = read_config(entry["config"], entry["name"]), entry["expected"]
    assert len(model.layers) == expected["n_layers"]
    assert model.context == expected["max_context"]
    for name, kind in LISTS.items():
        if name in expected:
            assert list(model.of_kind(kind)) == expected[name], name
    shared = set(expected.get("kv_shared_layers", ()))
    assert {layer.index for layer in model.layers if layer.kv_shared_from is not None} == shared
    for layer in model.layers:
        if "recurrent" in layer.kinds:
            assert layer.state_elements + layer.conv_elements == expected["state_elements_per_linear_layer"]
        for kind in ("full", "window", "chunked", "sparse"):
            name = f"kv_elements_per_token_per_{'window' if kind == 'chunked' else kind}_layer"
            if kind in layer.kinds and isinstance(expected.get(name), int):
                assert layer.kv_elements == (0 if layer.index in shared else expected[name])
        if "conv" in layer.kinds:
            assert layer.conv_elements == expected["state_elements_per_conv_layer"]
        if layer.window is not None and "window" in expected:
            # `sliding_window_size` counts the earlier tokens, a window here the token itself as well.
            own = "sliding_window_size" in entry["config"]
            assert layer.window == expected["window"] + own


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry["name"])
def test_what_is_possible_is_never_impossible(entry: dict[str, Any]) -> None:
    found = analyze(read_config(entry["config"]))
    if found.impossible is not None:
        assert found.possible.hops < found.impossible.hops
    assert json.dumps(document(found, curve=True), allow_nan=False)


LEGAL_WHEN_SMALLER = ("model_type", "attn_layer_indices", "full_attn_idxs", "num_kv_shared_layers")


def schedule_of(model: Model) -> Any:
    return [(layer.kinds, layer.window, layer.kv_shared_from) for layer in model.layers]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [one for key, inner in value.items() for one in places(inner, (*path, key))]
    return found


def mutated(config: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """One field dropped, retyped, negated, nested, cut, made absurd, or all keys reordered."""
    changed = deepcopy(config)
    path = draw.choice(places(changed))
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    key, how = path[-1], draw.randrange(8)
    if key in LEGAL_WHEN_SMALLER and how in (4, 5):
        how = 1  # a shorter name, a shorter list of layers, no shared layers: another model's file, and a right one
    value = holder[key]
    if how == 0:
        del holder[key]
    elif how == 1:
        holder[key] = str(value) if not isinstance(value, str) else [value]
    elif how == 2:
        holder[key] = -value if isinstance(value, int | float) and not isinstance(value, bool) else {"x": value}
    elif how == 3:
        holder[key] = {key: value}
    elif how == 4:
        holder[key] = value[:-1] if isinstance(value, list | str) and value else None
    elif how == 5:
        absurd = 10**30 if draw.random() < 0.5 else 0
        # An offset of 0 is no damage: it is the first layer of a period, in the file of another model.
        holder[key] = 10**30 if key == "attn_layer_offset" else absurd
    elif how == 6:
        items = list(changed.items())
        draw.shuffle(items)
        changed = dict(items)
    else:
        holder[key] = [value]
    return changed


def fuzz(rounds: int, seed: int) -> None:
    draw = random.Random(seed)
    originals = [(entry["config"], read_config(entry["config"])) for entry in PUBLISHED]
    for _ in range(rounds):
        config, original = draw.choice(originals)
        damaged = mutated(config, draw)
        try:
            read = read_config(damaged)
        except InputError:
            continue
        if schedule_of(read) != schedule_of(original):
            assert read.notes != original.notes, damaged  # never another schedule in silence


def test_damaged_configs_are_refused_or_noted() -> None:
    fuzz(3000, 1)


@pytest.mark.slow
def test_fifty_thousand_damaged_configs_are_refused_or_noted() -> None:
    fuzz(50_000, 2)


@pytest.mark.parametrize("config", [[], "x", None, 3, {}, {"model_type": "no such"}, {"model_type": ["llama"]}])
def test_what_is_no_config_is_one_line(config: object) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("word", ["a\nb", "\x1b[31mred", "x" * 10_000])
def test_a_model_type_is_a_short_word_that_can_be_printed(word: str) -> None:
    """It is shown as it is: lines and colours of a file do not reach the terminal."""
    layers = {"layer_types": ["full_attention"], "num_attention_heads": 1, "head_dim": 4, "num_hidden_layers": 1}
    assert read_config({"model_type": "new", **layers}).model_type == "new"
    with pytest.raises(InputError, match="model_type"):
        read_config({"model_type": word, **layers})
