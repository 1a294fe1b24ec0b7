"""A causal language model in the format of Hugging Face, asked a task's prompts by a plain rule.

The rule: token t of the task is the id `offset + t`, nothing stands before or after the prompt, and the answer is the
largest logit at the last position among the ids `answer_offset .. answer_offset + answers - 1`.

A model is a local folder with `config.json` and `*.safetensors`; transformers loads it (imported only then), runs no
code of the folder and downloads nothing. Its hash covers the config and all weights.
"""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hopbound.decoder.codes import exactly, whole
from hopbound.decoder.folder import file_sha256
from hopbound.errors import InputError, RejectedError
from hopbound.falsify.gradient import first_order, margin
from hopbound.tasks import Batch, Task

TOKENS_AT_ONCE = 2**14


@dataclass(frozen=True)
class Adapter:
    """How a task's tokens and answers become token ids.

    Attributes:
        offset: the id of task token 0.
        answer_offset: the id of answer 0.
    """

    offset: int = 0
    answer_offset: int = 0

    def to_json(self) -> dict[str, int]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> "Adapter":
        """From `to_json`.

        Raises:
            RejectedError: other keys, or no whole numbers.
        """
        given = exactly(value, "adapter", ("offset", "answer_offset"))
        return cls(whole(given["offset"], "offset", 0), whole(given["answer_offset"], "answer_offset", 0))


def is_language_model(folder: Path) -> bool:
    """Whether a folder holds a model in this format, and none of ours."""
    return (folder / "config.json").is_file() and not (folder / "model.json").is_file()


def weight_files(folder: Path) -> list[Path]:
    """The files of weights, in order.

    Raises:
        RejectedError: there are none.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise RejectedError(f"{folder.name}: no *.safetensors beside its config.json")
    return files


def folder_sha256(folder: Path) -> str:
    """One hash of the config and of all weights: of the lines `<sha256>  <name>`, as sha256sum writes them.

    Raises:
        RejectedError: a file is missing.
    """
    if not (folder / "config.json").is_file():
        raise RejectedError(f"config.json: no such file in {folder.name}")
    files = [folder / "config.json", *weight_files(folder)]
    return hashlib.sha256("".join(f"{file_sha256(file)}  {file.name}\n" for file in files).encode()).hexdigest()


class LanguageModel:
    """A causal language model as an `Answerer`, and as something whose margin has a gradient."""

    def __init__(self, model: Any, adapter: Adapter, answers: int) -> None:
        self.model = model
        self.adapter = adapter
        self.answers = answers

    @property
    def prompt_limit(self) -> int | None:
        """The longest prompt that its positions are made for, if its config says."""
        return getattr(self.model.config, "max_position_embeddings", None)

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return self.model.get_input_embeddings().weight.shape[0]

    def check_reads(self, task: Task) -> None:
        """Refuse a task whose prompts or answers it has no ids or no positions for.

        Raises:
            InputError: the prompts are too long, or there are too few ids.
        """
        limit = self.prompt_limit
        if limit is not None and task.prompt_length > limit:
            raise InputError("task", f"{task.prompt_length} tokens", f"at most {limit} tokens for this model")
        needed = max(self.adapter.offset + task.vocabulary_size, self.adapter.answer_offset + task.answers)
        if needed > self.vocabulary:
            raise InputError("task", f"ids up to {needed - 1}", f"at most {self.vocabulary} ids for this model")

    def logits(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Logits of the answers at the last position."""
        start = self.adapter.answer_offset
        out = self.model(**inputs, use_cache=False).logits[:, -1, start : start + self.answers]
        return out.to(torch.promote_types(out.dtype, torch.float32))

    @torch.no_grad()
    def all_logits(self, prompts: NDArray[np.int64]) -> torch.Tensor:
        """Logits of the answers to each prompt, computed in batches."""
        ids = torch.from_numpy(prompts + self.adapter.offset)
        if not 0 <= int(ids.min()) <= int(ids.max()) < self.vocabulary:
            raise InputError("tokens", f"ids {int(ids.min())} to {int(ids.max())}", f"0 to {self.vocabulary - 1}")
        return torch.cat([self.logits(input_ids=part) for part in ids.split(max(1, TOKENS_AT_ONCE // ids.shape[1]))])

    def answer(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answers [N] to prompts [N, n].

        Raises:
            InputError: a token has no id in this model.
        """
        return self.all_logits(prompts).argmax(dim=-1).numpy()

    def predicted(self, batch: Batch, values: int) -> NDArray[np.float64]:
        """As `Differentiable.predicted`."""
        weight = self.model.get_input_embeddings().weight.detach()
        ids = torch.from_numpy(batch.prompts + self.adapter.offset)
        with torch.enable_grad():
            stream = weight[ids].requires_grad_(True)
            total = margin(self.logits(inputs_embeds=stream), batch.answers).sum()
            (gradient,) = torch.autograd.grad(total, stream)
        table = weight[self.adapter.offset : self.adapter.offset + values]
        return first_order(gradient.nan_to_num(), table, batch.prompts)

    def margins(self, batch: Batch) -> NDArray[np.float64]:
        """As `Differentiable.margins`."""
        return margin(self.all_logits(batch.prompts), batch.answers).nan_to_num(nan=-1e30).double().numpy()


def load_language_model(folder: Path, adapter: Adapter, task: Task) -> LanguageModel:
    """A model from its local folder, for a task.

    Args:
        folder: with config.json and *.safetensors.
        adapter: from task tokens to ids.
        task: what it is to be asked.

    Raises:
        InputError: the model has no ids or positions for the task.
        RejectedError: the folder does not hold a causal language model with all of its weights.
        ModuleNotFoundError: transformers is not installed.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    weight_files(folder)
    said, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):  # weights that a file lacks would be drawn
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(folder),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype="auto",
                output_loading_info=True,
            )
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError) as error:
        said_first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RejectedError(f"{folder.name}: no causal language model ({said_first})") from error
    finally:
        logging.set_verbosity(said)
        if bars:
            logging.enable_progress_bar()
    model, info = loaded
    wrong = [name for kind in ("missing_keys", "mismatched_keys") for name in info.get(kind, ())]
    if wrong:
        raise RejectedError(f"{folder.name}: weights that its config names are missing or of another shape: {wrong[0]}")
    asked = LanguageModel(model.eval().requires_grad_(False), adapter, task.answers)
    asked.check_reads(task)
    return asked
