"""`hopbound language`: what a regular language asks of a mixer."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbound.cli import common


def command(
    language: Annotated[str, typer.Argument(help='A name, as in "parity" or "S5", or a JSON file with an automaton.')],
    as_json: common.JsonOption = False,
) -> None:
    """Classify a regular language by its transition monoid, and say which mixers are known not to recognise it.

    A file holds {"letters": {"a": [0, 1], "b": [1, 0]}, "start": 0, "accepting": [0]}: each letter lists where it takes
    state 0, 1, …

    Example: hopbound language parity
    """
    from hopbound.bounds.languages import FACTS, NAMED, classify, read_dfa

    dfa = NAMED.get(language) or read_dfa(_document(language, list(NAMED)))
    found = classify(dfa)
    result: dict[str, Any] = {
        "schema": "hopbound/language/1",
        "language": language,
        "kind": found.kind,
        "states": found.states,
        "elements": found.elements,
        "largest_group": found.largest_group,
        "letter_period": found.letter_period,
        "facts": [
            {
                "excluded": fact.excluded,
                "families": fact.families,
                "mixers": list(fact.mixers),
                "language": fact.language,
                "conditional": fact.conditional,
                "source": fact.source,
            }
            for fact in FACTS
            if fact.speaks_of(found)
        ],
    }
    if as_json:
        common.print_json(result)
    else:
        common.print_lines(_lines(result))


def _document(path: str, names: list[str]) -> object:
    """The JSON of a file.

    Raises:
        InputError: no file, or no JSON in it.
    """
    from hopbound.errors import InputError

    expected = f"{', '.join(names)}, or a JSON file"
    if not Path(path).is_file():
        raise InputError("language", path, expected)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError("language", path, expected) from error


def _lines(result: dict[str, Any]) -> list[str]:
    """The classification for people."""
    group = f"largest group of order {result['largest_group']:,}"
    lines = [
        f"language  {result['language']}: {result['kind']}",
        f"monoid    {result['elements']:,} elements over {result['states']:,} states, {group}",
    ]
    for fact in result["facts"]:
        condition = f", if {fact['conditional']}" if fact["conditional"] else ""
        lines += [
            f"{'excluded' if fact['excluded'] else 'reached':9} {' '.join(fact['mixers'])}{condition}",
            f"          {fact['families']}: {fact['language']} ({fact['source']})",
        ]
    return lines
