"""A fooling pair to look at: the two prompts side by side, part by part, and what the model made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hopbound.files import write_text

MOST_TOKENS = 24  # of a part, that are shown in full; of longer ones what stands around the marked tokens
AROUND = 2

Mark = Literal["changed", "matters", "plain", "cut"]


@dataclass(frozen=True)
class Cell:
    """One token, or a stretch that is left out.

    Attributes:
        text: the token, or `…`.
        mark: whether the prompts differ in it, or another token in its place would give another right answer.
    """

    text: str
    mark: Mark

    def __str__(self) -> str:
        return {"changed": "[{}]", "matters": "({})"}.get(self.mark, "{}").format(self.text)


@dataclass(frozen=True)
class Part:
    """A part of the prompt, such as one function, in both prompts."""

    name: str
    cells: tuple[list[Cell], list[Cell]]


def pair_parts(document: dict[str, Any], places: Iterable[tuple[str, int]]) -> list[Part]:
    """The parts of a pair's prompts, in order; tokens of one name stand together, as keys and values that alternate.

    Args:
        document: the pair, as stored.
        places: for each token the name of its part and its number in it (`Task.place`).
    """
    changed = {one["position"] for one in (document["changed"], *document["further"])}
    matters = [set(positions) for positions in document["matters"]]
    marked = changed.union(*matters)
    by_name: dict[str, list[int]] = {}
    for position, (name, _) in enumerate(places):
        by_name.setdefault(name, []).append(position)
    parts = []
    for name, positions in by_name.items():
        shown = _shown(positions, marked)
        first, second = (
            _cells(prompt, shown, changed, own) for prompt, own in zip(document["prompts"], matters, strict=True)
        )
        parts.append(Part(name, (first, second)))
    return parts


def _shown(positions: Sequence[int], marked: set[int]) -> list[int | None]:
    """Positions to show; None stands for a stretch that is left out."""
    if len(positions) <= MOST_TOKENS:
        return list(positions)
    at = [place for place, position in enumerate(positions) if position in marked]
    near = {near for one in at for near in range(one - AROUND, one + AROUND + 1)} | {0, len(positions) - 1}
    shown: list[int | None] = []
    for place, position in enumerate(positions):
        if place in near:
            shown.append(position)
        elif shown[-1] is not None:
            shown.append(None)
    return shown


def _cells(prompt: Sequence[int], shown: Sequence[int | None], changed: set[int], matters: set[int]) -> list[Cell]:
    cells = []
    for position in shown:
        if position is None:
            cells.append(Cell("…", "cut"))
        else:
            mark: Mark = "changed" if position in changed else "matters" if position in matters else "plain"
            cells.append(Cell(str(prompt[position]), mark))
    return cells


def verdict_text(document: dict[str, Any]) -> str:
    """What the pair shows, in a clause."""
    if document["model_answer"] is not None:
        return f"the model answers {document['model_answer']} to both"
    first, second = document["model_answers"]
    return f"the model answers {first} and {second}, wrong on both"


def changed_texts(document: dict[str, Any]) -> list[str]:
    """The changed tokens, one clause each."""
    return [
        f"{one['function']} at address {one['address']}: {one['values'][0]} -> {one['values'][1]}"
        for one in (document["changed"], *document["further"])
    ]


def tried_text(tried: dict[str, int]) -> str:
    """How many prompts each family had."""
    return ", ".join(f"{family} {count:,}" for family, count in tried.items() if count) or "nothing"


def write_break(document: dict[str, Any], places: Iterable[tuple[str, int]], path: Path) -> None:
    """Write a pair as one self-contained page.

    Args:
        document: the pair, as stored.
        places: as `pair_parts`.
        path: of the page.

    Raises:
        ModuleNotFoundError: jinja2 is not installed.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hopbound.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("break.html.j2").render(
        pair=document,
        parts=pair_parts(document, places),
        verdict=verdict_text(document),
        changed=changed_texts(document),
        tried=tried_text(document["search"]["tried"]),
    )
    write_text(path, page)
