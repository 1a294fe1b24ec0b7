"""The model folder: what is read is what was saved, and an altered folder is refused with one line."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from hopbound.decoder import Decoder
from hopbound.decoder.folder import file_sha256, load_model, save_model
from hopbound.errors import InputError, RejectedError
from hopbound.files import MAX_JSON_BYTES, read_json, replacing, write_json, write_text
from tests.decoder.examples import MIXERS, config, random_decoder, random_tokens


def decoder(dtype: torch.dtype = torch.float32, coded: bool = True) -> Decoder:
    return random_decoder(config(f"{MIXERS[0]} {MIXERS[6]}", coded=coded)).to(dtype)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "model", decoder(), notes={"seed": 3}, task={"task": "none"}, claim={"hops": 1})
    return tmp_path / "model"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((folder / "model.json").read_text())
    change(document)
    (folder / "model.json").write_text(json.dumps(document))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the weights, and the hash in `model.json` with them."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    change(weights)
    save_file(weights, file)
    edit(folder, lambda document: document["weights"].update(sha256=file_sha256(file)))


def reason(folder: Path) -> str:
    with pytest.raises(RejectedError) as caught:
        load_model(folder)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("coded", [False, True], ids=["tables", "codes"])
def test_round_trip_is_bit_equal(tmp_path: Path, dtype: torch.dtype, coded: bool) -> None:
    saved = decoder(dtype, coded)
    save_model(tmp_path / "model", saved, notes={"a": [1, "é"]}, task={"b": 2.5})
    read = load_model(tmp_path / "model")
    assert read.decoder.config == saved.config
    assert (read.notes, read.task, read.claim) == ({"a": [1, "é"]}, {"b": 2.5}, None)
    expected, found = saved.state_dict(), read.decoder.state_dict()
    assert list(found) == list(expected)
    assert all(found[key].dtype is dtype and torch.equal(found[key], expected[key]) for key in expected)
    torch.testing.assert_close(read.decoder(random_tokens())[0], saved(random_tokens())[0])
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.json", "model.safetensors"]


def test_the_folder_names_the_hash_of_its_weights(folder: Path) -> None:
    assert load_model(folder).weights_sha256 == file_sha256(folder / "model.safetensors")


def test_a_read_model_is_not_trained(folder: Path) -> None:
    read = load_model(folder).decoder
    assert not read.training
    assert not any(parameter.requires_grad for parameter in read.parameters())


@pytest.mark.parametrize("place", [0, 9, 200, -1])
def test_an_altered_byte_of_the_weights(folder: Path, place: int) -> None:
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    assert reason(folder).startswith("model.safetensors: sha256 ")


def test_a_missing_file(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "model.safetensors: no such file" in reason(folder)
    (folder / "model.json").unlink()
    assert "model.json: cannot be read" in reason(folder)


def test_no_folder(tmp_path: Path) -> None:
    assert "model.json: cannot be read" in reason(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"schema": ', "[" * 100_000, "\x00"])
def test_what_is_no_json_object(folder: Path, text: str) -> None:
    (folder / "model.json").write_text(text)
    assert reason(folder).startswith("model.json: ")


def test_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "model.json").write_bytes(b"\xff\xfe\x00")
    assert "model.json: not JSON" in reason(folder)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d.update(schema="hopbound/model/2"), "schema 'hopbound/model/2', expected 'hopbound/model/1'"),
        (lambda d: d.pop("schema"), "schema None"),
        (lambda d: d.update(color=3), "color"),
        (lambda d: d.pop("claim"), "claim"),
        (lambda d: d["weights"].pop("file"), "file"),
        (lambda d: d["weights"].pop("sha256"), "sha256"),
        (lambda d: d.update(weights=None), "model.json"),
        (lambda d: d["weights"].update(file=3), "model.json"),
        (lambda d: d["weights"].update(file="other.safetensors"), "other.safetensors: no such file"),
        (lambda d: d["weights"].update(file=""), "no such file"),
        (lambda d: d["weights"].update(sha256="0" * 64), "sha256"),
        (lambda d: d["weights"].update(dtype="float16"), "'float16'"),
        (lambda d: d["weights"].update(dtype="bfloat16"), "'bfloat16'"),
        (lambda d: d["weights"].update(dtype=["float32"]), "dtype|float32"),
        (lambda d: d["config"].update(color=3), "model config"),
        (lambda d: d["config"].update(width=10), "do not fit the config"),
        (lambda d: d["config"].update(hidden=[7]), "hidden"),
        (lambda d: d["config"].update(schedule="2*("), "schedule"),
        (lambda d: d["config"].update(schedule="2*mamba"), "one that can be run"),
        (lambda d: d["config"].update(schedule="2*full"), "do not fit the config"),
        (lambda d: d.update(config=[]), "model config|model.json"),
        (lambda d: d.update(notes=3), "notes"),
        (lambda d: d.update(task=[1]), "task"),
        (lambda d: d.update(claim="yes"), "claim"),
    ],
)
@pytest.mark.usefixtures("without_mamba")
def test_altered_json(folder: Path, change: Callable[[dict[str, Any]], object], expected: str) -> None:
    edit(folder, change)
    message = reason(folder)
    assert any(part in message for part in expected.split("|")), message


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: weights.pop("blocks.0.mixers.0.query.weight"),
        lambda weights: weights.update(extra=torch.zeros(2)),
        lambda weights: weights.update({"blocks.0.mixers.0.query.weight": torch.zeros(2, 2)}),
    ],
    ids=["missing", "unknown", "wrong shape"],
)
def test_weights_that_do_not_fit(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    edit_weights(folder, change)
    assert "do not fit the config" in reason(folder)


def test_weights_of_another_type_than_stated(folder: Path) -> None:
    edit_weights(folder, lambda weights: weights.update({key: value.double() for key, value in weights.items()}))
    assert "'float32'" in reason(folder)


def test_weights_that_are_no_safetensors(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"nothing")
    edit(folder, lambda d: d["weights"].update(sha256=file_sha256(folder / "model.safetensors")))
    assert "do not fit the config" in reason(folder)


def test_a_weights_path_cannot_leave_the_folder(folder: Path) -> None:
    (folder.parent / "outside.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    edit(folder, lambda d: d["weights"].update(file="../outside.safetensors"))
    assert "no such file" in reason(folder)


def test_an_older_model_is_replaced(folder: Path) -> None:
    newer = decoder(torch.float64)
    save_model(folder, newer, notes={"seed": 4})
    read = load_model(folder)
    assert read.notes == {"seed": 4}
    assert read.decoder.dtype is torch.float64
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(InputError, match="a new folder or one that holds a model"):
        save_model(tmp_path, decoder(), notes={})
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


class Unwritable:
    """A value that JSON cannot hold."""


@pytest.mark.parametrize("notes", [{"x": Unwritable()}, {"x": float("nan")}])
def test_a_save_that_fails_leaves_nothing(tmp_path: Path, notes: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        save_model(tmp_path / "model", decoder(), notes=notes)
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_leaves_the_older_model(folder: Path) -> None:
    with pytest.raises(TypeError):
        save_model(folder, decoder(torch.float64), notes={"x": Unwritable()})
    assert load_model(folder).notes == {"seed": 3}
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_an_interrupted_swap_leaves_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        if target == folder:
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(folder, decoder(torch.float64), notes={"seed": 4})
    monkeypatch.undo()
    assert load_model(folder).notes["seed"] in (3, 4)


# -- files.py ----------------------------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "file.json"
    write_json(file, {"é": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(file, {"x": float("inf")})
    with suppress(InterruptedError), replacing(file) as temporary:
        temporary.write_text("half")
        raise InterruptedError
    assert read_json(file) == {"é": 1}
    assert [path.name for path in file.parent.iterdir()] == ["file.json"]


def test_files_can_be_read_by_others(tmp_path: Path, folder: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write_text(tmp_path / "file", "x")
    save_model(tmp_path / "other", decoder(), notes={})
    for file in (tmp_path / "file", folder / "model.json", folder / "model.safetensors"):
        assert file.stat().st_mode == plain.stat().st_mode, file.name


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(RejectedError, match=r"^large.json: .* bytes, more than the"):
        read_json(tmp_path / "large.json")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="cannot be read"):
        read_json(tmp_path)
