"""Help: every command explains itself and every option, with an example that runs as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from hopbound import __version__
from hopbound.cli.main import app

from .commands import contents, hopbound

COMMANDS: dict[str, Any] = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - typer hides click's types
TAKES_LONG = {"hierarchy": "the whole main job", "build": "11,000 instances"}


def examples(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The command lines after `Example:`, without the program's name; a terminal may have broken them."""
    found = re.findall(r"^ *Example: (.+?)\n *\n", hopbound(f"{name} --help", capsys).out, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    lines = " ".join(found[0].split()).split(" && ")
    assert all(line.startswith("hopbound ") for line in lines)
    return [line.removeprefix("hopbound ") for line in lines]


def test_the_commands_are_those_of_the_contract() -> None:
    commands = {"hierarchy", "analyze", "bound", "ceilings", "language", "design", "build", "export"}
    commands |= {"verify", "break", "data"}
    assert set(COMMANDS) == commands


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_is_explained(
    name: str, flag: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    ended = hopbound(f"{name} {flag}", capsys)
    assert (ended.code, ended.err) == (0, "")
    assert f"hopbound {name}" in ended.out.splitlines()[0]
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            assert (parameter.help or "").strip()
            assert all(option in ended.out for option in parameter.opts)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_about_its_own_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert examples(name, capsys)[0].startswith(f"{name} ")


@pytest.mark.draws  # rich does, once, when it is imported
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in TAKES_LONG else []) for name in COMMANDS]
)
def test_the_example_runs(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "verify":
        assert hopbound("bound linear --hops 1 --out hierarchy", capsys).code == 0
    if name == "export":
        assert hopbound("build 2*full --hops 1 --m 4 --out model", capsys).code == 0
    for line in examples(name, capsys):
        assert hopbound(line, capsys).code == 0
        match = re.search(r"--out (\S+)", line)
        assert match is None or (tmp_path / match[1]).is_file() or contents(tmp_path / match[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_can_be_copied_from_a_narrow_terminal(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = hopbound(f"{name} --help", capsys).out
    assert f"Example: hopbound {' && hopbound '.join(examples(name, capsys))}\n" in shown


def test_alone_it_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    alone, asked = hopbound("", capsys), hopbound("--help", capsys)
    assert alone == asked
    assert (alone.code, alone.err) == (0, "")
    assert all(re.search(rf"^  {name} ", alone.out, re.MULTILINE) for name in COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    ended = hopbound("--version", capsys)
    assert (ended.code, ended.out, ended.err) == (0, f"hopbound {__version__}\n", "")
