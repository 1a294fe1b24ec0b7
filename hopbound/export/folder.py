"""Exporting a model folder: write the other format, run it beside the original, keep it if every answer is the same."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from hopbound.decoder.folder import ModelFolder, load_model
from hopbound.errors import InputError, RejectedError
from hopbound.export.hf import CLASSES
from hopbound.export.onnx import onnx_answers, write_onnx
from hopbound.export.plain import plain_stack, tensors_of
from hopbound.files import write_json
from hopbound.tasks import Task, task_from_json
from hopbound.tasks.task import AnswerFunction

SCHEMA = "hopbound/export/1"
FORMATS = ("onnx", "hf", "safetensors")
ASKED = 1000
MAX_LENGTH = 8192  # the whole forward is run: scores of every pair of positions
_TOKENS_AT_ONCE = 2**14


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A folder that another program can read.

    Attributes:
        path: the folder.
        format: one of FORMATS.
        model_class: of transformers; None for other formats.
        files: their names and sizes in bytes.
        prompt_length: of the prompts.
        start: a token that is to be put before every prompt; None: there is none.
        asked: prompts that were put to both models.
        same: how many of them were answered alike.
        right: how many of them were answered right; None if the model is for no task.
    """

    path: Path
    format: str
    model_class: str | None
    files: Mapping[str, int]
    prompt_length: int
    start: int | None
    asked: int
    same: int
    right: int | None

    def to_json(self) -> dict[str, Any]:
        """As it stands in `export.json`, without the path."""
        return {
            "schema": SCHEMA,
            "format": self.format,
            "model_class": self.model_class,
            "files": dict(self.files),
            "prompt_length": self.prompt_length,
            "start": self.start,
            "asked": self.asked,
            "same": self.same,
            "right": self.right,
        }


def export_model(
    model: Path, out: Path, *, format: str, model_class: str = "gpt2", asked: int = ASKED, seed: int = 0
) -> Exported:
    """Export a model folder, run the result, and keep it if all answers are the original's.

    Args:
        model: folder that `hopbound build` wrote.
        out: folder to be made; one that an export wrote is replaced.
        format: `onnx`, `hf` (a class of transformers) or `safetensors` (plain tables and matrices).
        model_class: of the format `hf`: one of hf.CLASSES.
        asked: prompts to put to both: half random, half adversarial.
        seed: of the prompts.

    Raises:
        InputError: the format or class is unknown or cannot hold the model; prompts are too long, or the model appends
            tokens of its own; `out` is another folder.
        RejectedError: the model folder cannot be read; an answer differs (nothing is kept).
    """
    if format not in FORMATS:
        raise InputError("format", format, f"one of {', '.join(FORMATS)}")
    if model_class not in CLASSES:
        raise InputError("class", model_class, f"one of {', '.join(CLASSES)}")
    if out.exists() and not (out / "export.json").is_file():
        raise InputError("out", str(out), "a new folder or one that holds an export")
    source = load_model(model)
    task = None if source.task is None else task_from_json(source.task)
    length = _prompt_length(source, task)
    if thoughts := source.decoder.config.thoughts:
        raise InputError("thoughts", thoughts, "0: a model that appends tokens of its own is not exported")
    if length > MAX_LENGTH:
        raise InputError("prompt length", length, f"at most {MAX_LENGTH} tokens for an export")
    prompts, right = _prompts(source, task, length, asked, seed)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as name:
        folder = Path(name) / "export"
        folder.mkdir()
        start, answers = _written(source, folder, format, model_class, length)
        given = _in_batches(answers, prompts)
        wanted = source.decoder.answer(prompts)
        exported = Exported(
            path=out,
            format=format,
            model_class=model_class if format == "hf" else None,
            files={file.name: file.stat().st_size for file in sorted(folder.iterdir())},
            prompt_length=length,
            start=start,
            asked=len(prompts),
            same=int((given == wanted).sum()),
            right=None if right is None else int((given == right).sum()),
        )
        if exported.same < exported.asked:
            raise RejectedError(
                f"{format}: {exported.same} of {exported.asked} answers are the model's; nothing is kept"
            )
        write_json(folder / "export.json", {**exported.to_json(), "weights_sha256": source.weights_sha256})
        if out.exists():
            shutil.rmtree(out)
        folder.replace(out)
    return exported


