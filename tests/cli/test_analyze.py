"""`hopbound analyze`: text, JSON and commas say what pencil and paper say of three published files."""

import csv
import json
import re
import sys
from io import StringIO
from math import log2
from pathlib import Path
from typing import Any

import pytest

from hopbound.tasks import FunctionComposition

from .commands import contents, hopbound
from .models import CONTEXT, GPT_OSS, LFM2, PUBLISHED, QWEN, Published

KINDS = ("full", "sparse", "window", "chunked", "recurrent", "conv", "mlp")
MODEL_KEYS = (
    {"name", "layers", "kv_bytes_per_token", "kv_bytes", "state_bytes", "conv_bytes", "conv_bytes_allocated"}
    | {"hops_possible", "hops_impossible", "notes"}
    | {f"{kind}_layers" for kind in KINDS}
)
LAYER_KEYS = {"index", "kinds", "mixer", "window", "kv_elements", "kv_shared_from", "state_elements", "conv_elements"}
LABELS = ("model", "layers", "map", "kv", "state", "conv", "possible", "impossible", "recall", "reach", "note")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One folder a published model, each with its config.json; the working folder."""
    for name, one in PUBLISHED.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(one.config), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def models_of(line: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    ended = hopbound(f"analyze {line} --json", capsys)
    assert (ended.code, ended.err) == (0, "")
    value = ended.json
    assert value["schema"] == "hopbound/analyze/1"
    return value["models"]


def parts(text: str) -> dict[str, list[str]]:
    """The lines for people, by the word that they begin with."""
    found: dict[str, list[str]] = {}
    label = ""
    for line in text.splitlines():
        label = line[:12].strip() or label
        found.setdefault(label, []).append(line[12:])
    return found


def test_the_json_keeps_its_contract(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    for model in models_of(f"{' '.join(PUBLISHED)} 'full|gdn topk[k=2] chunk mlp'", capsys):
        assert set(model) >= MODEL_KEYS
        assert set(model["hops_possible"]) >= {"hops", "construction", "conditions"}
        assert set(model["hops_impossible"]) >= {"hops", "log2_prompt_length"}
        for at, layer in enumerate(model["layers"]):
            assert set(layer) >= LAYER_KEYS
            assert layer["index"] == at
            assert layer["kinds"]
            assert [kind for kind in KINDS if at in model[f"{kind}_layers"]] == sorted(layer["kinds"], key=KINDS.index)
    assert contents(folder) == before


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("context", [1, 100, 127, 128, CONTEXT])
@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.usefixtures("folder")
def test_published_models_by_hand(name: str, context: int, batch: int, capsys: pytest.CaptureFixture[str]) -> None:
    one: Published = PUBLISHED[name]
    (model,) = models_of(f"{name} --context {context} --batch {batch}", capsys)
    assert (model["name"], model["model_type"]) == (name, one.config["model_type"])
    assert model["context_limit"] == one.config["max_position_embeddings"]
    assert [layer["kinds"] for layer in model["layers"]] == [[kind] for kind in one.kinds]
    for kind in KINDS:
        assert model[f"{kind}_layers"] == one.layers(kind)
    for layer, kind in zip(model["layers"], one.kinds, strict=True):
        assert layer["kv_elements"] == one.kv.get(kind, 0)
        assert layer["state_elements"] == (one.state if kind == "recurrent" else 0)
        assert layer["conv_elements"] == (one.conv[0] if kind in ("recurrent", "conv") else 0)
        assert layer["window"] == (one.window if kind == "window" else None)
        assert (layer["kv_shared_from"], layer["weights_from"]) == (None, None)
    assert model["kv_bytes_per_token"] == 2 * len(one.layers("full")) * one.kv["full"]
    assert model["kv_bytes"] == batch * one.kv_bytes(context)
    assert model["state_bytes"] == batch * 4 * len(one.layers("recurrent")) * one.state
    with_columns = len(one.layers("recurrent")) + len(one.layers("conv"))
    assert model["conv_bytes"] == batch * 2 * with_columns * one.conv[0]
    assert model["conv_bytes_allocated"] == batch * 2 * with_columns * one.conv[1]
    assert model["bits"] == {"kv": 16, "state": 32, "conv": 16, "summary": 32}
    assert "no dtype in the file: bfloat16 is assumed for keys, values and activations" in model["notes"]


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.usefixtures("folder")
def test_published_hops_by_hand(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A bounded layer before every full one fetches: as many hops as full layers are built, one more is impossible."""
    one = PUBLISHED[name]
    (model,) = models_of(name, capsys)
    assert model["hops_possible"]["hops"] == len(one.layers("full"))
    assert model["hops_possible"]["construction"] == "C2"
    hops, length = one.impossible
    found = model["hops_impossible"]
    assert (found["hops"], found["theorem"], found["source"]) == (hops, "A'", "closed form")
    assert found["log2_prompt_length"] == pytest.approx(length, rel=1e-9)
    assert found["certified_at_context"] is False
    assert [knob["knob"] for knob in model["excess"]] == ["state", "width", "both"]
    assert model["limits"] == []
    recall = model["recall"]
    assert (recall["state_bits"], recall["values"]) == (one.state_bits, 8192)
    assert recall["pairs"] == one.state_bits // 13
    assert model["window_reach"] == one.reach


