"""What a construction is: weights for one kind of task, the limits within which they are exact, and the proof.

A file of this folder holds one construction (or a few that share their gadgets), its proof in the head text, and a line
in `registry.py`. What is common to all, running and writing, is in `build.py` and `verification.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.directions import Directions
from hopbound.decoder import Decoder
from hopbound.tasks import Task

T = TypeVar("T", bound=Task)


class Mode(StrEnum):
    """How a stack is run; what is not plain must be asked for."""

    PLAIN = "plain"
    """Causal, and the answer is read at the prompt's last token."""
    THOUGHTS = "thoughts"
    """Causal, and the model appends tokens of its own to the prompt before its answer is read."""
    BIDIRECTIONAL = "bidirectional"
    """An encoder: every token sees all others."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A decoder with hand-made weights, and what they are.

    Attributes:
        decoder: with its weights.
        construction: the construction's name.
        steps: what each layer that is used does, in words: `layer 1 carry i_0`.
        directions: what the coordinates of the stream mean.
    """

    decoder: Decoder
    construction: str
    steps: tuple[str, ...]
    directions: Directions


@dataclass(frozen=True, kw_only=True)
class Example:
    """A stack and a task that a construction is shown on.

    Attributes:
        schedule: the stack, all sizes written out.
        task: in the form of `tasks.parse_task`.
        fits: whether the construction is exact there; False: one step beyond a limit, where forced weights fail.
        options: of `build`, beside these.
    """

    schedule: str
    task: str
    fits: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


class Construction(ABC, Generic[T]):
    """Weights for one kind of task. Subclasses have no fields; all sizes come from the stack and the task."""

    name: ClassVar[str]
    """As in the table of `docs/constructions.md`."""
    task: ClassVar[type[Task]]
    """The kind of task."""
    about: ClassVar[str]
    """What the layers do, in a line."""
    mode: ClassVar[Mode] = Mode.PLAIN
    """How the stack is run."""
    source: ClassVar[str]
    """The theorem: paper and its number, or where the proof stands."""
    examples: ClassVar[Sequence[Example]]
    """A small one (all instances), the largest that is documented, and one step beyond each limit."""

    def __repr__(self) -> str:
        """The same in every process: it has no fields."""
        return f"{type(self).__name__}()"

    @abstractmethod
    def refusal(self, architecture: Architecture, task: T) -> str | None:
        """Why the stack has no weights of this construction for the task, with what would fit; None if it has.

        Limits that are only of size are left out of `fatal_refusal`, and forced weights can be written beyond them.
        """

    def fatal_refusal(self, architecture: Architecture, task: T) -> str | None:
        """The part of `refusal` that no forcing gets around: layers that are missing, layouts that do not fit."""
        return self.refusal(architecture, task)

    @abstractmethod
    def write(self, architecture: Architecture, task: T, dtype: torch.dtype) -> Built:
        """The weights; beyond the limits of size (`fatal_refusal` is None, `refusal` is not) weights that fail."""
