"""Files that flash-linear-attention saves: the catalogue's sizes against what its caches held."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from hopbound.catalog import ModelLayer, read_config
from tests.catalog.fla_caches import FAMILIES, FILE

SAVED: Mapping[str, Mapping[str, Any]] = json.loads(FILE.read_text())

# Where the two differ, and why the catalogue is right or what it leaves out:
DIFFERENT: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "mla:window": (
        "the engine caches all tokens, of which attention sees the last 8",
        {"kv": 0, "window": 8, "window_kv": 160},
    ),
    "wall_transformer": (
        "keys as they are, not rescaled for each query head; the gates left out, as noted",
        {"kv": 64},
    ),
    "wall_transformer:window": (
        "the gates of the seven earlier tokens, 64 each, are counted as state",
        {"window_kv": 64, "state": 7 * 64, "state_bits": 32},
    ),
}


def said(layer: ModelLayer, state_bits: int) -> dict[str, int]:
    """The catalogue's layer in the words of the file."""
    growing = layer.kv_elements_for_ever
    windowed = layer.window is not None and growing == 0
    return {
        "kv": int(growing),
        "window": (layer.window or 0) if windowed else 0,
        "window_kv": int(layer.kv_elements) if windowed else 0,
        "state": layer.state_elements,
        "columns": layer.conv_allocated,
        "state_bits": state_bits if layer.state_elements else 0,
    }


def test_the_file_holds_every_family_of_its_table() -> None:
    assert list(SAVED) == list(FAMILIES)
    assert set(DIFFERENT) < set(SAVED)


@pytest.mark.parametrize("name", SAVED)
def test_layers_hold_what_the_caches_did(name: str) -> None:
    model = read_config(SAVED[name]["config"])
    own = [layer for layer in model.layers if layer.kv_shared_from is None]
    known = DIFFERENT.get(name, ("", {}))[1]
    assert [said(layer, model.precisions.state) for layer in own] == [
        {**layer, **known} for layer in SAVED[name]["layers"]
    ]
    assert (len(own) < len(model.layers)) == name.startswith("yoco")
    assert model.precisions.kv == 16
