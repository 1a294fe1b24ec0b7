"""Where a model comes from: a config.json, its folder, a GGUF file, a name on the hub, or a schedule in quotes."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from reprlib import repr as shown
from typing import Any

from hopbound.architecture import Defaults, parse_schedule
from hopbound.catalog.gguf import is_gguf, read_gguf
from hopbound.catalog.model import Model
from hopbound.catalog.published import published_model
from hopbound.catalog.reader import read_config
from hopbound.errors import InputError

MAX_BYTES = 32 * 2**20
MAX_DIGITS = 40
MAX_DEPTH = 64  # of objects and lists in each other; what is deeper may be read but not shown in a message
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def read_model(source: str, defaults: Defaults | None = None) -> Model:
    """The model that a user means.

    Args:
        source: path of a config.json, of its folder or of a GGUF file, `owner/name` on the hub, or a schedule.
        defaults: sizes of what a schedule leaves open.

    Raises:
        InputError: there is no such file, hub and network do not give it, or it cannot be understood.
    """
    path = Path(source)
    if source.strip() and _is_path(path):  # an empty name would be the folder one is in
        file = path / "config.json" if path.is_dir() else path
        if is_gguf(file):
            return read_gguf(file, _printable(source))
        return read_config(read_object(file), _printable(source))
    if not source.endswith((".json", ".gguf")) and _HUB_NAME.fullmatch(source):
        return _of_hub(source)
    if source.endswith((".json", ".gguf")) or "/" in source or "\\" in source:
        raise InputError("model", source, "an existing config.json, a folder with one, a GGUF file, or a schedule")
    return Model.of_architecture(source, parse_schedule(source, defaults))


def _of_hub(name: str) -> Model:
    """The model as the hub has it, or, where that gives nothing, as it comes with this package.

    Raises:
        InputError: neither has it, or it cannot be understood.
    """
    try:
        file = _fetched(name)
    except InputError:
        kept = published_model(name)
        if kept is None:
            raise
        model = read_config(kept["config"], name)
        doubt = "" if kept["verified"] else ", not all of them verified"
        note = f"not from the hub, which does not give the file: fields that come with hopbound{doubt}"
        return replace(model, notes=(note, *model.notes))
    return read_config(read_object(file), name)


def _printable(name: str) -> str:
    """The name with `?` for what cannot be written: a file's name may be bytes that are no UTF-8."""
    return name.encode(errors="replace").decode()


def _is_path(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # longer than a file name can be
        return False


def read_object(file: Path) -> Any:
    """The JSON of a file.

    A key that is given two values is refused. NaN and infinities are read, because files on the hub hold them
    (`"time_step_limit": [0.0, Infinity]`); no field that matters here takes one.

    Raises:
        InputError: it cannot be read, is no JSON, is larger than 32 MiB, is nested more than 64 deep, or holds text
            that is no Unicode.
    """
    try:
        with file.open("rb") as stream:  # no more than asked for: a device has no size and no end
            read = stream.read(MAX_BYTES + 1)
        if len(read) > MAX_BYTES:
            raise InputError("model", str(file), f"a file of at most {MAX_BYTES} bytes")
        text = read.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("model", str(file), f"UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise InputError("model", str(file), f"a file that can be read ({error.strerror or error})") from error
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_bounded)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError("model", str(file), f"JSON ({said})") from error
    level = [value]
    for _ in range(MAX_DEPTH):
        for word in level:
            if isinstance(word, str) and _printable(word) != word:
                raise InputError("model", str(file), f"Unicode text, not {word!r}")
        level = [inner for one in level for inner in _inside(one)]
    if level:
        raise InputError("model", str(file), f"JSON (nested too deeply, more than {MAX_DEPTH} levels)")
    return value


def _inside(value: Any) -> Iterator[Any]:
    """What an object or a list holds, keys too."""
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and repr(found[key]) != repr(value):  # by their text: 1, 1.0 and true are equal
            name = key if key.isprintable() else repr(key)
            raise InputError(name, value, f"one value, it is given twice, first as {shown(found[key])}")
        found[key] = value
    return found


def _bounded(digits: str) -> int | float:
    """A whole number; a float where it is beyond what any field takes, and too long to be made an integer of."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _fetched(name: str) -> Path:
    """The config.json of a model on the hub, from the local cache where it is there.

    Raises:
        InputError: it cannot be had; the line says what to do.
    """
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import (
            EntryNotFoundError,
            GatedRepoError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
    except ModuleNotFoundError as error:
        raise InputError("model", name, "a file or a schedule: huggingface_hub is not installed") from error
    told = (GatedRepoError, RepositoryNotFoundError, EntryNotFoundError)
    try:
        try:  # asked once: without a network the download alone would try for half a minute
            get_hf_file_metadata(hf_hub_url(name, "config.json"))
        except told:
            raise
        except Exception:  # no network, a hub that is down: which kinds there are depends on the HTTP library
            return Path(hf_hub_download(name, "config.json", local_files_only=True))
        return Path(hf_hub_download(name, "config.json"))
    except Exception as error:  # of the hub, its network libraries, proxies, the disk: they share no other base
        remedies = {  # the narrower kinds first: some of them are kinds of others
            GatedRepoError: "a model that is open to you: accept its terms, then `hf auth login`",
            RepositoryNotFoundError: "a model on the hub, or a path that exists",
            LocalEntryNotFoundError: "a network, or a local file: the hub cannot be reached and config.json is not in "
            "its cache",
            EntryNotFoundError: "a model with a config.json",
        }
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = next((said for kind, said in remedies.items() if isinstance(error, kind)), None)
        raise InputError("model", name, remedy or f"a model that the hub gives ({line})") from error
