"""C6: every example as documented, the bounds of the proof measured, evaluation on demand against the whole forward."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import CONSTRUCTIONS, Example, build, constructions_for, write_weights
from hopbound.constructions.lookup import LEAK
from hopbound.constructions.two_sum import TwoSumByOneLayer
from hopbound.decoder.folder import load_model
from hopbound.errors import InputError
from hopbound.tasks import TwoSum, parse_task
from hopbound.witness import verify_file

C6 = TwoSumByOneLayer()


def is_big(example: Example) -> bool:
    return parse_task(example.task).prompt_length > 1000


def made(example: Example, dtype: torch.dtype = torch.float32) -> Any:
    task, architecture = parse_task(example.task), parse_schedule(example.schedule)
    return build(architecture, task, dtype=dtype, overfill=not example.fits)


EXAMPLES = [
    pytest.param(one, marks=[pytest.mark.slow] * is_big(one), id=f"{one.schedule} {one.task}") for one in C6.examples
]
DTYPES = [torch.float32, torch.bfloat16]


def test_it_is_registered() -> None:
    assert [one.name for one in constructions_for(TwoSum(4, 5))] == ["C6"]
    assert any(isinstance(one, TwoSumByOneLayer) for one in CONSTRUCTIONS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: Example, dtype: torch.dtype) -> None:
    task, architecture = parse_task(example.task), parse_schedule(example.schedule)
    assert isinstance(task, TwoSum)
    assert (C6.refusal(architecture, task) is None) == example.fits
    assert C6.fatal_refusal(architecture, task) is None
    found = made(example, dtype).verification
    if example.fits:
        assert found.verified
        least = 2 - 4 * LEAK if dtype is torch.float32 else 2 - 2.0**-5
        assert found.smallest_margin >= least
    else:
        assert found.accuracy < 1
        assert found.smallest_margin <= 0


def test_the_kinds_of_evidence() -> None:
    fitting = [parse_task(one.task) for one in C6.examples if one.fits]
    assert any(task.log2_instances < np.log2(1e5) for task in fitting)
    assert any(task.prompt_length >= 1e5 for task in fitting)
    assert max(task.vocabulary_size for task in fitting) == 10**6


@pytest.mark.parametrize("dtype", [torch.float64, *DTYPES], ids=str)
@pytest.mark.parametrize("example", [one for one in C6.examples if one.fits and not is_big(one)], ids=str)
def test_on_demand_is_the_whole_forward(example: Example, dtype: torch.dtype) -> None:
    task = parse_task(example.task)
    decoder = write_weights(parse_schedule(example.schedule), task, dtype=dtype).decoder
    prompts = torch.from_numpy(task.adversarial(0, 0, 28).prompts)
    whole = decoder(prompts)[0][:, -1]
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2.0**-5}[dtype]
    torch.testing.assert_close(decoder.final_logits(prompts), whole, atol=tolerance, rtol=tolerance)


def test_what_is_read_is_one_minus_twice_the_digits_that_differ() -> None:
    """Without a partner the softmax averages over the nearest numbers: y = 1 - 2h to the leak, h counted by hand."""
    task = TwoSum(6, 64)
    decoder = write_weights(parse_schedule("full[heads=1,head_dim=6]"), task, dtype=torch.float64).decoder
    prompts = task.sample(0, "test", 0, 200).prompts
    logits = decoder.final_logits(torch.from_numpy(prompts))
    for prompt, (no, yes) in zip(prompts.tolist(), logits.tolist(), strict=True):
        partner = (64 - prompt[-1]) % 64
        nearest = min((x ^ partner).bit_count() for x in prompt)
        assert yes == -no
        assert yes == pytest.approx(1 - 2 * nearest, abs=2 * 6 * LEAK)


def test_without_a_partner_no_sharpness_is_needed() -> None:
    """Even uniform weights answer 0 rightly: the mean of digits that all differ somewhere is never the wanted code."""
    task = TwoSum(5, 16)
    decoder = write_weights(parse_schedule("full[heads=1,head_dim=4]"), task).decoder
    decoder.each_block()[0].each_mixer()[0].get_parameter("query.weight").zero_()
    batch = task.sample(0, "test", 0, 500)
    answers = decoder.answer(batch.prompts)
    assert not answers[batch.answers == 0].any()
    assert not answers[batch.answers == 1].all()


def test_every_place_of_a_match_is_found() -> None:
    task = TwoSum(300, 1000)
    decoder = write_weights(parse_schedule("full[heads=1,head_dim=10]"), task).decoder
    prompts = np.full((300, 300), 999)
    prompts[:, -1] = 3
    prompts[np.arange(300), np.arange(300)] = 997
    prompts[-1, -1] = 500  # its own partner
    assert decoder.answer(prompts).all()


@pytest.mark.parametrize(
    "schedule", ["2*full[heads=1,head_dim=5]", "linear[heads=1,head_dim=5] conv full[heads=1,head_dim=5]"]
)
def test_other_layers_do_nothing(schedule: str) -> None:
    result = build(parse_schedule(schedule), TwoSum(3, 30))
    assert result.verification.verified
    assert result.verification.exhaustive


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ("2*linear[heads=1,head_dim=8]", "linear makes no exact look-up here"),
        ("nsa[heads=1,head_dim=8,k=2,block=4,w=4]", "it chooses blocks by the mean of their keys"),
        ("full[heads=4,head_dim=4]", "5 bits is wider than head_dim 4"),
        ("window[heads=1,head_dim=8,w=8]", "window sees 8 tokens at most, the prompt has 9"),
        ("mla[heads=1,latent=5,rope_dim=2,value_dim=5]", "together are wider than latent \\+ rope_dim 7"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(schedule: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        build(parse_schedule(schedule), TwoSum(9, 30))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("schedule", ["2*linear[heads=1,head_dim=8]", "mla[heads=1,latent=5,rope_dim=2,value_dim=5]"])
def test_what_cannot_be_forced_is_refused_even_so(schedule: str) -> None:
    assert C6.fatal_refusal(parse_schedule(schedule), TwoSum(9, 30)) is not None
    with pytest.raises(InputError, match="schedule"):
        build(parse_schedule(schedule), TwoSum(9, 30), overfill=True)


def test_the_folder_is_accepted_and_an_altered_claim_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    result = build(parse_schedule("full[heads=1,head_dim=3]"), TwoSum(4, 7), out=folder)
    assert result.path == folder
    assert verify_file(folder).accepted
    model = load_model(folder)
    config = model.decoder.config
    assert config.tokens is not None
    assert [field.negated for field in config.tokens.fields] == [False, True]
    text = (folder / "model.json").read_text(encoding="utf-8")
    (folder / "model.json").write_text(text.replace('"negated": true', '"negated": false'), encoding="utf-8")
    assert not verify_file(folder).accepted


def test_every_weight_is_a_number_of_bfloat16() -> None:
    decoder = write_weights(parse_schedule("full[heads=2,head_dim=20]"), TwoSum(4096, 10**6)).decoder
    for parameter in decoder.parameters():
        assert torch.equal(parameter.to(torch.bfloat16).to(parameter.dtype), parameter)


def test_a_damaged_weight_is_found() -> None:
    task = TwoSum(4, 8)
    built = write_weights(parse_schedule("full[heads=1,head_dim=3]"), task)
    batch = task.enumerate(0, task.instances)
    for parameter in built.decoder.parameters():
        for place in parameter.nonzero().tolist():
            before = parameter[tuple(place)].item()
            parameter[tuple(place)] = -before
            assert (built.decoder.answer(batch.prompts) != batch.answers).any()
            parameter[tuple(place)] = before
    assert dataclasses.is_dataclass(built)
