"""Files are written whole or not at all, and read with bounds."""

import json
import os
import stat
from pathlib import Path

import pytest

from hopbound import files
from hopbound.errors import RejectedError
from hopbound.files import read_json, replacing, write_json, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b.json", {"ζ": [1, None]})
    assert (tmp_path / "a" / "b.json").read_bytes() == '{\n "ζ": [\n  1,\n  null\n ]\n}\n'.encode()
    assert read_json(tmp_path / "a" / "b.json") == {"ζ": [1, None]}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [None, "old"])
def test_an_error_leaves_the_old_file_and_no_other(
    error: type[BaseException], before: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert names(tmp_path) == ([] if before is None else ["file"])
    assert before is None or path.read_text() == before


def test_the_old_file_stands_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == path.parent  # the same file system: renaming is one step
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": float("inf")}, {"a": object()}])
def test_what_is_no_json_is_not_written(value: object, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError)):
        write_json(tmp_path / "file.json", value)
    assert names(tmp_path) == []


def test_the_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "ours", "")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"PK\x03\x04\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not JSON"),
        (b"[1]", "holds list, expected an object"),
        (b"null", "holds NoneType, expected an object"),
        (b'"text"', "holds str, expected an object"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_json_object_is_rejected(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(RejectedError, match=rf"^file\.json: {reason}[^\n]*$"):
        read_json(path)


def test_files_that_cannot_be_read_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "loop", tmp_path / "a" / "b"):
        with pytest.raises(RejectedError, match="cannot be read"):
            read_json(path)


def test_a_file_is_read_up_to_its_bound_and_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    text = json.dumps({"a": "b" * 100})
    path.write_text(text)
    monkeypatch.setattr(files, "MAX_JSON_BYTES", len(text))
    assert read_json(path) == json.loads(text)
    monkeypatch.setattr(files, "MAX_JSON_BYTES", len(text) - 1)
    with pytest.raises(RejectedError, match=f"{len(text)} bytes, more than the {len(text) - 1} that are read"):
        read_json(path)
