"""`hopbound data`: examples of a task as a file, with a card."""

from pathlib import Path
from typing import Annotated

import typer

from hopbound.cli import common


def command(
    task: Annotated[str, typer.Argument(help="A task with its sizes, as in mqar[vocabulary=64,length=32,pairs=4].")],
    out: Annotated[Path, typer.Option("--out", help="File to write, ending in .jsonl or .parquet.")],
    count: Annotated[int, typer.Option("--count", help="How many examples.")] = 10_000,
    split: Annotated[
        str, typer.Option("--split", help="train, or another name, as test, for examples that are held out.")
    ] = "train",
    seed: common.SeedOption = 0,
    as_json: common.JsonOption = False,
) -> None:
    """Write examples of a task as JSONL or Parquet, with a card that says what they are.

    What is for tests is never in training; where there are too few sequences for that, the overlap is counted. The
    card stands beside the file, as FILE.card.json and FILE.card.md.

    Example: hopbound data "k_hop[hops=2,symbols=4,length=32]" --out hops.jsonl
    """
    from hopbound.tasks import parse_sequence_task
    from hopbound.tasks.dataset import write_dataset

    made = write_dataset(parse_sequence_task(task), out, count, split, seed)
    card = made.card
    if as_json:
        common.print_json({**card, "path": str(out)})
        return
    shortcuts = [(name, share) for name, share in card["shortcuts"].items() if share is not None]
    common.print_lines(
        [
            f"task      {card['task_text']}",
            f"examples  {card['examples']:,} of {card['sequence_length']:,} tokens, {card['asked']:,} labels",
            f"split     {card['split']['name']}: {card['split']['rule']}",
            f"chance    {card['chance']:.4f}",
            *(f"shortcut  {share:.4f}  {name}" for name, share in shortcuts),
            f"sha256    {card['sha256']}",
            *(f"written   {path}" for path in (out, *made.card_paths)),
        ]
    )
