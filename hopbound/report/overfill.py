"""Accuracy against the size of z_1 as a figure, with the sizes that are certified impossible shaded."""

from pathlib import Path
from typing import Any

from hopbound.report.drawing import write_chart

COLORS = {"an entry a row": "#8aa9d6", "packed": "#2f6f4f"}
IMPOSSIBLE = "#e3a29b"
BEYOND = 1.5  # how far the picture goes beyond the smallest certified size, as a factor


def write_overfill(document: dict[str, Any], path: Path) -> None:
    """Draw the document of `constructions.overfill`.

    Args:
        document: the result.
        path: `….svg` or `….png`.
    """
    import altair as alt

    points, built, impossible = document["measured"], document["built"], document["impossible"]
    end = BEYOND * max(impossible, *(one["m"] for one in points))
    domain = [min(one["m"] for one in points), end]
    x = alt.X("m:Q", title="m (entries of z₁)", scale=alt.Scale(type="log", base=2, domain=domain, nice=False))
    y = alt.Y("accuracy:Q", title="answers that are right", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    shade = [{"m": impossible, "end": end, "says": "certified impossible"}]
    marks = [
        {"m": built, "says": f"built up to m = {built:,}"},
        {"m": impossible, "says": f"impossible at m = {impossible:,}"},
    ]
    area = alt.Chart(alt.Data(values=shade)).mark_rect(color=IMPOSSIBLE, opacity=0.6).encode(x=x, x2="end:Q")
    rules = alt.Chart(alt.Data(values=marks)).mark_rule(strokeDash=[4, 3], color="#555555").encode(x=x)
    words = alt.Chart(alt.Data(values=marks)).mark_text(angle=270, dy=-7, dx=4, align="left", color="#333333")
    said = words.encode(x=x, y=alt.value(200), text="says:N")
    scale = alt.Scale(domain=list(COLORS), range=list(COLORS.values()))
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True)
        .encode(x=x, y=y, color=alt.Color("memory:N", title="memory", scale=scale))
    )
    hops = {1: "one hop", 2: "two hops"}[document["hops"]]
    chart = (
        (area + rules + lines + said)
        .properties(width=560, height=300, title=f"{document['label']}, {hops}: accuracy of the weights that are built")
        .configure(background="white")
        .configure_view(stroke=None)
    )
    write_chart(chart, path)
