"""The main job: every cell has its evidence, the table has the shape of the theory, nothing is left half-written."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import hopbound.hierarchy as hierarchy
from hopbound.architecture import Defaults, Precisions, parse_schedule
from hopbound.bounds import read_certificate
from hopbound.claims import best_plan
from hopbound.constructions import task_sizes
from hopbound.decoder.folder import load_model
from hopbound.errors import InputError
from hopbound.falsify import model_subject
from hopbound.hierarchy import RunSizes, run_hierarchy
from hopbound.tasks import FunctionComposition, task_from_json
from hopbound.witness import verify_files

from .report.results import HOPS, SIZES, STACKS, TWO_SUM, small_results, small_run


def document(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "hierarchy.json").read_text(encoding="utf-8"))


def rejected(folder: Path) -> list[str]:
    return [f"{result.path}: {result.reason}" for result in verify_files([folder]) if not result.accepted]


def temporary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".tmp"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def check_evidence(folder: Path, sizes: RunSizes) -> None:
    """Every cell is backed by files, by a stated length, or says why not; the files are for exactly these sizes."""
    for cell in document(folder)["cells"]:
        witness = {entry["kind"]: folder / entry["path"] for entry in cell["witness"]}
        architecture = parse_schedule(
            cell["stack"],
            Defaults(heads=sizes.heads, head_dim=sizes.head_dim),
            Precisions(activation=sizes.bits, kv=sizes.bits, state=sizes.bits, summary=sizes.bits),
        )
        assert cell["verdict"] in ("possible", "impossible", "no claim")
        if cell["task"] == "two_sum":
            check_two_sum(cell, witness, str(architecture))
            continue
        assert (cell["verdict"] == "possible") == (cell["possible"] is not None)
        if cell["verdict"] == "no claim":
            assert (cell["prompt_length"], witness) == (None, {})
            assert cell["reason"]
        if cell["possible"]:
            model = load_model(witness["model"])
            assert model.decoder.config.schedule == str(architecture)
            assert model.task is not None
            task = task_from_json(model.task)
            assert isinstance(task, FunctionComposition)
            assert cell["prompt_length"] == cell["possible"]["prompt_length"] == task.prompt_length
            assert task.hops == cell["hops"] == best_plan(architecture, cell["hops"], task_sizes(task)).hops
            assert cell["possible"]["accuracy"] == 1.0
            assert cell["possible"]["smallest_margin"] > 0
        if cell["impossible"] and cell["impossible"]["prompt_length"] is not None:
            certificate = read_certificate(json.loads(witness["certificate"].read_text(encoding="utf-8")))
            assert certificate.schedule == str(architecture)
            assert certificate.precisions == architecture.precisions
            assert certificate.layers in architecture.layer_bits()
            assert certificate.hops == cell["hops"]
            assert certificate.prompt_length == cell["impossible"]["prompt_length"]
        if cell["verdict"] == "impossible":
            assert cell["prompt_length"] == cell["impossible"]["prompt_length"]
            assert "certificate" in witness or cell["impossible"]["log2_prompt_length"] > 0
        if "pair" in witness:
            pair = json.loads(witness["pair"].read_text(encoding="utf-8"))
            subject = model_subject(witness["pair"].parent / pair["model"]["path"], task_from_json_(pair["task"]))
            assert subject.decoder.config.schedule == str(architecture)


def check_two_sum(cell: dict[str, Any], witness: dict[str, Path], schedule: str) -> None:
    """The same of a cell of 2-Sum: the model, the certificate and the pair are for this stack, modulus and length."""
    assert cell["possible"]
    model = load_model(witness["model"])
    assert model.decoder.config.schedule == schedule
    assert model.task == {"task": "two_sum", "n": cell["prompt_length"], "modulus": cell["modulus"]}
    assert (cell["possible"]["construction"], cell["possible"]["accuracy"]) == ("C6", 1.0)
    assert cell["verdict"] == "possible"
    assert (cell["impossible"] is not None) == ("certificate" in witness) == ("pair" in witness)
    if cell["impossible"]:
        certificate = json.loads(witness["certificate"].read_text(encoding="utf-8"))
        length = cell["impossible"]["prompt_length"]
        assert length > cell["prompt_length"]
        assert certificate["stack"]["schedule"] == schedule
        assert certificate["claim"] == {"task": "two_sum", "modulus": cell["modulus"], "prompt_length": length}
        pair = json.loads(witness["pair"].read_text(encoding="utf-8"))
        assert [len(prompt) for prompt in pair["prompts"]] == [length, length]
        sums = [any((x + prompt[-1]) % cell["modulus"] == 0 for x in prompt) for prompt in pair["prompts"]]
        assert sums == [bool(answer) for answer in pair["right_answers"]]
        assert sums[0] != sums[1]


def task_from_json_(value: dict[str, Any]) -> FunctionComposition:
    task = task_from_json(value)
    assert isinstance(task, FunctionComposition)
    return task


def test_every_cell_has_its_evidence() -> None:
    check_evidence(small_results(), SIZES)


def test_the_document_keeps_its_contract() -> None:
    stored, returned = document(small_results()), small_run()[1]
    assert stored == json.loads(json.dumps(returned.to_json()))
    assert stored["schema"] == "hopbound/hierarchy/1"
    assert stored["sizes"].items() >= {"heads": 1, "head_dim": 6, "bits": 4}.items()
    places = [*((s, h) for s in STACKS for h in HOPS), *((s, None) for s in TWO_SUM)]
    assert [(cell["stack"], cell["hops"]) for cell in stored["cells"]] == places
    assert set(stored["sizes"]["stacks"]) == {*STACKS, *TWO_SUM}
    for cell in stored["cells"]:
        assert set(cell) >= {"stack", "task", "hops", "verdict", "prompt_length", "witness"}
        assert cell["task"] == ("composition" if cell["hops"] else "two_sum")
        for entry in cell["witness"]:
            assert not Path(entry["path"]).is_absolute()
            assert (small_results() / entry["path"]).exists()


def test_the_small_table() -> None:
    verdicts = {(cell.stack, cell.hops): cell for cell in small_run()[1].cells}
    shown = {place: (cell.built is not None, cell.bound.kind) for place, cell in verdicts.items()}
    assert shown == {
        ("2*linear", 1): (True, "impossible"),  # its state holds a short table, and no long one
        ("2*linear", 2): (False, "impossible"),
        ("linear full", 1): (True, "no claim"),
        ("linear full", 2): (False, "impossible"),
        ("full", 1): (False, "impossible"),
        ("full", 2): (False, "impossible"),
    }


def test_the_small_rows_of_two_sum() -> None:
    """Dense attention decides it; block attention as long as all blocks are seen, and from 2k + 1 blocks on no more."""
    shown = {
        cell.stack: (cell.built and cell.built.task.prompt_length, cell.impossible_from)
        for cell in small_run()[1].two_sum
    }
    assert shown == {"full": (1024, None), "moba[k=2,block=16]": (32, 49)}
    assert all(cell.modulus == 2**SIZES.head_dim for cell in small_run()[1].two_sum)


def test_a_row_of_two_sum_without_a_claim(tmp_path: Path) -> None:
    """A recurrence has no construction, and the bound does not speak of it."""
    sizes = RunSizes(head_dim=4, bits=4)
    result = run_hierarchy(tmp_path, sizes=sizes, stacks=("full",), hops=(1,), two_sum=("linear",))
    (cell,) = result.two_sum
    assert (cell.verdict, cell.witness) == ("no claim", ())
    assert cell.to_json()["reason"]
    assert "no claim" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_every_witness_is_accepted() -> None:
    results = list(verify_files([small_results()]))
    assert [result for result in results if not result.accepted] == []
    listed = {entry["path"] for cell in document(small_results())["cells"] for entry in cell["witness"]}
    assert listed <= {result.path.relative_to(small_results()).as_posix() for result in results}
    assert {result.kind for result in results} == {"certificate", "model", "pair"}


def test_the_overfilled_construction_is_broken_and_not_claimed() -> None:
    folder = small_results() / "models" / "2xlinear-1-overfilled"
    claim = load_model(folder).claim
    assert claim is not None
    assert claim["accuracy"] < 1.0


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run_hierarchy(tmp_path / name, sizes=RunSizes(head_dim=4, bits=4), stacks=("2*linear", "full"), hops=(1,))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert len(contents(tmp_path / "a")) > 8


def test_progress_names_every_cell(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    run_hierarchy(
        tmp_path,
        sizes=RunSizes(head_dim=4, bits=4),
        stacks=("full",),
        hops=(1, 2),
        progress=lambda done, of, what: seen.append((done, of, what)),
    )
    assert [(done, of) for done, of, _ in seen] == [(0, 2), (1, 2), (2, 2)]
    assert "full, 2 hops" in seen[1][2]


@pytest.mark.parametrize("step", ["build", "prove", "break_model", "write_json"])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_interrupted_run_leaves_whole_files_only(
    step: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, last = 0, random.Random(f"{step} {seed}").randint(1, 2)
    real = getattr(hierarchy, step)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(hierarchy, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_hierarchy(tmp_path, sizes=RunSizes(head_dim=4, bits=4), stacks=("2*linear", "linear full"), hops=(1, 2))
    assert temporary(tmp_path) == []
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not written or rejected(tmp_path) == []
    assert not (tmp_path / "hierarchy.json").exists()


def test_an_interrupted_run_over_older_results_leaves_whole_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_hierarchy(tmp_path, sizes=RunSizes(head_dim=4, bits=4), stacks=("2*linear",), hops=(1,))

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(hierarchy, "break_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_hierarchy(tmp_path, sizes=RunSizes(head_dim=3, bits=4), stacks=("2*linear",), hops=(1,))
    assert temporary(tmp_path) == []
    assert rejected(tmp_path) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"stacks": ("full", "no such mixer")},
        {"stacks": ("full", "mamba")},  # has bounds, but cannot be run
        {"two_sum": ("full", "mamba")},
        {"hops": (1, 0)},
        {"hops": (1, 65)},
        {"sizes": RunSizes(bits=0)},
        {"sizes": RunSizes(head_dim=0)},
    ],
    ids=str,
)
@pytest.mark.usefixtures("without_mamba")
def test_wrong_input_writes_nothing(wrong: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "results"
    with pytest.raises(InputError):
        run_hierarchy(out, **{"sizes": RunSizes(head_dim=4, bits=4), "stacks": ("full",), "hops": (1,), **wrong})
    assert list(tmp_path.iterdir()) == []


def test_each_row_has_files_of_its_own(tmp_path: Path) -> None:
    stacks = ("linear full", "linear|full", "linear,full")
    result = run_hierarchy(tmp_path, sizes=RunSizes(head_dim=4, bits=4), stacks=stacks, hops=(2,))
    paths = [path for cell in result.cells for _, path in cell.witness]
    assert len(set(paths)) == len(paths) > 4
    check_evidence(tmp_path, RunSizes(head_dim=4, bits=4))


@pytest.mark.slow
def test_the_default_run_has_the_shape_of_the_theory(tmp_path: Path) -> None:
    result = run_hierarchy(tmp_path)
    check_evidence(tmp_path, RunSizes())
    assert rejected(tmp_path) == []
    dense, sparse = result.two_sum
    assert (dense.verdict, dense.impossible_from) == ("possible", None)
    assert (sparse.verdict, sparse.impossible_from) == ("possible", 193)
    cells = {(cell.stack, cell.hops): cell for cell in result.cells}
    possible = {place for place, cell in cells.items() if cell.built is not None}
    impossible = {place for place, cell in cells.items() if cell.bound.kind == "impossible"}
    assert set(cells) == {(stack, hops) for stack in result.stacks for hops in (1, 2, 3)}
    assert possible | impossible == set(cells)  # no cell is left without a verdict
    for full in (1, 2, 3, 4):
        alone = "full" if full == 1 else f"{full}*full"
        hybrid = {1: "2*linear full", 2: "linear 2*full", 3: "linear 3*full"}.get(full)
        for hops in (1, 2, 3):
            assert ((alone, hops) in possible) == (hops <= full - 1)
            assert ((alone, hops) in impossible) == (hops >= full)
            if hybrid is not None:
                assert ((hybrid, hops) in impossible) == (hops >= full + 1)
                # Two linear layers in front hold a table as well: one hop more, at sizes that fit the state.
                assert ((hybrid, hops) in possible) == (hops <= full + (hybrid == "2*linear full"))
    assert ("linear full linear", 1) in possible
    assert ("linear full linear", 2) in impossible - possible
    assert ("4*linear", 1) in possible & impossible
    for stack in result.stacks:
        built = [(stack, hops) in possible for hops in (1, 2, 3)]
        bound = [(stack, hops) in impossible for hops in (1, 2, 3)]
        assert built == sorted(built, reverse=True)
        assert bound == sorted(bound)