@pytest.mark.usefixtures("folder")
def test_bits_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    (plain,) = models_of("Qwen3-Next-80B-A3B", capsys)
    (changed,) = models_of("Qwen3-Next-80B-A3B --kv-bits 4 --state-bits 8 --values 3", capsys)
    assert changed["bits"] == {**plain["bits"], "kv": 4, "state": 8}
    assert changed["kv_bytes_per_token"] == plain["kv_bytes_per_token"] / 4
    assert changed["kv_bytes"] == plain["kv_bytes"] / 4
    assert changed["state_bytes"] == plain["state_bytes"] / 4
    assert changed["conv_bytes"] == plain["conv_bytes"]
    held = 36 * (8 * QWEN.state + 16 * QWEN.conv[0])
    assert changed["recall"]["state_bits"] == held
    assert changed["recall"]["pairs"] == int(held / log2(3))
    # A smaller state is certified sooner; the window of gpt-oss is held at the bits of keys and values.
    lengths = [one["hops_impossible"]["log2_prompt_length"] for one in (plain, changed)]
    assert lengths[0] > lengths[1]
    (four,) = models_of("gpt-oss-20b --kv-bits 4", capsys)
    assert four["recall"]["state_bits"] == GPT_OSS.state_bits / 4
    (three,) = models_of("gpt-oss-20b --kv-bits 3 --context 5", capsys)
    assert three["kv_bytes"] == 24 * 1024 * 5 * 3 / 8


def test_the_same_model_by_file_folder_and_schedule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, file, whole = models_of(f"LFM2-1.2B LFM2-1.2B/config.json '{folder / 'LFM2-1.2B'}'", capsys)
    assert [one.pop("name") for one in (here, file, whole)] == [
        "LFM2-1.2B",
        "LFM2-1.2B/config.json",
        str(folder / "LFM2-1.2B"),
    ]
    assert here == file == whole
    (written,) = models_of(f'"{here["schedule"]}"', capsys)
    assert written["name"] == here["schedule"] == written["schedule"]
    assert (written["model_type"], written["context_limit"], written["notes"]) == ("", None, [])
    for key in set(here) - {"model_type", "context_limit", "notes", "schedule"}:
        assert written[key] == here[key], key


