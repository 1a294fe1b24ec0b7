"""`hopbound ceilings`: the explicit bounds beside the one on hops."""

from typing import Annotated, Any

import typer

from hopbound.cli import common


def command(
    schedule: Annotated[str, typer.Argument(help='A schedule, as in "4*linear" or "2*window conv".')],
    values: Annotated[int, typer.Option("--values", help="How many values an answer can have.")] = 8192,
    pairs: Annotated[int | None, typer.Option("--pairs", help="Pairs to recall: also the accuracy on them.")] = None,
    accuracy: Annotated[float, typer.Option("--accuracy", help="The mean accuracy that is wanted.")] = 1.0,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    bits: common.BitsOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """What a stack cannot recall, copy, reach, read or match, whatever its weights.

    Each bound says whether it is about the worst input or the average one, and what it asks of stack and input.

    Example: hopbound ceilings "4*linear" --values 8192 --pairs 10000
    """
    from hopbound.architecture import Defaults, parse_schedule
    from hopbound.bounds.ceiling import Ceiling, Question, Silence
    from hopbound.bounds.ceilings import ceilings

    question = Question(values, pairs, accuracy)
    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    architecture = parse_schedule(schedule, defaults, common.precisions(bits))
    found = ceilings(architecture, question)
    result: dict[str, Any] = {
        "schema": "hopbound/ceilings/1",
        "schedule": str(architecture),
        "values": values,
        "pairs": pairs,
        "accuracy": accuracy,
        "ceilings": [
            {
                "name": one.name,
                "case": one.case,
                "numbers": dict(one.numbers),
                "statement": one.statement,
                "validity": one.validity,
                "source": one.source,
            }
            for one in found
            if isinstance(one, Ceiling)
        ],
        "silent": [{"name": one.name, "reason": one.reason} for one in found if isinstance(one, Silence)],
    }
    if as_json:
        common.print_json(result)
    else:
        common.print_lines(_lines(result))


def _lines(result: dict[str, Any]) -> list[str]:
    """The ceilings for people."""
    lines = [f"{'stack':15} {result['schedule']}"]
    for one in result["ceilings"]:
        lines += [f"{one['name']:15} {one['statement']}", f"{'':15} {one['case']} case; {one['validity']}"]
        lines += [f"{'':15} by {one['source']}"]
    lines += [f"{'silent':15} {one['name']}: {one['reason']}" for one in result["silent"]]
    return lines
