"""Sequences with the right label at some of their tokens: what a model is trained on.

Every task is one (`task.Task`): its prompts ask at the last token alone. Others ask at many tokens of one sequence, as
multi-query recall, or at each, as state tracking.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError

NOT_ASKED = -1
"""The label of a token at which nothing is asked."""

LabelFunction = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""Tokens [N, n] to labels [N, n]; what it gives where nothing is asked does not count."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Sequences and their labels.

    Attributes:
        tokens: int64 [N, n].
        labels: int64 [N, n], from 0 on, `NOT_ASKED` where nothing is asked.

    Raises:
        InputError: shapes or types are others.
    """

    tokens: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.tokens.dtype != np.int64 or self.tokens.ndim != 2:
            raise InputError("tokens", (str(self.tokens.dtype), self.tokens.shape), "int64 of shape (N, n)")
        if self.labels.dtype != np.int64 or self.labels.shape != self.tokens.shape:
            given = (str(self.labels.dtype), self.labels.shape)
            raise InputError("labels", given, f"int64 of shape {self.tokens.shape}")

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def asked(self) -> NDArray[np.bool_]:
        """Where something is asked: bool [N, n]."""
        return self.labels != NOT_ASKED


class SequenceTask(ABC):
    """A family of sequences of one length, with right labels at some tokens, each read from what stands up to it.

    Subclasses are final frozen dataclasses that are equal exactly when their `identity` is.
    """

    name: ClassVar[str]
    """The task's name in files and on the command line."""

    @property
    @final
    def identity(self) -> str:
        """The canonical text of the task with all its sizes; it goes into the key of the random stream."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """Tokens are the integers `0 .. vocabulary_size - 1`."""

    @property
    @abstractmethod
    def prompt_length(self) -> int:
        """Number n of tokens of every sequence."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """Number of labels; labels are `0 .. answers - 1`."""

    @property
    @abstractmethod
    def log2_instances(self) -> float:
        """The logarithm of the number of different sequences."""

    @property
    @abstractmethod
    def chance(self) -> float:
        """Expected accuracy, over the tokens that are asked, of a uniformly random answer."""

    @abstractmethod
    def labelled(self, seed: int, split: str, start: int, count: int) -> Labelled:
        """The examples `start .. start + count - 1` of a split: the same bytes whatever the batches they come in.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """

    @abstractmethod
    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right labels [N, n] of sequences [N, n], by an oracle that reads the tokens alone.

        Raises:
            InputError: these are not sequences of this task.
        """

    @abstractmethod
    def shortcuts(self) -> dict[str, LabelFunction]:
        """What a model may do instead of solving the task, by name; its accuracy is read against theirs."""

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """A JSON object with the task's name under `task` and every size written out."""

    @classmethod
    @abstractmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The task that `to_json` wrote.

        Raises:
            InputError: a key is missing or unknown, or a value does not fit.
        """
