"""What `hopbound analyze` cannot read: exit code 2, one line that names the place, nothing on stdout or on disk."""

import json
import sys
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from .commands import contents, hopbound
from .models import LFM2, QWEN

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
KIMI: dict[str, Any] = {
    "model_type": "kimi_linear",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "linear_attn_config": {
        "full_attn_layers": [4],
        "kda_layers": [1, 2, 3],
        "head_dim": 16,
        "num_heads": 4,
        "short_conv_kernel_size": 4,
    },
}
JAMBA: dict[str, Any] = {
    "model_type": "jamba",
    "num_hidden_layers": 8,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "attn_layer_period": 4,
    "attn_layer_offset": 1,
    "mamba_d_state": 4,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without a way to the hub."""

    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("this asks the hub")

    monkeypatch.chdir(tmp_path)
    for function in ("get_hf_file_metadata", "hf_hub_download"):
        monkeypatch.setattr(huggingface_hub, function, refuse)
    return tmp_path


def refused(source: str, work: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line, which is the same in every form of output, last of several models too."""
    before = contents(work)
    lines = set()
    for form in ("", " --json", " --csv"):
        for models in (f"'{source}'", f"full '{source}'"):
            ended = hopbound(f"analyze {models}{form}", capsys)
            assert ended.code == 2
            lines.add(ended.error)
    assert contents(work) == before
    (line,) = lines
    assert ": got " in line
    assert ", expected " in line
    return line


# What is no JSON object


def text_of(config: dict[str, Any], **fields: str) -> bytes:
    """A config with fields that are JSON already."""
    return (json.dumps(config)[:-1] + "".join(f', "{key}": {value}' for key, value in fields.items()) + "}").encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello", "expected JSON"),
        (b"", "expected JSON"),
        (b"   \n", "expected JSON"),
        (json.dumps(LLAMA).encode()[:-1], "expected JSON"),
        (json.dumps(LLAMA).encode()[:20], "expected JSON"),
        (json.dumps(LLAMA).encode() * 2, "expected JSON"),
        (b"{'model_type': 'llama'}", "expected JSON"),
        (b"\xef\xbb\xbf{}", "expected JSON"),
        (b"[]", "expected a JSON object"),
        (json.dumps([LLAMA]).encode(), "expected a JSON object"),
        (b'"llama"', "expected a JSON object"),
        (b"null", "expected a JSON object"),
        (b"17", "expected a JSON object"),
        (b"NaN", "expected a JSON object"),
        (bytes(range(256)) * 16, "expected UTF-8 text"),
        (b"\x00" * 100, "expected JSON"),
        (b"\x89PNG\r\n\x1a\n", "expected UTF-8 text"),
        ('{"model_type": "é"}'.encode("latin-1"), "expected UTF-8 text"),
        ('{"model_type": "llama"}'.encode("utf-16"), "expected UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (text_of(LLAMA, rope_scaling="[" * 900 + "]" * 900), "nested too deeply"),
        (text_of(LLAMA, rope_scaling="[" * 65 + "]" * 65), "nested too deeply"),
        (b'{"model_type": "half of \\ud83d"}', "expected Unicode text"),
        (b'{"model_type": "llama", "\\udc00": 1}', "expected Unicode text"),
        (b'{"model_type": "llama", "architectures": [{"x": ["\\udc00"]}]}', "expected Unicode text"),
    ],
)
def test_what_is_no_object(content: bytes, said: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "model.json").write_bytes(content)
    line = refused("model.json", work, capsys)
    assert line.startswith("model.json: got " if "object" in said else "model: got 'model.json', expected ")
    assert said in line
    assert len(line) < 300


