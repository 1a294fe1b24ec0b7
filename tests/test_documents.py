"""What the documents say of the program is so: links, commands, options, outputs, tables, numbers."""

import importlib.util
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from hopbound.architecture import ROWS, Defaults, Precisions, parse_schedule
from hopbound.bounds import prove
from hopbound.catalog import published_models
from hopbound.cli.main import app
from hopbound.constructions import CONSTRUCTIONS, EXAMPLES
from hopbound.errors import InputError
from hopbound.mixers import REGISTRY
from hopbound.tasks import SEQUENCE_TASKS, parse_task

from .cli.commands import hopbound

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS: dict[str, Any] = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - typer hides click's types


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def refresh() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs" / "refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Links


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT)
        assert not anchor or anchor in slugs(target), link


def test_every_page_is_linked_from_the_readme() -> None:
    """Or, in a folder of its own, from the page that the folder is named after."""
    for page in PAGES[1:]:
        above = README if page.parent == ROOT / "docs" else page.parent.with_suffix(".md")
        assert f"({page.relative_to(above.parent).as_posix()})" in text_of(above), page


# Commands


def commands_of(page: Path) -> list[str]:
    """Command lines of blocks and of inline code, without the program's name; placeholders and bare names left out."""
    blocks = re.findall(r"^\$ hopbound\b ?(.*)$", text_of(page), re.M)
    inline = re.findall(r"`hopbound ([^`\n]+)`", text_of(page))
    return [line.split(" && ")[0].split(" # ")[0] for line in [*blocks, *(line for line in inline if " " in line)]]


ALL_COMMANDS = [(page, line) for page in PAGES for line in commands_of(page)]


def test_commands_are_found() -> None:
    assert len(ALL_COMMANDS) >= 9
    assert {line.split()[0] for _, line in ALL_COMMANDS} == set(COMMANDS)


@pytest.mark.parametrize(("page", "line"), ALL_COMMANDS, ids=lambda value: str(getattr(value, "name", value)))
def test_a_command_parses(page: Path, line: str) -> None:
    name, *arguments = shlex.split(line)
    with COMMANDS[name].make_context(f"hopbound {name}", arguments) as context:
        schedule = context.params.get("schedule") or (name == "bound" and context.params["model"]) or None
    if schedule is None:
        return
    complaint = ""
    try:
        parse_schedule(schedule)
    except InputError as error:  # then the page shows it
        complaint = f"error: {error}\n"
    assert complaint in text_of(page)


def test_the_error_that_is_shown_is_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^\$ hopbound (.+)\n(error: .+)$", text_of(ROOT / "docs" / "schedules.md"), re.M)
    assert shown
    for line, error in shown:
        ended = hopbound(line, capsys)
        assert (ended.code, ended.out, ended.err) == (2, "", f"{error}\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_schedules_parse(page: Path) -> None:
    schedules = re.findall(r'`"([^"`]+)"`', text_of(page))
    schedules += [word for word in re.findall(r"`([a-z0-9|]+)`", text_of(page)) if "|" in word]
    for schedule in schedules:
        parse_schedule(schedule)
    assert schedules or page.name not in ("README.md", "schedules.md")


def test_options_exist() -> None:
    known = {option for command in COMMANDS.values() for parameter in command.params for option in parameter.opts}
    known |= {"--help", "--version", *re.findall(r"--[a-z]+", refresh().__doc__ or "")}
    for page in PAGES:
        for code in re.findall(r"^```.*?^```|`[^`\n]+`", text_of(page), re.M | re.S):
            options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code))
            assert options <= known, (page.name, options - known)


def test_make_knows_the_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.M))
    named = {name for page in PAGES for name in re.findall(r"(?:\$ |`)make ([a-z-]+)", text_of(page))}
    assert {"hierarchy", "test"} <= named <= targets


# Outputs


def test_the_blocks_that_are_made_anew() -> None:
    found = [match for page in PAGES for match in refresh().BLOCK.finditer(text_of(page))]
    names = [match["name"] for match in found]
    assert names[:6] == ["hierarchy", "bound", "build", "break", "verify", "analyze_model"]
    assert sorted(names[6:]) == sorted(CHEAP)
    assert all(match["shown"].strip() for match in found)


def check_fresh(folder: Path, only: set[str]) -> None:
    texts = refresh().refreshed(folder, only=only)
    assert README in texts
    for path, text in texts.items():
        assert path.read_text(encoding="utf-8") == text, path.name


CHEAP = {
    "data",
    "data_few",
    "analyze",
    "analyze_several",
    "ceilings",
    "break_recall",
    "two_functions",
    "language",
    "inverse",
    "export_build",
    "export_gpt2",
    "export_llama",
    "precision",
    "frontier",
    "design",
    "design_budget",
    "design_depth",
}  # blocks of other pages


def test_the_blocks_of_the_pages(tmp_path: Path) -> None:
    check_fresh(tmp_path, CHEAP)


