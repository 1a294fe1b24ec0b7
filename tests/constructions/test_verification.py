"""The verification itself: it asks what it says, finds damaged weights, and the long and large cases pass it."""

import dataclasses
import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.constructions import verification, write_weights
from hopbound.constructions.construction import Mode
from hopbound.constructions.verification import (
    LONG_SCORES,
    Verification,
    long_instances,
    verification_batches,
    verify_model,
)
from hopbound.decoder import Decoder
from hopbound.tasks import FunctionComposition
from tests.constructions.examples import build

SMALL = FunctionComposition(2, 2, (2,))


FEW = FunctionComposition(2, 2, (1,), values=(3,))  # 486 instances


def asked_by_hand(decoder: Decoder, task: FunctionComposition) -> tuple[float, float]:
    """Accuracy and smallest margin over all instances, from the whole-sequence forward and numpy."""
    batch = task.enumerate(0, task.instances)
    logits = decoder(torch.from_numpy(batch.prompts))[0][:, -1].double().numpy()
    rows = np.arange(len(logits))
    right = logits[rows, batch.answers]
    others = logits.copy()
    others[rows, batch.answers] = -np.inf
    margins = right - others.max(axis=1)
    return float((margins > 0).mean()), float(margins.min())


@pytest.mark.parametrize("schedule", ["3*full", "linear 2*full", "full gdn full", "window 2*full", "2*delta full"])
def test_a_damaged_weight_is_found(schedule: str) -> None:
    """One weight after the other is zeroed: what is reported is what is so, and mostly that the model is damaged."""
    built = build(schedule, FEW, torch.float64)
    whole = verify_model(built.decoder, FEW)
    places = [(weight, tuple(place)) for weight in built.decoder.parameters() for place in weight.nonzero().tolist()]
    found, chosen = 0, np.random.default_rng(0).permutation(len(places))[:20]
    for weight, place in (places[number] for number in chosen):
        before = weight[place].item()
        weight[place] = 0.0
        damaged = verify_model(built.decoder, FEW)
        accuracy, margin = asked_by_hand(built.decoder, FEW)
        weight[place] = before
        assert damaged.accuracy == accuracy
        assert damaged.smallest_margin == pytest.approx(margin, abs=1e-6)
        found += damaged.accuracy < 1 or abs(damaged.smallest_margin - whole.smallest_margin) > 1e-9
    assert found >= len(chosen) / 2
    assert verify_model(built.decoder, FEW) == whole


@pytest.mark.parametrize("schedule", ["3*full", "conv 2*full", "2*linear full"])
def test_a_flipped_sign_fails(schedule: str) -> None:
    built = build(schedule, SMALL)
    last = built.decoder.each_block()[-1].each_mixer()[0].get_parameter("out.weight")
    place = tuple(last.nonzero()[0].tolist())
    last[place] *= -1
    found = verify_model(built.decoder, SMALL)
    assert found.accuracy < 1
    assert found.smallest_margin < 0
    assert not found.verified


def test_a_tie_is_not_right() -> None:
    built = build("3*full", SMALL)
    for parameter in built.decoder.each_block()[-1].each_mixer()[0].parameters():
        parameter.zero_()
    found = verify_model(built.decoder, SMALL)
    assert found.accuracy == 0.0
    assert found.smallest_margin == 0.0
    assert not found.verified


def test_logits_that_are_no_numbers_do_not_verify() -> None:
    built = build("3*full", SMALL)
    built.decoder.each_block()[-1].each_mixer()[0].get_parameter("out.weight").fill_(math.nan)
    found = verify_model(built.decoder, SMALL)
    assert found.accuracy == 0.0
    assert not found.verified
    assert not found.smallest_margin > 0


def test_verified_means_all_right_by_a_margin() -> None:
    good = Verification(
        instances=9,
        adversarial=0,
        exhaustive=True,
        accuracy=1.0,
        smallest_margin=0.5,
        dtype="float32",
        seed=0,
    )
    assert good.verified
    assert json.loads(json.dumps(good.to_json()))["smallest_margin"] == 0.5
    assert not dataclasses.replace(good, accuracy=0.999).verified
    assert not dataclasses.replace(good, smallest_margin=0.0).verified


@pytest.mark.parametrize(
    ("task", "exhaustive", "ordinary", "adversarial"),
    [
        (FunctionComposition(1, 2), True, 8, 0),
        (SMALL, True, 4096, 0),
        (FunctionComposition(1, 6), False, 10_000, 1_000),  # 6 * 6^6 = 279,936
        (FunctionComposition(1, 5), True, 15_625, 0),
        (FunctionComposition(1, 99_998), False, 10_000, 1_000),
        (FunctionComposition(1, 99_999), False, 20, 4),
    ],
)
def test_how_many_are_asked(task: FunctionComposition, exhaustive: bool, ordinary: int, adversarial: int) -> None:
    assert verification_batches(task, 0)[:3] == (exhaustive, ordinary, adversarial)


