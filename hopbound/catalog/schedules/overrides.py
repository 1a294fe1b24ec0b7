"""Fields that differ from layer to layer: `per_layer_config`, an object for each layer that differs."""

from collections.abc import Mapping
from typing import Any

from hopbound.catalog.fields import Fields


def layer_overrides(fields: Fields, layers: int) -> dict[int, Mapping[str, Any]]:
    """The fields of each layer that has its own, by its index; keys are numbers as text, padded with zeros or not.

    Raises:
        InputError: a key that is no layer, the same layer twice, or a value that is no object.
    """
    place = fields.child("per_layer_config")
    if place is None:
        return {}
    found: dict[int, Mapping[str, Any]] = {}
    for key, value in place.raw.items():
        index = int(key) if isinstance(key, str) and key.isdecimal() and len(key) < 6 else -1
        if not 0 <= index < layers or index in found:
            raise fields.error("per_layer_config", key, f"the number of a layer below {layers}, each once")
        if not isinstance(value, dict):
            raise place.error(key, value, "an object")
        found[index] = value
    return found
