"""Copying by n-gram look-up, at its limits and beyond."""

import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import Example, build, write_weights
from hopbound.constructions.ngram import NGramCopying
from hopbound.errors import InputError
from hopbound.tasks import Copying, parse_task
from tests.constructions.single import check_example, check_whole_forward, weights_survive_bfloat16

NGRAM = NGramCopying()
SMALL = "copying[length=5,symbols=3,done=3,unique=2]"
GATHERS = (
    "full[heads=2,kv_heads=1,head_dim=8]",
    "conv[channels=9,kernel=4]",
    "window[w=3,heads=2,head_dim=8]",
)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, marks=pytest.mark.slow if parse_task(one.task).prompt_length > 40 else (), id=one.schedule)
        for one in NGRAM.examples
    ],
)
def test_an_example(example: Example) -> None:
    check_example(NGRAM, example)


@pytest.mark.parametrize("gather", GATHERS)
@pytest.mark.parametrize(
    "look_up", ["full[heads=1,head_dim=5]", "topk[heads=1,head_dim=5,k=2]", "window[w=9,heads=1,head_dim=8]"]
)
def test_every_pair_of_layers(gather: str, look_up: str) -> None:
    result = check_example(NGRAM, Example(schedule=f"{gather} {look_up}", task=SMALL))
    check_whole_forward(result.built.decoder, parse_task(SMALL))
    assert weights_survive_bfloat16(result.built.decoder)


def test_in_bfloat16() -> None:
    check_example(NGRAM, Example(schedule="2*full[heads=2,head_dim=8]", task=SMALL), torch.bfloat16)


@pytest.mark.parametrize("gram", [1, 2, 3, 4])
def test_every_length_of_grams(gram: int) -> None:
    """Where n-grams are unique n tokens are enough; on long repeats of n tokens where only longer grams are, not."""
    bits = 4
    stack = parse_schedule(f"conv[channels={gram * bits},kernel={gram + 1}] full[heads=1,head_dim={gram * bits + 1}]")
    decoder = write_weights(stack, Copying(13, 13, 8, gram)).decoder
    fitting = Copying(13, 13, 8, gram).adversarial(0, 0, 200)
    assert (decoder.answer(fitting.prompts) == fitting.answers).all()
    longer = Copying(13, 13, 8, gram + 1).adversarial(0, 0, 200)
    repeats = [number for number in range(200) if Copying.adversarial_family(number) == "long repeat"]
    right = decoder.answer(longer.prompts[repeats]) == longer.answers[repeats]
    assert right.mean() < 0.8


@pytest.mark.parametrize(
    ("schedule", "task", "said"),
    [
        ("2*full[heads=2,head_dim=8]", "copying[length=5,symbols=3,done=3]", "n-grams may repeat"),
        ("2*full[heads=2,head_dim=8]", "copying[length=5,symbols=3,done=1,unique=2]", "2 symbols that are looked up 1"),
        ("2*full[heads=1,head_dim=8]", SMALL, "brings 1 of the 2 tokens before"),
        ("full[heads=2,head_dim=8]", SMALL, "one layer more"),
        ("shift[channels=9] full[heads=1,head_dim=8]", SMALL, "shift brings 1 of the 2 tokens before"),
        ("full[heads=2,head_dim=3] full[heads=1,head_dim=8]", SMALL, "a position has 4 digits"),
    ],
)
def test_what_does_not_fit_is_said(schedule: str, task: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        write_weights(parse_schedule(schedule), parse_task(task))


def test_the_steps_are_named() -> None:
    result = build(
        parse_schedule("full[heads=2,head_dim=8] shift[channels=4] full[heads=1,head_dim=8]"), parse_task(SMALL)
    )
    assert result.verification.verified
    assert result.built.steps == ("layer 1 gathers 2-grams", "layer 3 looks the last one up")
