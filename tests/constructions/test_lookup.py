"""The look-up gadget: the entry at the asked address, whatever stands elsewhere, within the leak that it states."""

import math

import numpy as np
import pytest
import torch

from hopbound.architecture import mixer_spec
from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.lookup import LEAK, ROUNDING, LookUp, sharpness, upward, write_clean, write_lookup
from hopbound.decoder import DigitField, signs
from hopbound.mixers import SoftmaxAttention, make_mixer
from hopbound.mixers.mixer import split_heads
from hopbound.mixers.softmax import Cache

TAG, TAG_BITS, DIGITS = 2, 2, 5
# What rounding to the stream's type adds to the returned digit, which is near ±1.
ROUNDED = {torch.float32: 1e-6, torch.bfloat16: 2.0**-8}

every_dtype = pytest.mark.parametrize("dtype", ROUNDED, ids=str)


def gadget(
    positions: int, dtype: torch.dtype, heads: int, kv_heads: int, value_dim: int
) -> tuple[SoftmaxAttention, Directions]:
    bits = (positions - 1).bit_length()
    directions = Directions()
    for name, size in (("one", 1), ("tag", TAG_BITS), ("address", bits), ("asked", bits), ("v", DIGITS), ("r", DIGITS)):
        directions.add(name, size)
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": TAG_BITS + bits, "value_dim": value_dim}
    with torch.random.fork_rng(devices=[]):
        mixer = make_mixer(mixer_spec("full", sizes), directions.width, attention_scale=1.0)
    assert isinstance(mixer, SoftmaxAttention)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.zero_()
        look_up = LookUp(
            tag=TAG,
            compared=[(directions["asked"], directions["address"])],
            source=directions["v"],
            target=directions["r"],
            in_sight=positions + 1,
        )
        write_lookup(mixer, directions, look_up)
    return mixer.to(dtype), directions


def returned(
    positions: int,
    dtype: torch.dtype,
    noise: float = 0.0,
    heads: int = 1,
    kv_heads: int = 1,
    value_dim: int = DIGITS,
) -> tuple[np.ndarray, np.ndarray]:
    """What 6 last tokens get, and what stands at the address that they ask for; everything else stands against it."""
    mixer, directions = gadget(positions, dtype, heads, kv_heads, value_dim)
    rng, bits = np.random.default_rng(positions), (positions - 1).bit_length()
    x = torch.zeros(6, positions + 1, directions.width, dtype=dtype)
    x[:, :, directions["one"].start] = 1.0
    x[:, :, list(directions["tag"])] = torch.tensor(signs(TAG, TAG_BITS), dtype=dtype)
    x[:, -1, list(directions["tag"])] = torch.tensor(signs(TAG + 1, TAG_BITS), dtype=dtype)
    x[:, :-1, list(directions["address"])] = DigitField(0, 1, positions, bits).encode(torch.arange(positions), dtype)
    asked = torch.from_numpy(rng.integers(0, positions, 6))
    wanted = torch.from_numpy(rng.choice([-1.0, 1.0], (6, DIGITS)))
    x[:, :, list(directions["v"])] = -wanted[:, None].to(dtype)
    x[torch.arange(6)[:, None], asked[:, None], torch.tensor(list(directions["v"]))] = wanted.to(dtype)
    digits = DigitField(0, 1, positions, bits).encode(asked, torch.float64)
    x[:, -1, list(directions["asked"])] = (digits * (1 - noise)).to(dtype)
    with torch.no_grad():
        past = [split_heads(project(x[:, :-1]), kv_heads) for project in (mixer.key, mixer.value)]
        output = mixer(x[:, -1:], Cache(*past, absent=None, seen=torch.full((6,), positions)))[0][:, 0]
    assert not output[:, : directions["r"].start].any()
    return output[:, list(directions["r"])].double().numpy(), wanted.numpy()


@every_dtype
@pytest.mark.parametrize("positions", [2, 3, 17, 100, 1000, 5000])
@pytest.mark.parametrize("noise", [0.0, ROUNDING])
def test_the_leak_is_below_its_bound(positions: int, dtype: torch.dtype, noise: float) -> None:
    found, wanted = returned(positions, dtype, noise)
    assert np.abs(found - wanted).max() <= 2 * LEAK + ROUNDED[dtype]


@every_dtype
@pytest.mark.parametrize(
    ("heads", "kv_heads", "value_dim"), [(5, 5, 1), (2, 2, 3), (4, 2, 3), (6, 3, 2), (3, 1, 5), (8, 2, 9)]
)
def test_digits_spread_over_heads(dtype: torch.dtype, heads: int, kv_heads: int, value_dim: int) -> None:
    found, wanted = returned(100, dtype, heads=heads, kv_heads=kv_heads, value_dim=value_dim)
    assert np.abs(found - wanted).max() <= 2 * LEAK + ROUNDED[dtype]


def test_a_softer_look_up_would_leak_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopbound.constructions.lookup.sharpness", lambda in_sight: sharpness(in_sight) - 4)
    found, wanted = returned(5000, torch.float32)
    assert np.abs(found - wanted).max() > 2 * LEAK


@pytest.mark.parametrize("in_sight", [1, 2, 3, 10, 4096, 10**6, 2**40])
def test_sharpness_is_the_least_whole_number_that_suffices(in_sight: int) -> None:
    beta = sharpness(in_sight)
    wanted = math.log(in_sight) + math.log(1 / LEAK)
    assert beta == int(beta)
    assert 2 * beta * (1 - ROUNDING) >= wanted > 2 * (beta - 1) * (1 - ROUNDING)
    assert float(torch.tensor(beta, dtype=torch.bfloat16)) == beta


@pytest.mark.parametrize("weight", [1.0, 1.001, 3.0, 12 * 24**0.5, 257.0, 1e5 + 0.1, 2.0**-9 + 2.0**-20])
def test_upward_is_a_number_of_bfloat16_not_below_and_near(weight: float) -> None:
    found = upward(weight)
    assert float(torch.tensor(found, dtype=torch.bfloat16)) == found
    assert weight <= found <= weight * (1 + 2.0**-6)


@every_dtype
@pytest.mark.parametrize("raw", [0.5, 0.75, 1.0, 1.5, 7.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_clean_restores_digits(dtype: torch.dtype, raw: float, sign: int) -> None:
    rise, rise_bias = torch.zeros(4, 4, dtype=dtype), torch.zeros(4, dtype=dtype)
    fall, fall_bias = torch.zeros(4, 4, dtype=dtype), torch.zeros(4, dtype=dtype)
    write_clean(rise, rise_bias, fall, fall_bias, range(0, 2), range(2, 4))
    x = torch.tensor([sign * raw, -sign * raw, 0.0, 0.0], dtype=dtype)
    written = fall @ torch.relu(rise @ x + rise_bias) + fall_bias
    assert written.tolist() == [0.0, 0.0, sign, -sign]


def test_directions() -> None:
    directions = Directions()
    assert directions.add("a", 3) == range(0, 3)
    assert directions.add("b", 0) == range(3, 3)
    assert directions.add("c", 2) == directions["c"] == range(3, 5)
    assert directions.low("a", 2) == range(0, 2)
    assert directions.to_json() == {"a": [0, 3], "b": [3, 0], "c": [3, 2]}
    with pytest.raises(ValueError, match="'a' is taken"):
        directions.add("a", 1)
    with pytest.raises(ValueError, match="has 2 coordinates, 3 were asked for"):
        directions.low("c", 3)
    with pytest.raises(ValueError, match="2 rows cannot copy 3 columns"):
        copy(torch.zeros(3, 3), range(2), range(3))
