"""The model folder: `model.safetensors` (weights) and `model.json` (config, what the directions mean, claims).

`model.json` names the sha256 of the weights, so that an altered file is refused before it is run.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from hopbound.decoder.model import Decoder, DecoderConfig
from hopbound.errors import InputError, RejectedError
from hopbound.files import read_json, write_json

SCHEMA = "hopbound/model/1"
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
_KEYS = {"schema", "config", "weights", "notes", "task", "claim"}


@dataclass(frozen=True)
class ModelFolder:
    """A model as read from its folder.

    Attributes:
        decoder: with its weights, in the type they were saved in.
        notes: how it was made (construction, directions, seed).
        task: the task it is for, as the task's JSON; None if it is for no task.
        claim: what is said of its answers; None if nothing is.
        weights_sha256: of the weights' file.
    """

    decoder: Decoder
    notes: dict[str, Any]
    task: dict[str, Any] | None
    claim: dict[str, Any] | None
    weights_sha256: str


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a supported type."""
    return next(name for name, value in DTYPES.items() if value is dtype)


def file_sha256(path: Path) -> str:
    """Hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save_model(
    folder: Path,
    decoder: Decoder,
    *,
    notes: Mapping[str, Any],
    task: Mapping[str, Any] | None = None,
    claim: Mapping[str, Any] | None = None,
) -> None:
    """Write a model folder, whole or not at all; an older model in its place is replaced.

    Raises:
        InputError: `folder` exists and is no model folder.
    """
    if folder.exists() and not (folder / "model.json").is_file():
        raise InputError("out", str(folder), "a new folder or one that holds a model")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as name:
        temporary = Path(name) / folder.name
        temporary.mkdir()
        weights = temporary / "model.safetensors"
        tensors = {key: value.contiguous() for key, value in decoder.state_dict().items()}
        weights.write_bytes(save(tensors))
        document = {
            "schema": SCHEMA,
            "config": decoder.config.to_json(),
            "weights": {"file": weights.name, "dtype": dtype_name(decoder.dtype), "sha256": file_sha256(weights)},
            "notes": dict(notes),
            "task": None if task is None else dict(task),
            "claim": None if claim is None else dict(claim),
        }
        write_json(temporary / "model.json", document)
        old = Path(name) / "replaced"
        if folder.exists():
            folder.replace(old)
        try:
            temporary.replace(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise


def load_model(folder: Path) -> ModelFolder:
    """Read a model folder.

    Raises:
        RejectedError: a file is missing, altered, or does not fit the config.
    """
    document = read_json(folder / "model.json")
    if document.get("schema") != SCHEMA:
        raise RejectedError(f"model.json: schema {document.get('schema')!r}, expected {SCHEMA!r}")
    if set(document) != _KEYS:
        raise RejectedError(f"model.json: keys {sorted(set(document) ^ _KEYS)} are missing or unknown")
    for key, kinds in (("notes", (dict,)), ("task", (dict, NoneType)), ("claim", (dict, NoneType))):
        if not isinstance(document[key], kinds):
            raise RejectedError(f"model.json: {key} is {document[key]!r}, expected an object")
    try:
        name, dtype, sha256 = (str(document["weights"][key]) for key in ("file", "dtype", "sha256"))
        weights = folder / Path(name).name
        if not weights.is_file():
            raise RejectedError(f"model.json: {name}: no such file in {folder.name}")
        found = file_sha256(weights)
        if found != sha256:
            raise RejectedError(f"{name}: sha256 {found[:12]}…, model.json says {sha256[:12]}…")
        config = DecoderConfig.from_json(document["config"])
        with torch.device("meta"):
            decoder = Decoder(config)
        decoder.load_state_dict(load_file(weights), strict=True, assign=True)
    except (KeyError, TypeError, InputError) as error:
        raise RejectedError(f"model.json: {error}") from error
    except (RuntimeError, SafetensorError, OSError) as error:
        first_line = str(error).splitlines()[0]
        raise RejectedError(f"weights do not fit the config: {first_line}") from error
    if dtype not in DTYPES or any(p.dtype is not DTYPES[dtype] for p in decoder.parameters()):
        raise RejectedError(f"model.json: weights are not {dtype!r}")
    if not all(bool(p.isfinite().all()) for p in decoder.parameters()):
        raise RejectedError(f"{name}: weights that are no finite numbers")
    decoder.eval().requires_grad_(False)
    return ModelFolder(decoder, document["notes"], document["task"], document["claim"], found)
