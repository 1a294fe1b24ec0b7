"""What other programs rely on: with --json one object on stdout, with the promised keys; what it says holds."""

import json
import math
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hopbound.bounds import check
from hopbound.tasks import FunctionComposition

from ..falsify.plain import right_answer
from .commands import Ended, contents, hopbound

ROOT = Path(__file__).resolve().parents[2]
SMALL = "--heads 1 --head-dim 4 --bits 4"
PAIR = {"task", "prompts", "changed", "hops", "right_answers", "model_answer", "model_did"}
KEYS = {
    "bound": {"model", "verdict", "theorem", "log2_prompt_length", "prompt_length", "sizes", "certificate"}
    | {"paper_log2_prompt_length", "schema"},
    "build": {"verdict", "prompt_length", "instances", "exhaustive", "accuracy", "smallest_margin"}
    | {"dtype", "path", "schema"},
    "break": {"found", "prompts_tried", "pair", "schema"},
    "verify": {"accepted", "files", "schema"},
    "design": {"designs", "hops", "context", "mixers", "found", "fewer_full", "schema"},
    "hierarchy": {"sizes", "cells", "schema"},
}


def result_of(line: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    """The object that a command prints with --json."""
    name = line.split()[0]
    ended = hopbound(f"{line} --json", capsys)
    assert ended.code == code, ended.err
    value = ended.json
    assert value["schema"] == f"hopbound/{name}/1"
    assert set(value) >= KEYS[name]
    if name != "hierarchy":  # the only one of these that tells of its progress
        assert ended.err == ""
    return value


@cache
def schema() -> Draft202012Validator:
    document = json.loads((ROOT / "docs" / "certificate.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


# bound


def test_a_file_is_bounded_like_the_schedule_that_it_comes_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With bits for everything, for keys and values, and for states; what the file leaves open is said."""
    config = {"model_type": "falcon_mamba", "hidden_size": 64, "state_size": 4, "intermediate_size": 128}
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3, "dtype": "float32"}))
    schedule = '"3*mamba[channels=128,state=4,conv=4]"'
    for bits in ("--bits 8", "--bits 4 --kv-bits 8 --state-bits 2"):
        of_file = result_of(f"bound {tmp_path} --hops 2 {bits}", capsys)
        of_text = result_of(f"bound {schedule} --hops 2 {bits}", capsys)
        assert of_file.pop("model")["model_type"] == "falcon_mamba"
        assert of_text.pop("model") == {"name": schedule.strip('"'), "model_type": "", "notes": []}
        assert of_file == of_text
    lengths = [
        result_of(f"bound {tmp_path} --hops 2 --state-bits {bits}", capsys)["prompt_length"] for bits in (4, 8, 16)
    ]
    assert lengths == sorted(set(lengths))
    shown = hopbound(f"bound {tmp_path} --hops 2", capsys).out.splitlines()
    notes = result_of(f"bound {tmp_path} --hops 2", capsys)["model"]["notes"]
    assert notes
    assert shown[0] == f"model     {tmp_path} (falcon_mamba)"
    assert [line[10:] for line in shown if line.startswith("note ")] == notes


@pytest.mark.parametrize("sizes", ["free", "paper"])
@pytest.mark.parametrize(
    ("schedule", "hops"),
    [("linear", 1), ("full", 1), ("full", 2), ("linear full linear", 2), ("2*full", 2), ("2*full", 4), ("gdn|full", 3)],
)
def test_bound(schedule: str, hops: int, sizes: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = f'bound "{schedule}" {SMALL} --hops {hops} --sizes {sizes}'
    value = result_of(line, capsys)
    assert value["verdict"] == "impossible"
    assert value["theorem"] in ("counting", "A", "B")
    stated = value["sizes"]
    domains, values, n = stated["domains"], stated["values"], stated["n"]
    assert stated["kind"] == sizes
    assert [len(domains), len(values), len(n)] == [hops, hops, hops - 1]
    assert domains[1:] == [fan * size for fan, size in zip(n, values[:-1], strict=True)]
    assert values == domains or (sizes == "free" and values[-1] == domains[-1])
    assert value["prompt_length"] == sum(domains) + 2
    assert value["log2_prompt_length"] == pytest.approx(math.log2(value["prompt_length"]))
    # The point of it: shorter than the asymptotic theorem asks for, by any comparison.
    assert value["log2_prompt_length"] < value["paper_log2_prompt_length"]

    certificate = value["certificate"]
    schema().validate(certificate)
    assert check(certificate).accepted
    claim = certificate["claim"]
    assert int(claim["prompt_length"]["hex"], 16) == value["prompt_length"]
    for key in ("domains", "values", "n"):
        assert [int(entry["hex"], 16) for entry in claim["sizes"][key]] == stated[key]

    out = tmp_path / "deep" / "proof"
    written = result_of(f"{line} --out '{out}'", capsys)
    assert written == {**value, "certificate": "certificate.json"}
    assert list(contents(tmp_path)) == ["deep", "deep/proof", "deep/proof/certificate.json"]
    assert json.loads((out / "certificate.json").read_text(encoding="utf-8")) == certificate
    checked = result_of(f"verify '{out / written['certificate']}'", capsys)
    assert checked["accepted"] is True


@pytest.mark.parametrize(
    ("schedule", "hops", "sizes", "length"),
    [
        ("linear full linear", 2, "free", 322),
        ("linear full linear", 2, "paper", 557),
        ("2*full", 2, "free", 30_728),
        ("2*full", 2, "paper", 195_906),
        ("linear", 1, "free", 21),
    ],
)
def test_lengths_are_no_longer_than_promised(
    schedule: str, hops: int, sizes: str, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f'bound "{schedule}" {SMALL} --hops {hops} --sizes {sizes}'
    value = result_of(line, capsys)
    assert value["prompt_length"] <= length
    if schedule == "linear":  # 4 * (4 * 4 + 4) = 80 bits: the least m with m log m > 80 is 19, and two tokens more
        assert value["prompt_length"] == length == next(m for m in range(2, 99) if m**m > 2**80) + 2


@pytest.mark.parametrize(
    ("schedule", "hops", "threshold"),
    [("linear full linear", 2, 2**10 * math.log2(16)), ("linear", 1, 2**6 * math.log2(16))],
)
def test_the_papers_threshold_stands_beside(
    schedule: str, hops: int, threshold: float, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f'bound "{schedule}" {SMALL} --hops {hops}'
    value = result_of(line, capsys)
    assert value["paper_log2_prompt_length"] == threshold
    lines = dict(row.split(maxsplit=1) for row in hopbound(line, capsys).out.splitlines())
    assert f"n = {value['prompt_length']:,} tokens on" in lines["verdict"]
    assert lines["paper"].startswith(f"log2 n >= {threshold:,.0f} (arXiv 2602.01763")


@pytest.mark.parametrize(("schedule", "hops"), [("2*full", 1), ("linear full", 1), ("2*nsa[k=2,block=4]", 3)])
def test_where_nothing_is_claimed(schedule: str, hops: int, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = f"bound \"{schedule}\" {SMALL} --hops {hops} --out '{tmp_path / 'proof'}'"
    value = result_of(line, capsys)
    assert value["verdict"] == "no claim"
    assert value["reason"]
    assert not value["theorem"]
    for key in ("log2_prompt_length", "prompt_length", "sizes", "certificate"):
        assert value[key] is None
    assert value["paper_log2_prompt_length"] > 0
    text = hopbound(line, capsys).out
    assert "no claim" in text
    assert "impossible" not in text
    assert contents(tmp_path) == {}


# build


@pytest.mark.parametrize(
    ("line", "domains", "values", "n"),
    [
        ('"2*full" --hops 1 --m 3', [3], [3], []),
        ('"3*full" --hops 2 --m 2 --n 1', [2, 2], [2, 2], [1]),
        ('"linear 2*full" --hops 2 --m 3 --n 1 --values 2', [3, 2], [2, 2], [1]),
        ('"2*delta" --hops 1 --m 4 --dtype bfloat16', [4], [4], []),
    ],
)
def test_build(
    line: str,
    domains: list[int],
    values: list[int],
    n: list[int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    value = result_of(f"build {line}", capsys)
    assert value["path"] is None
    assert value["verdict"] == "possible"
    assert [value[key] for key in ("domains", "values", "n")] == [domains, values, n]
    assert value["prompt_length"] == sum(domains) + 2
    all_there_are = math.prod(M**D for M, D in zip(values, domains, strict=True)) * domains[0] * math.prod(n)
    assert value["instances"] == all_there_are
    assert value["exhaustive"] is True
    assert value["accuracy"] == 1.0
    assert 1 < value["smallest_margin"] < 2.01
    assert value["dtype"] == ("bfloat16" if "bfloat16" in line else "float32")

    written = result_of(f"build {line} --out '{tmp_path / 'model'}'", capsys)
    assert written == {**value, "path": "."}
    assert sorted(contents(tmp_path)) == ["model", "model/model.json", "model/model.safetensors"]
    claim = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))["claim"]
    assert {key: claim[key] for key in claim if key in value} == {key: value[key] for key in claim if key in value}
    assert result_of(f"verify '{tmp_path / 'model'}'", capsys)["accepted"] is True


def test_a_build_that_samples_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    value = result_of('build "linear full" --hops 1 --m 7', capsys)  # 7^8 instances
    assert value["exhaustive"] is False
    assert value["instances"] >= 10_000
    assert value["adversarial"] > 0


def test_a_build_that_fails_is_no_success(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = f"build '2*linear[head_dim=2,value_dim=8]' --hops 1 --m 3 --overfill --out '{tmp_path / 'model'}'"
    value = result_of(line, capsys, code=1)
    assert value["verdict"] == "broken"
    assert value["accuracy"] < 1
    assert value["path"] == "."


# design


def test_design(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = "design --hops 3 --context 131072"
    value = result_of(line, capsys)
    for one in value["designs"]:
        assert set(one) >= {"schedule", "layers", "kv_bytes", "state_bytes", "cost", "hops", "construction"}
        assert set(one) >= {"conditions", "why"}
        assert one["why"]
        assert one["conditions"]
        assert one["hops"] == 3
        assert one["cost"] == (one["kv_bytes"] + one["state_bytes"]) / 131072
        assert one["confirmed"] is None
    written = result_of(f"{line} --out '{tmp_path / 'found'}'", capsys)
    assert written == value == json.loads((tmp_path / "found" / "design.json").read_text(encoding="utf-8"))
    assert sorted(contents(tmp_path)) == ["found", "found/design.json", "found/design.svg"]


# break


def test_break(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = 'break "2*linear" --head-dim 4 --hops 2 --m 3 --n 2'
    value = result_of(line, capsys)
    assert value["found"] is True
    pair = value["pair"]
    assert set(pair) >= PAIR
    first, second = pair["prompts"]
    assert sum(a != b for a, b in zip(first, second, strict=True)) == 1
    asked = pair["task"]
    task = FunctionComposition(asked["hops"], asked["m"], asked["n"], asked["values"])
    right = [right_answer(task, prompt) for prompt in pair["prompts"]]
    assert pair["right_answers"] == right
    assert right[0] != right[1]
    assert value["prompts_tried"] >= 2

    written = result_of(f"{line} --out '{tmp_path / 'broken'}'", capsys)
    assert written == {**value, "path": "pair.json"}
    stored = json.loads((tmp_path / "broken" / written["path"]).read_text(encoding="utf-8"))
    assert {key: stored[key] for key in PAIR} == {key: pair[key] for key in PAIR}
    checked = result_of(f"verify '{tmp_path / 'broken'}'", capsys)
    assert checked["accepted"] is True
    assert sorted(file["kind"] for file in checked["files"]) == ["model", "pair"]


def test_break_finds_nothing_in_what_is_right(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result_of(f"build '2*full' --hops 1 --m 3 --out '{tmp_path / 'model'}'", capsys)
    before = contents(tmp_path)
    value = result_of(f"break '{tmp_path / 'model'}' --max-prompts 60 --out '{tmp_path / 'broken'}'", capsys)
    assert (value["found"], value["pair"]) == (False, None)
    assert 0 < value["prompts_tried"] <= 60
    assert contents(tmp_path) == before


# verify


def test_verify(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result_of("bound linear --hops 1 --out proof", capsys)
    result_of("build '2*full' --hops 1 --m 2 --out model", capsys)
    (tmp_path / "wrong.json").write_text("{}")
    value = result_of("verify proof model", capsys)
    assert value["accepted"] is True
    value = result_of("verify proof wrong.json model missing", capsys, code=1)
    assert value["accepted"] is False
    assert [(file["path"], file["kind"], file["accepted"]) for file in value["files"]] == [
        ("proof/certificate.json", "certificate", True),
        ("wrong.json", "unknown", False),
        ("model", "model", True),
        ("missing", "unknown", False),
    ]
    for file in value["files"]:
        assert set(file) >= {"path", "kind", "accepted", "reason"}
        assert file["reason"]
        assert "\n" not in file["reason"]


# hierarchy


def test_hierarchy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "results"
    line = f"hierarchy --stack '2*linear' --stack full --hops 1 --head-dim 3 --bits 4 --out '{out}'"
    value = result_of(line, capsys)
    assert value["sizes"].items() >= {"heads": 1, "head_dim": 3, "bits": 4}.items()
    assert [(cell["stack"], cell["hops"]) for cell in value["cells"]] == [("2*linear", 1), ("full", 1)]
    assert [cell["verdict"] for cell in value["cells"]] == ["possible", "impossible"]
    assert value == json.loads((out / "hierarchy.json").read_text(encoding="utf-8"))
    for cell in value["cells"]:
        assert set(cell) >= {"stack", "task", "hops", "verdict", "prompt_length", "witness"}
        assert cell["witness"]
        for witness in cell["witness"]:
            assert not Path(witness["path"]).is_absolute()
            assert ".." not in Path(witness["path"]).parts
            assert (out / witness["path"]).exists()
            if witness["kind"] == "certificate":
                schema().validate(json.loads((out / witness["path"]).read_text(encoding="utf-8")))
    assert (out / "report.html").is_file()
    assert set(contents(tmp_path)) == {"results", *(f"results/{name}" for name in contents(out))}


# the program itself


@pytest.mark.parametrize("line", ["bound linear --hops 1 --json", "verify nothing --json"])
def test_the_installed_program(line: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "hopbound", *line.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=60,
    )
    result = Ended(ended.returncode, ended.stdout, ended.stderr)
    assert set(result.json) >= KEYS[line.split()[0]]
    assert (result.code, result.err) == (0 if line.startswith("bound") else 1, "")
    assert contents(tmp_path) == {}
