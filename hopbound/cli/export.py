"""`hopbound export`: a built model for other programs, run beside the original."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hopbound.cli import common


class FormatName(StrEnum):
    """What is written."""

    onnx = "onnx"
    hf = "hf"
    safetensors = "safetensors"


class ClassName(StrEnum):
    """Classes of transformers that can hold a built model."""

    gpt2 = "gpt2"
    opt = "opt"
    llama = "llama"


def command(
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    format: Annotated[
        FormatName, typer.Option("--format", help="A graph, a folder for transformers, or plain tables and matrices.")
    ] = FormatName.onnx,
    model_class: Annotated[
        ClassName, typer.Option("--class", help="Class of transformers, for --format hf.")
    ] = ClassName.gpt2,
    seed: common.SeedOption = 0,
    as_json: common.JsonOption = False,
) -> None:
    """Write a model for onnxruntime or transformers, and keep it if 1,000 answers are the original's.

    Half of the prompts are random, half adversarial. What a format cannot hold is refused.

    Example: hopbound export model --format hf --out exported
    """
    from hopbound.export import export_model

    exported = export_model(model, out, format=format.value, model_class=model_class.value, seed=seed)
    if as_json:
        common.print_json({**exported.to_json(), "path": "."})
        return
    holds = f"transformers, {exported.model_class}" if exported.model_class else exported.format
    right = "" if exported.right is None else f", {exported.right:,} of them right"
    before = "" if exported.start is None else f" after the token {exported.start}"
    common.print_lines(
        [
            f"format    {holds}",
            f"prompt    {exported.prompt_length:,} tokens{before}, the answer is the largest logit at the last",
            f"asked     {exported.asked:,} prompts: {exported.same:,} answers are the original's{right}",
            *(f"written   {exported.path / name}, {size:,} bytes" for name, size in exported.files.items()),
        ]
    )
