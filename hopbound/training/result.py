"""What a run found: the row that it is in every table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["finished", "diverged"]
SCHEMA = "hopbound/run/1"


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One finished run. What is under `circumstances` may differ from machine to machine, all else may not.

    Attributes:
        key: of the config (`TrainConfig.key`).
        config: all fields.
        status: finished, or diverged: the loss was no number, and there is no accuracy.
        steps: how many were taken, those of the curriculum included.
        stopped_early: whether the held-out accuracy was reached before the last step.
        asked: labels of the test examples.
        right: how many of them were answered right; None if it diverged.
        exact: test examples with all labels right; None if it diverged.
        examples: of the test.
        agreement: for each shortcut, how many of the test's labels the model answered as it does.
        shortcuts: for each shortcut, how many of the test's labels it answers right.
        errors: wrong answers by kind (`taxonomy.py`).
        chance: expected accuracy of a uniformly random answer.
        overlap: test examples that also occur among those trained on; None where too many to be compared.
        losses: (step, mean loss since the one before).
        accuracies: (step, held-out accuracy).
        parameters: of the model.
        state_bytes: that it holds after the test's prompt, for one sequence.
        circumstances: wall time, machine, versions.
    """

    key: str
    config: dict[str, Any]
    status: Status
    steps: int
    stopped_early: bool
    asked: int
    right: int | None
    exact: int | None
    examples: int
    agreement: dict[str, int]
    shortcuts: dict[str, int]
    errors: dict[str, int]
    chance: float
    overlap: int | None
    losses: list[list[float]]
    accuracies: list[list[float]]
    parameters: int
    state_bytes: int
    circumstances: dict[str, Any] = field(default_factory=dict)

    @property
    def accuracy(self) -> float | None:
        """Right answers over labels; None if the run diverged."""
        return None if self.right is None else self.right / self.asked

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"schema": SCHEMA, **asdict(self), "accuracy": self.accuracy}

    def same(self) -> dict[str, Any]:
        """All that must be equal where the same config ran again."""
        return {name: value for name, value in self.to_json().items() if name != "circumstances"}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RunResult":
        """From `to_json`.

        Raises:
            TypeError: fields are missing or unknown.
            KeyError: it is no such object.
        """
        rest = {name: part for name, part in value.items() if name not in ("schema", "accuracy")}
        if value["schema"] != SCHEMA:
            raise KeyError(f"schema {value['schema']!r}, expected {SCHEMA!r}")
        return cls(**rest)
