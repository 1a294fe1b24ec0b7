"""The report of the main job: one self-contained page, and the table as a figure."""

from pathlib import Path
from typing import Any

from hopbound.errors import InputError
from hopbound.files import read_json, write_text
from hopbound.report.drawing import write_chart
from hopbound.report.numbers import cell_lines, length_text, theorem_text, threshold_text

COMPOSITION, TWO_SUM = "composition", "two_sum"  # the tasks of the cells
REPORT_FILES = ("report.html", "hierarchy.svg")
COLORS = {"possible": "#dcefe0", "impossible": "#f6dcd9", "both": "#f7ecc9", "no claim": "#eceff1"}


def read_hierarchy(folder: Path) -> dict[str, Any]:
    """The document of a results folder.

    Raises:
        InputError: the folder holds no `hierarchy.json`.
        RejectedError: the file cannot be read.
    """
    path = folder / "hierarchy.json"
    if not path.is_file():
        raise InputError("folder", str(folder), "a results folder with hierarchy.json")
    return read_json(path)


def kind_of(cell: dict[str, Any]) -> str:
    """`possible`, `impossible`, `both` (possible at the built size, impossible from another on), or `no claim`."""
    if cell["possible"] and cell["impossible"]:
        return "both"
    return "possible" if cell["possible"] else "impossible" if cell["impossible"] else "no claim"


def write_report(folder: Path) -> Path:
    """Write `report.html`, and the table as `hierarchy.svg`, beside `hierarchy.json`.

    Raises:
        InputError: the folder holds no results.
    """
    document = read_hierarchy(folder)
    cells = [_shown_cell(folder, cell) for cell in document["cells"]]
    by_place = {(cell["stack"], cell["hops"]): cell for cell in cells if cell["task"] == COMPOSITION}
    stacks = list(dict.fromkeys(stack for stack, _ in by_place))
    rows = [(stack, [by_place[stack, hops] for hops in document["hops"]]) for stack in stacks]
    sums = [cell for cell in cells if cell["task"] == TWO_SUM]
    page = _template("hierarchy.html.j2").render(document=document, rows=rows, sums=sums, cells=cells, colors=COLORS)
    path = folder / "report.html"
    write_text(path, page)
    write_figure(document, folder / "hierarchy.svg")
    return path


def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hopbound.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"theorem_text": theorem_text, "threshold_text": threshold_text}
    return environment.get_template(name)


def _shown_cell(folder: Path, cell: dict[str, Any]) -> dict[str, Any]:
    """A cell with its witnesses read in, ready for the page."""
    files = {}
    for witness in cell["witness"]:
        path = folder / witness["path"]
        files[witness["kind"]] = read_json(path / "model.json" if path.is_dir() else path)
    shown = dict(cell)
    two_sum = cell["task"] == TWO_SUM
    column = "2-Sum" if two_sum else cell["hops"]
    shown["anchor"] = f"{cell['stack']} {column}".replace(" ", "-").replace("*", "x")
    shown["kind"] = kind_of(cell)
    shown["lines"] = cell_lines(cell)
    shown["links"] = [(w["kind"], w["path"] + ("/model.json" if w["kind"] == "model" else "")) for w in cell["witness"]]
    certificate = _shown_block_certificate if two_sum else _shown_certificate
    shown["certificate"] = certificate(files["certificate"]) if "certificate" in files else None
    shown["pair"] = _shown_pair(files["pair"]) if "pair" in files else None
    return shown


def _decimal(number: dict[str, str]) -> str:
    return f"{int(number['hex'], 16):,}"


def _shown_certificate(document: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a certificate as text."""
    claim, parameters = document["claim"], document["parameters"]
    sizes = claim["sizes"]
    numbers = {
        "layers": [f"{layer['kind']} {_decimal(layer['bits'])}" for layer in document["stack"]["layers"]],
        "D": [_decimal(number) for number in sizes["domains"]],
        "M": [_decimal(number) for number in sizes["values"]],
        "n": [_decimal(number) for number in sizes["n"]],
    }
    if parameters:
        numbers["x"] = [_decimal(number) for number in parameters["x"]]
        numbers["θ"] = [_decimal(number) for number in parameters["theta"]]
        numbers["δ"] = [_decimal(number) for number in document["deltas"]]
    return {
        "theorem": document["theorem"],
        "theorem_hops": _decimal(document["theorem_hops"]),
        "kind": sizes["kind"],
        "schedule": document["stack"]["schedule"],
        "numbers": numbers,
    }


def _shown_block_certificate(document: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a certificate on block attention as text."""
    layer = document["layer"]
    return {
        "schedule": document["stack"]["schedule"],
        "modulus": f"{document['claim']['modulus']:,}",
        **{name: f"{layer[name]:,}" for name in ("block", "code_bits", "selected")},
    }


def _shown_pair(document: dict[str, Any]) -> dict[str, Any]:
    """The two prompts cut into the functions, the changed token marked."""
    domains = document["task"]
    at = document["changed"]["position"]
    prompts = []
    for prompt in document["prompts"]:
        if len(prompt) <= 256:
            tokens = [(token, place == at) for place, token in enumerate(prompt)]
        else:
            tokens = [
                (token, place + max(0, at - 64) == at) for place, token in enumerate(prompt[max(0, at - 64) :][:128])
            ]
        prompts.append(tokens)
    return {
        "task": domains,
        "prompts": list(zip(prompts, document["hops"], document["right_answers"], document["model_did"], strict=True)),
        "changed": document["changed"],
        "model_answer": document["model_answer"],
        "cut": len(document["prompts"][0]) > 256,
        "tried": document["search"]["prompts_tried"],
        "model": document["model"]["path"],
    }


def write_figure(document: dict[str, Any], path: Path) -> None:
    """The table as a picture; the ending of `path` says which kind (.svg or .png)."""
    import altair as alt

    rows = [
        {
            "stack": cell["stack"],
            "hops": str(cell["hops"]),
            "kind": kind_of(cell),
            "text": cell_lines(cell),
        }
        for cell in document["cells"]
        if cell["task"] == COMPOSITION
    ]
    stacks = list(dict.fromkeys(row["stack"] for row in rows))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "hops:N", title="dependent look-ups (hops) in one forward pass", axis=alt.Axis(labelAngle=0, orient="top")
        ),
        y=alt.Y("stack:N", sort=stacks, title=None, axis=alt.Axis(labelFont="monospace", labelFontSize=13)),
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=3).encode(
        color=alt.Color("kind:N", legend=None, scale=alt.Scale(domain=list(COLORS), range=list(COLORS.values())))
    )
    text = [
        base.transform_filter(f"datum.text.length == {lines}")
        .mark_text(lineBreak="\n", fontSize=12, lineHeight=15, dy=-7 * (lines - 1))
        .encode(text="text:N")
        for lines in (1, 2)
    ]
    sizes = document["sizes"]
    title = f"{sizes['heads']} head of dimension {sizes['head_dim']}, {sizes['bits']} bits"
    chart = (
        alt.layer(boxes, *text).properties(width=620, height=len(stacks) * 44, title=title).configure_view(stroke=None)
    )
    chart = chart.configure(background="white").configure_axis(domain=False, ticks=False)
    write_chart(chart, path)


__all__ = ["COLORS", "REPORT_FILES", "kind_of", "length_text", "read_hierarchy", "write_figure", "write_report"]
