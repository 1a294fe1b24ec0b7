"""Two pasts that leave one state: found where there must be some, and equal as the plain recurrence has it."""

import numpy as np
import pytest
import torch

from hopbound.architecture import Defaults
from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.falsify import state_collision
from hopbound.falsify.collisions import birthday
from hopbound.falsify.states import ROUNDING


def decoder(schedule: str, *, positions: str | int = "none", vocabulary: int = 6, head_dim: int = 4) -> Decoder:
    made = Decoder.from_schedule(
        schedule,
        vocabulary=vocabulary,
        width=16,
        heads=1,
        head_dim=head_dim,
        positions=positions,
        defaults=Defaults(window=3, kernel=3),
    )
    return made.eval().requires_grad_(False)


def continued(model: Decoder, pasts: np.ndarray) -> torch.Tensor:
    """Logits after each past and the same random continuation."""
    ending = np.random.default_rng(1).integers(0, model.config.vocabulary, (1, 5)).repeat(2, axis=0)
    return model(torch.from_numpy(np.concatenate([pasts, ending], axis=1)))[0][:, -5:]


@pytest.mark.parametrize(
    ("schedule", "positions", "way"),
    [
        ("linear", "none", "order"),  # a sum does not know the order
        ("window", "none", "order"),  # what has left the window
        ("2*window", 20, "order"),
        ("conv[channels=8]", 20, "order"),
    ],
)
def test_exact_collisions(schedule: str, positions: str | int, way: str) -> None:
    model = decoder(schedule, positions=positions)
    found = state_collision(model, 10)
    assert found is not None
    assert found.way == way
    assert (found.pasts[0] != found.pasts[1]).any()
    assert found.distance < 1e-6
    torch.testing.assert_close(*continued(model, found.pasts), atol=1e-5, rtol=1e-5)


def test_any_permutation_collides_for_one_layer_without_positions() -> None:
    found = state_collision(decoder("linear"), 8, seed=3)
    assert found is not None
    assert sorted(found.pasts[0].tolist()) == sorted(found.pasts[1].tolist())


def test_a_memory_with_fewer_keys_than_writes_collides_by_edits() -> None:
    """Entries at positions whose keys depend on each other: key dimension 1, so that all keys are parallel."""
    model = decoder("linear[head_dim=1,value_dim=1]", positions=12, vocabulary=2)
    with torch.no_grad():  # values by the token alone, keys by nothing: the state counts the ones
        assert model.token_table is not None
        assert model.position_table is not None
        model.position_table.weight.zero_()
    found = state_collision(model, 8, tolerance=1e-6)
    assert found is not None
    assert found.pasts[0].sum() == found.pasts[1].sum()


@pytest.mark.parametrize("schedule", ["2*delta[head_dim=1,value_dim=1]", "2*retnet[head_dim=1,value_dim=1]"])
def test_small_states_collide(schedule: str) -> None:
    """Two numbers a layer, rounded to 8 bits: some of thousands of pasts must agree."""
    model = decoder(schedule, positions=20)
    found = state_collision(model, 12)
    assert found is not None
    assert found.distance <= ROUNDING
    # The states as the model leaves them, once more.
    _, state = model(torch.from_numpy(found.pasts))
    for layer in state.layers:
        for held in layer:
            assert isinstance(held, torch.Tensor)
            apart = float((held[0] - held[1]).abs().max() / held.abs().max())
            assert apart <= found.distance + 1e-6


def test_birthdays_are_pasts_with_states_in_one_cell() -> None:
    model = decoder("retnet[head_dim=1,value_dim=1]")
    pasts = np.random.default_rng(0).integers(0, 6, (500, 6))
    pairs = list(birthday(model, pasts, 2.0**-5))
    assert pairs
    _, state = model(torch.from_numpy(pasts))
    scale = float(state.layers[0][0].abs().max())
    for pair in pairs:
        assert (pair[0] != pair[1]).any()
        _, state = model(torch.from_numpy(pair))
        (held,) = state.layers[0]
        assert float((held[0] - held[1]).abs().max()) <= 2.0**-4 * scale * (1 + 1e-5)


def test_where_no_state_is_shared_none_is_found() -> None:
    """A state that holds every token: one window that is longer than the past."""
    assert state_collision(decoder("window[w=12]", positions=20), 5, tries=64, tolerance=1e-6) is None


def test_the_same_seed_finds_the_same() -> None:
    model = decoder("linear")
    one, two = (state_collision(model, 9, seed=4) for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.pasts.tolist() == two.pasts.tolist()


@pytest.mark.parametrize(
    ("schedule", "length", "alphabets", "field"),
    [
        ("linear full", 4, None, "decoder"),
        ("mlp", 4, None, "decoder"),
        ("linear", 0, None, "length"),
        ("linear", 3, [1, 2], "alphabets"),
        ("linear", 2, [1, 7], "alphabets"),
        ("linear", 2, [0, 3], "alphabets"),
    ],
)
def test_what_cannot_be_asked(schedule: str, length: int, alphabets: list[int] | None, field: str) -> None:
    with pytest.raises(InputError, match=field):
        state_collision(decoder(schedule), length, alphabets=alphabets)


def test_alphabets_are_kept() -> None:
    found = state_collision(decoder("linear"), 6, alphabets=[1, 2, 3, 3, 2, 2])
    assert found is not None
    assert (found.pasts < [1, 2, 3, 3, 2, 2]).all()
