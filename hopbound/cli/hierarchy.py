"""`hopbound hierarchy`: the main job, the table in which every cell has its witness."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from hopbound.cli import common

if TYPE_CHECKING:
    from hopbound.hierarchy import Hierarchy


def command(
    out: Annotated[Path, typer.Option("--out", help="Results folder.")] = Path("hierarchy"),
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    bits: Annotated[int, typer.Option("--bits", help="Bits of every number.")] = 32,
    stacks: Annotated[
        list[str] | None,
        typer.Option("--stack", help="A row; may be given several times. Default: the nine, and those of 2-Sum."),
    ] = None,
    max_hops: Annotated[int, typer.Option("--hops", min=1, max=8, help="Columns 1 to this.")] = 3,
    seed: common.SeedOption = 0,
    as_json: common.JsonOption = False,
) -> None:
    """Say which stacks make 1, 2, 3 hops: build what is possible, certify what is not, and write the evidence.

    Writes certificates, models and fooling pairs to --out, with hierarchy.json and report.html; about a minute.

    Example: hopbound hierarchy --out hierarchy && hopbound verify hierarchy
    """
    from hopbound.hierarchy import RunSizes, run_hierarchy

    sizes = RunSizes(heads=heads, head_dim=head_dim, bits=bits)
    with _progress() as progress:
        result = run_hierarchy(
            out,
            sizes=sizes,
            stacks=tuple(stacks) if stacks else None,
            hops=range(1, max_hops + 1),
            seed=seed,
            progress=progress,
        )
    if as_json:
        common.print_json(result.to_json())
    else:
        _print_table(result, out)


class _Progress(Protocol):
    def __call__(self, done: int, of: int, what: str) -> None: ...


@contextmanager
def _progress() -> Iterator[_Progress]:
    """A bar on a terminal, plain lines elsewhere; both on stderr."""
    if not sys.stderr.isatty():
        yield lambda done, of, what: common.note(f"{done}/{of} {what}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of, what: bar.update(task, completed=done, total=of, description=what)


def _print_table(result: "Hierarchy", out: Path) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from hopbound.report.numbers import cell_lines

    sizes = result.sizes
    plural = "s" if sizes.heads != 1 else ""
    print(f"sizes: {sizes.heads} head{plural} of dimension {sizes.head_dim}, {sizes.bits} bits for each number")
    table = Table(show_lines=True)
    table.add_column("stack", no_wrap=True)
    for hops in result.hops:
        table.add_column(f"{hops} hop{'s' if hops != 1 else ''}", no_wrap=True)
    cells: dict[tuple[str, int], dict[str, Any]] = {(c.stack, c.hops): c.to_json() for c in result.cells}
    for stack in result.stacks:
        table.add_row(stack, *("\n".join(cell_lines(cells[stack, hops])) for hops in result.hops))
    console = Console()
    console.width = max(console.width, 110)
    console.print(table)
    if result.two_sum:
        table = Table(show_lines=True)
        table.add_column("stack", no_wrap=True)
        table.add_column(
            f"2-Sum modulo {result.two_sum[0].modulus:,}: does one add up to 0 with the last?", no_wrap=True
        )
        for cell in result.two_sum:
            table.add_row(escape(cell.stack), "\n".join(cell_lines(cell.to_json())))
        console.print(table)
    witnesses = sum(len(cell.witness) for cell in (*result.cells, *result.two_sum))
    print(
        "possible: weights built within these sizes and run; n is the prompt length at which they ran (C1 and C2 work"
    )
    print("at every size whose address codes fit into a head)")
    print("impossible from n: no weights whatever, by a certificate for exactly these sizes (worst case)")
    print(f"{witnesses} witnesses in {out}; check them: hopbound verify {out}; read {out / 'report.html'}")
