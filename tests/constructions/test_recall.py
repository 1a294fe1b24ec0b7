"""Recall: the induction pair and the associative memory, at their limits and beyond."""

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import Example, build, write_weights
from hopbound.constructions.associative import AssociativeMemory, capacity
from hopbound.constructions.induction import Induction
from hopbound.errors import InputError
from hopbound.tasks import Recall, parse_task
from tests.constructions.single import check_example, check_whole_forward, weights_survive_bfloat16

INDUCTION, MEMORY = Induction(), AssociativeMemory()
SMALL = Recall(2, 3, 3)
GATHERS = (
    "conv[channels=8,kernel=3]",
    "shift[channels=8]",
    "full[heads=1,head_dim=8]",
    "window[w=3,heads=1,head_dim=8]",
)
LOOK_UPS = (
    "full[heads=2,kv_heads=1,head_dim=8]",
    "mla[heads=1,latent=8,rope_dim=2,value_dim=8]",
    "topk[heads=1,head_dim=8,k=1]",
    "topk[heads=1,head_dim=8,k=3]",
    "window[w=5,heads=1,head_dim=8]",
)
MEMORIES = (
    *(f"{name}[heads=1,head_dim=3]" for name in ("linear", "gla", "hgrn2", "rwkv6", "rwkv7", "mlstm", "deltaproduct")),
    *(f"{name}[heads=2,head_dim=4,conv=4]" for name in ("delta", "gdn", "kda")),
    "loglinear[heads=1,head_dim=3,levels=5]",
    "mamba2[heads=1,head_dim=3,state=3]",
    "mamba[channels=8,state=3]",
)


def slow(example: Example) -> bool:
    return parse_task(example.task).prompt_length > 100


def marked(examples: list[tuple[object, Example]]) -> list[object]:
    return [
        pytest.param(*one, marks=pytest.mark.slow if slow(one[1]) else (), id=f"{one[1].schedule} {one[1].task}")
        for one in examples
    ]


@pytest.mark.parametrize(
    ("construction", "example"), marked([(one, ex) for one in (INDUCTION, MEMORY) for ex in one.examples])
)
def test_an_example(construction: Induction | AssociativeMemory, example: Example) -> None:
    check_example(construction, example)


@pytest.mark.parametrize("gather", GATHERS)
def test_every_gather_serves_both(gather: str) -> None:
    for second, construction in ((LOOK_UPS[0], INDUCTION), (MEMORIES[0], MEMORY)):
        built = check_example(
            construction, Example(schedule=f"{gather} {second}", task="recall[pairs=2,keys=3,values=3]")
        )
        check_whole_forward(built.built.decoder, SMALL)
        assert weights_survive_bfloat16(built.built.decoder)


@pytest.mark.parametrize("look_up", LOOK_UPS)
def test_every_look_up(look_up: str) -> None:
    example = Example(schedule=f"{GATHERS[0]} {look_up}", task="recall[pairs=2,keys=3,values=3]")
    check_whole_forward(check_example(INDUCTION, example).built.decoder, SMALL)


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_at_its_capacity(memory: str) -> None:
    architecture = parse_schedule(f"{GATHERS[1]} {memory}")
    room = capacity(architecture.layers[1].mixers[0])
    assert room is not None
    task = Recall(room, room, 4)
    result = build(architecture, task)
    assert result.verification.verified
    assert result.verification.smallest_margin > 1.9
    beyond = Recall(room + 1, room + 1, 4)
    assert "the state of" in str(MEMORY.refusal(architecture, beyond)) or "channels" in str(
        MEMORY.refusal(architecture, beyond)
    )


@pytest.mark.parametrize("name", ["linear", "delta", "gdn"])
def test_one_key_too_many_is_what_is_missed(name: str) -> None:
    """The pigeonhole as it is: only the two keys that share a coordinate are ever answered wrong."""
    task = Recall(6, 6, 16)
    built = build(parse_schedule(f"shift[channels=8] {name}[heads=1,head_dim=5]"), task, overfill=True).built
    batch = task.sample(0, "test", 0, 2000)
    wrong = built.decoder.answer(batch.prompts) != batch.answers
    assert set(batch.prompts[wrong, -1].tolist()) == {0, 5}


def test_in_bfloat16() -> None:
    for schedule, construction in (
        ("2*full[heads=1,head_dim=8]", INDUCTION),
        ("shift[channels=8] gdn[head_dim=8]", MEMORY),
    ):
        example = Example(schedule=schedule.replace("gdn[", "gdn[heads=1,"), task="recall[pairs=3,keys=4,values=4]")
        check_example(construction, example, torch.bfloat16)


def test_layers_that_do_nothing_may_stand_between() -> None:
    schedule = "gla[heads=1,head_dim=4] shift[channels=8] mlp full[heads=1,head_dim=8] linear[heads=1,head_dim=4]"
    result = build(parse_schedule(schedule), SMALL)
    assert result.verification.verified
    assert result.built.steps == ("layer 2 gathers keys", "layer 4 looks the key up")


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("full[heads=1,head_dim=8]", "one layer more"),
        ("shift[channels=8] retnet[heads=1,head_dim=8]", "forgets at a fixed rate"),
        ("shift[channels=8] conv[channels=8,kernel=2]", "holds no table"),
        ("gdn[heads=1,head_dim=8] full[heads=1,head_dim=8]", "brings no token what stands before it"),
        ("shift[channels=8] window[w=4,heads=1,head_dim=8]", "does not reach 4 back"),
    ],
)
def test_what_does_not_fit_is_said(schedule: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        write_weights(parse_schedule(schedule), SMALL, overfill=True)


@pytest.mark.slow
def test_a_longer_prompt_by_two_full_layers() -> None:
    task = Recall(40, 50, 37)
    result = build(parse_schedule("2*full[heads=1,head_dim=16]"), task, seed=3)
    assert result.verification.verified
    assert np.isfinite(result.verification.smallest_margin)
