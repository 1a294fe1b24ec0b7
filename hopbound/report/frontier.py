"""The frontier as a figure: sizes that are built, sizes that are certified impossible, the gap between."""

from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

from hopbound.report.drawing import write_chart

COLORS = {"built": "#8cc69b", "neither is known": "#eceff1", "impossible": "#e3a29b"}
ABOVE = 3.0  # how far the picture goes beyond the largest certified size, in powers of two
MOST = 60.0  # powers of two that are drawn at most


def write_frontier(document: dict[str, Any], path: Path) -> None:
    """Draw the `frontier` part of a result of `hopbound bound` with two hops.

    Args:
        document: the result.
        path: `….svg` or `….png`.
    """
    import altair as alt

    rows = document["frontier"]["rows"]
    known = [log2(row["impossible"] * row["values"]) for row in rows if row["impossible"]]
    if not known:
        known = [log2(row["built"] * row["values"]) for row in rows if row["built"]]
    top = min(MOST, max(known, default=10.0) + ABOVE)
    boxes = [
        box for row, (left, right) in zip(rows, _edges(rows), strict=True) for box in _boxes(row, left, right, top)
    ]
    base = alt.Chart(alt.Data(values=boxes)).mark_rect()
    chart = (
        base.encode(
            x=alt.X("left:Q", title="log₂ m (addresses of z₁)", scale=alt.Scale(nice=False, zero=False)),
            x2="right:Q",
            y=alt.Y("low:Q", title="log₂ D₂ (addresses of z₂)", scale=alt.Scale(nice=False, domain=[0, top])),
            y2="high:Q",
            color=alt.Color(
                "kind:N", title=None, scale=alt.Scale(domain=list(COLORS), range=list(COLORS.values())), sort=None
            ),
        )
        .properties(
            width=560, height=300, title=f"{document['label']}, two hops, {document['frontier']['sizes']} sizes"
        )
        .configure(background="white")
        .configure_view(stroke=None)
    )
    write_chart(chart, path)


def _edges(rows: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Where each row's column starts and ends: halfway to its neighbours."""
    places = [log2(row["m"]) for row in rows]
    between = [(a + b) / 2 for a, b in pairwise(places)]
    return list(zip([places[0], *between], [*between, places[-1]], strict=True))


def _boxes(row: dict[str, Any], left: float, right: float, top: float) -> list[dict[str, Any]]:
    """What is known of `D_2 = n_1 M_1` along one column, from the bottom up."""
    values = row["values"]
    built = top if row["built"] is None else log2(row["built"] * values) if row["built"] else 0.0
    impossible = top if row["impossible"] is None else log2(row["impossible"] * values)
    spans = (("built", 0.0, built), ("neither is known", built, impossible), ("impossible", impossible, top))
    return [
        {"kind": kind, "left": left, "right": right, "low": min(low, top), "high": min(high, top)}
        for kind, low, high in spans
        if min(low, top) < min(high, top)
    ]