def test_the_examples_of_the_pages(tmp_path: Path) -> None:
    """Each runs and prints what the page shows, which is something."""
    found = [match for page in PAGES for match in refresh().EXAMPLE.finditer(text_of(page))]
    assert {match["name"] for match in found} == {"decoder", "packed", "overfill", "parents", "beyond", "collision"}
    assert all(match["shown"].strip() for match in found)
    check_fresh(tmp_path, {match["name"] for match in found} - {"overfill"})


@pytest.mark.slow
def test_the_figure_of_overfilled_states(tmp_path: Path) -> None:
    check_fresh(tmp_path, {"overfill"})
    assert (tmp_path / "overfill" / "overfill.svg").is_file()


def test_the_bound_of_the_readme(tmp_path: Path) -> None:
    check_fresh(tmp_path, {"bound", "analyze_model"})
    assert (tmp_path / "proof" / "certificate.json").is_file()


@pytest.mark.slow
def test_the_cheap_blocks_of_the_readme(tmp_path: Path) -> None:
    check_fresh(tmp_path, {"bound", "build", "break", "verify"})
    assert (tmp_path / "model" / "model.json").is_file()
    assert (tmp_path / "broken" / "pair.json").is_file()


@pytest.mark.slow
def test_the_hierarchy_of_the_readme(tmp_path: Path) -> None:
    check_fresh(tmp_path, {"hierarchy"})
    assert (tmp_path / "hierarchy" / "hierarchy.svg").is_file()


def test_a_stale_block_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: other numbers in the block, or in the program's output, are a difference."""
    monkeypatch.setattr(refresh(), "run", lambda command, folder: f"ran {command}\n")
    texts = refresh().refreshed(tmp_path, only={"bound"})
    assert texts[README] != text_of(README)
    assert re.search(r"\n\$ hopbound bound (.*)\nran hopbound bound \1\n```\n", texts[README])
    assert texts[README].count("\nran ") == 1


# Tables and numbers


def test_the_table_of_mixers() -> None:
    page = text_of(ROOT / "docs" / "schedules.md")
    shown = re.search(r"<!-- mixers -->\n(.*?)<!-- end -->", page, re.S)
    assert shown is not None
    assert shown[1] == refresh().mixers_table()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in shown[1].splitlines()[2:]]
    assert [row[0].strip("`") for row in rows] == list(ROWS)
    assert [row[1].split() for row in rows] == [list(row.keys) for row in ROWS.values()]


@pytest.mark.parametrize("name", ROWS)
def test_the_formulas_of_the_table(name: str) -> None:
    """State, summary and cache as the table writes them, against what the specs count, at sizes all different."""
    given = {"heads": 6, "kv_heads": 3, "head_dim": 5, "value_dim": 7, "w": 11, "k": 2, "block": 13, "latent": 17}
    given |= {"rope_dim": 19, "channels": 23, "state": 29, "kernel": 4, "levels": 8, "groups": 1}
    given |= {
        "beta": 2,
        "steps": 3,
        "gate": 1,
        "global_tokens": 47,
        "random": 3,
        "budget": 31,
        "recent": 9,
        "floor": 10,
        "index_heads": 5,
        "index_dim": 37,
        "retrievals": 41,
        "select_dim": 43,
        "selections": 3,
        "overlap": 1,
        "key_heads": 3,
        "columns": 11,
    }
    keys = [key for key in ROWS[name].keys if key != "conv"]
    sizes = ",".join(f"{key}={given[key]}" for key in keys)
    ((mixer,),) = [layer.mixers for layer in parse_schedule(f"{name}[{sizes}]" if sizes else name).layers]
    line = next(line for line in refresh().mixers_table().splitlines() if line.startswith(f"| `{name}` |"))
    _, _, state, summary, cache, _ = (cell.strip() for cell in line.strip("|").split(" | "))
    names = {"H_kv": 3, "H": 6, "d_k": 5, "d_v": 7, "W": 11, "k": 2 if "k" in keys else 4, "channels": 23, "N": 29}
    names |= {"d_head": 5, "levels": 8, "latent": 17, "rotary": 19, "budget": 31, "d_I": 37, "R": 41}
    if name == "shift":
        names["k"] = 2

    names |= {"g": 47, "b": 13, "s": 3, "d": 5, "o": 2, "columns": 11}

    def evaluate(formula: str) -> float:
        if formula == "none":
            return 0
        formula, _, where = formula.replace("rotary part", "rotary").replace("²", "**2").partition(", r = ")
        scope = dict(names)
        if where:
            scope["r"] = eval(product(where), {}, scope)
        return eval(product(formula), {}, scope)

    def product(formula: str) -> str:
        """With the multiplication signs that are left out."""
        return re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", formula)

    held = mixer.elements
    assert evaluate(state) == held.state + held.conv + held.window
    assert evaluate(summary) == held.summary
    assert evaluate(cache) == held.kv_per_token / held.kv_every


