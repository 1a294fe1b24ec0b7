"""`hopbound build`: explicit weights that make the hops, run and verified."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hopbound.cli import common


class DtypeName(StrEnum):
    """Types that models are built in."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float64 = "float64"


def command(
    schedule: Annotated[str, typer.Argument(help='A schedule, as in "3*full" or "linear 2*full".')],
    hops: Annotated[int, typer.Option("--hops", help="How many dependent look-ups.")],
    m: Annotated[int, typer.Option("--m", help="Entries of the first function, at least 2.")],
    n: Annotated[str, typer.Option("--n", help="Query sizes n_1,..,n_{L-1}: one fewer than the hops.")] = "",
    values: Annotated[
        str | None, typer.Option("--values", help="Value sizes M_1,..,M_{L-1}. Default: the paper's, M_l = D_l.")
    ] = None,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    dtype: Annotated[DtypeName, typer.Option("--dtype", help="Type of weights and activations.")] = DtypeName.float32,
    overfill: Annotated[
        bool, typer.Option("--overfill", help="Let a state hold one table too long, to see it fail.")
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
    from hopbound.constructions import build
    from hopbound.decoder.folder import DTYPES
    from hopbound.tasks import FunctionComposition

    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    architecture = parse_schedule(schedule, defaults)
    task = FunctionComposition(hops=hops, m=m, n=common.numbers("n", n) or (), values=common.numbers("values", values))
    result = build(architecture, task, out=out, dtype=DTYPES[dtype.value], seed=seed, overfill=overfill)
    verification, plan = result.verification, result.built.plan
    moves = [f"layer {step.layer + 1} {step.move.value} i_{step.hop}" for step in plan.steps]
    plural = "s" if hops != 1 else ""
    if as_json:
        common.print_json(
            {
                "schema": "hopbound/build/1",
                "verdict": result.verdict,
                "schedule": str(architecture),
                "hops": hops,
                "construction": plan.construction,
                "moves": moves,
                "prompt_length": task.prompt_length,
                "domains": list(task.domains),
                "values": list(task.values),
                "n": list(task.n),
                "width": result.built.directions.width,
                **verification.to_json(),
                "path": "." if result.path is not None else None,
            }
        )
    else:
        how = "all there are" if verification.exhaustive else f"{verification.adversarial:,} of them adversarial"
        common.print_lines(
            [
                f"stack     {architecture}",
                f"verdict   {result.verdict}: {hops} hop{plural} by {plan.construction}: {', '.join(moves)}",
                f"prompt    {task.prompt_length:,} tokens, D = {task.domains}, M = {task.values}, n = {task.n}",
                f"asked     {verification.instances:,} instances, {how}, in {verification.dtype}",
                f"accuracy  {verification.accuracy:.6g}, smallest margin {verification.smallest_margin:.4f}",
                f"written   {result.path if result.path is not None else 'nothing (give --out)'}",
            ]
        )
    if not verification.verified:
        raise typer.Exit(1)
