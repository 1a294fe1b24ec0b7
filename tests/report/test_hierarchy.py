"""The report: one file without a network, whose links lead somewhere and whose numbers are those of the results."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from hopbound.errors import InputError, RejectedError
from hopbound.report import write_report

from .results import HOPS, STACKS, TWO_SUM, small_results

HOSTILE = "<script>alert('&\"')</script>"
VOID = {"meta", "br", "link", "img", "hr", "input"}
LOADING = {"src", "srcset", "data", "poster", "action", "background"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parts: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        words = [part if isinstance(part, str) else part.text for part in self.parts]
        return re.sub(r"\s+", " ", " ".join(words)).strip()

    def all(self, tag: str | None = None, class_: str | None = None) -> list["Element"]:
        """The elements inside, in order."""
        found = []
        for part in self.parts:
            if isinstance(part, Element):
                named = tag is None or part.tag == tag
                if named and (class_ is None or class_ in part.attributes.get("class", "").split()):
                    found.append(part)
                found += part.all(tag, class_)
        return found


class Page(HTMLParser):
    """A tree of elements; whatever is not closed in order is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].parts.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def page_of(folder: Path) -> Element:
    return Page((folder / "report.html").read_text(encoding="utf-8")).root


@cache
def page() -> Element:
    return page_of(small_results())


@cache
def document() -> dict[str, Any]:
    return json.loads((small_results() / "hierarchy.json").read_text(encoding="utf-8"))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copytree(small_results(), tmp_path / "results")
    return tmp_path / "results"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads((folder / "hierarchy.json").read_text(encoding="utf-8"))
    change(value)
    (folder / "hierarchy.json").write_text(json.dumps(value), encoding="utf-8")


def check_self_contained(root: Element) -> None:
    for element in root.all():
        assert element.tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
        assert not LOADING & set(element.attributes)
        assert "url(" not in element.attributes.get("style", "")
    for style in root.all("style"):
        assert not re.search(r"url\(|@import|https?:", style.text)


def check_links(root: Element, folder: Path) -> None:
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    links = [element.attributes["href"] for element in root.all() if "href" in element.attributes]
    assert links
    for link in links:
        parts = urlsplit(link)
        assert (parts.scheme, parts.netloc) == ("", "")
        if parts.path:
            target = (folder / unquote(parts.path)).resolve()
            assert target.is_file(), link
            assert target.is_relative_to(folder.resolve())
        elif link != "#top":  # the one anchor that every page has
            assert unquote(parts.fragment) in ids, link


def test_it_is_one_file_without_a_network() -> None:
    check_self_contained(page())


def test_every_link_leads_somewhere() -> None:
    check_links(page(), small_results())


def test_it_is_a_page_for_everyone() -> None:
    (html,) = page().all("html")
    assert html.attributes["lang"] == "en"
    assert page().all("title")[0].text
    assert len(page().all("h1")) == 1
    assert [th.text for th in page().all("thead")[0].all("th")] == ["stack", *(f"{n} hop{'s' * (n > 1)}" for n in HOPS)]


def length(value: int | None, log2: float | None) -> str:
    return f"{value:,}" if value is not None and value < 10**7 else f"2^{log2:.1f}"


def lines_of(cell: dict[str, Any]) -> list[str]:
    """What a cell must show, from hierarchy.json alone."""
    lines = []
    if cell["possible"]:
        assert cell["possible"]["prompt_length"] < 10**7
        lines.append(f"possible: {cell['possible']['construction']}, n = {cell['possible']['prompt_length']:,}")
    if cell["impossible"]:
        at = length(cell["impossible"]["prompt_length"], cell["impossible"]["log2_prompt_length"])
        lines.append(f"impossible from n = {at}")
    return lines or ["no claim"]


def shown_table(root: Element) -> dict[tuple[str, int | None], Element]:
    """The cells of both tables; those of 2-Sum have no hops."""
    hops, sums = (body.all("tr") for body in root.all("tbody")[:2])
    return {
        **{(row.all("th")[0].text, hop): td for row in hops for hop, td in zip(HOPS, row.all("td"), strict=True)},
        **{(row.all("th")[0].text, None): row.all("td")[0] for row in sums},
    }


def check_table(root: Element, value: dict[str, Any]) -> None:
    shown = shown_table(root)
    assert list(shown) == [(cell["stack"], cell["hops"]) for cell in value["cells"]]
    for cell in value["cells"]:
        td = shown[cell["stack"], cell["hops"]]
        assert [line.text for line in td.all(class_="line")] == lines_of(cell)
        links = {a.text: a.attributes["href"] for a in td.all(class_="files")[0].all("a")}
        ending = {"model": "/model.json"}
        assert links == {w["kind"]: w["path"] + ending.get(w["kind"], "") for w in cell["witness"]}


def test_the_table_shows_every_cell_as_in_the_results() -> None:
    assert list(dict.fromkeys(stack for stack, hops in shown_table(page()) if hops)) == list(STACKS)
    assert [stack for stack, hops in shown_table(page()) if hops is None] == list(TWO_SUM)
    check_table(page(), document())


