"""Designs as a figure: their layers with what each does, and what they hold in caches and in states."""

from math import log2
from pathlib import Path
from typing import Any

from hopbound.report.drawing import BYTES, write_chart

COLORS = {"full": "#8aa9d6", "bounded": "#8cc69b", "idle": "#eceff1"}
POINTS = {"none takes as little": "#2f6f4f", "another takes less": "#b0b7bc"}
MOST_WORDED = 8  # layers up to which the moves are written into the picture
MOST = 12  # designs that are drawn


def write_design(document: dict[str, Any], path: Path) -> None:
    """Draw a result of `hopbound design`.

    Args:
        document: the result.
        path: `….svg` or `….png`.
    """
    import altair as alt

    designs = document["designs"][:MOST]
    names = [f"{number}  {one['label']}" for number, one in enumerate(designs, start=1)]
    plural = "s" if document["hops"] != 1 else ""
    title = f"{document['hops']} hop{plural} at every choice of sizes with prompts up to {document['context']:,} tokens"
    chart = (
        alt.vconcat(_layers(designs, names), _costs(designs), spacing=30)
        .resolve_scale(color="independent")
        .properties(title=title)
        .configure(background="white")
        .configure_view(stroke=None)
    )
    write_chart(chart, path)


def _layers(designs: list[dict[str, Any]], names: list[str]) -> Any:
    """A row a design: its layers from the input to the output."""
    import altair as alt

    rows = [
        {
            "design": name,
            "layer": place,
            "kind": layer["kind"] if layer["move"] else "idle",
            "text": [layer["name"], layer["move"] or ""],
        }
        for name, one in zip(names, designs, strict=True)
        for place, layer in enumerate(one["stack"], start=1)
    ]
    worded = max(one["layers"] for one in designs) <= MOST_WORDED
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False)),
        y=alt.Y(
            "design:N",
            sort=names,
            title=None,
            axis=alt.Axis(labelFont="monospace", labelFontSize=12, labelLimit=320, domain=False, ticks=False),
        ),
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color(
            "kind:N", title=None, sort=None, scale=alt.Scale(domain=list(COLORS), range=list(COLORS.values()))
        )
    )
    text = base.mark_text(fontSize=11, lineHeight=13, dy=-6).encode(text="text:N")
    chart = alt.layer(boxes, text) if worded else boxes
    return chart.properties(width=560, height=len(designs) * (40 if worded else 24))


def _costs(designs: list[dict[str, Any]]) -> Any:
    """Caches against states, a number a design; numbers of points that would lie on each other stand together."""
    import altair as alt

    together: dict[tuple[int, int, bool], list[int]] = {}
    for number, one in enumerate(designs):
        place = (round(16 * log2(one["kv_bytes"] + 1)), round(2 * log2(one["state_bytes"] + 1)), one["cheapest"])
        together.setdefault(place, []).append(number)
    points = [
        {
            "caches": designs[number]["kv_bytes"],
            "states": designs[number]["state_bytes"],
            "kind": list(POINTS)[0 if designs[number]["cheapest"] else 1],
            "text": ", ".join(str(one + 1) for one in numbers) if number == numbers[-1] else "",
        }
        for numbers in together.values()
        for number in numbers
    ]
    top = 4 * max(16, *(point["states"] for point in points))
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X(
            "caches:Q",
            title="bytes of caches",
            axis=alt.Axis(labelExpr=BYTES, values=_ticks([point["caches"] for point in points])),
            scale=alt.Scale(zero=False, nice=True, padding=20),
        ),
        y=alt.Y(
            "states:Q",
            title="bytes of states",
            axis=alt.Axis(labelExpr=BYTES, values=[0, *(2**power for power in range(4, 44, 4))]),
            scale=alt.Scale(type="symlog", domain=[0, top], nice=False),
        ),
    )
    dots = base.mark_point(filled=True, size=90).encode(
        color=alt.Color(
            "kind:N", title=None, sort=None, scale=alt.Scale(domain=list(POINTS), range=list(POINTS.values()))
        )
    )
    numbers = base.mark_text(align="left", dx=8, dy=-6, fontSize=12).encode(text="text:N")
    return alt.layer(dots, numbers).properties(width=560, height=200)


def _ticks(values: list[int]) -> list[int]:
    """Round numbers of bytes, at most six or so, around the values; the value itself if there is but one."""
    least, most = min(values), max(values)
    if least == most:
        return [least]
    step = 2 ** max(4, ((most - least) // 4).bit_length() - 1)
    return list(range(least // step * step, most + 2 * step, step))
