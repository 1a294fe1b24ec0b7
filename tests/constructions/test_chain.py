"""C4: with tokens of its own one full layer makes any number of hops, and the tokens are the hops."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import build, write_weights
from hopbound.constructions.chain import ChainOfThought
from hopbound.constructions.construction import Example, Mode
from hopbound.decoder import Decoder
from hopbound.decoder.thoughts import think
from hopbound.errors import InputError
from hopbound.falsify import break_model, model_subject
from hopbound.tasks import FunctionComposition, parse_task
from hopbound.witness import verify_files

FITTING = [example for example in ChainOfThought.examples if example.fits]
BEYOND = [example for example in ChainOfThought.examples if not example.fits]
STACK = parse_schedule("full[heads=1,head_dim=24]")


def marked(example: Example) -> object:
    long = parse_task(example.task).prompt_length > 10**4
    return pytest.param(example, id=example.task, marks=[pytest.mark.slow] if long else [])


@pytest.mark.parametrize("example", [marked(example) for example in FITTING])
def test_examples(example: Example) -> None:
    task = parse_task(example.task)
    result = build(parse_schedule(example.schedule), task, **example.options)
    assert result.built.construction == "C4"
    assert result.verification.exhaustive == (task.instances <= 10**5)
    assert result.verification.accuracy == 1.0
    assert result.verification.smallest_margin > 1.99


@pytest.mark.parametrize("example", BEYOND, ids=lambda example: example.schedule)
def test_beyond_the_limits_forced_weights_fail(example: Example) -> None:
    stack, task = parse_schedule(example.schedule), parse_task(example.task)
    with pytest.raises(InputError, match=r"^schedule: [^\n]*C4: (address|value) codes"):
        build(stack, task, **example.options)
    result = build(stack, task, overfill=True, **example.options)
    assert not result.verification.verified


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "task",
    [
        FunctionComposition(1, 5),
        FunctionComposition(3, 3, (2, 3)),
        FunctionComposition(4, 3, (3, 1, 5), values=(2, 6, 3)),
        FunctionComposition(5, 4, (1, 1, 1, 1)),
    ],
    ids=lambda task: task.identity,
)
def test_the_thoughts_are_the_hops(task: FunctionComposition, dtype: torch.dtype) -> None:
    decoder = write_weights(STACK, task, dtype=dtype, mode=Mode.THOUGHTS).decoder
    prompts = np.concatenate([task.sample(0, "test", 0, 40).prompts, task.adversarial(0, 0, 40).prompts])
    thoughts, logits = think(decoder, torch.from_numpy(prompts))
    bits = (max(task.m, *task.values) - 1).bit_length()
    said = np.concatenate([thoughts.numpy() % 2**bits, logits.argmax(dim=-1, keepdim=True).numpy()], axis=1)
    assert np.array_equal(said, task.hops_path(prompts).values)


def test_on_demand_is_the_whole_forward() -> None:
    task = FunctionComposition(3, 3, (2, 3))
    decoder = write_weights(STACK, task, dtype=torch.float64, mode=Mode.THOUGHTS).decoder
    prompts = torch.from_numpy(task.sample(0, "test", 0, 8).prompts)
    thoughts, logits = think(decoder, prompts)
    whole = decoder(torch.cat([prompts, thoughts], dim=1))[0]
    torch.testing.assert_close(logits, whole[:, -1], atol=1e-9, rtol=0)
    assert torch.equal(whole[:, task.prompt_length - 1 : -1].argmax(dim=-1), thoughts)


def test_without_being_asked_for_there_are_no_thoughts() -> None:
    with pytest.raises(InputError, match=r"^\w+: [^\n]*$"):
        build(STACK, FunctionComposition(2, 2, (2,)))


def test_one_thought_fewer_fails() -> None:
    task = FunctionComposition(2, 4, (2,))
    decoder = write_weights(STACK, task, mode=Mode.THOUGHTS).decoder
    shorter = Decoder.zeros(replace(decoder.config, thoughts=task.hops - 1))
    shorter.load_state_dict(decoder.state_dict())
    batch = task.sample(0, "test", 0, 200)
    assert np.mean(decoder.answer(batch.prompts) == batch.answers) == 1.0
    assert np.mean(shorter.answer(batch.prompts) == batch.answers) < 0.5


@pytest.mark.parametrize(
    ("schedule", "task", "reason"),
    [
        ("linear", FunctionComposition(2, 2, (2,)), "no full layer"),
        ("full", FunctionComposition(2, 2, (2,), order="easy"), "order=hard"),
        ("full", FunctionComposition(3, 2, (2, 2), query="many"), "query=one"),
        ("full", FunctionComposition(4, 64, (64, 64, 1), values=(64, 64, 64)), "pairs of a value and a query"),
    ],
)
def test_refusals(schedule: str, task: FunctionComposition, reason: str) -> None:
    with pytest.raises(InputError, match=rf"^schedule: [^\n]*C4: [^\n]*{reason}"):
        build(parse_schedule(schedule), task, thoughts=True)


def test_the_folder_is_verified_and_broken(tmp_path: Path) -> None:
    task = FunctionComposition(2, 4, (2,))
    build(STACK, task, out=tmp_path / "right", thoughts=True)
    (checked,) = verify_files([tmp_path / "right"])
    assert checked.accepted, checked.reason
    assert break_model(model_subject(tmp_path / "right"), max_prompts=400).pair is None
    small = parse_schedule("full[heads=1,head_dim=24,value_dim=2]")
    build(small, task, out=tmp_path / "wrong", thoughts=True, overfill=True)
    assert break_model(model_subject(tmp_path / "wrong"), out=tmp_path / "pairs", max_prompts=400).pair is not None
    assert all(one.accepted for one in verify_files([tmp_path / "pairs"]))