def test_layers_that_read_the_keys_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last five of ten layers read what the last window and the last full layer before them keep: 3 and 4."""
    config = {"model_type": "gemma3n_text", "num_hidden_layers": 10, "num_kv_shared_layers": 5, "sliding_window": 9}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "dtype": "float32"}
    config["layer_types"] = (["sliding_attention"] * 4 + ["full_attention"]) * 2
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (model,) = models_of(f"'{tmp_path}' --context 100", capsys)
    assert [layer["kv_shared_from"] for layer in model["layers"]] == [None] * 5 + [3, 3, 3, 3, 4]
    assert [layer["kv_elements"] for layer in model["layers"]] == [16] * 5 + [0] * 5
    assert model["full_layers"] == [4, 9]
    assert model["kv_bytes_per_token"] == 16 * 4
    assert model["kv_bytes"] == (4 * 8 + 100) * 16 * 4
    assert model["hops_possible"]["hops"] == 1
    assert "layers that read another layer's keys and values are left out" in model["hops_possible"]["conditions"]
    assert model["hops_impossible"]["hops"] == 3


def test_a_schedule_takes_its_sizes_from_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    line = '"window conv full" --heads 2 --head-dim 8 --window 5 --kernel 3 --context 100'
    (model,) = models_of(line, capsys)
    assert [layer["kv_elements"] for layer in model["layers"]] == [32, 0, 32]
    assert model["layers"][0]["window"] == 5
    assert model["layers"][1]["conv_elements"] == 2 * 16
    assert model["kv_bytes"] == 2 * 32 * (100 + 4)


def test_what_is_certified_at_the_context_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """80 numbers of 32 bits: one hop is impossible as soon as m^m > 2^(4 · 80 · 8), m + 2 tokens."""
    m = next(m for m in range(2, 999) if m**m > 2**640)
    line = "linear --head-dim 4 --state-bits 32"
    for context, certified in ((m + 2, True), (m + 1, False)):
        (model,) = models_of(f"{line} --context {context}", capsys)
        assert model["hops_impossible"]["hops"] == 1
        assert model["hops_impossible"]["log2_prompt_length"] == log2(m + 2)
        assert model["hops_impossible"]["certified_at_context"] is certified
        (excess,) = model["excess"]
        assert excess["knob"] == "state"
        assert excess["factor"] == 1 if certified else 1 < excess["factor"] < 1.02
        text = hopbound(f"analyze {line} --context {context}", capsys).out
        assert ("this worst-case bound is silent" in text) is not certified


def test_tight_is_shorter_and_its_certificate_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2 σ (b + 2) tokens in closed form, σ = 20 · 4 and b = 6 · 4; the search finds 322 or fewer."""
    line = "'linear full linear' --head-dim 4 --bits 4 --context 4096"
    ((closed,), (tight,)) = (models_of(f"{line}{more}", capsys) for more in ("", " --tight"))
    lengths = [one["hops_impossible"]["log2_prompt_length"] for one in (closed, tight)]
    assert lengths[0] == pytest.approx(log2(2 * 80 * 26))
    assert lengths[1] <= log2(322)
    found = tight["hops_impossible"]
    assert (found["hops"], found["theorem"], found["source"]) == (2, "A", "search")
    assert "(A, search)" in hopbound(f"analyze {line} --tight", capsys).out
    assert {one["knob"] for one in tight["limits"]} == {"precision", "state", "heads"}
    assert all(one["largest"] >= one["actual"] for one in tight["limits"])  # 322 tokens are fewer than 4096

    out = tmp_path / "proof"
    assert hopbound(f"bound \"{tight['schedule']}\" --bits 4 --hops {found['hops']} --out '{out}'", capsys).code == 0
    certificate = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    assert log2(int(certificate["claim"]["prompt_length"]["hex"], 16)) == found["log2_prompt_length"]
    assert hopbound(f"verify '{out}' --json", capsys).json["accepted"] is True


