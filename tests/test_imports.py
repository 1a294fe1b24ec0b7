"""What may be imported by what, seen from outside: in fresh processes."""

import ast
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

import hopbound

HEAVY = {"torch", "numpy", "scipy", "safetensors", "jaxtyping", "jinja2", "altair", "vl_convert"}
MODULES = sorted(m.name for m in pkgutil.walk_packages(hopbound.__path__, "hopbound.") if m.name != "hopbound.__main__")


def fresh(program: str, cwd: Path | None = None) -> str:
    """Run a program in a new process; its standard output."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=cwd, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def loaded_after(program: str, cwd: Path | None = None) -> set[str]:
    """All modules that a program has imported when it ends; what it prints is thrown away."""
    quiet = "import contextlib, io, json, sys\nwith contextlib.redirect_stdout(io.StringIO()):\n"
    indented = "".join(f"    {line}\n" for line in program.splitlines())
    return set(json.loads(fresh(f"{quiet}{indented}print(json.dumps(list(sys.modules)))", cwd)))


def heavy(modules: set[str]) -> set[str]:
    return HEAVY & {name.partition(".")[0] for name in modules}


def command(*arguments: str) -> str:
    return f"from hopbound.cli.main import run_with\nassert run_with({list(arguments)!r}) == 0"


BOUND = ("bound", "linear full linear", "--head-dim", "4", "--bits", "4", "--hops", "2")


@pytest.mark.parametrize(
    "package", ["architecture", "bounds", "claims", "design", "errors", "files", "witness", "report"]
)
def test_packages_of_the_standard_library_only(package: str) -> None:
    loaded = loaded_after(f"import hopbound.{package}")
    assert heavy(loaded) == set()
    assert not {"typer", "rich", "click"} & loaded


def test_the_checker_needs_nothing_of_the_search() -> None:
    tree = ast.parse(Path(str(importlib.import_module("hopbound.bounds.checker").__file__)).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_tasks_need_numpy_only() -> None:
    assert heavy(loaded_after("import hopbound.tasks")) == {"numpy"}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), *((name, "--help") for name in ("bound", "build"))])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    loaded = loaded_after(command(*arguments))
    assert heavy(loaded) == set()
    assert not {"rich.progress", "rich.table", "rich.markdown", "rich.syntax", "pygments"} & loaded


def test_bound_does_not_import_torch() -> None:
    assert heavy(loaded_after(command(*BOUND))) <= {"scipy", "numpy"}
    assert heavy(loaded_after(command("bound", "linear", "--hops", "1"))) == set()


def test_design_imports_nothing_heavy() -> None:
    assert heavy(loaded_after(command("design", "--hops", "2", "--context", "4096"))) == set()


def test_analyze_imports_nothing_heavy(tmp_path: Path) -> None:
    """Three files, each of another family, and nothing of them is run: no library of models, no numbers, no network."""
    published = json.loads(files("hopbound.catalog").joinpath("published.json").read_text(encoding="utf-8"))
    names = []
    for entry in published:
        if entry["model_type"] in ("qwen3_next", "jamba", "gpt_oss"):
            names.append(str(tmp_path / f"{entry['model_type']}.json"))
            Path(names[-1]).write_text(json.dumps(entry["config"]), encoding="utf-8")
    for options in ((), ("--json",), ("--csv",)):
        loaded = loaded_after(command("analyze", *names[:3], "--context", "131072", *options))
        assert heavy(loaded) == set()
        assert not {"transformers", "huggingface_hub", "requests", "httpx", "httpx2"} & loaded


def test_verifying_a_certificate_imports_nothing_heavy(tmp_path: Path) -> None:
    fresh(command(*BOUND, "--out", str(tmp_path)))
    assert heavy(loaded_after(command("verify", str(tmp_path / "certificate.json")))) == set()
    assert heavy(loaded_after(command("verify", str(tmp_path)))) == set()


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {absent!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize("absent", [("scipy",), ("scipy", "numpy"), tuple(sorted(HEAVY))], ids=" ".join)
def test_without_scipy_the_closed_form_answers(absent: tuple[str, ...]) -> None:
    shown = fresh(WITHOUT.format(absent=absent) + command(*BOUND, "--json"))
    result = json.loads(shown)
    assert result["verdict"] == "impossible"
    assert result["source"] == "closed form A'"
    assert result["prompt_length"] > 322


def test_a_missing_extra_is_named() -> None:
    program = WITHOUT.format(absent=("torch",)) + (
        "from hopbound.cli.main import run_with\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stderr(io.StringIO()) as told:\n"
        "    print(run_with(['build', '3*full', '--hops', '2', '--m', '4', '--n', '2']))\n"
        "print(told.getvalue(), end='')"
    )
    code, *told = fresh(program).splitlines()
    assert code == "2"
    assert told == ["error: extra: torch is not installed, expected pip install 'hopbound[models]'"]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    assert public_names(module) == [n for n in public_names(module) if hasattr(module, n)]


def public_names(module: ModuleType) -> list[str]:
    names = list(getattr(module, "__all__", []))
    assert len(set(names)) == len(names)
    return names
