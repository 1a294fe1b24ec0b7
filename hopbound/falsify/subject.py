"""What is put to the test (a model folder, or a schedule with random weights), and `break`: from either to a pair."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopbound.architecture import Architecture
from hopbound.decoder import Decoder, DecoderConfig, PositionCode
from hopbound.decoder.folder import file_sha256, load_model, save_model
from hopbound.errors import InputError
from hopbound.falsify.pair import SCHEMA
from hopbound.falsify.search import SearchResult, find_pair, find_smallest_pair
from hopbound.files import write_json
from hopbound.tasks import Task, task_from_json

RANDOM_WIDTH = 32


@dataclass(frozen=True)
class Subject:
    """A model, the task it is asked, and the folder of its weights if it has one."""

    decoder: Decoder
    task: Task
    folder: Path | None
    notes: dict[str, Any]

    @property
    def tied_to_sizes(self) -> bool:
        """Whether its positions are coded for one layout of the prompt."""
        return isinstance(self.decoder.config.positions, PositionCode)


def model_subject(folder: Path, task: Task | None = None) -> Subject:
    """A model from its folder, asked the task it was made for unless another is given.

    Raises:
        InputError: the model names no task and none is given, or it cannot read the task's prompts.
        RejectedError: the folder does not hold what it says.
    """
    model = load_model(folder)
    if task is None:
        if model.task is None:
            raise InputError("task", None, "--hops, --m and --n: this model names no task")
        task = task_from_json(model.task)
    limit, vocabulary = model.decoder.prompt_limit, model.decoder.config.vocabulary
    if task.prompt_length > limit or task.vocabulary_size > vocabulary:
        expected = f"at most {limit} tokens and {vocabulary} symbols for this model"
        raise InputError("task", f"{task.prompt_length} tokens, {task.vocabulary_size} symbols", expected)
    return Subject(model.decoder, task, folder, model.notes)


def random_subject(architecture: Architecture, task: Task, seed: int) -> Subject:
    """Seeded random weights for a schedule: tables, RMS norm, maps of twice the width."""
    config = DecoderConfig(
        schedule=str(architecture),
        precisions=architecture.precisions,
        vocabulary=task.vocabulary_size,
        answers=task.answers,
        width=RANDOM_WIDTH,
        hidden=(2 * RANDOM_WIDTH,) * len(architecture.layers),
        activation="gelu",
        norm="rms",
        scores="rsqrt",
        tokens=None,
        positions=task.prompt_length,
        readout=None,
    )
    return Subject(Decoder.random(config, seed), task, None, {"construction": "random", "seed": seed})


def break_model(
    subject: Subject,
    *,
    out: Path | None = None,
    name: str = "pair",
    seed: int = 0,
    max_prompts: int = 100_000,
    progress: Callable[[int], None] = lambda tried: None,
) -> SearchResult:
    """Look for a fooling pair; write it, and weights that have no folder yet, below `out`.

    Args:
        subject: model and task.
        out: folder for `<name>.json` and, for random weights, `<name>-model/`; None: nothing is written.
        name: of the files.
        seed: of the instances.
        max_prompts: give up after so many.
        progress: called with the number of prompts tried so far.
    """
    if subject.tied_to_sizes:
        result = find_pair(subject.decoder, subject.task, seed=seed, max_prompts=max_prompts, progress=progress)
    else:
        result = find_smallest_pair(
            subject.decoder, subject.task, seed=seed, max_prompts=max_prompts, progress=progress
        )
    if out is not None and result.pair is not None:
        folder = subject.folder
        if folder is None:
            folder = out / f"{name}-model"
            save_model(folder, subject.decoder, notes=subject.notes)
        document = {
            "schema": SCHEMA,
            "model": {
                "path": Path(os.path.relpath(folder.resolve(), out.resolve())).as_posix(),
                "sha256": file_sha256(folder / "model.safetensors"),
            },
            **result.pair.to_json(),
            "search": {"seed": seed, "prompts_tried": result.prompts_tried},
        }
        write_json(out / f"{name}.json", document)
    return result
