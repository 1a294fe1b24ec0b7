"""Reach against what models with these mixers really see: exactly so far, and no token further."""

import numpy as np
import pytest
import torch

from hopbound.architecture import Architecture, Defaults, parse_schedule
from hopbound.bounds.ceiling import Ceiling, Question
from hopbound.bounds.reach import ceiling, reach
from hopbound.decoder import Decoder
from tests.decoder.examples import LENGTH, VOCABULARY, config

SIZES = "heads=2,head_dim=3"


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (f"window[{SIZES},w=4]", 3),
        (f"window[{SIZES},w=1]", 0),
        ("conv[channels=5,kernel=3]", 2),
        (f"window[{SIZES},w=4] conv[channels=5,kernel=3] window[{SIZES},w=6]", 10),
        (f"window[{SIZES},w=2]|conv[channels=5,kernel=4] conv[channels=2,kernel=2]", 4),
        (f"mlp window[{SIZES},w=3] mlp", 2),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_sees_exactly_so_far(schedule: str, expected: int, seed: int) -> None:
    assert reach(parse_schedule(schedule)) == expected
    model = Decoder.random(config(schedule, norm="rms"), seed)
    rng = np.random.default_rng(seed)
    prompt = rng.integers(0, VOCABULARY, LENGTH)
    changes = np.stack([np.where(np.arange(LENGTH) == at, (prompt + 1) % VOCABULARY, prompt) for at in range(LENGTH)])
    with torch.no_grad():
        own, others = (model(torch.from_numpy(p))[0][:, -1] for p in (prompt[None], changes))
    seen = (others != own).any(dim=1).numpy()[::-1]
    assert not seen[expected + 1 :].any()
    assert seen[: expected + 1].all()


@pytest.mark.parametrize("schedule", ["full", "linear", "window gdn", "window|mamba2", "conv topk[k=2]", "rglru"])
def test_recurrences_and_full_layers_see_without_a_limit(schedule: str) -> None:
    assert reach(parse_schedule(schedule)) is None
    assert not isinstance(ceiling(parse_schedule(schedule), Question()), Ceiling)


def architecture(schedule: str) -> Architecture:
    return parse_schedule(schedule, Defaults(window=5, kernel=3))


def test_tokens_that_nothing_sees_make_a_hop_impossible() -> None:
    """At the length named two prompts differ in a token that no layer sees; one token less, the last sees them all."""
    for schedule in ("window", "2*window conv", "chunk shift"):
        found = ceiling(architecture(schedule), Question())
        assert isinstance(found, Ceiling)
        n = int(found.numbers["no_hop_from"])
        first = n - 1  # how far the first token, the entry of z_L at address 0, is from the last
        assert first > found.numbers["tokens"] == first - 1
