"""`hopbound design`: the cheapest schedules that make the hops, and why."""

import re
import textwrap
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbound.cli import common

if TYPE_CHECKING:
    from hopbound.design import Design, Designs, Limit, Names

_UNITS = {"": 1, "B": 1, **{f"{c}B": 1000**i for i, c in enumerate("kMGT", 1)}}
_UNITS |= {f"{c}iB": 1024**i for i, c in enumerate("KMGT", 1)}


def command(
    hops: Annotated[int, typer.Option("--hops", help="How many dependent look-ups are asked for.")],
    context: Annotated[int, typer.Option("--context", help="Prompts of up to so many tokens, whatever the sizes.")],
    mixers: Annotated[
        str, typer.Option("--mixers", help='Layers to choose from, as in "full gdn window[w=512]".')
    ] = "full window linear gdn conv",
    layers: Annotated[
        int | None, typer.Option("--layers", help="The exact depth; filled up with the cheapest mixer.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", help='Bytes a sequence may hold, as "64MiB", or a token of the context, "512/token".'),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many designs are shown, the cheapest first.")] = 5,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    bits: common.BitsOption = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Build each design that is shown at a small size and run it.")
    ] = False,
    seed: common.SeedOption = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for design.json and design.svg.")] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Find the cheapest schedules that make this many hops at every choice of sizes whose prompts fit the context.

    Cheapest among what can be built here: by caches, states and layers. What no weights can do says `hopbound bound`.

    Example: hopbound design --hops 3 --context 131072
    """
    from hopbound.architecture import Defaults, parse_layers
    from hopbound.design import design
    from hopbound.errors import InputError

    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    try:
        menu = parse_layers(mixers, defaults)
    except InputError as error:
        raise InputError("mixers", mixers, error.expected) from error
    found = design(
        hops,
        context,
        menu,
        precisions=common.precisions(bits),
        layers=layers,
        budget=None if budget is None else _budget(budget, context),
        limit_to=limit,
    )
    confirmed = [_confirmed(one, hops, context, seed) if confirm else None for one in found.designs]
    result = _document(found, mixers, layers, budget, confirmed)
    if out is not None:
        from hopbound.files import write_json
        from hopbound.report.design import write_design

        write_json(out / "design.json", result)
        write_design(result, out / "design.svg")
    if as_json:
        common.print_json(result)
    else:
        common.print_lines(_lines(result, out))
    if any(one is not None and one["verdict"] != "possible" for one in confirmed):
        raise typer.Exit(1)


def _budget(text: str, context: int) -> Fraction:
    """Bytes at the context.

    Raises:
        InputError: it is no number of bytes.
    """
    from hopbound.errors import InputError

    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,6})?) ?([kKMGT]?i?B?)(/token)?", text)
    if match is None or match[2] not in _UNITS:
        raise InputError("budget", text, 'bytes, as in "67108864", "64MiB" or "512/token"')
    return Fraction(match[1]) * _UNITS[match[2]] * (context if match[3] else 1)


def _confirmed(one: "Design", hops: int, context: int, seed: int) -> dict[str, Any]:
    """Build a design at a small size and run it."""
    from hopbound.constructions import build
    from hopbound.tasks import FunctionComposition

    tasks = [FunctionComposition(hops, m, (n,) * (hops - 1), (2,) * (hops - 1)) for m, n in ((4, 2), (3, 1), (2, 1))]
    task = next(task for task in tasks if task.prompt_length <= context)
    result = build(one.architecture, task, seed=seed)
    return {
        "verdict": result.verdict,
        "prompt_length": task.prompt_length,
        "domains": list(task.domains),
        "values": list(task.values),
        "construction": result.built.construction,
        **result.verification.to_json(),
    }


def _document(
    found: "Designs", mixers: str, layers: int | None, budget: str | None, confirmed: list[dict[str, Any] | None]
) -> dict[str, Any]:
    from hopbound.design import Names

    fewer, names = found.fewer, Names(found.mixers)
    return {
        "schema": "hopbound/design/1",
        "hops": found.hops,
        "context": found.context,
        "mixers": mixers,
        "layers": layers,
        "budget": budget,
        "found": found.found,
        "designs": [_design(one, found, names, built) for one, built in zip(found.designs, confirmed, strict=True)],
        "fewer_full": None
        if fewer is None
        else {
            "full_layers": fewer.full_layers,
            "largest_context": fewer.context,
            "schedule": None if fewer.architecture is None else str(fewer.architecture),
            "label": None if fewer.architecture is None else names.of(fewer.architecture.layers),
            "limit": _limit(fewer.limit),
        },
    }


def _limit(found: "Limit | None") -> dict[str, Any] | None:
    if found is None:
        return None
    sizes = {"domains": list(found.sizes.domains), "values": list(found.sizes.values), "n": list(found.sizes.n)}
    return {"context": found.context, "sizes": sizes, "reason": found.reason}


def _design(one: "Design", found: "Designs", names: "Names", built: dict[str, Any] | None) -> dict[str, Any]:
    architecture = one.architecture
    plan = next(iter(one.plans.values()))
    moves = {step.layer: f"{step.move.value} i_{step.hop}" for step in plan.steps}
    return {
        "schedule": str(architecture),
        "label": names.of(architecture.layers),
        "layers": len(architecture.layers),
        "idle_layers": one.idle,
        "full_layers": len(architecture.full_layers),
        "kv_bytes": one.held.kv_bytes,
        "state_bytes": one.held.state_bytes,
        "bytes": one.held.bytes,
        "cost": one.held.bytes / found.context,
        "cheapest": one.cheapest,
        "hops": one.hops,
        "construction": one.construction,
        "stack": [
            {
                "kind": "full" if index in architecture.full_layers else "bounded",
                "name": "|".join(mixer.name for mixer in layer.mixers),
                "move": moves.get(index),
            }
            for index, layer in enumerate(architecture.layers)
        ],
        "conditions": _conditions(one, found),
        "limit": _limit(one.limit),
        "why": list(one.why),
        "placement": {
            "orders": one.placement.orders,
            "working": one.placement.working,
            "same": [names.of(order.layers) for order in one.placement.same],
            "fewer": [{"label": names.of(order.layers), "hops": hops} for order, hops in one.placement.fewer],
        },
        "confirmed": built,
    }


def _conditions(one: "Design", found: "Designs") -> list[str]:
    """Under which sizes the claim holds."""
    smallest = all(set(sizes.domains) == {2} for sizes in one.plans)
    hardest = " and ".join(f"D = {_listed(sizes.domains)}, M = {_listed(sizes.values)}" for sizes in one.plans)
    decided = "no larger sizes refuse a move that the smallest allow" if smallest else f"decided by {hardest}"
    lines = [
        "the query in one token, at the end of the prompt",
        f"every choice of sizes with a prompt of at most {found.context:,} tokens; {decided}",
    ]
    if one.limit is None:
        lines.append("it goes on to the longest prompts that are asked for, 2^40 tokens")
    else:
        lines.append(f"it goes on up to {one.limit.context:,} tokens; {_beyond(_limit(one.limit))}")
    return lines


def _beyond(found: dict[str, Any] | None) -> str:
    """Why a stack stops making its hops, at the shortest prompt at which it does."""
    if found is None:
        return ""
    domains = _listed(found["sizes"]["domains"])
    return f"one more at D = {domains}: {found['reason']}"


def _listed(numbers: Iterable[int]) -> str:
    return f"({', '.join(f'{number:,}' for number in numbers)})"


# -- for people


def _lines(result: dict[str, Any], out: Path | None) -> list[str]:
    hops = result["hops"]
    plural = "s" if hops != 1 else ""
    lines = [
        f"asked     {hops} hop{plural} at every choice of sizes with a prompt of at most {result['context']:,} tokens",
        f"found     {_counted(result)}; * no other takes as little in caches, states and layers",
        "",
    ]
    lines += _table(result["designs"])
    for number, one in enumerate(result["designs"], start=1):
        lines += ["", f"{number}  {one['schedule']}"]
        lines += _entries("why", one["why"])
        lines += _entries("holds", one["conditions"])
        if one["confirmed"] is not None:
            built = one["confirmed"]
            text = (
                f"{built['verdict']}: {built['construction']} at {built['prompt_length']} tokens, "
                f"{built['instances']:,} instances, accuracy {built['accuracy']:.6g}, "
                f"smallest margin {built['smallest_margin']:.4f}"
            )
            lines += _entries("built", [text])
    lines += ["", *_fewer_lines(result)]
    if out is not None:
        lines.append(f"written   {out / 'design.json'}, {out / 'design.svg'}")
    return lines


def _entries(name: str, texts: Iterable[str]) -> list[str]:
    """Sentences under a heading, folded at the width of a page."""
    lines: list[str] = []
    for text in texts:
        first = f"   {name if not lines else '':7}"
        lines += textwrap.wrap(
            text, 116, initial_indent=first, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False
        )
    return lines


def _counted(result: dict[str, Any]) -> str:
    shown, found = len(result["designs"]), result["found"]
    kind = "designs from which no layer can be taken" if result["layers"] is None else f"of {result['layers']} layers"
    return f"{found} {kind}" + (f", the {shown} cheapest shown" if shown < found else "")


def _table(designs: list[dict[str, Any]]) -> list[str]:
    from hopbound.report.numbers import bytes_text

    rows = [["", "", "schedule", "layers", "caches", "states", "bytes a token", "by"]]
    for number, one in enumerate(designs, start=1):
        rows.append(
            [
                str(number),
                "*" if one["cheapest"] else "",
                one["label"],
                str(one["layers"]),
                bytes_text(one["kv_bytes"]),
                bytes_text(one["state_bytes"]),
                f"{one['cost']:,.2f}",
                one["construction"],
            ]
        )
    return common.table(rows, right={3, 4, 5, 6})


def _fewer_lines(result: dict[str, Any]) -> list[str]:
    fewer, hops = result["fewer_full"], result["hops"]
    if fewer is None:
        return []
    count = fewer["full_layers"]
    layers = f"{count} full layer{'s' if count != 1 else ''}" if count else "no full layer"
    if fewer["schedule"] is None:
        return [f"fewer     {layers}: no schedule of these mixers makes {hops} hops at any context"]
    text = f"fewer     {layers}: enough up to {fewer['largest_context']:,} tokens, {fewer['label']}"
    return [text, f"          {_beyond(fewer['limit'])}"] if fewer["limit"] is not None else [text]
