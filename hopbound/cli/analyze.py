"""`hopbound analyze`: what real models keep, which hops their stacks can make, and which they provably cannot."""

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbound.cli import common

GLYPHS = {"full": "F", "sparse": "S", "window": "w", "chunked": "k", "recurrent": "r", "conv": "c", "mlp": "."}
COLORS = {"F": "32", "H": "36", "S": "33", "w": "34", "k": "34", "r": "35", "c": "35", ".": "2", "f": "2;32"}
MEANINGS = {
    "F": "full",
    "f": "full with another's keys and values",
    "H": "full beside a recurrence",
    "S": "sparse",
    "w": "window",
    "k": "chunked",
    "r": "recurrent",
    "c": "convolution",
    ".": "position-wise",
}
PER_ROW = 64
COLUMNS = (
    "name",
    "model_type",
    "layers",
    *(f"{kind}_layers" for kind in GLYPHS),
    "kv_bytes_per_token",
    "kv_bytes",
    "state_bytes",
    "conv_bytes",
    "conv_bytes_allocated",
    "hops_possible",
    "construction",
    "hops_impossible",
    "log2_prompt_length",
)


def command(
    models: Annotated[
        list[str],
        typer.Argument(
            help="A config.json, its folder, a GGUF file, a name on the Hugging Face hub, or a schedule in quotes."
        ),
    ],
    context: Annotated[int, typer.Option("--context", help="Tokens at which caches are counted.")] = 131072,
    batch: Annotated[int, typer.Option("--batch", help="How many sequences.")] = 1,
    bits: common.BitsOption = None,
    kv_bits: common.KvBitsOption = None,
    state_bits: common.StateBitsOption = None,
    values: Annotated[int, typer.Option("--values", help="Values of a recalled pair.")] = 8192,
    tight: Annotated[bool, typer.Option("--tight", help="Search for the shortest certified prompt.")] = False,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Bytes against context as a picture, ….svg or ….png.")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Only the table that compares the models.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="One line a model, with commas.")] = False,
    as_json: common.JsonOption = False,
) -> None:
    """Layers, caches and hops of real models, from their config.json or GGUF metadata alone.

    Hops are those of the idealised decoder with these mixers, not of the trained weights. What a file leaves open is
    listed in the notes; what is not understood is an error, never a guess.

    Example: hopbound analyze "12*(3*gdn full)" --head-dim 128 --context 131072
    """
    from hopbound.analysis import analyze, document
    from hopbound.architecture import Defaults
    from hopbound.errors import InputError

    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise InputError("figure", str(figure), "a name that ends in .svg or .png")
    if as_csv and as_json:
        raise InputError("csv", True, "this or --json, not both")
    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    read = [common.read_model(source, defaults, bits, kv_bits, state_bits) for source in models]
    analyses = [analyze(model, context=context, batch=batch, values=values, tight=tight) for model in read]
    found = [document(one, curve=figure is not None) for one in analyses]
    result = {"schema": "hopbound/analyze/1", "context": context, "batch": batch, "models": found}
    if figure is not None:
        from hopbound.report.analyze import write_curves

        write_curves(result, figure)
    if as_json:
        common.print_json(result)
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_row(one) for one in found)
    else:
        colored = sys.stdout.isatty()
        for at, one in enumerate(found if not brief else []):
            common.print_lines([""] * (at > 0) + _lines(one, context, batch, colored))
        if brief or len(found) > 1:
            common.print_lines([""] * (not brief) + _comparison(found))
        if figure is not None:
            common.print_lines([f"{'written':11} {figure}"])


def _row(one: dict[str, Any]) -> dict[str, Any]:
    """One line of the table with commas."""
    counts = {f"{kind}_layers": len(one[f"{kind}_layers"]) for kind in GLYPHS}
    return {
        **{key: one[key] for key in COLUMNS if key in one and key not in counts},
        **counts,
        "layers": len(one["layers"]),
        "hops_possible": one["hops_possible"]["hops"],
        "construction": one["hops_possible"]["construction"],
        "hops_impossible": one["hops_impossible"]["hops"],
        "log2_prompt_length": one["hops_impossible"]["log2_prompt_length"],
    }


def _glyph(layer: dict[str, Any]) -> str:
    kinds = layer["kinds"]
    if "full" in kinds and len(kinds) > 1:
        return "H"
    return "f" if "full" in kinds and layer["kv_shared_from"] is not None else GLYPHS[kinds[0]]


