"""`hopbound verify`: check witnesses from the files alone."""

import os
from pathlib import Path
from typing import Annotated

import typer

from hopbound.cli import common


def command(
    files: Annotated[
        list[Path], typer.Argument(help="Certificates, model folders, fooling pairs, or folders of them.")
    ],
    as_json: common.JsonOption = False,
) -> None:
    """Check certificates, run models and fooling pairs again. Exit code 1 if one is not what it claims.

    Example: hopbound verify hierarchy
    """
    from hopbound.witness import verify_files

    results = []
    for result in verify_files(files):
        results.append(result)
        if not as_json:
            print(
                f"{'accepted' if result.accepted else 'REJECTED'}  {result.kind:<11} {result.path}: {result.reason}",
                flush=True,
            )
    accepted = all(result.accepted for result in results)
    if as_json:
        common.print_json(
            {
                "schema": "hopbound/verify/1",
                "accepted": accepted,
                "files": [
                    {
                        "path": os.fspath(result.path),
                        "kind": result.kind,
                        "accepted": result.accepted,
                        "reason": result.reason,
                    }
                    for result in results
                ],
            }
        )
    else:
        refused = sum(not result.accepted for result in results)
        print(f"{len(results)} checked, {refused} rejected")
    if not accepted:
        raise typer.Exit(1)