def test_long_prompts_are_asked_fewer_times_where_each_costs_much() -> None:
    task = FunctionComposition(1, 99_999)
    assert long_instances(0) == long_instances(LONG_SCORES // 24) == (20, 4)
    assert long_instances(LONG_SCORES // 12) == (10, 2)
    assert long_instances(LONG_SCORES // 5) == (4, 1)
    assert long_instances(LONG_SCORES) == long_instances(100 * LONG_SCORES) == (1, 1)
    assert verification_batches(task, 0, LONG_SCORES // 5)[:3] == (False, 4, 1)
    assert verification_batches(SMALL, 0, LONG_SCORES)[:3] == (True, 4096, 0)
    assert verification_batches(FunctionComposition(1, 6), 0, LONG_SCORES)[:3] == (False, 10_000, 1_000)


def test_what_is_asked_follows_from_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two prompts of the same length, that whose tokens all look something up is asked less often."""
    task = FunctionComposition(3, 4, (2, 2))
    n = task.prompt_length
    monkeypatch.setattr(verification, "LONG_PROMPT", n - 1)
    monkeypatch.setattr(verification, "LONG_SCORES", 3 * (2 * n * n + n))
    encoder = write_weights(parse_schedule("3*full[heads=1,head_dim=24]"), task, mode=Mode.BIDIRECTIONAL).decoder
    found = verify_model(encoder, task)
    assert (found.instances, found.adversarial, found.accuracy) == (3, 1, 1.0)
    found = verify_model(build("4*full", task).decoder, task)
    assert (found.instances, found.adversarial, found.accuracy) == (24, 4, 1.0)


@pytest.mark.parametrize("task", [SMALL, FunctionComposition(2, 3, (2,), values=(2,))])
def test_the_batches_hold_what_is_announced(task: FunctionComposition) -> None:
    exhaustive, ordinary, adversarial, batches = verification_batches(task, 0)
    prompts = np.concatenate([batch.prompts for batch in batches])
    assert len(prompts) == ordinary + adversarial
    assert not exhaustive or len(np.unique(prompts, axis=0)) == task.instances


@pytest.mark.parametrize("task", [SMALL, FunctionComposition(1, 3), FunctionComposition(3, 2, (2, 3), values=(3, 2))])
def test_log2_instances(task: FunctionComposition) -> None:
    assert task.log2_instances == pytest.approx(math.log2(task.instances), abs=1e-9)


# -- slow: the sizes of the claims -------------------------------------------------------------------------------------

LONG = {
    1: FunctionComposition(1, 4100),
    2: FunctionComposition(2, 4099, (3,), values=(5,)),
    3: FunctionComposition(3, 3, (1400, 3), values=(5, 3)),
    4: FunctionComposition(4, 3, (2, 900, 3), values=(6, 5, 3)),
}
LARGE = [(f"{hops + 1}*full", hops) for hops in (1, 2, 3, 4)]
LARGE += [(f"linear {hops}*full", hops) for hops in (1, 2, 3)]
LARGE += [("full linear", 1), ("full linear full", 2), ("full linear 2*full", 3)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("schedule", "hops"), LARGE)
def test_ten_thousand_instances_at_prompts_of_4096_and_more(schedule: str, hops: int, dtype: torch.dtype) -> None:
    task = LONG[hops]
    assert task.prompt_length >= 4096
    found = verify_model(build(schedule, task, dtype).decoder, task)
    assert found.instances == 11_000
    assert found.accuracy == 1.0
    assert found.smallest_margin > 1.9


MILLION = """
import json, resource, time
import torch
torch.set_num_threads(1)
from hopbound.architecture import Defaults, parse_schedule
from hopbound.constructions.composition import build_composition
from hopbound.constructions.verification import verify_model
from hopbound.tasks import FunctionComposition

task = FunctionComposition(2, 2, (500_000,))
decoder = build_composition(parse_schedule("3*full", Defaults(head_dim=24)), task).decoder
found = verify_model(decoder, task)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(found.to_json() | {"length": task.prompt_length, "peak": peak}))
"""


@pytest.mark.slow
def test_a_million_tokens_in_four_gibibytes() -> None:
    output = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True).stdout
    found = json.loads(output)
    assert found["length"] >= 10**6
    assert found["instances"] >= 20
    assert found["accuracy"] == 1.0
    assert found["smallest_margin"] > 1.99
    assert found["peak"] < 4 * 2**30
