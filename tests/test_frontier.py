"""The frontier: both sides are what their own room says of the same sizes, and never meet."""

import json
from math import log2
from pathlib import Path

import pytest

from hopbound.architecture import Architecture, Defaults, Precisions, parse_schedule
from hopbound.bounds import Sizes, check, prove
from hopbound.bounds.frontier import edge
from hopbound.claims import TaskSizes, best_plan
from hopbound.cli.main import run_with
from hopbound.errors import InputError
from hopbound.frontier import Row, capacity, frontier
from hopbound.witness import verify_files


def stack(schedule: str, head_dim: int = 8, bits: int = 2) -> Architecture:
    return parse_schedule(schedule, Defaults(head_dim=head_dim), Precisions.uniform(bits))


STACKS = [
    "linear full linear",
    "2*linear full",
    "conv delta full",
    "2*full",
    "linear 2*full",
    "4*linear",
    "full",
    "gdn|full",
    "2*linear full[heads=9]",
    "2*full[heads=5,kv_heads=1]",
    "3*full[heads=2]",
]


def task(row: Row, n: int) -> TaskSizes:
    assert row.m is not None
    assert row.values is not None
    return TaskSizes((row.m, n * row.values), (row.values, n * row.values), (n,))


@pytest.mark.parametrize("sizes", ["free", "paper"])
@pytest.mark.parametrize("schedule", STACKS)
def test_two_hops(schedule: str, sizes: Sizes) -> None:
    architecture = stack(schedule)
    found = frontier(architecture, 2, sizes=sizes)
    assert found.varying == "n_1"
    places = [row.m or 0 for row in found.rows]
    assert places == sorted(set(places))
    for row in found.rows:
        # Built: the plan is there at the size named, and not at the next.
        if row.built:
            assert best_plan(architecture, 2, task(row, row.built), packed=True, many_heads=True).hops == 2
        if row.built is not None:
            assert best_plan(architecture, 2, task(row, row.built + 1), packed=True, many_heads=True).hops < 2
        if row.certified is None:
            continue
        # Certified: for exactly these sizes, and none of them is built; nor is any larger one.
        assert check(row.certified.document()).accepted
        assert row.certified.domains == task(row, row.certified.n[0]).domains
        assert row.certified.values[0] == row.values
        assert (row.values == row.m) or sizes == "free"
        assert row.built is not None
        assert row.impossible is not None
        assert row.built < row.impossible
    shortest = prove(architecture, 2, sizes=sizes)
    lengths = [row.certified.prompt_length for row in found.rows if row.certified is not None]
    assert bool(lengths) == (shortest.kind == "impossible")
    assert shortest.prompt_length is None or shortest.prompt_length in lengths
    assert bool(found.reason) == (not lengths)


@pytest.mark.parametrize("sizes", ["free", "paper"])
@pytest.mark.parametrize(
    ("schedule", "constructions"),
    [
        ("linear full[heads=5]", {"", "U3"}),
        ("conv[channels=3,kernel=2] full[heads=8,kv_heads=2,value_dim=3]", {"", "U3"}),
        ("2*linear[head_dim=1,value_dim=3] full[heads=6]", {"", "C3", "U3"}),
        ("2*full", {"U2"}),
        ("2*full[heads=6,kv_heads=3,value_dim=2]", {"", "U2", "U3"}),
        ("2*full[heads=4]", {"U2", "U3"}),
        ("full[heads=3] full[heads=12]", {"", "U2", "U3"}),
        ("topk[k=1] full[heads=3]", {"", "U3"}),
    ],
)
def test_many_heads_count(schedule: str, sizes: Sizes, constructions: set[str]) -> None:
    """Against every n_1 up to 130, asked one by one: what is built is everything up to a size, and the frontier's."""
    architecture = stack(schedule, head_dim=10, bits=2)
    found, seen = frontier(architecture, 2, sizes=sizes), set()
    for row in found.rows:
        plans = [best_plan(architecture, 2, task(row, n), packed=True, many_heads=True) for n in range(1, 131)]
        built = [n for n, plan in enumerate(plans, start=1) if plan.hops == 2]
        assert built == list(range(1, len(built) + 1))
        if row.built is not None and row.built < 130:
            assert len(built) == row.built
            assert row.construction == (plans[row.built - 1].construction if built else "")
            seen.add(row.construction)
    assert seen >= constructions if sizes == "paper" else seen


def test_one_hop_by_heads_alone() -> None:
    """A head for each address of z_1 and one more: m up to the number of heads less one."""
    (row,) = frontier(stack("full[heads=7]"), 1).rows
    assert (row.built, row.construction) == (6, "U3")


def test_what_a_state_holds_is_told_apart_from_what_heads_look_up() -> None:
    """A capacity is the state's: heads that look up more entries do not count, in the frontier they do."""
    architecture = stack("2*linear full[heads=40]", bits=1)
    found, without = capacity(architecture, 2), capacity(stack("2*linear full", bits=1), 2)
    assert found is not None
    assert without is not None
    assert found.built == without.built < 39
    assert {39, 40} <= {row.m for row in frontier(architecture, 2, sizes="paper").rows}


