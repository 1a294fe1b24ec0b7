"""What a mixer says that it reads, writes and remembers, against brute force: change a column and look."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hopbound.mixers import Mixer, Sight
from tests.mixers.examples import IDLE, WIDTH, every_mixer, example, random_input, tensors

TIME = 14
PATTERNS = range(6)
every_pattern = pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 1 else []) for seed in PATTERNS]
)
INPUTS = 4
CHANGES = 4


def sparse_example(name: str, seed: int) -> Mixer[Any, Any]:
    """A mixer with random zero columns in each projection of the stream and zero rows in the last one.

    Each projection keeps one column at least: without any key the queries would be read for nothing.
    """
    mixer, rng = example(name, seed=seed), np.random.default_rng(seed)
    with torch.no_grad():
        for key, parameter in mixer.named_parameters():
            zero = torch.from_numpy(rng.random(WIDTH) < 0.6)
            zero[rng.integers(WIDTH)] = False
            if key == "out.weight":
                parameter[zero] = 0.0
            elif key.endswith("weight") and parameter.dim() == 2 and parameter.shape[1] == WIDTH:  # reads the stream
                parameter[:, zero] = 0.0
    return mixer


def last_output(mixer: Mixer[Any, Any], x: Tensor) -> Tensor:
    return mixer(x, None)[0][:, -1].detach()


def changed(x: Tensor, column: int, places: slice) -> Tensor:
    x = x.clone()
    x[:, places, column] += 1.5
    return x


def matters(mixer: Mixer[Any, Any], inputs: list[Tensor], column: int, places: slice) -> bool:
    """Whether some change of the column there changes the last output.

    Most mixers show it at the first change. What only has a part in a choice, or is seen only if it is chosen, shows it
    only where the choice comes out so; a few large random changes of a few inputs are tried after it.
    """
    rng = np.random.default_rng(column)
    for x in inputs:
        before, part = last_output(mixer, x), x[:, places, column]
        for change in (np.array(1.5), *10 * rng.standard_normal((CHANGES, *part.shape))):
            edited = x.clone()
            edited[:, places, column] += torch.from_numpy(change)
            if not torch.equal(last_output(mixer, edited), before):
                return True
    return False


@every_mixer
@every_pattern
def test_reads(name: str, seed: int) -> None:
    mixer, inputs = sparse_example(name, seed), [random_input(TIME, seed=seed + 100 * i) for i in range(INPUTS)]
    reads = mixer.reads()
    assert last_output(mixer, inputs[0]).abs().max() > 0
    past = slice(TIME - 2, TIME - 1) if mixer.sight is Sight.NEAR else slice(0, TIME - 1)
    for column in range(WIDTH):
        assert matters(mixer, inputs, column, past) == bool(reads.memory[column])
        at_last = matters(mixer, inputs, column, slice(TIME - 1, TIME))
        assert at_last == bool(reads.query[column] | reads.memory[column])


@every_mixer
@every_pattern
def test_a_column_that_is_not_read_changes_nothing_anywhere(name: str, seed: int) -> None:
    mixer, x = sparse_example(name, seed), random_input(TIME, seed=seed)
    reads = mixer.reads()
    for column in (~(reads.query | reads.memory)).nonzero()[:, 0].tolist():
        edited = changed(x, column, slice(None))
        assert torch.equal(mixer(edited, None)[0], mixer(x, None)[0])


@every_mixer
@every_pattern
def test_writes(name: str, seed: int) -> None:
    mixer = sparse_example(name, seed)
    written = mixer(random_input(TIME, seed=seed), None)[0].ne(0).any(dim=0).any(dim=0)
    assert torch.equal(mixer.writes(), written)
    assert written.any()


@every_mixer
def test_reach_is_the_farthest_token_that_matters(name: str) -> None:
    mixer = example(name)
    inputs = [random_input(20, seed=seed) for seed in range(INPUTS)]
    places = ((back, slice(19 - back, 20 - back)) for back in reversed(range(20)))
    farthest = next(back for back, place in places if matters(mixer, inputs, 0, place))
    in_chunk = 19 % mixer.spec.w if mixer.spec.name in ("chunk", "block") else 19
    assert farthest == (mixer.reach if mixer.sight is Sight.NEAR else in_chunk)
    assert mixer.reach == 0 or mixer.sight is Sight.NEAR


def idle_example(name: str, seed: int) -> tuple[Mixer[Any, Any], Tensor]:
    """A mixer and tokens, some of which change no state: zero tokens, or such with keys far below zero."""
    mixer, rng = example(name, seed=seed), np.random.default_rng(seed)
    with torch.no_grad():
        mixer.get_parameter("key.weight").abs_().neg_()
        if "rate_bias" in mixer.state_dict():
            mixer.get_parameter("rate.weight").zero_()
            mixer.get_parameter("rate_bias").fill_(-1000.0)
    x = random_input(24, batch=1, seed=seed)
    kinds = rng.integers(0, 3, 24)
    x[:, kinds == 0] = 0.0
    x[:, kinds == 1] = 400.0
    return mixer, x


@pytest.mark.parametrize("name", IDLE)
@pytest.mark.parametrize("seed", PATTERNS)
def test_a_token_that_changes_no_state_leaves_it_bit_equal(name: str, seed: int) -> None:
    mixer, x = idle_example(name, seed)
    changes = mixer.changes_state(x)[0].tolist()
    assert any(changes)
    assert not all(changes)
    _, state = mixer(random_input(3, batch=1, seed=seed + 1), None)
    for place, change in enumerate(changes):
        before = [tensor.clone() for tensor in tensors(state)]
        _, state = mixer(x[:, place : place + 1], state)
        assert change or all(torch.equal(one, other) for one, other in zip(before, tensors(state), strict=True))


@pytest.mark.parametrize("name", IDLE)
def test_idle_tokens_can_be_left_out(name: str) -> None:
    mixer, x = idle_example(name, 0)
    kept = mixer.changes_state(x)[0].clone()
    kept[-1] = True
    shorter = mixer(x[:, kept], None)[0][:, -1]
    torch.testing.assert_close(mixer(x, None)[0][:, -1], shorter, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", IDLE)
@pytest.mark.parametrize("seed", PATTERNS)
def test_gate_columns_decide_who_changes_the_state(name: str, seed: int) -> None:
    mixer, (_, x) = sparse_example(name, seed), idle_example(name, seed)
    gate = mixer.reads().gate
    assert not (gate & ~mixer.reads().memory).any()
    for column in (~gate).nonzero()[:, 0].tolist():
        assert torch.equal(mixer.changes_state(changed(x, column, slice(None))), mixer.changes_state(x))


@every_mixer
def test_without_zero_weights_every_column_is_read_and_written(name: str) -> None:
    mixer = example(name)
    reads = mixer.reads()
    assert (reads.query | reads.memory).all()
    assert mixer.writes().all()


def test_a_decay_changes_the_state_even_where_nothing_is_written() -> None:
    mixer = example("gdn")
    assert mixer.changes_state(torch.zeros(1, 2, WIDTH, dtype=torch.float64)).all()
