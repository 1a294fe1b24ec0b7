"""The program `hopbound`: its commands, and what happens to errors.

Exit codes: 0 done; 1 a check said no; 2 the input is wrong. Errors are one line on stderr; nothing half-written stays.
"""

import sys
from typing import Annotated, Any

import typer

from hopbound import __version__
from hopbound.cli import bound, break_, build, hierarchy, verify
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
}

app = typer.Typer(
    name="hopbound",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("hierarchy")(hierarchy.command)
app.command("bound")(bound.command)
app.command("build")(build.command)
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
        return _complain(error.format_message(), 2)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        return _complain(f"extra: {error.name} is not installed, expected pip install 'hopbound[{extra}]'", 2)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _complain(f"{named}{error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("stopped; every file that was written is whole", 130)
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