def test_every_cell_has_its_section_with_its_evidence() -> None:
    sections = {section.attributes["id"]: section for section in page().all("section")}
    assert len(sections) == len(document()["cells"])
    for cell in document()["cells"]:
        td = shown_table(page())[cell["stack"], cell["hops"]]
        section = sections[unquote(td.all("a")[0].attributes["href"].removeprefix("#"))]
        heading = section.all("h2")[0].text
        asked = f"{cell['hops']} hop" if cell["hops"] else "2-Sum"
        assert heading.startswith(f"{cell['stack']} , {asked}")
        assert all(line in heading for line in lines_of(cell))
        text = section.text
        if cell["possible"]:
            assert f"{cell['possible']['instances']:,} instances" in text
            assert f"smallest margin {cell['possible']['smallest_margin']:.4f}" in text
        if cell["impossible"] and cell["task"] == "two_sum":
            assert cell["impossible"]["statement"] in text
            assert "codes of 24 bits; at most 1 block before its own seen in full" in text
        elif cell["impossible"]:
            assert f"log₂ n = {cell['impossible']['log2_prompt_length']:.2f}" in text
            assert f"{cell['impossible']['paper_log2_prompt_length']:,.0f}" in text
        for witness in cell["witness"]:
            file = small_results() / witness["path"]
            if witness["kind"] == "certificate" and cell["task"] == "composition":
                certificate = json.loads(file.read_text(encoding="utf-8"))
                for name, numbers in (("D", "domains"), ("M", "values")):
                    listed = "; ".join(f"{int(n['hex'], 16):,}" for n in certificate["claim"]["sizes"][numbers])
                    assert f"{name} {listed}" in text
            if witness["kind"] == "pair":
                pair = json.loads(file.read_text(encoding="utf-8"))
                shown = [
                    [int(t) for t in re.split(r" hops | right ", p.text)[0].split()] for p in section.all("p", "prompt")
                ]
                assert shown == pair["prompts"]
                marked = [int(b.text) for p in section.all("p", "prompt") for b in p.all("b")]
                assert marked == pair["changed"]["values"]
                assert f"answers {pair['model_answer']} to both" in text
        if not cell["possible"] and not cell["impossible"]:
            assert re.sub(r"\s+", " ", cell["reason"]) in text


def test_sizes_stand_above_the_table() -> None:
    sizes = document()["sizes"]
    assert f"{sizes['heads']} head of dimension {sizes['head_dim']}, {sizes['bits']} bits" in page().text


def test_text_of_the_results_stays_text(results: Path) -> None:
    def spoil(value: dict[str, Any]) -> None:
        for cell in value["cells"]:
            cell["stack"] = cell["stack"].replace("full", HOSTILE)
            for part in (cell["possible"], cell["impossible"]):
                if part:
                    part.update({key: f"{text}{HOSTILE}" for key, text in part.items() if isinstance(text, str)})
            if cell["possible"]:
                cell["possible"]["moves"] = [HOSTILE]
        value["version"] = HOSTILE

    edit(results, spoil)
    write_report(results)
    root = page_of(results)
    check_self_contained(root)
    check_links(root, results)
    assert root.text.count(HOSTILE) >= len(document()["cells"])
    assert any(HOSTILE in stack for stack, _ in shown_table(root))
    assert not any(name.startswith("on") and name != "onclick" for e in root.all() for name in e.attributes)
    assert {e.attributes["onclick"] for e in root.all() if "onclick" in e.attributes} <= {"scrollTo(0,0);return false"}
    svg = ET.parse(results / "hierarchy.svg").getroot()
    assert not [element for element in svg.iter() if "script" in str(element.tag).lower()]


def test_numbers_changed_in_the_results_change_on_the_page(results: Path) -> None:
    """Nothing is computed on the page: what it shows is what the file says."""

    def change(value: dict[str, Any]) -> None:
        for number, cell in enumerate(value["cells"]):
            if cell["possible"]:
                cell["possible"]["prompt_length"] = 1_234_567 + number
            if cell["impossible"]:
                cell["impossible"].update(prompt_length=None, log2_prompt_length=77.25 + number)

    edit(results, change)
    write_report(results)
    changed = json.loads((results / "hierarchy.json").read_text(encoding="utf-8"))
    check_table(page_of(results), changed)
    assert "1,234,567" in page_of(results).text
    figure = "".join(ET.parse(results / "hierarchy.svg").getroot().itertext())
    assert all(line in figure for cell in changed["cells"] if cell["hops"] for line in lines_of(cell))


def test_it_is_made_of_the_results_alone(results: Path) -> None:
    before = tree(results)
    (results / "report.html").unlink()
    (results / "hierarchy.svg").unlink()
    assert write_report(results) == results / "report.html"
    assert tree(results) == before


def test_the_figure_is_a_picture_of_the_table() -> None:
    root = ET.parse(small_results() / "hierarchy.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = "".join(root.itertext())
    assert all(line in text for cell in document()["cells"] if cell["hops"] for line in lines_of(cell))
    assert all(stack in text for stack in STACKS)
    for element in root.iter():
        assert not str(element.tag).endswith(("script", "image", "foreignObject"))
        assert not [value for name, value in element.attrib.items() if name.endswith("href")]


@pytest.mark.parametrize("content", [None, "", "[]"])
def test_without_results_there_is_no_report(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "hierarchy.json").write_text(content)
    before = tree(tmp_path)
    with pytest.raises(InputError if content is None else RejectedError):
        write_report(tmp_path)
    assert tree(tmp_path) == before