@pytest.mark.parametrize("key", ["hidden_size", "layer_types", "model_type", "rope_scaling", "nothing"])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_no_depth_is_too_much_for_the_interpreter(
    bracket: str, key: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that can just be read must not be what cannot be shown: every depth is one line or fine."""
    opening = "[" if bracket == "[]" else '{"a":'
    config = {name: value for name, value in LLAMA.items() if name != key}
    for depth in (*range(1, 80, 9), *range(100, 1100, 10)):
        inner = opening * depth + ("1" if bracket == "{}" else "") + bracket[1] * depth
        (work / "model.json").write_bytes(text_of(config, **{key: inner}))
        ended = hopbound("analyze model.json --json", capsys)
        if depth > 64 or key not in ("rope_scaling", "nothing"):
            assert ended.code == 2
        if ended.code:
            assert len(ended.error) < 2000


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        ('"num_hidden_layers": 2', '"num_hidden_layers": 3', "num_hidden_layers"),
        ('"hidden_size": 64', '"hidden_size": null', "hidden_size"),
        ('"use_cache": true', '"use_cache": 1', "use_cache"),
        ('"use_cache": 1.0', '"use_cache": 1', "use_cache"),
        ('"a": {"b": 1, "b": 2}', '"c": 1', "b"),
        ('"a": [' + "1, " * 10_000 + "1]", '"a": []', "a"),
        (r'"a\u001b[31m\n": 1', r'"a\u001b[31m\n": 2', r"'a\x1b[31m\n'"),
    ],
)
def test_a_key_twice(first: str, second: str, field: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "model.json").write_text(f'{{"model_type": "llama", {first}, {second}}}', encoding="utf-8")
    line = refused("model.json", work, capsys)
    assert line.startswith(f"{field}: got ")
    assert "it is given twice" in line
    assert line.isprintable()
    assert len(line) < 1000


def test_a_key_twice_with_one_value_is_fine(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "model.json").write_bytes(text_of(LLAMA, num_hidden_layers="2"))
    assert hopbound("analyze model.json", capsys).code == 0


# Fields that are wrong


NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, f"-{'9' * 5000}", str(10**30), "0", "-4", "2.0"]
NUMBERS += ["true", '"64"', "[64]", "{}"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
@pytest.mark.parametrize("field", [key for key in LLAMA if key != "model_type"])
def test_numbers_that_are_none(field: str, number: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {name: value for name, value in LLAMA.items() if name != field}
    (work / "model.json").write_bytes(text_of(config, **{field: number}))
    line = refused("model.json", work, capsys)
    assert line.startswith(f"{field}: got ")
    assert len(line) < 1000


def test_infinities_where_they_do_not_matter_are_fine(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mamba-2's files on the hub have `"time_step_limit": [0.0, Infinity]`."""
    (work / "model.json").write_bytes(text_of(LLAMA, time_step_limit="[0.0, Infinity]", nothing="NaN", more="9" * 5000))
    ended = hopbound("analyze model.json --json", capsys)
    assert ended.code == 0
    assert len(ended.json["models"][0]["layers"]) == 2


def changed(config: Any, **fields: Any) -> dict[str, Any]:
    return {**config, **fields}


def linear(**fields: Any) -> dict[str, Any]:
    return changed(KIMI, linear_attn_config={**KIMI["linear_attn_config"], **fields})


FULL, LINEAR, SLIDING = "full_attention", "linear_attention", "sliding_attention"


@pytest.mark.parametrize(
    ("config", "field", "given"),
    [
        # the list of layers
        (changed(QWEN.config, layer_types=[LINEAR, FULL]), "layer_types", "2"),
        (changed(QWEN.config, layer_types=[LINEAR] * 49), "layer_types", "49"),
        (changed(QWEN.config, layer_types=[]), "layer_types", "0"),
        (changed(QWEN.config, layer_types="full_attention"), "layer_types", "'full_attention'"),
        (changed(QWEN.config, layer_types=[LINEAR] * 47 + [3]), "layer_types[47]", "3"),
        (changed(QWEN.config, layer_types=[LINEAR] * 47 + ["magic"]), "layer_types[47]", "'magic'"),
        (changed(QWEN.config, full_attention_interval=0), "full_attention_interval", "0"),
        # lists of indices
        (changed(LFM2.config, full_attn_idxs=[2, 16]), "full_attn_idxs[1]", "16"),
        (changed(LFM2.config, full_attn_idxs=[-1]), "full_attn_idxs[0]", "-1"),
        (changed(LFM2.config, full_attn_idxs=[2, 5, 2]), "full_attn_idxs", "2"),
        (changed(LFM2.config, full_attn_idxs=[2.0]), "full_attn_idxs[0]", "2.0"),
        (linear(full_attn_layers=[3, 4]), "linear_attn_config.kda_layers", "3"),
        (linear(kda_layers=[1, 2]), "linear_attn_config.full_attn_layers", "no layer 3"),
        (linear(full_attn_layers=[5]), "linear_attn_config.full_attn_layers[0]", "5"),
        (linear(kda_layers=[0, 1, 2, 3]), "linear_attn_config.kda_layers[0]", "0"),
        (changed(KIMI, linear_attn_config=[]), "linear_attn_config", "[]"),
        # a period and an offset
        (changed(JAMBA, attn_layer_offset=4), "attn_layer_offset", "4"),
        (changed(JAMBA, attn_layer_offset=10**30), "attn_layer_offset", "1000000000000000000000000000000"),
        (changed(JAMBA, attn_layer_offset=-1), "attn_layer_offset", "-1"),
        (changed(JAMBA, attn_layer_period=0), "attn_layer_period", "0"),
        # heads
        (changed(LLAMA, num_attention_heads=0), "num_attention_heads", "0"),
        (changed(LLAMA, num_key_value_heads=3), "num_key_value_heads", "3"),
        (changed(LLAMA, num_key_value_heads=8), "num_key_value_heads", "8"),
        (changed(LLAMA, num_attention_heads=5), "num_key_value_heads", "2"),
        (changed(QWEN.config, linear_num_key_heads=5), "linear_num_key_heads", "5"),
        (linear(num_heads=0), "linear_attn_config.num_heads", "0"),
        # the file itself
        ({}, "model_type", "None"),
        (changed(LLAMA, model_type="no such"), "model_type", "'no such'"),
        (changed(LLAMA, model_type=7), "model_type", "7"),
        (changed(LLAMA, dtype="float1"), "dtype", "'float1'"),
    ],
)
def test_a_field_that_is_wrong(
    config: dict[str, Any], field: str, given: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "model.json").write_text(json.dumps(config), encoding="utf-8")
    line = refused("model.json", work, capsys)
    name, _, rest = line.partition(": got ")
    assert field in name, line
    assert given in rest


@pytest.mark.parametrize("config", [LLAMA, KIMI, JAMBA], ids=lambda config: config["model_type"])
def test_the_files_that_are_changed_above_are_sound(
    config: dict[str, Any], work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert hopbound("analyze .", capsys).code == 0


# Places


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("empty", "model: got 'empty/config.json', expected a file that can be read (No such file or directory)"),
        ("nested", "model: got 'nested/config.json', expected a file that can be read (Is a directory)"),
        ("missing.json", "model: got 'missing.json', expected an existing config.json"),
        ("there/missing.json", "model: got 'there/missing.json', expected an existing config.json"),
        ("/no/such/place", "model: got '/no/such/place', expected an existing config.json"),
        ("./missing", "model: got './missing', expected an existing config.json"),
        ("a/b/c", "model: got 'a/b/c', expected an existing config.json"),
        ("missing", "schedule: got 'missing', expected one of full "),
        ("", "schedule: got '', expected at least one layer"),
        ("x" * 5000, "schedule: got 'xxxx"),
        ("x/" * 3000 + "y", "model: got 'x/x/"),
    ],
)
def test_a_place_that_holds_no_model(source: str, said: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "empty").mkdir()
    (work / "nested" / "config.json").mkdir(parents=True)
    (work / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")  # which an empty name does not mean
    line = refused(source, work, capsys)
    assert line.startswith(said)
    assert len(line) < 2000


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file here")
def test_a_file_without_an_end(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused("/dev/zero", work, capsys).endswith(f"expected a file of at most {32 * 2**20} bytes")


def test_a_file_that_is_too_long(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "model.json").write_bytes(json.dumps(LLAMA).encode().ljust(32 * 2**20 + 1))
    assert refused("model.json", work, capsys).endswith(f"expected a file of at most {32 * 2**20} bytes")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ("--context 0", "context"),
        ("--context 1099511627777", "context"),
        ("--csv --json", "csv"),
        ("--batch 0", "batch"),
        ("--values 1", "values"),
        ("--kv-bits 0", "kv bits"),
        ("--state-bits 5000", "state bits"),
        ("--heads 0", "heads"),
        ("--context 1e5", "--context: got 1e5"),
    ],
)
def test_an_option_out_of_range(options: str, field: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = hopbound(f"analyze full {options}", capsys)
    assert ended.code == 2
    assert ended.error.startswith(f"{field}: got " if ":" not in field else field)
    assert contents(work) == {}


# The hub

RESPONSE: Any = SimpleNamespace(headers={}, request=None, status_code=0)


class Hub:
    """The hub as its library shows it: what asking and loading raise, what lies in the cache."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asking: Exception | None = None
        self.loading: Exception | None = None
        self.cached: Path | None = None
        self.loaded: Path | None = None
        monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", self.ask)
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", self.load)

    def ask(self, url: str) -> None:
        assert url.endswith("/resolve/main/config.json")
        if self.asking is not None:
            raise self.asking

    def load(self, name: str, file: str, *, local_files_only: bool = False) -> str:
        assert file == "config.json"
        if self.cached is not None:
            return str(self.cached)
        if local_files_only:
            raise errors.LocalEntryNotFoundError("Cannot find the requested files\nin the disk cache")
        if self.loading is not None:
            raise self.loading
        return str(self.loaded)


@pytest.fixture
def hub(work: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    assert contents(work) == {}
    return Hub(monkeypatch)


NO_NETWORK = "expected a network, or a local file: the hub cannot be reached and config.json is not in its cache"
HUB = [
    (errors.RepositoryNotFoundError("404\nnot found", response=RESPONSE), "a model on the hub, or a path that exists"),
    (errors.GatedRepoError("403 gated", response=RESPONSE), "accept its terms, then `hf auth login`"),
    (errors.RemoteEntryNotFoundError("404 no file", response=RESPONSE), "expected a model with a config.json"),
]
NETWORK = [
    (errors.HfHubHTTPError("500\nInternal error", response=RESPONSE), "expected a model that the hub gives (500)"),
    (errors.HFValidationError("Repo id must be short"), "a model that the hub gives (Repo id must be short)"),
    (errors.OfflineModeIsEnabled("offline"), "a model that the hub gives (offline)"),
    (PermissionError(13, "Permission denied"), "a model that the hub gives ([Errno 13] Permission denied)"),
    (TimeoutError(), "a model that the hub gives (TimeoutError)"),
    (RuntimeError("of a network library\nwhatever that is"), "a model that the hub gives (of a network library)"),
]


LOST = (errors.LocalEntryNotFoundError("An error happened\nwhile trying"), NO_NETWORK)


@pytest.mark.parametrize(("error", "said"), HUB, ids=lambda value: type(value).__name__)
def test_what_the_hub_refuses(
    error: Exception, said: str, hub: Hub, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.asking = error
    line = refused("owner/no-such-model", work, capsys)
    assert line.startswith("model: got 'owner/no-such-model', expected ")
    assert said in line


@pytest.mark.parametrize("error", [error for error, _ in NETWORK], ids=lambda error: type(error).__name__)
def test_where_the_hub_does_not_answer(
    error: Exception, hub: Hub, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the libraries below raise: a file of the cache if there is one, else what to do."""
    hub.asking = error
    assert NO_NETWORK in refused("owner/no-such-model", work, capsys)
    hub.cached = work / "cached"
    hub.cached.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert hopbound("analyze owner/no-such-model", capsys).code == 0


@pytest.mark.parametrize(("error", "said"), [*HUB, *NETWORK, LOST], ids=lambda value: type(value).__name__)
def test_what_goes_wrong_while_loading(
    error: Exception, said: str, hub: Hub, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.loading = error
    assert said in refused("owner/no-such-model", work, capsys)


@pytest.mark.parametrize("verified", [True, False])
def test_a_model_that_comes_with_the_package_needs_no_hub(
    verified: bool, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    published = json.loads(files("hopbound.catalog").joinpath("published.json").read_text(encoding="utf-8"))
    entry = next(one for one in published if one["verified"] is verified and " " not in one["name"])
    hub.asking = errors.OfflineModeIsEnabled("offline")
    (model,) = hopbound(f"analyze {entry['name']} --json", capsys).json["models"]
    assert model["name"] == entry["name"]
    assert model["full_layers"] == entry["expected"]["full_layers"]
    assert model["notes"][0].startswith("not from the hub, which does not give the file")
    assert ("not all of them verified" in model["notes"][0]) is not verified


def test_without_the_hubs_library(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "huggingface_hub is not installed" in refused("owner/no-such-model", work, capsys)


def test_a_file_of_the_hub_is_read_like_any_other(hub: Hub, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.loaded = work / "cached"
    hub.loaded.write_text(json.dumps(LLAMA), encoding="utf-8")
    (model,) = hopbound("analyze owner/a-model --json", capsys).json["models"]
    assert (model["name"], model["model_type"]) == ("owner/a-model", "llama")
    hub.loaded.write_text("no JSON")
    assert "expected JSON" in refused("owner/a-model", work, capsys)


def test_a_folder_that_is_here_comes_before_the_hub(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "owner" / "a-model").mkdir(parents=True)
    (work / "owner" / "a-model" / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    assert hopbound("analyze owner/a-model", capsys).code == 0


def test_a_file_whose_name_is_no_text(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = b"caf\xe9.json".decode(errors="surrogateescape")
    try:
        (work / name).write_text(json.dumps(LLAMA), encoding="utf-8")
    except OSError:
        pytest.skip("this file system has names of Unicode only")
    (model,) = hopbound(f"analyze {name} --json", capsys).json["models"]
    assert model["name"] == "caf?.json"
