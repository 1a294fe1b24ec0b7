"""Configurations that come with this package: published models, each with its source and the layers that are right."""

import json
from importlib.resources import files
from typing import Any


def published_models() -> list[dict[str, Any]]:
    """All of them (`published.json`): name, source, whether verified, config, and what is expected of it."""
    return json.loads(files("hopbound.catalog").joinpath("published.json").read_text(encoding="utf-8"))


def published_model(name: str) -> dict[str, Any] | None:
    """The entry of a model, by its name on the hub; None if there is none."""
    return next((entry for entry in published_models() if entry["name"].split(" ")[0] == name), None)
