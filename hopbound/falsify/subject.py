"""What is put to the test: a model folder, a schedule with random weights, a language model; and `break_model`."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from hopbound.architecture import Architecture
from hopbound.decoder import Decoder, DecoderConfig, PositionCode
from hopbound.decoder.folder import file_sha256, load_model, save_model
from hopbound.errors import InputError
from hopbound.falsify.families import (
    LONG_PROMPT,
    AdversarialChanges,
    Family,
    GradientGuided,
    RandomChanges,
    decoder_families,
)
from hopbound.falsify.language import Adapter, LanguageModel, folder_sha256, load_language_model
from hopbound.falsify.pair import SCHEMA
from hopbound.falsify.search import Checkpoint, Progress, SearchResult, find_pair, find_smallest_pair
from hopbound.files import write_json
from hopbound.tasks import Answerer, Task, task_from_json

RANDOM_WIDTH = 32


class Breakable(Protocol):
    """A model that is put to the test, and the task that it is asked."""

    @property
    def answerer(self) -> Answerer:
        """The model."""
        ...

    @property
    def task(self) -> Task:
        """What it is asked."""
        ...

    @property
    def tied_to_sizes(self) -> bool:
        """Whether it is made for the task's sizes alone, so that smaller ones are no question to it."""
        ...

    @property
    def label(self) -> dict[str, Any]:
        """Which model it is, for a search that is resumed."""
        ...

    def families(self, task: Task, seed: int) -> list[Family]:
        """What is tried, in order."""
        ...

    def reference(self, out: Path, name: str) -> dict[str, Any]:
        """How a pair's file below `out` names the weights, which are written if they have no folder yet."""
        ...


@dataclass(frozen=True)
class Subject:
    """A decoder, the task it is asked, and the folder of its weights if it has one."""

    decoder: Decoder
    task: Task
    folder: Path | None
    notes: dict[str, Any]

    @property
    def answerer(self) -> Decoder:
        """The decoder."""
        return self.decoder

    @property
    def tied_to_sizes(self) -> bool:
        """Whether its positions are coded for one layout of the prompt."""
        return isinstance(self.decoder.config.positions, PositionCode)

    @property
    def label(self) -> dict[str, Any]:
        """The hash of its weights, or how they are drawn."""
        if self.folder is not None:
            return {"sha256": file_sha256(self.folder / "model.safetensors")}
        return {"config": self.decoder.config.to_json(), "notes": self.notes}

    def families(self, task: Task, seed: int) -> list[Family]:
        """As `decoder_families`."""
        return decoder_families(self.decoder, task, seed)

    def reference(self, out: Path, name: str) -> dict[str, Any]:
        """Path and hash of the model folder, `<name>-model` for weights without one."""
        folder = self.folder
        if folder is None:
            folder = out / f"{name}-model"
            save_model(folder, self.decoder, notes=self.notes)
        return {"path": _relative(folder, out), "sha256": file_sha256(folder / "model.safetensors")}


@dataclass(frozen=True)
class LanguageSubject:
    """A causal language model, the task it is asked, and its folder."""

    answerer: LanguageModel
    task: Task
    folder: Path

    @property
    def tied_to_sizes(self) -> bool:
        """It is not: shorter prompts are prompts as well."""
        return False

    @cached_property
    def sha256(self) -> str:
        """The hash of its folder."""
        return folder_sha256(self.folder)

    @property
    def label(self) -> dict[str, Any]:
        """The hash of its folder, and the adapter."""
        return {"sha256": self.sha256, "adapter": self.answerer.adapter.to_json()}

    def families(self, task: Task, seed: int) -> list[Family]:
        """Adversarial and random examples, then gradients."""
        model = LanguageModel(self.answerer.model, self.answerer.adapter, task.answers)
        families: list[Family] = [AdversarialChanges(task, seed), RandomChanges(task, seed)]
        if task.prompt_length <= LONG_PROMPT and task.answers > 1:
            families.append(GradientGuided(model, model, task, seed))
        return families

    def reference(self, out: Path, name: str) -> dict[str, Any]:
        """Path and hash of its folder, and the adapter."""
        return {"path": _relative(self.folder, out), **self.label}


def _relative(folder: Path, out: Path) -> str:
    return Path(os.path.relpath(folder.resolve(), out.resolve())).as_posix()


def model_subject(folder: Path, task: Task | None = None) -> Subject:
    """A model from its folder, asked the task it was made for unless another is given.

    Raises:
        InputError: the model names no task and none is given, or it cannot read the task's prompts.
        RejectedError: the folder does not hold what it says.
    """
    model = load_model(folder)
    if task is None:
        if model.task is None:
            raise InputError("task", None, "--task, or --hops, --m and --n: this model names no task")
        task = task_from_json(model.task)
    check_reads(model.decoder, task)
    return Subject(model.decoder, task, folder, model.notes)


def check_reads(decoder: Decoder, task: Task) -> None:
    """Refuse a task whose prompts the decoder cannot read.

    Raises:
        InputError: they are too long, or hold symbols that it does not know.
    """
    limit, vocabulary = decoder.prompt_limit, decoder.config.vocabulary
    if task.prompt_length > limit or task.vocabulary_size > vocabulary:
        expected = f"at most {limit} tokens and {vocabulary} symbols for this model"
        raise InputError("task", f"{task.prompt_length} tokens, {task.vocabulary_size} symbols", expected)


def language_subject(folder: Path, task: Task, adapter: Adapter | None = None) -> LanguageSubject:
    """A causal language model from its local folder (see `falsify.language`).

    Raises:
        InputError: it has no ids or positions for the task.
        RejectedError: the folder does not hold such a model.
        ModuleNotFoundError: transformers is not installed.
    """
    return LanguageSubject(load_language_model(folder, adapter or Adapter(), task), task, folder)


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
    subject: Breakable,
    *,
    out: Path | None = None,
    name: str = "pair",
    seed: int = 0,
    max_prompts: int = 100_000,
    progress: Progress = lambda tried: None,
    resume: Path | None = None,
) -> SearchResult:
    """Look for a fooling pair; write it, and weights that have no folder yet, below `out`.

    Args:
        subject: model and task.
        out: folder for `<name>.json` and, for random weights, `<name>-model/`; None: nothing is written.
        name: of the files.
        seed: of the instances.
        max_prompts: give up after so many.
        progress: called with the number of prompts tried so far.
        resume: a file that keeps the state of the search, so that one that was stopped goes on from there and ends as
            if it had not been; None: it is kept nowhere.

    Raises:
        InputError: `resume` belongs to another search.
    """
    checkpoint = None
    if resume is not None:
        search = {"model": subject.label, "task": subject.task.to_json(), "seed": seed, "max_prompts": max_prompts}
        checkpoint = Checkpoint(resume, search)
    find = find_pair if subject.tied_to_sizes else find_smallest_pair
    result = find(
        subject.answerer,
        subject.task,
        seed=seed,
        max_prompts=max_prompts,
        families=lambda task: subject.families(task, seed),
        progress=progress,
        checkpoint=checkpoint,
    )
    if out is not None and result.pair is not None:
        document = {
            "schema": SCHEMA,
            "model": subject.reference(out, name),
            **result.pair.to_json(),
            "search": {"seed": seed, "prompts_tried": result.prompts_tried, "tried": dict(result.tried)},
        }
        write_json(out / f"{name}.json", document)
    return result
