"""Models as a figure: bytes that a sequence holds against its length, with the hops that each stack can make."""

from pathlib import Path
from typing import Any

from hopbound.report.drawing import BYTES, write_chart

MOST = 12  # models that are drawn
PALETTE = ("#2f5f9e", "#c2571a", "#2f6f4f", "#8c3b72", "#7a6a1e", "#4b4b4b")
DASHES = ((1, 0), (6, 3))  # beyond the palette's end the colours come again, dashed
GAP = 0.045  # least distance of two labels, as a part of the picture's height
HEIGHT, WIDTH = 340, 520
_TOKENS = (
    "datum.value < 1024 ? datum.value : datum.value < 1048576 ? datum.value / 1024 + 'k' : datum.value / 1048576 + 'M'"
)


def write_curves(document: dict[str, Any], path: Path) -> None:
    """Draw a result of `hopbound analyze` whose models have their `curve`.

    Both axes are logarithmic. A line ends with its model's name and hops; a model that holds nothing has no line, and
    its label says so at the foot. The dot is the context for which the bytes are counted.

    Args:
        document: the result.
        path: `….svg` or `….png`.
    """
    import altair as alt

    models = document["models"][:MOST]
    lines, dots = _points(models, document["context"])
    held = [row["bytes"] for row in lines]
    low, high = _octave(min(held, default=1), down=True), _octave(max(held, default=2), down=False)
    ends = labels(models, low, high)
    names = [row["model"] for row in ends]
    colors = alt.Scale(domain=names, range=[PALETTE[at % len(PALETTE)] for at in range(len(names))])
    dashes = alt.Scale(domain=names, range=[list(DASHES[at // len(PALETTE) % 2]) for at in range(len(names))])
    color = alt.Color("model:N", scale=colors, legend=None)
    x = alt.X(
        "context:Q",
        title="tokens of context",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(labelExpr=_TOKENS, values=[2**k for k in range(8, 25, 2)], labelAngle=0),
    )
    step = 2 * max(1, round((high.bit_length() - low.bit_length()) / 20))
    ticks = [2**k for k in range(low.bit_length() - 1, high.bit_length(), step)]
    heights = alt.Scale(type="log", base=2, domain=[low, high], nice=False)
    y = alt.Y(
        "bytes:Q",
        title=f"bytes of caches and states{_sequences(document['batch'])}",
        scale=heights,
        axis=alt.Axis(labelExpr=BYTES, values=ticks),
    )
    drawn = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=2).encode(x, y, color)
    drawn = drawn.encode(strokeDash=alt.StrokeDash("model:N", scale=dashes, legend=None))
    marked = alt.Chart(alt.Data(values=dots)).mark_point(filled=True, size=60).encode(x, y, color)
    text = alt.Chart(alt.Data(values=ends)).mark_text(align="left", dx=8, fontSize=11, limit=320)
    named = text.encode(x=alt.value(WIDTH), y=alt.Y("at:Q", scale=heights), text="text:N", color=color)
    title = alt.Title(
        "What a sequence holds",
        subtitle="behind a name: hops that its stack can make with weights made for it; a dot: the context asked for",
        subtitleColor="#555",
    )
    chart = (
        alt.layer(drawn, marked, named)
        .properties(width=WIDTH, height=HEIGHT, title=title)
        .configure(background="white")
        .configure_view(stroke=None)
        .configure_title(anchor="start")
    )
    write_chart(chart, path)


def _points(models: list[dict[str, Any]], context: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines and the dots; nothing where no byte is held, a logarithm has no place for it."""
    lines, dots = [], []
    for at, one in enumerate(models):
        name, first, last = _name(one, at), one["curve"][0][0], one["curve"][-1][0]
        lines += [{"model": name, "context": n, "bytes": held} for n, held in one["curve"] if held]
        held = one["kv_bytes"] + one["state_bytes"] + one["conv_bytes"]
        if held and first <= context <= last:
            dots.append({"model": name, "context": context, "bytes": held})
    return lines, dots


def labels(models: list[dict[str, Any]], low: int, high: int) -> list[dict[str, Any]]:
    """A label a model beside its line's end, pushed apart where they would lie on each other.

    Args:
        models: of the document, with their curves.
        low: bytes at the foot of the picture.
        high: bytes at its top.
    """
    from math import log2

    span = log2(high) - log2(low)
    ends = sorted(((log2(max(low, one["curve"][-1][1])) - log2(low)) / span, at, one) for at, one in enumerate(models))
    places: list[float] = []
    for end, _, _ in ends:
        places.append(max(end, places[-1] + GAP) if places else end)
    over = max(0.0, places[-1] - 1) if places else 0.0
    for back in range(len(places) - 1, -1, -1):  # push the upper ones down again
        above = places[back + 1] - GAP if back + 1 < len(places) else places[back] - over
        places[back] = min(places[back], above)
    return [
        {"model": _name(one, at), "at": 2 ** (log2(low) + place * span), "text": _text(one)}
        for place, (_, at, one) in zip(places, ends, strict=True)
    ]


def _name(one: dict[str, Any], at: int) -> str:
    """What tells the models apart, if need be by their places."""
    return f"{one['name']} {at}"


def _text(one: dict[str, Any]) -> str:
    hops = one["hops_possible"]["hops"]
    word = "no hop built" if not hops else "1 hop" if hops == 1 else f"{hops} hops"
    nothing = "" if one["curve"][-1][1] else ", holds nothing"
    name = one["name"]
    return f"{name if len(name) <= 36 else '…' + name[-35:]}: {word}{nothing}"


def _sequences(batch: int) -> str:
    return f", {batch:,} sequences" if batch > 1 else ""


def _octave(value: float, *, down: bool) -> int:
    """The power of two below or above, never one and the same for both."""
    whole = int(value)
    return 2 ** (max(whole, 1).bit_length() - 1) if down else 2 ** (max(whole, 1).bit_length())
