"""All ceilings of a stack at once, and the commands that show them."""

import json
from pathlib import Path

import pytest

from hopbound.architecture import parse_schedule
from hopbound.bounds.ceiling import Ceiling, Question, Silence
from hopbound.bounds.ceilings import BOUNDS, ceilings
from hopbound.bounds.recall import accuracy_ceiling
from hopbound.cli.main import run_with
from hopbound.errors import InputError

STACKS = [
    "4*linear",
    "window conv",
    "full",
    "moba[k=3,block=8]",
    "linear full",
    "mamba2 rglru",
    "mlp",
    "nsa[k=2,block=4]",
]


@pytest.mark.parametrize("schedule", STACKS)
def test_every_bound_speaks_or_says_why_not(schedule: str) -> None:
    found = ceilings(parse_schedule(schedule))
    assert [one.name for one in found] == [bound.NAME for bound in BOUNDS]
    for one in found:
        assert isinstance(one, Silence) == (not isinstance(one, Ceiling))
        assert (
            one.reason if isinstance(one, Silence) else one.validity and one.source and one.case in ("worst", "average")
        )


def test_what_reaches_nowhere_holds_nothing() -> None:
    found = {one.name: one for one in ceilings(parse_schedule("mlp"), Question(pairs=3)) if isinstance(one, Ceiling)}
    assert found["reach"].numbers["tokens"] == 0
    assert found["recall"].numbers["pairs"] == found["copying"].numbers["symbols"] == 0
    assert found["recall"].numbers["accuracy"] == pytest.approx(1 / 8192, abs=1e-4)


def test_the_command_shows_what_the_function_says(capsys: pytest.CaptureFixture[str]) -> None:
    line = [
        "ceilings",
        "gdn[heads=2,head_dim=8]",
        "--values",
        "16",
        "--pairs",
        "2000",
        "--accuracy",
        "0.5",
        "--bits",
        "8",
    ]
    assert run_with([*line, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    recall = next(one for one in result["ceilings"] if one["name"] == "recall")
    assert recall["numbers"]["state_bits"] == 2 * 64 * 8
    assert recall["numbers"]["accuracy"] == accuracy_ceiling(2000, 16, 1024)
    assert {one["name"] for one in result["silent"]} == {"reach", "two_functions", "sparse_two_sum"}
    assert run_with(line) == 0
    shown = capsys.readouterr().out
    assert all(one["statement"] in shown for one in result["ceilings"])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"values": 1}, "values"),
        ({"values": True}, "values"),
        ({"pairs": 0}, "pairs"),
        ({"accuracy": 0}, "accuracy"),
        ({"accuracy": 1.5}, "accuracy"),
        ({"accuracy": float("nan")}, "accuracy"),
    ],
)
def test_a_wrong_question_is_one_line(options: dict, field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}"):
        Question(**options)


@pytest.mark.parametrize("name", ["parity", "(aa)*", "a*b*", "S3", "A5"])
def test_the_language_command_names_the_facts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with(["language", name, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    kinds = {"parity": "solvable", "(aa)*": "solvable", "a*b*": "star-free", "S3": "solvable", "A5": "not solvable"}
    assert result["kind"] == kinds[name]
    assert any(fact["excluded"] for fact in result["facts"]) == (name != "a*b*")
    assert any(fact["conditional"] for fact in result["facts"]) == (name == "A5")
    assert run_with(["language", name]) == 0
    shown = capsys.readouterr().out
    assert all(fact["source"] in shown for fact in result["facts"])


def test_a_language_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"letters": {"a": [1, 0]}, "start": 0, "accepting": [0]}))
    assert run_with(["language", str(path)]) == 0
    assert "solvable" in capsys.readouterr().out
    path.write_text("[" * 10**5)
    assert run_with(["language", str(path)]) == 2
    path.write_bytes(b"\xff")
    assert run_with(["language", str(path)]) == 2
    assert run_with(["language", "nothing"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert all(line.startswith("error: language: got") for line in errors)
