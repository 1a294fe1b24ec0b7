"""Folders for transformers: its own classes give the original's answers, without a network and without our code."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions.registry import write_weights
from hopbound.decoder import Decoder
from hopbound.decoder.folder import save_model
from hopbound.errors import InputError, RejectedError
from hopbound.export import export_model, folder, hf, plain_stack
from hopbound.tasks import FunctionComposition

from .models import FULL, ONE_HOP, SHARED_KEYS, TWO_HOPS, folder_of

pytestmark = pytest.mark.draws  # transformers does, where it makes a model before it loads the weights


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("schedule", [FULL, SHARED_KEYS])
@pytest.mark.parametrize("name", hf.CLASSES)
def test_transformers_gives_the_answers_of_the_task(name: str, schedule: str, tmp_path: Path) -> None:
    """By AutoModelForCausalLM as a user would, against the task's own answers: neither is our code."""
    transformers = pytest.importorskip("transformers")
    exported = export_model(
        folder_of(schedule, TWO_HOPS, tmp_path / "model"), tmp_path / name, format="hf", model_class=name
    )
    assert (exported.asked, exported.same, exported.right) == (1000, 1000, 1000)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name, trust_remote_code=False).eval()
    assert type(model).__module__.startswith("transformers.models.")
    batch = TWO_HOPS.sample(7, "test", 0, 1000)
    prompts = torch.from_numpy(batch.prompts)
    if exported.start is not None:
        prompts = torch.cat([torch.full((len(prompts), 1), exported.start), prompts], dim=1)
    with torch.no_grad():
        logits = model(prompts).logits[:, -1]
    np.testing.assert_array_equal(logits.argmax(dim=-1).numpy(), batch.answers)
    best = logits.topk(2).values
    assert float((best[:, 0] - best[:, 1]).min()) > 1.9  # 2 in exact arithmetic


@pytest.mark.parametrize("name", hf.CLASSES)
def test_generate_writes_the_answer(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    exported = export_model(
        folder_of("2*full[heads=1,head_dim=24]", ONE_HOP, tmp_path / "model"),
        tmp_path / name,
        format="hf",
        model_class=name,
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name).eval()
    batch = ONE_HOP.sample(7, "test", 0, 20)
    prompts = torch.from_numpy(batch.prompts)
    if exported.start is not None:
        prompts = torch.nn.functional.pad(prompts, (1, 0), value=exported.start)
    made = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=1, do_sample=False)
    np.testing.assert_array_equal(made[:, -1].numpy(), batch.answers)


def test_more_answers_than_tokens_and_fewer() -> None:
    """The head has a row a token; those that are no answers never win."""
    for answers in (3, 40):
        stack = plain_stack(some_decoder(answers))
        for make in hf.CLASSES.values():
            made = make(stack)
            head = made.tensors["lm_head.weight"]
            assert len(head) == made.config["vocab_size"] == max(answers, 16) + (made.start is not None)
            assert bool((head[answers:, stack.width] == hf.NEVER).all())


def some_decoder(answers: int) -> Decoder:
    decoder = write_weights(parse_schedule("2*full[heads=1,head_dim=24]"), ONE_HOP).decoder
    return Decoder.zeros(replace(decoder.config, vocabulary=16, answers=answers))


def test_steps_make_the_positions_as_far_as_float32_tells_them_apart() -> None:
    """Against the table; at 2,000 alternating rows the error is still small, and it grows with their number."""
    errors = []
    for rows in (10, 100, 2000):
        table = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(rows // 2, 1)
        errors.append(hf.position_error(hf.Steps.of(table), table))
    assert errors == sorted(errors)
    assert errors[-1] < hf.POSITION_TOLERANCE
    with pytest.raises(InputError, match="positions"):
        hf.Steps.of(torch.tensor([[1.0], [-1.0]]).repeat(2**14, 1))


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ("linear[heads=1,head_dim=24] full[heads=1,head_dim=24]", "layer 1"),
        ("2*full[heads=1,head_dim=24,gate=1]", "layer 1"),
    ],
)
def test_what_a_class_cannot_hold_is_refused(schedule: str, field: str, tmp_path: Path) -> None:
    model = folder_of(schedule, ONE_HOP, tmp_path / "model")
    with pytest.raises(InputError, match=f"{field}: got .*full attention"):
        export_model(model, tmp_path / "out", format="hf")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"norm": "rms"}, "norm"),
        ({"norm": "none", "maps": "gated"}, "maps"),
        ({"norm": "none", "maps": "plain"}, "activation"),
    ],
)
def test_other_decoders_are_refused(options: dict[str, str], field: str) -> None:
    decoder = Decoder.from_schedule("full", vocabulary=5, positions=8, **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=f"^{field}: "):
        plain_stack(decoder)


def test_a_folder_whose_answers_differ_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = folder_of("2*full[heads=1,head_dim=24]", ONE_HOP, tmp_path / "model")
    monkeypatch.setattr(folder, "plain_answers", lambda *_: lambda prompts: np.zeros(len(prompts), dtype=np.int64))
    with pytest.raises(RejectedError, match="answers"):
        export_model(model, tmp_path / "out", format="safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_file_says_what_was_run(tmp_path: Path) -> None:
    model = folder_of("2*full[heads=1,head_dim=24]", ONE_HOP, tmp_path / "model")
    export_model(model, tmp_path / "out", format="hf")
    exported = export_model(model, tmp_path / "out", format="safetensors")  # replaces the other
    said = json.loads((tmp_path / "out" / "export.json").read_text(encoding="utf-8"))
    assert (
        said.pop("weights_sha256")
        == json.loads((model / "model.json").read_text(encoding="utf-8"))["weights"]["sha256"]
    )
    assert said == exported.to_json()
    assert exported.same == exported.asked == 1000
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="out"):
        export_model(model, tmp_path / "other", format="safetensors")


def test_one_hop_at_long_prompts_is_within_float32(tmp_path: Path) -> None:
    """The largest positions of the hierarchy's constructions: 578 tokens."""
    task = FunctionComposition(2, 8, (64,), (8,))
    stack = plain_stack(write_weights(parse_schedule("3*full[heads=1,head_dim=24]"), task).decoder)
    made = hf.llama(stack)
    assert made.config["max_position_embeddings"] == task.prompt_length + 1


def test_a_model_that_appends_tokens_and_prompts_that_are_too_long_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = write_weights(parse_schedule("2*full[heads=1,head_dim=24]"), ONE_HOP).decoder
    model = tmp_path / "model"
    save_model(model, Decoder.zeros(replace(decoder.config, thoughts=1)), notes={})
    with pytest.raises(InputError, match="thoughts"):
        export_model(model, tmp_path / "out", format="safetensors")
    monkeypatch.setattr(folder, "MAX_LENGTH", ONE_HOP.prompt_length - 1)
    with pytest.raises(InputError, match="prompt length"):
        export_model(
            folder_of("2*full[heads=1,head_dim=24]", ONE_HOP, tmp_path / "long"), tmp_path / "out", format="safetensors"
        )