def _map(layers: list[dict[str, Any]], colored: bool) -> list[str]:
    """One glyph a layer, in groups of eight."""
    glyphs = [_glyph(layer) for layer in layers]
    shown = [f"\x1b[{COLORS[g]}m{g}\x1b[0m" if colored else g for g in glyphs]
    groups = ["".join(shown[i : i + 8]) for i in range(0, len(shown), 8)]
    return [" ".join(groups[i : i + PER_ROW // 8]) for i in range(0, len(groups), PER_ROW // 8)]


def _lines(one: dict[str, Any], context: int, batch: int, colored: bool) -> list[str]:
    """One model for people."""
    from hopbound.bounds.ceiling import counted
    from hopbound.report.numbers import bytes_text

    counts = ", ".join(f"{len(one[f'{kind}_layers'])} {kind}" for kind in GLYPHS if one[f"{kind}_layers"])
    rows = _map(one["layers"], colored)
    used = {_glyph(layer) for layer in one["layers"]}
    legend = ", ".join(f"{glyph} {meaning}" for glyph, meaning in MEANINGS.items() if glyph in used)
    lines = [f"model       {one['name']}" + (f" ({one['model_type']})" if one["model_type"] else "")]
    lines += [f"layers      {len(one['layers'])}: {counts}"]
    lines += [f"{'map' if i == 0 else '':11} {row}" for i, row in enumerate(rows)] + [f"{'':11} {legend}"]
    bits, many = one["bits"], f", {batch} sequences" if batch > 1 else ""
    lines += [
        f"kv          {one['kv_bytes_per_token']:,} bytes a token for ever; {bytes_text(one['kv_bytes'])} at "
        f"{context:,} tokens{many} ({bits['kv']} bits)",
        f"state       {bytes_text(one['state_bytes'])} ({bits['state']} bits)",
        f"conv        {bytes_text(one['conv_bytes'])} needed, "
        f"{bytes_text(one['conv_bytes_allocated'])} as engines allocate it ({bits['conv']} bits)",
    ]
    possible = one["hops_possible"]
    by = f" by {possible['construction']}" if possible["construction"] else ""
    lines.append(f"possible    {counted(possible['hops'], 'hop')}{by}, of {possible['of']}")
    joint = "if " if possible["hops"] else ""
    lines += [f"{'':11} {joint}{condition}" for condition in possible["conditions"]]
    return [*lines, *_claims(one, context)]


def _claims(one: dict[str, Any], context: int) -> list[str]:
    from hopbound.bounds.ceiling import counted

    impossible, lines = one["hops_impossible"], []
    if impossible["hops"] is None:
        lines.append(f"impossible  no claim: {impossible['reason']}")
    else:
        hops, power = impossible["hops"], impossible["log2_prompt_length"]
        lines.append(
            f"impossible  {counted(hops, 'hop')} from 2^{power:.1f} tokens on, whatever the weights "
            f"({impossible['theorem']}, {impossible['source']})"
        )
        if not impossible["certified_at_context"]:
            lines.append(f"{'':11} at {context:,} tokens this worst-case bound is silent")
    searched = {each["knob"]: each["factor"] for each in one["limits"]}
    factors = searched or {each["knob"]: each["factor"] for each in one["excess"]}
    if factors and set(factors.values()) == {None}:
        lines.append(f"{'':11} it would be with one bit of state and of width a layer")
    else:
        lines += [f"{'':11} {_excess(knob, factor, context)}" for knob, factor in factors.items() if factor != 1]
    if one["recall"] is not None:
        recall = one["recall"]
        lines.append(
            f"recall      the bounded layers alone hold {recall['state_bits']:,} bits: at most {recall['pairs']:,} "
            f"pairs with {recall['values']:,} values"
        )
    if one["window_reach"] is not None:
        lines.append(f"reach       windows and convolutions alone see back {one['window_reach']:,} tokens")
    return lines + [f"{'note' if i == 0 else '':11} {note}" for i, note in enumerate(one["notes"])]


def _excess(knob: str, factor: float | None, context: int) -> str:
    """By what factor a size exceeds what is certified."""
    said = "not even one bit a layer is certified" if factor is None else f"{_times(factor)} times what is certified"
    return f"{knob}: {said} at {context:,} tokens"


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def _comparison(found: list[dict[str, Any]]) -> list[str]:
    """Several models side by side."""
    from hopbound.report.numbers import bytes_text

    heads = ("model", "layers", "full", "kv/token", "kv", "state", "hops", "impossible")
    rows = [
        (
            one["name"][-40:],
            str(len(one["layers"])),
            str(len(one["full_layers"]) + len(one["sparse_layers"])),
            bytes_text(one["kv_bytes_per_token"]),
            bytes_text(one["kv_bytes"]),
            bytes_text(one["state_bytes"]),
            str(one["hops_possible"]["hops"]),
            str(one["hops_impossible"]["hops"] or "no claim"),
        )
        for one in found
    ]
    return common.table([heads, *rows], right=range(1, len(heads)))
