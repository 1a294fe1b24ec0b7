"""`hopbound build`: explicit weights that make the hops, run and verified."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbound.cli import common

if TYPE_CHECKING:
    from hopbound.tasks import Task


class DtypeName(StrEnum):
    """Types that models are built in."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    float64 = "float64"


def command(
    schedule: Annotated[str, typer.Argument(help='A schedule, as in "3*full" or "linear 2*full".')],
    hops: Annotated[int | None, typer.Option("--hops", help="How many dependent look-ups.")] = None,
    m: Annotated[int | None, typer.Option("--m", help="Entries of the first function, at least 2.")] = None,
    n: Annotated[str, typer.Option("--n", help="Query sizes n_1,..,n_{L-1}: one fewer than the hops.")] = "",
    values: Annotated[
        str | None, typer.Option("--values", help="Value sizes M_1,..,M_{L-1}. Default: the paper's, M_l = D_l.")
    ] = None,
    asked: Annotated[
        str | None, typer.Option("--task", help='Another task than hops, as "two_sum[n=64,modulus=100]".')
    ] = None,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    dtype: Annotated[DtypeName, typer.Option("--dtype", help="Type of weights and activations.")] = DtypeName.float32,
    overfill: Annotated[
        bool, typer.Option("--overfill", help="Go beyond the limits of a construction, to see it fail.")
    ] = False,
    thoughts: Annotated[
        bool, typer.Option("--thoughts", help="The model appends tokens of its own before it answers.")
    ] = False,
    bidirectional: Annotated[
        bool, typer.Option("--bidirectional", help="An encoder: every token sees all others.")
    ] = False,
    precision: Annotated[
        bool, typer.Option("--precision", help="Also run in fewer and fewer bits, to find how many are needed.")
    ] = False,
    seed: common.SeedOption = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the model. Default: nothing is written.")
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Write weights by hand, run them, and keep them if every instance is answered right.

    All instances are asked if there are at most 10^5, else 10,000 random and 1,000 adversarial ones (20 and 4 where
    prompts are longer than 10^5 tokens).

    Example: hopbound build "linear 2*full" --hops 2 --m 8 --n 4 --out model
    """
    from hopbound.architecture import Defaults, parse_schedule
    from hopbound.bounds.ceiling import counted
    from hopbound.constructions import build
    from hopbound.decoder.folder import DTYPES
    from hopbound.tasks import format_task

    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    architecture = parse_schedule(schedule, defaults)
    task = _task(asked, hops, m, n, values)
    result = build(
        architecture,
        task,
        out=out,
        dtype=DTYPES[dtype.value],
        seed=seed,
        overfill=overfill,
        thoughts=thoughts,
        bidirectional=bidirectional,
        precision=precision,
    )
    verification, built = result.verification, result.built
    sizes = _sizes(task)
    if as_json:
        common.print_json(
            {
                "schema": "hopbound/build/1",
                "verdict": result.verdict,
                "schedule": str(architecture),
                "task": task.name,
                "sizes": task.to_json(),
                "construction": built.construction,
                "moves": list(built.steps),
                "prompt_length": task.prompt_length,
                **{key: list(size) if isinstance(size, tuple) else size for key, size in sizes.items()},
                "width": built.directions.width,
                **verification.to_json(),
                "precision": None if result.precision is None else result.precision.to_json(),
                "path": "." if result.path is not None else None,
            }
        )
    else:
        how = "all there are" if verification.exhaustive else f"{verification.adversarial:,} of them adversarial"
        what = counted(sizes["hops"], "hop") if sizes else task.name
        shape = "D = {domains}, M = {values}, n = {n}".format(**sizes) if sizes else format_task(task)
        common.print_lines(
            [
                f"stack     {architecture}",
                f"verdict   {result.verdict}: {what} by {built.construction}: {', '.join(built.steps)}",
                f"prompt    {task.prompt_length:,} tokens, {shape}",
                f"asked     {verification.instances:,} instances, {how}, in {verification.dtype}",
                f"accuracy  {verification.accuracy:.6g}, smallest margin {verification.smallest_margin:.4f}",
                *([] if result.precision is None else [f"precision {result.precision}"]),
                f"written   {result.path if result.path is not None else 'nothing (give --out)'}",
            ]
        )
    if not verification.verified:
        raise typer.Exit(1)


def _task(asked: str | None, hops: int | None, m: int | None, n: str, values: str | None) -> "Task":
    """The task that is asked for: by its text, or function composition by its sizes.

    Raises:
        InputError: both, or neither.
    """
    from hopbound.errors import InputError
    from hopbound.tasks import FunctionComposition, parse_task

    if asked is not None:
        if hops is not None or m is not None or n or values is not None:
            raise InputError("task", asked, "this, or --hops with its sizes, not both")
        return parse_task(asked)
    for name, value in (("hops", hops), ("m", m)):
        if value is None:
            raise InputError(name, None, f"--{name}, or another task by --task")
    assert hops is not None
    assert m is not None
    return FunctionComposition(hops, m, common.numbers("n", n) or (), common.numbers("values", values))


def _sizes(task: "Task") -> dict[str, Any]:
    """The sizes of hops, under the names of the theory; none for another task."""
    from hopbound.tasks import FunctionComposition

    if not isinstance(task, FunctionComposition):
        return {}
    return {"hops": task.hops, "domains": task.domains, "values": task.values, "n": task.n}
