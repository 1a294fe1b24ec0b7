"""Charts to files: SVG text, or PNG where the name says so; written whole or not at all."""

from pathlib import Path
from typing import Any

from hopbound.files import replacing

_UNITS = (" KiB", " MiB", " GiB", " TiB", " PiB")
BYTES = "datum.value < 1024 ? datum.value + ' B' : " + "".join(
    f"{f'datum.value < {1024 ** (power + 1)} ? ' if power < len(_UNITS) else ''}"
    f"format(datum.value / {1024**power}, '.3~r') + '{unit}'{' : ' if power < len(_UNITS) else ''}"
    for power, unit in enumerate(_UNITS, start=1)
)
"""How an axis writes bytes, in the language of Vega expressions."""


def write_chart(chart: Any, path: Path) -> None:
    """Draw an Altair chart into a file.

    Args:
        chart: the chart.
        path: `….svg` or `….png`.
    """
    import vl_convert

    drawing = vl_convert.vegalite_to_png(chart.to_dict(), scale=2) if path.suffix == ".png" else None
    with replacing(path) as temporary:
        if drawing is not None:
            temporary.write_bytes(drawing)
        else:
            temporary.write_text(vl_convert.vegalite_to_svg(chart.to_dict()), encoding="utf-8")
