"""Tasks as people write them: `recall[pairs=16,values=8]`, a name with its sizes in brackets, as mixers are written.

A size is a whole number, several with `/` between them (`n=4/4`, and `n=4/` for a list of one), a number with a point
(`alpha=0.1`), or a word. What is left out has the task's default.
"""

import inspect
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from hopbound.errors import InputError
from hopbound.tasks.registry import SEQUENCE_TASKS, TASKS
from hopbound.tasks.sequence import SequenceTask
from hopbound.tasks.task import Task

T = TypeVar("T", bound=SequenceTask)

_FORM = re.compile(r"\s*(\w+)\s*(?:\[([^\[\]]*)\])?\s*")


def parse_task(text: str) -> Task:
    """The task with one answer that a text names.

    Raises:
        InputError: it is not of this form, or the task has no such size; sizes that do not fit, as the task says.
    """
    return _parse(text, TASKS)


def parse_sequence_task(text: str) -> SequenceTask:
    """The task of any kind that a text names.

    Raises:
        InputError: as `parse_task`.
    """
    return _parse(text, SEQUENCE_TASKS)


def _parse(text: str, known: Mapping[str, type[T]]) -> T:
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError("task", text, "a name with sizes, as in two_sum[n=64,modulus=100]")
    name, inside = match[1], match[2] or ""
    if name not in known:
        raise InputError("task", name, f"one of {', '.join(sorted(known))}")
    parameters = inspect.signature(known[name]).parameters
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in inside.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in parameters or key in given:
            raise InputError("task", part, f"one of {', '.join(f'{name}=' for name in parameters)}, each once")
        given[key] = _value(value)
    missing = [key for key, one in parameters.items() if one.default is one.empty and key not in given]
    if missing:
        raise InputError("task", text, f"also {', '.join(f'{key}=' for key in missing)}")
    return known[name](**given)


def _value(text: str) -> Any:
    if "/" in text:
        return tuple(_value(part) for part in text.split("/") if part)
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,18}\.\d{1,18}", text) else text


def format_task(task: SequenceTask) -> str:
    """The text of a task, with all its sizes; `parse_task` reads it back."""

    def written(value: object) -> str:
        return "/".join(map(str, value)) + "/" * (len(value) == 1) if isinstance(value, list) else str(value)

    sizes = {key: value for key, value in task.to_json().items() if key != "task" and value != []}
    return f"{task.name}[{','.join(f'{key}={written(value)}' for key, value in sizes.items())}]"
