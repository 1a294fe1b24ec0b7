"""`hopbound break`: a fooling pair for given weights."""

from pathlib import Path
from typing import Annotated

import typer

from hopbound.cli import common


def command(
    model: Annotated[str, typer.Argument(help="A model folder, or a schedule (seeded random weights).")],
    hops: Annotated[int | None, typer.Option("--hops", help="Default: the model's own task; 2 for a schedule.")] = None,
    m: Annotated[int | None, typer.Option("--m", help="Entries of the first function. Default 4.")] = None,
    n: Annotated[str | None, typer.Option("--n", help="Query sizes n_1,..,n_{L-1}. Default 2 each.")] = None,
    values: Annotated[str | None, typer.Option("--values", help="Value sizes. Default: the paper's.")] = None,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    seed: common.SeedOption = 0,
    max_prompts: Annotated[int, typer.Option("--max-prompts", min=2, help="Give up after so many.")] = 100_000,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for pair.json. Default: nothing is written.")
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Find two prompts that differ in one token, with different right answers, that the model answers alike.

    Example: hopbound break "4*linear" --hops 2 --out broken
    """
    from hopbound.architecture import Defaults, parse_schedule
    from hopbound.falsify import break_model, model_subject, random_subject
    from hopbound.tasks import FunctionComposition

    asked = None
    if hops is not None or m is not None or n is not None or values is not None:
        count = 2 if hops is None else hops
        asked = FunctionComposition(
            hops=count,
            m=4 if m is None else m,
            n=(2,) * (count - 1) if n is None else common.numbers("n", n) or (),
            values=common.numbers("values", values),
        )
    if Path(model).is_dir():
        subject = model_subject(Path(model), asked)
    else:
        defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
        task = asked or FunctionComposition(hops=2, m=4, n=(2,))
        subject = random_subject(parse_schedule(model, defaults), task, seed)
    result = break_model(subject, out=out, seed=seed, max_prompts=max_prompts)
    pair = result.pair.to_json() if result.pair is not None else None
    if as_json:
        common.print_json(
            {
                "schema": "hopbound/break/1",
                "found": pair is not None,
                "prompts_tried": result.prompts_tried,
                "pair": pair,
                "path": "pair.json" if pair is not None and out is not None else None,
            }
        )
        return
    if pair is None:
        print(f"none found in {result.prompts_tried:,} prompts (entries on the path of hops changed, one at a time)")
        return
    changed = pair["changed"]
    before, after = changed["values"]
    print(f"broken    {result.prompts_tried:,} prompts tried; the model answers {pair['model_answer']} to both")
    print(f"changed   {changed['function']} at address {changed['address']}: {before} -> {after}")
    for row in range(2):
        hops_shown = " -> ".join(str(value) for value in pair["hops"][row])
        print(f"prompt {row + 1}  {_prompt_text(pair['prompts'][row], changed['position'])}")
        did = pair["model_did"][row]
        verdict = did if did == "right" else f"wrong ({did})"
        print(f"          hops {hops_shown}; right answer {pair['right_answers'][row]}; the model is {verdict}")
    if out is not None:
        print(f"written   {out / 'pair.json'}")


def _prompt_text(prompt: list[int], position: int) -> str:
    """The prompt, or what stands around the changed token of a long one."""
    start = 0 if len(prompt) <= 80 else max(0, position - 20)
    words = [f"[{t}]" if i == position else str(t) for i, t in enumerate(prompt)][start : start + 80]
    return " ".join(["…"] * (start > 0) + words + ["…"] * (start + 80 < len(prompt)))