def test_possible_is_what_can_be_built(capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = models_of('"gdn full conv full" --head-dim 8', capsys)
    hops = model["hops_possible"]["hops"]
    assert hops == 2
    m, n = 4, 2
    assert max(FunctionComposition(hops, m, (n,)).domains) <= 2**8
    line = f'build "{model["schedule"]}" --hops {{}} --m {m} --n {{}}'
    assert hopbound(line.format(2, n), capsys).code == 0
    assert hopbound(line.format(3, f"{n},{n}"), capsys).code == 2


# Lines for people


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.usefixtures("folder")
def test_the_text_says_what_the_json_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (model,) = models_of(name, capsys)
    ended = hopbound(f"analyze {name}", capsys)
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    said = parts(ended.out)
    assert [label for label in LABELS if label in said] == list(said)
    assert said["model"] == [f"{name} ({model['model_type']})"]
    counts = [f"{len(model[f'{kind}_layers'])} {kind}" for kind in KINDS if model[f"{kind}_layers"]]
    assert said["layers"] == [f"{len(model['layers'])}: {', '.join(counts)}"]
    assert said["kv"][0].startswith(f"{model['kv_bytes_per_token']:,} bytes a token for ever; ")
    assert "at 131,072 tokens (16 bits)" in said["kv"][0]
    possible, impossible = model["hops_possible"], model["hops_impossible"]
    assert said["possible"][0].startswith(f"{possible['hops']} hops by {possible['construction']}, of the idealised")
    assert said["possible"][1:] == [f"if {condition}" for condition in possible["conditions"]]
    assert said["impossible"][0].startswith(
        f"{impossible['hops']} hops from 2^{impossible['log2_prompt_length']:.1f} tokens on, whatever the weights"
    )
    assert f"at {CONTEXT:,} tokens this worst-case bound is silent" in said["impossible"]
    assert f"{model['recall']['pairs']:,} pairs" in said["recall"][0]
    assert said["note"] == model["notes"]
    assert ("reach" in said) == (model["window_reach"] is not None)


@pytest.mark.usefixtures("folder")
def test_bytes_in_units(capsys: pytest.CaptureFixture[str]) -> None:
    said = parts(hopbound("analyze Qwen3-Next-80B-A3B --context 4096 --batch 2", capsys).out)
    assert said["kv"] == ["24,576 bytes a token for ever; 192 MiB at 4,096 tokens, 2 sequences (16 bits)"]
    assert said["state"] == ["144 MiB (32 bits)"]  # 2 · 36 · 2^19 numbers of 4 bytes
    assert said["conv"] == ["3.38 MiB needed, 4.50 MiB as engines allocate it (16 bits)"]


GLYPHS = "full topk[k=2] window chunk gdn conv mlp full|gdn"


@pytest.mark.parametrize(
    ("schedule", "glyphs"),
    [
        (GLYPHS, "FSwkrc.H"),
        ("full", "F"),
        ("9*gdn full", 9 * "r" + "F"),
        ("64*gdn", 64 * "r"),
        ("64*gdn full", 64 * "r" + "F"),
        ("60*gdn 70*full 10*(mlp conv)", 60 * "r" + 70 * "F" + 10 * ".c"),
    ],
)
def test_the_map_has_one_glyph_a_layer(schedule: str, glyphs: str, capsys: pytest.CaptureFixture[str]) -> None:
    *rows, legend = parts(hopbound(f'analyze "{schedule}"', capsys).out)["map"]
    assert "".join(rows).replace(" ", "") == glyphs
    for at, row in enumerate(rows):
        groups = row.split(" ")
        assert "".join(groups) == glyphs[64 * at : 64 * at + 64]
        assert all(len(group) == 8 for group in groups[:-1])
        assert 1 <= len(groups[-1]) <= 8
    assert len(rows) == -(-len(glyphs) // 64)
    explained = re.findall(r"(?:^|, )(\S) \w", legend)
    assert sorted(explained) == sorted(set(glyphs))


def test_colour_is_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    line = f'analyze "{GLYPHS}" gdn'
    plain = hopbound(line, capsys).out
    assert "\x1b" not in plain
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    colored = hopbound(line, capsys).out
    assert "\x1b[32mF\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_where_nothing_is_impossible_the_reason_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    line = '"full nsa[k=2,block=4,w=2]" full'
    nsa, _ = models_of(line, capsys)
    assert nsa["hops_impossible"]["hops"] is None
    text = hopbound(f"analyze {line}", capsys).out
    assert f"impossible  no claim: {nsa['hops_impossible']['reason']}\n" in text
    assert text.splitlines()[-2].endswith("no claim")


# Several


@pytest.mark.usefixtures("folder")
def test_several_models_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    names = list(PUBLISHED)
    found = models_of(f"{' '.join(names)} '2*full'", capsys)
    assert [one["name"] for one in found] == [*names, "2*full"]
    for name, one in zip(names, found, strict=False):
        assert models_of(name, capsys) == [one]
    text = hopbound(f"analyze {' '.join(names)} '2*full'", capsys).out
    assert [line.split()[1] for line in text.splitlines() if line.startswith("model  ")][:4] == [*names, "2*full"]
    head, *rows = text.splitlines()[-5:]
    assert head.split() == ["model", "layers", "full", "kv/token", "kv", "state", "hops", "impossible"]
    for row, one in zip(rows, found, strict=True):
        cells = re.split(r"  +", row)
        assert cells[0] == one["name"]
        assert cells[1:3] == [str(len(one["layers"])), str(len(one["full_layers"]))]
        assert cells[-2:] == [str(one["hops_possible"]["hops"]), str(one["hops_impossible"]["hops"])]
    assert len({len(row) for row in (head, *rows)}) == 1


@pytest.mark.usefixtures("folder")
def test_one_line_a_model_with_commas(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"{' '.join(PUBLISHED)} 'conv[channels=3,kernel=2] full' --batch 2"
    ended = hopbound(f"analyze {line} --csv", capsys)
    assert (ended.code, ended.err) == (0, "")
    assert "\r" not in ended.out
    rows = list(csv.DictReader(StringIO(ended.out)))
    found = models_of(line, capsys)
    assert len(rows) == len(found)
    for row, one in zip(rows, found, strict=True):
        assert None not in row
        assert None not in row.values()
        expected = {
            "name": one["name"],  # with a comma in it
            "model_type": one["model_type"],
            "layers": len(one["layers"]),
            **{f"{kind}_layers": len(one[f"{kind}_layers"]) for kind in KINDS},
            **{key: one[key] for key in row if key.endswith(("bytes", "per_token", "allocated"))},
            "hops_possible": one["hops_possible"]["hops"],
            "construction": one["hops_possible"]["construction"],
            "hops_impossible": one["hops_impossible"]["hops"],
            "log2_prompt_length": one["hops_impossible"]["log2_prompt_length"],
        }
        assert row == {key: str(value) for key, value in expected.items()}
    assert rows[2]["conv_layers"] == str(len(LFM2.layers("conv")))


def test_with_nothing_to_claim_a_cell_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = csv.DictReader(StringIO(hopbound('analyze "nsa[k=2,block=4,w=2]" --csv', capsys).out))
    assert (row["hops_impossible"], row["log2_prompt_length"]) == ("", "")
