"""`hopbound data`: files that hold the examples they say, cards that say what is in them."""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from hopbound import __version__
from hopbound.tasks import Labelled, dataset, parse_sequence_task
from hopbound.tasks.splits import held_out, overlap, test_examples

from .commands import contents, hopbound

RECALL = "mqar[vocabulary=64,length=24,pairs=4]"
HOPS = "k_hop[hops=2,symbols=5,length=12]"


def read(path: Path) -> Labelled:
    """The examples of a file, by other means than wrote it."""
    if path.suffix == ".parquet":
        rows = parquet.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(set(row) == {"tokens", "labels"} for row in rows)
    tokens, labels = (np.array([row[key] for row in rows], dtype=np.int64) for key in ("tokens", "labels"))
    return Labelled(tokens, labels)


def sha256(made: Labelled) -> str:
    rows = zip(made.tokens.tolist(), made.labels.tolist(), strict=True)
    numbers = [number for tokens, labels in rows for number in (*tokens, *labels)]
    return hashlib.sha256(b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)).hexdigest()


def card_of(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name(f"{path.name}.card.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("split", ["train", "test", "validation"])
@pytest.mark.parametrize("text", [RECALL, HOPS, "two_sum[n=6,modulus=12]"])
def test_the_file_holds_the_examples_of_its_split(
    text: str, split: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"made.{ending}"
    ended = hopbound(f"data '{text}' --count 1500 --split {split} --seed 3 --out {path} --json", capsys)
    assert (ended.code, ended.err) == (0, "")
    task, made = parse_sequence_task(text), read(path)
    assert len(made) == ended.json["examples"] == 1500
    assert ended.json["sha256"] == sha256(made)
    assert ended.json["path"] == str(path)
    np.testing.assert_array_equal(made.labels, task.labels(made.tokens))
    np.testing.assert_array_equal(held_out(made.tokens), np.full(1500, split != "train"))
    if split != "train":
        np.testing.assert_array_equal(made.tokens, test_examples(task, 3, 1500, split).tokens)
    assert set(contents(tmp_path)) == {path.name, f"{path.name}.card.json", f"{path.name}.card.md"}


def test_both_formats_have_one_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        hopbound(f"data '{RECALL}' --count 300 --out {tmp_path / name} --json", capsys).json["sha256"]
        for name in ("a.jsonl", "b.parquet", "c.jsonl")
    ]
    assert len(set(found)) == 1
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()
    other = hopbound(f"data '{RECALL}' --count 300 --seed 1 --out {tmp_path / 'a.jsonl'} --json", capsys)
    assert other.json["sha256"] != found[0]
    assert card_of(tmp_path / "a.jsonl")["sha256"] == other.json["sha256"]


@pytest.mark.parametrize("size", [40, 7000])
def test_the_parts_in_which_it_is_made_do_not_matter(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = parse_sequence_task(RECALL)
    whole = dataset.write_dataset(task, tmp_path / "whole.jsonl", 900, "test")
    monkeypatch.setattr("hopbound.tasks.splits._TOKENS_AT_ONCE", size)
    parts = dataset.write_dataset(task, tmp_path / "parts.jsonl", 900, "test")
    assert whole.path.read_bytes() == parts.path.read_bytes()
    assert {**whole.card, "file": "", "command": ""} == {**parts.card, "file": "", "command": ""}


@pytest.mark.parametrize(
    "text", [RECALL, HOPS, "parity[length=14]", "composition[hops=2,m=4,n=2/,distribution=sparse]"]
)
def test_the_card(text: str, tmp_path: Path) -> None:
    path, task = tmp_path / "made.jsonl", parse_sequence_task(text)
    card = dataset.write_dataset(task, path, 700, "test", 2).card
    assert card_of(path) == card
    made = read(path)
    assert card["task"] == task.to_json()
    assert parse_sequence_task(card["task_text"]) == task
    assert card["vocabulary_size"] == task.vocabulary_size
    assert card["sequence_length"] == made.tokens.shape[1]
    assert (card["answers"], card["chance"]) == (task.answers, task.chance)
    assert card["log2_instances"] == task.log2_instances
    assert card["hopbound"] == __version__
    assert card["asked"] == (made.labels >= 0).sum()
    assert card["examples_that_ask_nothing"] == (made.labels < 0).all(axis=1).sum()
    assert card["split"] == {**card["split"], "name": "test", "seed": 2, "held_out": True, "disjoint": True}
    assert set(card["shortcuts"]) == set(task.shortcuts())
    for name, function in task.shortcuts().items():
        given = function(made.tokens)
        right = [
            a == b
            for row, other in zip(given, made.labels, strict=True)
            for a, b in zip(row, other, strict=True)
            if b >= 0
        ]
        assert card["shortcuts"][name] == pytest.approx(sum(right) / len(right))
    page = path.with_name("made.jsonl.card.md").read_text(encoding="utf-8")
    for shown in (card["task_text"], card["sha256"], card["command"], "700 examples", card["split"]["rule"]):
        assert shown in page
    assert all(f"*{name}*" in page for name in card["shortcuts"])


def test_shortcuts_are_measured_on_the_first_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = parse_sequence_task(HOPS)
    monkeypatch.setattr("hopbound.tasks.splits._TOKENS_AT_ONCE", 700)
    monkeypatch.setattr(dataset, "MEASURED", 100)
    many = dataset.write_dataset(task, tmp_path / "many.jsonl", 900).card
    few = dataset.write_dataset(task, tmp_path / "few.jsonl", 100).card
    assert many["shortcuts"] == few["shortcuts"]
    assert many["shortcuts_measured_on"] == few["shortcuts_measured_on"] == 100


def test_the_command_of_the_card_makes_the_file_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = dataset.write_dataset(parse_sequence_task(RECALL), tmp_path / "made.jsonl", 50, "test", 7)
    before = made.path.read_bytes()
    made.path.unlink()
    program, *arguments = shlex.split(made.card["command"])
    assert program == "hopbound"
    arguments[arguments.index("--out") + 1] = str(made.path)
    assert hopbound(shlex.join(arguments), capsys).code == 0
    assert made.path.read_bytes() == before


def test_few_sequences_have_an_overlap_that_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, path = parse_sequence_task("parity[length=7]"), tmp_path / "made.jsonl"
    shown = hopbound(f"data parity[length=7] --split test --count 90 --out {path}", capsys).out
    made = read(path)
    shared = overlap(task, 0, 0, 90, made.tokens)
    assert 0 < shared < 90
    split = card_of(path)["split"]
    assert (split["disjoint"], split["also_in_training"], split["training_examples"]) == (False, shared, 90)
    assert f"{shared} of these 90 examples are also among the first 90 of training" in shown


REFUSED = [
    ("data parity[length=12] --out made.csv", "out: got 'made.csv', expected a file that ends in .jsonl or .parquet"),
    ("data parity[length=12] --out folder.jsonl", "out: got 'folder.jsonl', expected a file"),
    ("data parity[length=12] --out made.jsonl --count 0", "count: got 0, expected a whole number of at least 1"),
    ("data juggling --out made.jsonl", "task: got 'juggling', expected one of composition, copying"),
    ("data parity[length=0] --out made.jsonl", "length: got 0, expected a whole number from 1"),
    ("data parity[length=12]", "--out"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_wrong_input_is_one_line_and_writes_nothing(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.jsonl").mkdir()
    ended = hopbound(line, capsys)
    assert ended.code == 2
    assert message in ended.error
    assert contents(tmp_path) == {"folder.jsonl": None}


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_an_interrupted_job_leaves_the_files_before(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"made.{ending}"
    assert hopbound(f"data '{RECALL}' --count 60 --out {path}", capsys).code == 0
    before = contents(tmp_path)

    def stops(task: object, seed: int, split: str, count: int) -> Any:
        yield parse_sequence_task(RECALL).labelled(seed, split, 0, 20)
        raise KeyboardInterrupt

    monkeypatch.setattr(dataset, "examples_of", stops)
    assert hopbound(f"data '{RECALL}' --count 80 --out {path}", capsys).code == 130
    assert contents(tmp_path) == before


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    for ending, heavy in (("jsonl", {"torch", "pyarrow"}), ("parquet", {"torch"})):
        program = (
            "import sys\nfrom hopbound.cli.main import run_with\n"
            f"assert run_with(['data', 'parity[length=12]', '--count', '5', '--out', 'made.{ending}']) == 0\n"
            f"assert not {heavy!r} & set(sys.modules)"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr
