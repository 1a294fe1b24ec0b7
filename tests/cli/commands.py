"""One command line, run in this process."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hopbound.cli.main import run_with

Files = dict[str, bytes | None]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """All of stdout, which must be one strict JSON object and nothing else."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        value = json.loads(self.out, parse_constant=refuse)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> str:
        """All of stderr, which must be one line that says it is an error; stdout is empty."""
        assert self.out == ""
        match = re.fullmatch(r"error: ([^\n]+)\n", self.err)
        assert match is not None, self.err
        assert "Traceback" not in self.err
        return match[1]


def hopbound(line: str, capsys: pytest.CaptureFixture[str]) -> Ended:
    capsys.readouterr()
    code = run_with(shlex.split(line))
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


def contents(folder: Path) -> Files:
    """Everything below a folder, hidden files too: files with their bytes, folders with None."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
