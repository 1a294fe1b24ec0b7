"""Every place of a JSON document, to alter it there."""

import copy
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every value of a document, the containers included."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*at, key))


def get(value: Any, at: Place) -> Any:
    for key in at:
        value = value[key]
    return value


def altered(value: Any, at: Place, new: Any) -> Any:
    result = copy.deepcopy(value)
    get(result, at[:-1])[at[-1]] = new
    return result
