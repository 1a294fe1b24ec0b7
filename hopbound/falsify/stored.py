"""A stored pair with the model that it names: loading the weights by their hash, and replaying."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hopbound.decoder.folder import load_model
from hopbound.errors import InputError, RejectedError
from hopbound.falsify.language import Adapter, folder_sha256, load_language_model
from hopbound.falsify.pair import replay
from hopbound.tasks import Answerer, task_from_json


def verify_pair(document: Mapping[str, Any], folder: Path) -> str:
    """Check a stored pair from the file alone: the weights that it names, by hash, and every number.

    Args:
        document: of the file.
        folder: that the file stands in; the model's path is relative to it.

    Returns:
        What was checked, in a line.

    Raises:
        RejectedError: it is not so.
    """
    replay(document, _named_model(document, folder))
    first, second = document["right_answers"]
    if (answer := document["model_answer"]) is not None:
        return f"right answers {first} and {second}, the model answers {answer} to both"
    one, other = document["model_answers"]
    return f"right answers {first} and {second}, the model answers {one} and {other}"


def _named_model(document: Mapping[str, Any], folder: Path) -> Answerer:
    try:
        named = document["model"]
        relative, sha256 = Path(named["path"]), named["sha256"]
        if relative.is_absolute():
            raise RejectedError(f"model.path: {relative}, expected a path relative to the pair's folder")
    except (KeyError, TypeError) as error:
        raise RejectedError(f"pair: no model is named ({error})") from error
    path = folder / relative
    if "adapter" not in named:
        model = load_model(path)
        found, answerer = model.weights_sha256, model.decoder
    else:
        found, answerer = folder_sha256(path), None
    if found != sha256:
        raise RejectedError(f"model {path.name}: other weights than those the pair was found for")
    if answerer is not None:
        return answerer
    try:
        return load_language_model(path, Adapter.from_json(named["adapter"]), task_from_json(document["task"]))
    except (KeyError, InputError) as error:
        raise RejectedError(f"pair: {error}") from error