def _written(
    source: ModelFolder, folder: Path, format: str, model_class: str, length: int
) -> tuple[int | None, AnswerFunction]:
    """Write the files; the token before every prompt, and the answers of what was written, read back from the files."""
    if format == "onnx":
        write_onnx(source.decoder, length, folder / "model.onnx")
        return None, onnx_answers(folder / "model.onnx")
    stack = plain_stack(source.decoder)
    if format == "safetensors":
        about = {"schema": SCHEMA, "heads": str(stack.heads), "layers": str(len(stack.layers))}
        save_file(tensors_of(stack), folder / "model.safetensors", metadata=about)
        return None, plain_answers(load_file(folder / "model.safetensors"), stack.heads)
    made = CLASSES[model_class](stack)
    (folder / "config.json").write_text(json.dumps(made.config, indent=2) + "\n", encoding="utf-8")
    save_file(made.tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return made.start, transformers_answers(folder, made.start)


def transformers_answers(folder: Path, start: int | None) -> AnswerFunction:
    """A folder as transformers loads it, without code from the folder and without a network.

    Raises:
        RejectedError: a weight is missing, or there is one too many.
    """
    import transformers

    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        read: Any = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
    finally:
        transformers.logging.set_verbosity(verbosity)
        transformers.logging.enable_progress_bar()
    model, loaded = read
    if wrong := {key: sorted(value)[:3] for key, value in loaded.items() if value}:
        raise RejectedError(f"hf: {wrong}")

    def answer(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        tokens = torch.from_numpy(prompts)
        if start is not None:
            tokens = torch.nn.functional.pad(tokens, (1, 0), value=start)
        with torch.no_grad():
            logits = model(input_ids=tokens, logits_to_keep=1).logits
        return logits[:, -1].argmax(dim=-1).numpy()

    return answer


def plain_answers(tensors: Mapping[str, Tensor], heads: int) -> AnswerFunction:
    """Plain tables and matrices, evaluated as the head of `plain.py` writes them."""
    layers = len({name.split(".")[1] for name in tensors if name.startswith("layers.")})

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    def answer(prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        tokens = torch.from_numpy(prompts)
        x = tensors["token_table"][tokens] + tensors["position_table"][: tokens.shape[1]]
        for index in range(layers):
            layer = {key: tensors[f"layers.{index}.{key}"] for key in LAYER_KEYS}
            queries, keys, values = (split(x @ layer[part].T) for part in ("query", "key", "value"))
            read = scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=1.0)
            x = x + read.transpose(1, 2).flatten(2) @ layer["out"].T
            x = x + torch.relu(x @ layer["rise"].T + layer["rise_bias"]) @ layer["fall"].T + layer["fall_bias"]
        return (x[:, -1] @ tensors["readout"].T).argmax(dim=-1).numpy()

    return answer


LAYER_KEYS = ("query", "key", "value", "out", "rise", "rise_bias", "fall", "fall_bias")


def _prompt_length(source: ModelFolder, task: Task | None) -> int:
    """Of the task's prompts, or the most that the model reads.

    Raises:
        InputError: the model reads prompts of any length.
    """
    limit = source.decoder.prompt_limit
    if task is not None:
        return task.prompt_length
    if limit == float("inf"):
        raise InputError("model", "for no task and prompts of any length", "a model that is built for a task")
    return int(limit)


def _prompts(
    source: ModelFolder, task: Task | None, length: int, asked: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Half of them random, half adversarial, with the right answers; random tokens where there is no task."""
    if task is None:
        generator = np.random.Generator(np.random.Philox(seed))
        return generator.integers(source.decoder.config.vocabulary, size=(asked, length)), None
    batches = [task.sample(seed, "export", 0, asked - asked // 2), task.adversarial(seed, 0, asked // 2)]
    return np.concatenate([one.prompts for one in batches]), np.concatenate([one.answers for one in batches])


def _in_batches(answers: AnswerFunction, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The answers to all prompts, a few at a time."""
    size = max(1, _TOKENS_AT_ONCE // prompts.shape[1])

    def parts() -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(prompts), size):
            yield np.asarray(answers(prompts[start : start + size]), dtype=np.int64)

    return np.concatenate(list(parts()))
