"""The main job: every cell of the hierarchy with its witness.

Rows are stacks of layers, columns are hops. A cell passes through three questions:

1. *Is it possible?* The claims plan a construction within the row's sizes; its weights are built, run and kept.
2. *Is it impossible from some length on?* The bounds look for a certificate for exactly the row's sizes.
3. *What does failure look like?* A fooling pair, as an illustration: for a construction that is given more than its
   state can hold where there is one, else for seeded random weights of the same stack.

Below stand the rows of 2-Sum (`two_sum.py`), which part dense from block-sparse attention.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopbound import __version__
from hopbound.architecture import Architecture, Defaults, Precisions, parse_schedule
from hopbound.bounds import Verdict, prove
from hopbound.claims import TaskSizes, best_plan
from hopbound.constructions import BuildResult, build, task_sizes
from hopbound.errors import InputError
from hopbound.falsify import SearchResult, Subject, break_model, random_subject
from hopbound.falsify.subject import model_subject
from hopbound.files import write_json
from hopbound.mixers import check_runnable
from hopbound.tasks import FunctionComposition
from hopbound.two_sum import STACKS as TWO_SUM_STACKS
from hopbound.two_sum import TwoSumCell, fill_two_sum, modulus_for

SCHEMA = "hopbound/hierarchy/1"

STACKS = (
    "4*linear",
    "2*linear full",
    "linear full linear",
    "linear 2*full",
    "linear 3*full",
    "full",
    "2*full",
    "3*full",
    "4*full",
)
HOPS = (1, 2, 3)

# The tasks that are built where no state limits them, the first that fits: entries of z_1 and query parts of each hop,
# with the paper's value sizes.
ROOMY = ((64, 8), (16, 4), (4, 2), (2, 1))
LIMITED_N = 4  # query parts of each hop where a state limits m
# The task that random weights are asked, at most; the smallest with a pair is kept.
RANDOM_M, RANDOM_N = 4, 2
MAX_SLUG = 80  # characters of a stack in the names of its files


@dataclass(frozen=True, kw_only=True)
class RunSizes:
    """The one set of sizes of a run: every certificate is for exactly these, every construction fits in them."""

    heads: int = 1
    head_dim: int = 24
    bits: int = 32

    def architecture(self, stack: str) -> Architecture:
        """A row's stack at these sizes."""
        defaults = Defaults(heads=self.heads, head_dim=self.head_dim)
        return parse_schedule(stack, defaults, Precisions.uniform(self.bits))


@dataclass(frozen=True)
class Cell:
    """One stack, one number of hops, and what is known.

    Attributes:
        stack: the row's schedule, as written in the table.
        hops: the column.
        built: weights that make these hops, if a construction does.
        bound: what the theorems say.
        broken: the search for an illustration, where the bound says impossible.
        witness: the files behind the cell, (kind, path below the results folder).
    """

    stack: str
    hops: int
    built: BuildResult | None
    bound: Verdict
    broken: SearchResult | None
    witness: tuple[tuple[str, str], ...]

    @property
    def verdict(self) -> str:
        """`possible` at the built size, else `impossible` from the certified length on, else `no claim`."""
        return "possible" if self.built is not None else self.bound.kind

    def to_json(self) -> dict[str, Any]:
        """The cell in `hierarchy.json`."""
        possible = impossible = None
        if self.built is not None:
            task = self.built.task
            sizes = (
                {"domains": task.domains, "values": task.values, "n": task.n}
                if isinstance(task, FunctionComposition)
                else {}
            )
            possible = {
                "prompt_length": task.prompt_length,
                "construction": self.built.built.construction,
                "moves": list(self.built.built.steps),
                **{name: list(size) for name, size in sizes.items()},
                **self.built.verification.to_json(),
            }
        if self.bound.kind == "impossible":
            impossible = {
                "prompt_length": self.bound.prompt_length,
                "log2_prompt_length": self.bound.log2_prompt_length,
                "theorem": self.bound.theorem,
                "statement": self.bound.statement,
                "source": self.bound.source,
                "paper_log2_prompt_length": self.bound.paper_log2_prompt_length,
                "paper_source": self.bound.paper_source,
            }
        shown = possible or impossible
        return {
            "stack": self.stack,
            "task": "composition",
            "hops": self.hops,
            "verdict": self.verdict,
            "prompt_length": shown["prompt_length"] if shown else None,
            "possible": possible,
            "impossible": impossible,
            "reason": self.bound.reason,
            "witness": [{"kind": kind, "path": path} for kind, path in self.witness],
        }


