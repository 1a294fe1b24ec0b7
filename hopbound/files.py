"""Reading and writing the files of a results folder: nothing half-written, nothing read without a bound.

A file is written to a temporary name beside its target and renamed when it is complete, so that an interrupted
job leaves either the old file or the new one.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hopbound.errors import RejectedError

MAX_JSON_BYTES = 64 * 2**20


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        RejectedError: the file cannot be read, is too large, or does not hold a JSON object.
    """
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise RejectedError(f"{path.name}: {size} bytes, more than the {MAX_JSON_BYTES} that are read")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RejectedError(f"{path.name}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{path.name}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise RejectedError(f"{path.name}: holds {type(value).__name__}, expected an object")
    return value
