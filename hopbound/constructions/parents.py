r"""Why neither layer of a hybrid does alone what both do together: the bounds on windows and on states, for a task.

*Windows alone* (`bounds/reach.py`): the output depends on the last R + 1 tokens. The answers of these tasks depend on
the first token: there are two prompts that differ there alone and have different right answers. So windows that reach
less far than the whole prompt fail, whatever their weights and however many values they hold.

*Recurrences alone* (`bounds/counting.py`): before the last token the state must determine what each question would be
answered with. D^m different tuples of answers are possible, so m log₂ D bits at least must be there; a state of fewer
fails, whatever its weights and however far it sees.

The same holds with several such layers: reaches and states add up.
"""

from dataclasses import dataclass, replace

from hopbound.architecture import Architecture, Kind
from hopbound.architecture.sizes import WindowAttention
from hopbound.bounds.ceiling import counted, held_bits
from hopbound.bounds.counting import exceeds
from hopbound.bounds.reach import reach
from hopbound.errors import InputError
from hopbound.tasks import MaskedRecall, SelectiveCopying


@dataclass(frozen=True)
class Alone:
    """What is known of the layers of one kind without the others.

    Attributes:
        impossible: whether they are certified to fail.
        statement: the inequality, with its numbers.
    """

    impossible: bool
    statement: str


def free_answers(task: MaskedRecall | SelectiveCopying) -> tuple[int, int]:
    """m and D: so many questions may follow the same tokens, and their answers may be any of D each."""
    return (task.pairs, task.values) if isinstance(task, MaskedRecall) else (task.recent, task.symbols)


def windows_alone(architecture: Architecture, task: MaskedRecall | SelectiveCopying, copies: int = 1) -> Alone:
    """Whether the stack's windows, each `copies` times, are certified to fail.

    Raises:
        InputError: the stack has none.
    """
    reached = copies * (reach(_only(architecture, windows=True)) or 0)
    needed = task.prompt_length - 1
    relation = "<" if reached < needed else ">="
    return Alone(
        reached < needed,
        f"windows alone reach {counted(reached, 'token')} back {relation} {needed:,}, where the first token stands",
    )


def recurrences_alone(architecture: Architecture, task: MaskedRecall | SelectiveCopying, copies: int = 1) -> Alone:
    """Whether the stack's recurrences, each `copies` times, are certified to fail.

    Raises:
        InputError: the stack has none.
    """
    bits = copies * (held_bits(_only(architecture, windows=False)) or 0)
    questions, answers = free_answers(task)
    fails = exceeds(questions, answers, bits)
    relation = "<" if fails else ">="
    return Alone(fails, f"recurrences alone hold {counted(bits, 'bit')} {relation} {questions:,} log2({answers:,})")


def _only(architecture: Architecture, *, windows: bool) -> Architecture:
    """The stack without the layers of the other kind.

    Raises:
        InputError: there is a full layer, or none is left.
    """
    if architecture.full_layers:
        raise InputError("schedule", architecture.label, "windows and recurrences only")
    kept = []
    for layer in architecture.layers:
        mixers = tuple(one for one in layer.mixers if isinstance(one, WindowAttention) == windows)
        if any(one.kind is not Kind.POINTWISE for one in mixers):
            kept.append(replace(layer, mixers=mixers))
    if not kept:
        raise InputError("schedule", architecture.label, "windows and recurrences")
    return replace(architecture, layers=tuple(kept))
