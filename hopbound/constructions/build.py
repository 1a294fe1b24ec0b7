"""Build weights for a task, run them, and write the model folder with what was found."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.construction import Built, Mode
from hopbound.constructions.precision import PrecisionReport, precision_report
from hopbound.constructions.registry import write_weights
from hopbound.constructions.verification import Verification, verify_model
from hopbound.decoder.folder import dtype_name, save_model
from hopbound.errors import InputError
from hopbound.tasks import Task


@dataclass(frozen=True)
class BuildResult:
    """A built and verified model.

    Attributes:
        built: the decoder and the plan behind it.
        task: what it answers.
        verification: what happened when it ran.
        path: its folder; None if it was not written.
        precision: in which arithmetic it is exact; None if that was not asked.
    """

    built: Built
    task: Task
    verification: Verification
    path: Path | None
    precision: PrecisionReport | None = None

    @property
    def verdict(self) -> str:
        """`possible` if every instance was answered right, else `broken`."""
        return "possible" if self.verification.verified else "broken"


def claim_document(result: Verification, task: Task) -> dict[str, Any]:
    """What `model.json` says of the model's answers; `verify` runs the weights again and compares."""
    return {"task": task.name, "prompt_length": task.prompt_length, **result.to_json()}


def build(
    architecture: Architecture,
    task: Task,
    *,
    out: Path | None = None,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    overfill: bool = False,
    thoughts: bool = False,
    bidirectional: bool = False,
    precision: bool = False,
) -> BuildResult:
    """Build, verify and, if every instance was answered right, write the model folder `out`.

    Args:
        architecture: the stack.
        task: sizes and hops.
        out: folder for the model; None: nothing is written.
        dtype: of weights and stream.
        seed: of the random instances.
        overfill: go beyond the construction's limits of size; the model is then written although it fails.
        thoughts: let the model append tokens of its own to the prompt before it answers (chain of thought).
        bidirectional: let every token see all others (an encoder).
        precision: also find in which arithmetic the weights are exact (`precision.py`).

    Raises:
        InputError: both are asked for, or the stack has no construction for this task, or the type cannot
            hold the weights; nothing is written.
    """
    if thoughts and bidirectional:
        raise InputError("thoughts", True, "this, or bidirectional: an encoder generates no tokens")
    mode = Mode.THOUGHTS if thoughts else Mode.BIDIRECTIONAL if bidirectional else Mode.PLAIN
    built = write_weights(architecture, task, dtype=dtype, overfill=overfill, mode=mode)
    if not all(bool(parameter.isfinite().all()) for parameter in built.decoder.parameters()):
        raise InputError("dtype", dtype_name(dtype), "a type whose range holds the weights")
    verification = verify_model(built.decoder, task, seed)
    report = precision_report(built.decoder, task, seed=seed) if precision else None
    path = out if out is not None and (verification.verified or overfill) else None
    if path is not None:
        notes = {
            "construction": built.construction,
            "steps": list(built.steps),
            "directions": built.directions.to_json(),
            **({"precision": report.to_json()} if report else {}),
        }
        save_model(path, built.decoder, notes=notes, task=task.to_json(), claim=claim_document(verification, task))
    return BuildResult(built, task, verification, path, report)