@pytest.mark.parametrize("sizes", ["free", "paper"])
@pytest.mark.parametrize(
    ("schedule", "head_dim", "bits", "hidden", "b"),
    [("linear full linear", 4, 4, 80, 24), ("conv[channels=2,kernel=2] full conv[channels=2,kernel=2]", 4, 1, 2, 6)],
)
def test_no_smaller_fan_out_is_certified_with_the_first_form(
    schedule: str, head_dim: int, bits: int, hidden: int, b: int, sizes: Sizes
) -> None:
    """Against every x_1 and M_1: (A1) and (A3) written out for two hops with x_0 = 1 and σ_0 = σ_1."""
    grid = [8, 16, 23, 37, 64, 95, 200]
    found = edge(stack(schedule, head_dim, bits), grid, sizes)
    for m in grid:
        best = None
        for x in range(1, 60):
            smallest = max(2, x, int((x - 1) * 2 ** (hidden / m)) + 1)
            for M in (m,) if sizes == "paper" else (smallest,):
                if smallest > M or (x > 1 and not m * (log2(M) - log2(x - 1)) > hidden) or M > 2**30:
                    continue
                n = next((n for n in range(1, 400) if n * x * log2(n * M) > hidden + b * n + hidden * x + 1e-9), None)
                if n is not None and (best is None or n * M < best):
                    best = n * M
        if best is not None:
            assert found[m].domains[1] <= best * 1.02, m


def test_one_hop() -> None:
    counted = frontier(stack("2*linear"), 1)
    (row,) = counted.rows
    assert (counted.varying, row.m, row.values) == ("m", None, None)
    # 8 rows of 8 numbers of 2 digits: 3 values of 5 bits in each, but not 4.
    assert row.built == 24
    assert row.construction == "C3"
    bits = 2 * 2 * (64 + 8)
    assert row.impossible == next(m for m in range(2, 999) if m**m > 2**bits)
    possible = frontier(stack("linear full"), 1)
    assert possible.rows[0].certified is None
    assert possible.rows[0].construction == "C2"
    assert "Theorem A" in possible.reason


def test_a_stack_that_the_theorems_do_not_speak_of() -> None:
    found = frontier(stack("nsa[k=2,block=4]"), 2)
    assert all(row.certified is None for row in found.rows)
    assert "nsa" in found.reason


@pytest.mark.parametrize("hops", [0, 3, True])
def test_other_numbers_of_hops_are_refused(hops: int) -> None:
    with pytest.raises(InputError, match="hops"):
        frontier(stack("linear"), hops)


def test_the_command_writes_what_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = [
        "bound",
        "2*linear full",
        "--head-dim",
        "4",
        "--bits",
        "2",
        "--hops",
        "2",
        "--frontier",
        "--out",
        str(tmp_path),
    ]
    assert run_with([*line, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    rows = result["frontier"]["rows"]
    named = {row["certificate"] for row in rows if row["certificate"]}
    assert named
    assert {path.name for path in tmp_path.iterdir()} == {*named, "certificate.json", "frontier.svg"}
    assert all(entry.accepted for entry in verify_files([tmp_path / name for name in named]))
    picture = (tmp_path / "frontier.svg").read_text(encoding="utf-8")
    assert all(word in picture for word in ("built", "neither is known", "impossible", "addresses of"))
    assert run_with(line) == 0
    shown = capsys.readouterr().out
    assert all(f"{row['m']:,}" in shown for row in rows)
    assert run_with([*line[:7], "3", "--frontier"]) == 2
    assert "hops" in capsys.readouterr().err


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("head_dim", [16, 24])
def test_what_a_state_holds_is_known_within_a_factor_of_the_logarithm(head_dim: int, hops: int) -> None:
    """The largest m that is built and the smallest that is certified impossible: log m within a factor 1.5."""
    architecture = stack("2*linear full" if hops == 2 else "2*linear", head_dim, bits=32)
    found = capacity(architecture, hops)
    assert found is not None
    assert found.ratio == log2(found.impossible) / log2(found.built) <= 1.5
    assert check(found.certificate.document()).accepted
    assert found.certificate.domains[0] == found.impossible
    assert found.certificate.form == ("first" if hops == 2 else "")  # so that larger m are impossible too
    for m, hops_made in ((found.built, hops), (found.built + 1, hops - 1)):
        task = TaskSizes((m,) * hops, (m,) * hops, (1,) * (hops - 1))
        assert best_plan(architecture, hops, task, packed=True).hops == hops_made
    # Five digits in each number: ⌈m / d⌉ values a row.
    bits = (found.built - 1).bit_length()
    assert found.built == head_dim * (5 * head_dim // bits)


@pytest.mark.parametrize("schedule", ["full", "linear full", "3*full"])
def test_no_capacity_where_no_state_has_to_hold_it(schedule: str) -> None:
    assert capacity(stack(schedule), 1) is None


def test_the_capacity_of_other_numbers_of_hops_is_refused() -> None:
    with pytest.raises(InputError, match="hops"):
        capacity(stack("linear"), 3)
