"""The program `hopbound`: its commands, and what happens to errors.

Exit codes: 0 done; 1 a check said no; 2 the input is wrong. Errors are one line on stderr; nothing half-written stays.
"""

import os
import sys
from itertools import pairwise
from typing import Annotated, Any

import typer

from hopbound import __version__
from hopbound.cli import analyze, bound, break_, build, ceilings, data, design, export, hierarchy, language, verify
from hopbound.errors import InputError, RejectedError

# Typer carries its own copy of click or uses the installed one; either way its exceptions derive from this class.
_ClickError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

_EXTRAS = {
    "numpy": "models",
    "torch": "models",
    "safetensors": "models",
    "jaxtyping": "models",
    "jinja2": "report",
    "altair": "report",
    "vl_convert": "report",
    "onnx": "export",
    "onnxruntime": "export",
    "onnxscript": "export",
    "transformers": "export",
    "pydantic": "sweep",
    "yaml": "sweep",
    "pyarrow": "sweep",
    "ray": "sweep",
    "accelerate": "sweep",
}

app = typer.Typer(
    name="hopbound",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("hierarchy")(hierarchy.command)
app.command("analyze")(analyze.command)
app.command("bound")(bound.command)
app.command("ceilings")(ceilings.command)
app.command("language")(language.command)
app.command("design")(design.command)
app.command("data")(data.command)
app.command("build")(build.command)
app.command("export")(export.command)
app.command("verify")(verify.command)
app.command("break")(break_.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hopbound {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """How many dependent look-ups can a stack of attention and recurrent layers make in one forward pass?

    Each statement comes with evidence that `hopbound verify` checks from the file alone.

    Start with: hopbound hierarchy
    """


def run() -> None:
    """Entry point of the installed program."""
    # Threads that wait for each other sleep: spinning they would slow a busy machine down many times. Read by OpenMP
    # when torch is first imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(run_with(sys.argv[1:]))


def run_with(arguments: list[str]) -> int:
    """Run one command line; the exit code."""
    arguments = arguments or ["--help"]
    try:
        code = app(args=arguments, prog_name="hopbound", standalone_mode=False)
    except InputError as error:
        return _complain(str(error), 2)
    except RejectedError as error:
        return _complain(str(error), 1)
    except _ClickError as error:
        return _complain(_usage(error, arguments), 2)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        return _complain(f"extra: {error.name} is not installed, expected pip install 'hopbound[{extra}]'", 2)
    except OSError as error:
        said = f"{error.filename or 'file'}: {error.strerror or error}"
        out = _given(arguments, "--out")
        return _complain(said if out is None else f"out: got {out!r}, expected a place to write to ({said})", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("stopped; every file that was written is whole", 130)
    return code if isinstance(code, int) else 0


def _given(arguments: list[str], option: str) -> str | None:
    """What was written after an option; None if it was not given."""
    values = [after for name, after in pairwise(arguments) if name == option]
    values += [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    return values[-1] if values else None


def _usage(error: Any, arguments: list[str]) -> str:
    """A mistake on the command line, with the option and what was given for it."""
    for option in getattr(getattr(error, "param", None), "opts", ()):
        given = _given(arguments, option)
        if given is not None:
            plain = given.isprintable() and " " not in given
            return f"{option}: got {given if plain else repr(given)}: {error.message}"
    return error.format_message()


def _complain(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
