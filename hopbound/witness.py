"""Witness files: what kinds there are, and what `verify` does with each.

- *certificate* (JSON, schema `hopbound/certificate/1`): every inequality and every number, by `bounds/checker.py`; the
  bits of its layers against its own schedule text; or (schema `hopbound/blocks/1`), by `bounds/block_checker.py`, that
  one layer of block attention does not decide 2-Sum.
- *model* (a folder with `model.json` and weights): the weights' hash; the weights run again as the claim says, and the
  claim's numbers are compared.
- *pair* (JSON, schema `hopbound/pair/1`): the named model runs on both prompts again; all numbers are recomputed.

A folder that is no model stands for all witness files below it. Nothing but the files is trusted: paths inside a file
are relative to it. torch is imported only for models and pairs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hopbound.errors import RejectedError
from hopbound.files import read_json

CERTIFICATE_SCHEMA = "hopbound/certificate/1"
BLOCKS_SCHEMA = "hopbound/blocks/1"
PAIR_SCHEMA = "hopbound/pair/1"
MODEL_SCHEMA = "hopbound/model/1"
_FILES = (CERTIFICATE_SCHEMA, BLOCKS_SCHEMA, PAIR_SCHEMA, None)  # None: a file that cannot be read is reported

Kind = Literal["certificate", "model", "pair", "unknown"]
_TOLERANCE = 1e-3  # on the smallest margin: other machines round sums in another order


@dataclass(frozen=True)
class FileResult:
    """What became of one witness.

    Attributes:
        path: as given, or below the folder that was given.
        kind: what it is.
        accepted: whether it holds what it claims.
        reason: what was checked, or what is wrong, in one line.
    """

    path: Path
    kind: Kind
    accepted: bool
    reason: str


def verify_files(paths: Iterable[Path]) -> Iterator[FileResult]:
    """Check witness files, model folders, and folders full of them, one result each as it comes."""
    for path in paths:
        if path.is_dir() and not (path / "model.json").is_file():
            found = list(_witnesses_below(path))
            if not found:
                yield FileResult(path, "unknown", False, "no witness files in this folder")
            for inner in found:
                yield verify_file(inner)
        else:
            yield verify_file(path)


def _witnesses_below(folder: Path) -> Iterator[Path]:
    """Model folders and files, in order; hidden ones are passed over and links to folders not followed."""
    waiting = [folder]  # rather than calls in calls: folders may lie very deep
    while waiting:
        path = waiting.pop()
        if (path / "model.json").is_file():
            yield path
        elif path == folder or (path.is_dir() and not path.is_symlink()):
            waiting += sorted((inner for inner in path.iterdir() if not inner.name.startswith(".")), reverse=True)
        elif path.suffix == ".json" and path.is_file() and _schema(path) in _FILES:
            yield path


def _schema(path: Path) -> str | None:
    """The schema a JSON file names; None if it cannot be read, so that it is reported rather than passed over."""
    try:
        return str(read_json(path).get("schema"))
    except RejectedError:
        return None


def verify_file(path: Path) -> FileResult:
    """Check one witness file or model folder; whatever is wrong with it becomes the reason."""
    kind: Kind = "unknown"
    try:
        if path.is_dir() or path.name == "model.json":
            kind = "model"
            return FileResult(path, kind, True, _verify_model(path if path.is_dir() else path.parent))
        document = read_json(path)
        schema = document.get("schema")
        if schema in (CERTIFICATE_SCHEMA, BLOCKS_SCHEMA):
            kind = "certificate"
            verify = _verify_certificate if schema == CERTIFICATE_SCHEMA else _verify_blocks
            return FileResult(path, kind, True, verify(document))
        if schema == PAIR_SCHEMA:
            kind = "pair"
            return FileResult(path, kind, True, _verify_pair(document, path.parent))
        expected = f"{CERTIFICATE_SCHEMA!r}, {BLOCKS_SCHEMA!r}, {PAIR_SCHEMA!r} or a model folder"
        raise RejectedError(f"schema {schema!r}, expected {expected}")
    except RejectedError as error:
        return FileResult(path, kind, False, str(error))


def _verify_certificate(document: Mapping[str, Any]) -> str:
    from hopbound.bounds import check, matches_schedule

    result = check(document)
    if not result.accepted:
        raise RejectedError(result.reason)
    matches_schedule(document)
    return result.reason or "every condition of the theorem holds"


def _verify_blocks(document: Mapping[str, Any]) -> str:
    from hopbound.bounds import blocks_match_schedule, check_blocks

    blocks_match_schedule(document)
    return check_blocks(document).reason


def _verify_model(folder: Path) -> str:
    from hopbound.constructions import claim_document, verify_model
    from hopbound.decoder.folder import load_model
    from hopbound.tasks import task_from_json

    model = load_model(folder)
    if model.claim is None or model.task is None:
        return "weights as written; the model claims nothing"
    try:
        task = task_from_json(model.task)
        seed = model.claim["seed"]
        if not isinstance(seed, int):
            raise RejectedError("model.json: the claim's seed is of the wrong kind")
        if task.prompt_length > model.decoder.prompt_limit:
            raise RejectedError(f"task: prompts of {task.prompt_length} tokens, the model reads fewer")
        found = claim_document(verify_model(model.decoder, task, seed), task)
    except RejectedError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise RejectedError(f"model.json: {str(error).splitlines()[0]}") from error
    if set(found) != set(model.claim):
        raise RejectedError(f"claim: keys {sorted(set(found) ^ set(model.claim))} are missing or unknown")
    for key, value in found.items():
        said = model.claim[key]
        rounded = key == "smallest_margin" and isinstance(value, float) and isinstance(said, float)
        close = rounded and abs(value - said) <= _TOLERANCE
        if said != value and not close:
            raise RejectedError(f"claim: {key} is {said!r} in model.json and {value!r} when the weights run")
    how = "all" if found["exhaustive"] else "random and adversarial"
    return (
        f"{found['instances']} instances ({how}), accuracy {found['accuracy']:.4g}, "
        f"smallest margin {found['smallest_margin']:.4f}"
    )


def _verify_pair(document: Mapping[str, Any], folder: Path) -> str:
    from hopbound.falsify import verify_pair

    return verify_pair(document, folder)
