"""The figure of `analyze`: every model has its line, its dot and its label; labels keep apart."""

import re
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import pytest

from hopbound.analysis import analyze, document
from hopbound.catalog import read_model
from hopbound.report.analyze import GAP, HEIGHT, labels, write_curves

from .cli.commands import hopbound

SCHEDULES = ("full", "2*full", "3*full", "linear 3*full", "8*gdn", "window", "mlp", "2*(gdn full)")


def documented(*schedules: str, context: int = 4096) -> dict[str, Any]:
    models = [document(analyze(read_model(one), context=context), curve=True) for one in schedules]
    return {"context": context, "batch": 1, "models": models}


def test_each_model_is_named_with_its_hops(tmp_path: Path) -> None:
    result = documented(*SCHEDULES)
    write_curves(result, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text("utf-8")
    for one in result["models"]:
        hops = one["hops_possible"]["hops"]
        said = "no hop built" if hops == 0 else "1 hop" if hops == 1 else f"{hops} hops"
        nothing = ", holds nothing" if one["name"] == "mlp" else ""
        assert f">{one['name']}: {said}{nothing}<" in drawn
    assert drawn.count('aria-roledescription="line mark"') == len(SCHEDULES) - 1  # an mlp holds nothing
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_the_same_model_twice_is_two_lines(tmp_path: Path) -> None:
    write_curves(documented("full", "full"), tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text("utf-8")
    assert drawn.count(">full: no hop built<") == 2


@pytest.mark.parametrize("schedules", [("full",), ("mlp",), ("full",) * 12, SCHEDULES])
def testlabels_keep_apart_and_inside(schedules: tuple[str, ...]) -> None:
    low, high = 2**10, 2**30
    places = [log2(one["at"] / low) / log2(high / low) for one in labels(documented(*schedules)["models"], low, high)]
    assert len(places) == len(schedules)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert all(b - a >= GAP - 1e-9 for a, b in pairwise(places))
    assert GAP * HEIGHT > 11  # a label's letters are as high


def test_the_curve_holds_what_the_lines_say() -> None:
    """At a context of the curve its bytes are caches, state and convolutions as counted there."""
    for one in documented("2*(gdn full) window[w=300]", "3*mamba", context=1024)["models"]:
        held = dict(map(tuple, one["curve"]))
        assert held[1024] == one["kv_bytes"] + one["state_bytes"] + one["conv_bytes"]
        assert [n for n, _ in one["curve"]] == sorted(held)


def test_the_command_writes_the_figure_beside_its_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        path = tmp_path / f"a.{suffix}"
        ended = hopbound(f"analyze full --context 4096 --figure {path}", capsys)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.splitlines()[-1] == f"written     {path}"
        assert path.read_bytes().startswith(start)
    wrong = hopbound(f"analyze full --figure {tmp_path / 'a.pdf'}", capsys)
    assert wrong.code == 2
    assert re.fullmatch(r"figure: got '.*a\.pdf', expected a name that ends in \.svg or \.png", wrong.error)
