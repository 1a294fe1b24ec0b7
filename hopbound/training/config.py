"""What fixes a training run: one strict config, whose fields are the only place where a default stands.

A config is a YAML file, keyword arguments or both; unknown fields and wrong types are refused by name. Its `key` is a
hash of all fields, so that results of different configs are never mixed.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hopbound.errors import InputError
from hopbound.tasks import SequenceTask, parse_sequence_task

M = TypeVar("M", bound=BaseModel)


class Strict(BaseModel):
    """Frozen, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Stage(Strict):
    """A stage of a curriculum: an easier task that is trained on before the run's own.

    Its prompts may be shorter; its tokens and answers must be among those of the run's task.
    """

    task: str
    """In the form of `tasks.parse_sequence_task`."""
    steps: int = Field(ge=1)
    """At most so many."""
    until: float = Field(default=1.0, gt=0, le=1)
    """Go on at this held-out accuracy on the stage's task."""


class TrainConfig(Strict):
    """One run: which stack learns which task, and how."""

    task: str
    """In the form of `tasks.parse_sequence_task`, as `composition[hops=2,m=4,n=2/]`."""
    schedule: str
    """The stack, in the grammar."""
    seed: int = 0
    """Of the weights and of the data."""

    width: int = Field(default=64, ge=1)
    """Of the residual stream."""
    heads: int = Field(default=1, ge=1)
    """Of mixers that do not say."""
    head_dim: int = Field(default=16, ge=1)
    """Of mixers that do not say."""
    window: int | None = Field(default=None, ge=1)
    """Of windows that do not say; None: the grammar's default."""
    kernel: int | None = Field(default=None, ge=1)
    """Of convolutions that do not say; None: the grammar's default."""
    hidden: int | None = Field(default=None, ge=0)
    """Units of each position-wise map; None: 8/3 width (gated) or 4 width."""
    maps: Literal["plain", "gated"] = "gated"
    """The position-wise maps."""
    activation: Literal["relu", "gelu", "silu"] = "silu"
    """Of the maps."""
    norm: Literal["none", "rms", "layer"] = "rms"
    """Before mixers, maps and readout."""
    positions: Literal["learned", "rotary", "alibi", "none"] = "learned"
    """Where a token stands: a table as long as the longest prompt, rotary or ALiBi inside attention, or not at all."""

    steps: int = Field(default=2000, ge=1)
    """Of the run's own task, at most."""
    batch: int = Field(default=256, ge=1)
    """Examples a step."""
    learning_rate: float = Field(default=3e-3, gt=0)
    """Highest of the schedule."""
    warmup: int = Field(default=50, ge=0)
    """Steps in which the learning rate rises from 0; at the start of each stage."""
    decay: Literal["constant", "cosine"] = "cosine"
    """What the learning rate does after the warm-up: stays, or falls to a tenth at the last step."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Of AdamW, on matrices alone."""
    clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    curriculum: tuple[Stage, ...] = ()
    """Stages before the run's own task."""

    every: int = Field(default=100, ge=1)
    """Steps between evaluations on held-out examples, and between checkpoints."""
    examples: int = Field(default=2000, ge=1)
    """Held-out examples of an evaluation."""
    test: int = Field(default=10_000, ge=1)
    """Examples of the last evaluation; all held-out ones where there are fewer."""
    stop_at: float | None = Field(default=1.0, gt=0, le=1)
    """Stop early at this held-out accuracy; None: never."""

    dtype: Literal["float32", "bfloat16", "float64"] = "float32"
    """Of weights and activations."""
    state_bits: int | None = Field(default=None, ge=1, le=32)
    """Round the numbers of recurrent states to so many bits at evaluation, so that a ceiling binds; None: not."""
    threads: int = Field(default=1, ge=1)
    """Of torch; results are equal to the bit only where it is."""
    device: str = "cpu"
    """Where it runs."""

    @property
    def key(self) -> str:
        """A hash of all fields: 16 hexadecimal digits."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def sequence_task(self) -> SequenceTask:
        """The task.

        Raises:
            InputError: as `parse_sequence_task`.
        """
        return parse_sequence_task(self.task)


def train_config(given: Mapping[str, Any]) -> TrainConfig:
    """The config of these fields.

    Raises:
        InputError: a field is missing, unknown, or does not fit; the first one is named.
    """
    return checked(TrainConfig, given)


def checked(kind: type[M], given: Mapping[str, Any]) -> M:
    """A strict model of these fields.

    Raises:
        InputError: a field is missing, unknown, or does not fit; the first one is named.
    """
    try:
        # As JSON: lists become tuples, numbers stay what they are.
        return kind.model_validate_json(json.dumps(dict(given)))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "config"
        if first["type"] == "extra_forbidden":
            raise InputError(field, first["input"], f"one of {', '.join(kind.model_fields)}") from error
        if first["type"] == "missing":
            raise InputError(field, None, "a value: it has no default") from error
        raise InputError(field, first["input"], first["msg"].removeprefix("Input should be ")) from error
    except (TypeError, ValueError) as error:
        raise InputError("config", type(given).__name__, f"numbers, words and lists ({error})") from error


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        InputError: the file is missing, is no YAML, or holds something else.
    """
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("config", str(path), f"a file that can be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError("config", str(path), f"YAML ({' '.join(str(error).split())})") from error
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError("config", str(path), "fields and their values")
    return value
