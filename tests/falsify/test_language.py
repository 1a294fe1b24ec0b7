"""A causal language model in the format of Hugging Face is broken, and its pair is accepted from the file alone."""

import json
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import torch

from hopbound.errors import InputError, RejectedError
from hopbound.falsify import Adapter, LanguageModel, language_subject
from hopbound.falsify.language import folder_sha256, load_language_model
from hopbound.tasks import FunctionComposition
from hopbound.witness import verify_file

from ..cli.commands import hopbound
from .plain import right_answer

TASK = FunctionComposition(hops=1, m=4)
OPTIONS = '--task "composition[hops=1,m=4]" --offset 3 --answer-offset 10'


@cache
def tiny() -> Path:
    """A Llama of one layer with 24 ids and 16 positions."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=24,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
    )
    folder = Path(mkdtemp(prefix="hopbound-test-")) / "llama"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny(), tmp_path / "llama"))


def test_it_is_broken_and_the_pair_accepted(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = hopbound(f"break '{model}' {OPTIONS} --out '{tmp_path / 'broken'}' --json", capsys)
    assert ended.code == 0, ended.err
    assert ended.json["found"]
    path = tmp_path / "broken" / "pair.json"
    assert verify_file(path).accepted, verify_file(path).reason
    pair = json.loads(path.read_text(encoding="utf-8"))
    assert pair["model"] == {
        "path": "../llama",
        "sha256": folder_sha256(model),
        "adapter": {"offset": 3, "answer_offset": 10},
    }
    # What it says, once more with nothing but transformers: the rule of the adapter written out.
    from transformers import LlamaForCausalLM

    llama = LlamaForCausalLM.from_pretrained(str(model))
    task = FunctionComposition(1, pair["task"]["m"])
    logits = llama(torch.tensor(pair["prompts"]) + 3).logits[:, -1, 10 : 10 + task.answers]
    assert logits.argmax(dim=-1).tolist() == pair["model_answers"]
    assert [right_answer(task, prompt) for prompt in pair["prompts"]] == pair["right_answers"]
    assert "id 3 + t" in (tmp_path / "broken" / "pair.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("change", ["weights", "config", "adapter", "answers"])
def test_other_weights_or_another_rule_are_refused(
    change: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hopbound(f"break '{model}' {OPTIONS} --out '{tmp_path / 'broken'}'", capsys)
    path = tmp_path / "broken" / "pair.json"
    pair: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if change == "weights":
        file = model / "model.safetensors"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    elif change == "config":
        file = model / "config.json"
        file.write_text(file.read_text(encoding="utf-8").replace('"rms_norm_eps": 1e-06', '"rms_norm_eps": 1e-01'))
    elif change == "adapter":
        pair["model"]["adapter"] = {"offset": 3}
    else:
        pair["model"]["adapter"]["answer_offset"] = 23
    path.write_text(json.dumps(pair))
    judged = verify_file(path)
    assert not judged.accepted
    assert "\n" not in judged.reason


def test_the_gradient_predicts_small_changes(model: Path) -> None:
    """Against differences of the margin, along the straight line between two embeddings."""
    loaded = load_language_model(model, Adapter(3, 10), TASK)
    batch = TASK.sample(0, "test", 0, 4)
    predicted = loaded.predicted(batch, TASK.vocabulary_size)
    assert predicted.shape == (4, TASK.prompt_length, TASK.vocabulary_size)
    weight = loaded.model.get_input_embeddings().weight.double()
    loaded.model.double()
    for row, place, value in ((0, 1, 2), (1, 0, 3), (3, 4, 1)):
        stream = weight[torch.from_numpy(batch.prompts[row : row + 1] + 3)].repeat(2, 1, 1)
        towards = weight[3 + value] - weight[3 + batch.prompts[row, place]]
        step = torch.tensor([1e-2, -1e-2], dtype=torch.float64)
        stream[:, place] += step[:, None] * towards
        logits = loaded.model(inputs_embeds=stream).logits[:, -1, 10:14]
        right = int(batch.answers[row])
        others = [i for i in range(4) if i != right]
        margins = logits[:, right] - logits[:, others].amax(dim=1)
        slope = float(margins[0] - margins[1]) / 2e-2
        assert predicted[row, place, value] == pytest.approx(slope, rel=2e-2, abs=1e-6)


def test_what_the_model_cannot_read_is_refused(model: Path) -> None:
    for adapter, task in (
        (Adapter(21, 0), TASK),
        (Adapter(0, 21), TASK),
        (Adapter(0, 0), FunctionComposition(hops=1, m=15)),
    ):
        with pytest.raises(InputError, match="task"):
            language_subject(model, task, adapter)
    loaded = LanguageModel(load_language_model(model, Adapter(), TASK).model, Adapter(20), 4)
    with pytest.raises(InputError, match="tokens"):
        loaded.answer(np.full((1, 6), 5))


def test_a_language_model_names_no_task(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = hopbound(f"break '{model}'", capsys)
    assert ended.code == 2
    assert "names no task" in ended.error


def test_folders_that_hold_no_such_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RejectedError):
        folder_sha256(model / "missing")
    (model / "config.json").write_text("{}")
    ended = hopbound(f"break '{model}' {OPTIONS}", capsys)
    assert ended.code == 1
    assert "no causal language model" in ended.error
    (model / "model.safetensors").unlink()
    ended = hopbound(f"break '{model}' {OPTIONS}", capsys)
    assert ended.code == 1
    assert "safetensors" in ended.error


def test_missing_weights_are_not_drawn(model: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(model / "model.safetensors")
    weights.pop("model.layers.0.mlp.up_proj.weight")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RejectedError, match="missing"):
        load_language_model(model, Adapter(), TASK)


def test_without_transformers_one_line_says_so(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    ended = hopbound(f"break '{model}' {OPTIONS}", capsys)
    assert ended.code == 2
    assert ended.error == "extra: transformers is not installed, expected pip install 'hopbound[export]'"