def test_the_table_of_tasks() -> None:
    page = text_of(ROOT / "docs" / "tasks.md")
    shown = re.search(r"<!-- tasks -->\n(.*?)<!-- end -->", page, re.S)
    assert shown is not None
    assert shown[1] == refresh().tasks_table()
    assert re.findall(r"^\| `(\w+)` \|", shown[1], re.M) == sorted(SEQUENCE_TASKS)


def shown_constructions() -> list[list[str]]:
    match = refresh().RUNS.search(text_of(ROOT / "docs" / "constructions.md"))
    assert match is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in match[2].splitlines()[2:]]


def test_the_table_of_constructions_names_every_example() -> None:
    """Those within the limits, each with its sizes; every run of them was right, by a margin."""
    rows = shown_constructions()
    fitting = [(name, one) for name, _, one in EXAMPLES if one.fits]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (name, f"`{e.task}`", f"`{e.schedule}`") for name, e in fitting
    ]
    for row, (_, one) in zip(rows, fitting, strict=True):
        assert int(row[3]) == len(parse_schedule(one.schedule).layers)
        assert int(row[5].replace(",", "")) == parse_task(one.task).prompt_length
        assert row[7] == "1"
        assert float(row[8]) > 0
        assert bool(row[9]) == (parse_task(one.task).prompt_length <= refresh().PRECISION_TOKENS)
    assert {name for name, _ in fitting} >= {one.name for one in CONSTRUCTIONS}


@pytest.mark.slow
def test_the_table_of_constructions_is_what_runs_give() -> None:
    page = text_of(ROOT / "docs" / "constructions.md")
    assert refresh().with_runs(page, refresh().constructions_table()) == page


def test_the_table_of_models() -> None:
    """Current, with a line for each published configuration whose counts are those that the file expects."""
    shown = re.search(r"<!-- models -->\n(.*?)<!-- end -->", text_of(ROOT / "docs" / "models.md"), re.S)
    assert shown is not None
    assert shown[1] == refresh().models_table()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown[1].splitlines()[2:]]
    table = {row[0].removesuffix(" †"): row for row in rows}
    assert len(table) == len(rows) == len(published_models())
    for entry in published_models():
        row, expected = table[entry["name"]], entry["expected"]
        local = [
            *expected.get("window_layers", ()),
            *expected.get("chunked_layers", ()),
            *expected.get("conv_layers", ()),
        ]
        counts = [expected["n_layers"], len(expected["full_layers"]), len(expected.get("sparse_layers", ()))]
        counts += [len(local), len(expected["linear_layers"])]
        assert [int(cell or 0) for cell in row[2:7]] == counts
        assert row[0].endswith("†") != entry["verified"]


def test_the_mixers_that_run() -> None:
    page = " ".join(text_of(ROOT / "docs" / "schedules.md").split())
    named = re.search(r"Which mixers run: ((?:`\w+`(?:, )?)+)\.", page)
    assert named is not None
    assert set(re.findall(r"\w+", named[1])) == set(REGISTRY)


def test_the_example_of_the_theory() -> None:
    certificate = prove(
        parse_schedule("linear full linear", Defaults(head_dim=4), Precisions.uniform(4)), 2
    ).certificate
    assert certificate is not None
    page = " ".join(text_of(ROOT / "docs" / "theory.md").split())
    m, M, n = certificate.domains[0], certificate.values[0], certificate.n[0]
    assert f"`m = {m}, M_1 = {M}, n_1 = {n}`" in page
    assert f"`n = {m} + {n * M} + 2 = {m + n * M + 2}`" in page
    x, theta = certificate.x, certificate.theta
    assert x[1] == theta[0]
    assert f"`x_0 = {x[0]}, x_1 = θ_1 = {x[1]}`" in page
    assert f"= {certificate.deltas[0]}`" in page
    sigma, b = (next(layer.bits for layer in certificate.layers if layer.kind == kind) for kind in ("bounded", "full"))
    assert f"`σ_0 = σ_1 = {sigma}` bits" in page
    assert f"`b_1 = {b}` bits" in page


def test_places_of_the_layout_exist() -> None:
    rows = re.findall(r"^\| (`.+?) \|", text_of(ROOT / "docs" / "layout.md"), re.M)
    named = [place for row in rows for place in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 10
    assert all((ROOT / place).exists() for place in named)
    top = {p.relative_to(ROOT).as_posix() + "/" * p.is_dir() for p in (ROOT / "hopbound").iterdir()}
    own = {place for place in top if not Path(place).name.startswith("__")}
    assert own <= set(named), own - set(named)


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    needed = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[\[<>=~ ]", name)[0] for name in needed} - {"hopbound"}
    page = text_of(ROOT / "docs" / "dependencies.md")
    assert [name for name in sorted(names) if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page)] == []