@dataclass(frozen=True)
class Hierarchy:
    """All cells of one run.

    Attributes:
        sizes: of every stack.
        stacks: the rows.
        hops: the columns.
        seed: of random instances and random weights.
        cells: row by row.
        two_sum: a cell for each row of 2-Sum.
    """

    sizes: RunSizes
    stacks: tuple[str, ...]
    hops: tuple[int, ...]
    seed: int
    cells: tuple[Cell, ...]
    two_sum: tuple[TwoSumCell, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document `hierarchy.json`; paths are relative to its folder."""
        stacks = dict.fromkeys((*self.stacks, *(cell.stack for cell in self.two_sum)))
        return {
            "schema": SCHEMA,
            "version": __version__,
            "sizes": {
                "heads": self.sizes.heads,
                "head_dim": self.sizes.head_dim,
                "bits": self.sizes.bits,
                "stacks": {stack: str(self.sizes.architecture(stack)) for stack in stacks},
            },
            "hops": list(self.hops),
            "seed": self.seed,
            "cells": [cell.to_json() for cell in (*self.cells, *self.two_sum)],
        }


def run_hierarchy(
    out: Path,
    *,
    sizes: RunSizes | None = None,
    stacks: Sequence[str] | None = None,
    hops: Sequence[int] = HOPS,
    two_sum: Sequence[str] | None = None,
    seed: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, of, what: None,
) -> Hierarchy:
    """Fill in every cell, write witnesses, `hierarchy.json` and `report.html` below `out`.

    Args:
        out: results folder; what an earlier run left for the same cells is removed before they are filled anew, so that
            a job that is stopped leaves no file that speaks of another one's weights.
        sizes: of every stack.
        stacks: the rows, as schedules; None: those of `STACKS`.
        hops: the columns.
        two_sum: the rows of 2-Sum; None: those of `two_sum.STACKS` where the other rows are the usual ones, else none.
        seed: of random instances and random weights.
        progress: called before each cell with the number of cells done, of all, and the cell's name.

    Raises:
        InputError: a stack that is no schedule or cannot be run, or hops that no task has; nothing is written.
    """
    from hopbound.report import REPORT_FILES, write_report

    sizes = sizes or RunSizes()
    if two_sum is None:
        two_sum = TWO_SUM_STACKS if stacks is None else ()
    stacks, hops = tuple(dict.fromkeys(STACKS if stacks is None else stacks)), tuple(dict.fromkeys(hops))
    two_sum = tuple(dict.fromkeys(two_sum))
    architectures = {stack: sizes.architecture(stack) for stack in (*stacks, *two_sum)}
    for architecture in architectures.values():
        check_runnable(architecture)
    for count in hops:
        if count < 1:
            raise InputError("hops", count, "a number of at least 1")
        _task(count, RANDOM_M, RANDOM_N)
    for name in ("hierarchy.json", *REPORT_FILES):
        (out / name).unlink(missing_ok=True)
    cells, sums = [], []
    wanted = [(stack, slug, count) for stack, slug in zip(stacks, _slugs(stacks), strict=True) for count in hops]
    of = len(wanted) + len(two_sum)
    for done, (stack, slug, count) in enumerate(wanted):
        progress(done, of, f"{stack}, {count} hop{'s' if count > 1 else ''}")
        cells.append(fill_cell(out, f"{slug}-{count}", stack, architectures[stack], count, seed))
    modulus = modulus_for(sizes.head_dim)
    for done, (stack, slug) in enumerate(zip(two_sum, _slugs(two_sum), strict=True), start=len(wanted)):
        progress(done, of, f"{stack}, 2-Sum")
        _forget(out, name := f"two-sum-{slug}")
        sums.append(fill_two_sum(out, name, stack, architectures[stack], modulus, seed=seed))
    progress(of, of, "report")
    result = Hierarchy(sizes, stacks, hops, seed, tuple(cells), tuple(sums))
    write_json(out / "hierarchy.json", result.to_json())
    write_report(out)
    return result


def fill_cell(out: Path, name: str, stack: str, architecture: Architecture, hops: int, seed: int) -> Cell:
    """One cell: build, prove, break; what is found is written below `out`, in files called `name`."""
    _forget(out, name)
    witness: list[tuple[str, str]] = []
    built = _build_cell(out / "models" / name, architecture, hops, seed)
    if built is not None:
        witness.append(("model", f"models/{name}"))
    bound = prove(architecture, hops)
    broken = None
    if bound.certificate is not None:
        write_json(out / "certificates" / f"{name}.json", bound.certificate.document())
        witness.append(("certificate", f"certificates/{name}.json"))
        subject = _subject_to_break(out, name, architecture, hops, seed)
        broken = break_model(subject, out=out / "pairs", name=name, seed=seed)
        if broken.pair is not None:
            witness.append(("pair", f"pairs/{name}.json"))
    return Cell(stack, hops, built, bound, broken, tuple(witness))


def _slugs(stacks: Sequence[str]) -> list[str]:
    """The stacks as parts of file names, `linear-3xfull`; a number tells apart those that would have the same."""
    plain = ["".join(c if c.isalnum() else "x" if c == "*" else "-" for c in stack)[:MAX_SLUG] for stack in stacks]
    before = [plain[:row].count(slug) for row, slug in enumerate(plain)]
    return [f"{slug}--{same + 1}" if same else slug for slug, same in zip(plain, before, strict=True)]


def _forget(out: Path, name: str) -> None:
    """Remove a cell's witnesses; what names another file goes before it."""
    for file in (out / "pairs" / f"{name}.json", out / "certificates" / f"{name}.json"):
        file.unlink(missing_ok=True)
    for folder in (out / "pairs" / f"{name}-model", out / "models" / name, out / "models" / f"{name}-overfilled"):
        if (folder / "model.json").is_file():
            (folder / "model.json").unlink()  # without it the folder is no model
            shutil.rmtree(folder)


def _task(hops: int, m: int, n: int) -> FunctionComposition:
    """The task with the same number of query parts at each hop and the paper's value sizes."""
    return FunctionComposition(hops=hops, m=m, n=(n,) * (hops - 1))


def _build_cell(folder: Path, architecture: Architecture, hops: int, seed: int) -> BuildResult | None:
    """The construction at the roomy sizes or, where a state limits it, at the longest prompt that fits."""
    task = _fitting_task(architecture, hops)
    if task is None:
        return None
    result = build(architecture, task, out=folder, seed=seed)
    return result if result.verification.verified else None


def _fitting_task(architecture: Architecture, hops: int) -> FunctionComposition | None:
    for m, n in ROOMY:
        task = _task(hops, m, n)
        plan = best_plan(architecture, hops, task_sizes(task))
        if plan.hops == hops and plan.construction != "C3":
            return task
    fitting = (task for task in _tasks_by_m(architecture, hops) if _makes(architecture, task_sizes(task)))
    return max(fitting, key=lambda task: task.prompt_length, default=None)


def _tasks_by_m(architecture: Architecture, hops: int) -> Iterator[FunctionComposition]:
    """Tasks around the capacity of the stack's states: m up to one more than the largest key dimension."""
    dims = [getattr(mixer, "head_dim", 1) for layer in architecture.layers for mixer in layer.mixers]
    for m in range(2, max(dims) + 2):
        yield _task(hops, m, LIMITED_N)


def _makes(architecture: Architecture, sizes: TaskSizes, *, overfill: bool = False) -> bool:
    return best_plan(architecture, sizes.hops, sizes, overfill=overfill).hops == sizes.hops


def _subject_to_break(out: Path, name: str, architecture: Architecture, hops: int, seed: int) -> Subject:
    """A construction with one address more than its state holds, or random weights."""
    for task in _tasks_by_m(architecture, hops):
        sizes = task_sizes(task)
        if not _makes(architecture, sizes) and _makes(architecture, sizes, overfill=True):
            folder = out / "models" / f"{name}-overfilled"
            build(architecture, task, out=folder, seed=seed, overfill=True)
            return model_subject(folder)
    return random_subject(architecture, _task(hops, RANDOM_M, RANDOM_N), seed)
