"""Where one recurrence becomes another: the engines at the limits of their decays, strengths and keys."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.delta_rule import delta_rule

BATCH, HEADS, TIME, KEY, VALUE = 2, 3, 70, 4, 5


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


Q, K = (normal(BATCH, HEADS, TIME, KEY, seed=seed) for seed in (0, 1))
V = normal(BATCH, HEADS, TIME, VALUE, seed=2)
G = -normal(BATCH, HEADS, TIME, seed=3).abs()
BETA = normal(BATCH, HEADS, TIME, seed=4).sigmoid()
STATE = normal(BATCH, HEADS, KEY, VALUE, seed=5)


def same(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


@pytest.mark.parametrize("chunk", [1, 32])
def test_equal_channel_decays_are_a_head_s(chunk: int) -> None:
    """Kimi Delta Attention becomes Gated DeltaNet, GLA becomes RetNet's form."""
    channels = G[..., None].expand(-1, -1, -1, KEY)
    k = normalize(K, dim=-1)
    same(delta_rule(Q, k, V, BETA, channels, STATE, chunk=chunk), delta_rule(Q, k, V, BETA, G, STATE, chunk=chunk))
    same(
        decayed_attention(Q, K, V, channels, STATE, chunk=chunk),
        decayed_attention(Q, K, V, G, STATE, chunk=chunk),
    )


@pytest.mark.parametrize("shape", [G.shape, (*G.shape, KEY)])
def test_a_decay_of_one_is_none(shape: tuple[int, ...]) -> None:
    """Gated DeltaNet becomes DeltaNet, RetNet linear attention without a normaliser."""
    none = torch.zeros(shape, dtype=torch.float64)
    k = normalize(K, dim=-1)
    same(delta_rule(Q, k, V, BETA, none, STATE, chunk=32), delta_rule(Q, k, V, BETA, None, STATE, chunk=32))
    same(decayed_attention(Q, K, V, none, STATE, chunk=64), decayed_attention(Q, K, V, None, STATE, chunk=64))


@pytest.mark.parametrize("chunk", [1, 32, 64])
def test_strengths_of_two_count_parity(chunk: int) -> None:
    """k = 1, v = 0, β = 2 bit: each set bit turns the sign of the state."""
    bits = torch.randint(0, 2, (1, 1, 200), generator=torch.Generator().manual_seed(0)).double()
    ones, start = torch.ones(1, 1, 200, 1, dtype=torch.float64), torch.ones(1, 1, 1, 1, dtype=torch.float64)
    output, _ = delta_rule(ones, ones, 0 * ones, 2 * bits, None, start, chunk=chunk)
    assert torch.equal(output[0, 0, :, 0], (-1) ** bits[0, 0].cumsum(0))


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_strong_decays_stay_finite_forward_and_backward(channels: bool, dtype: torch.dtype) -> None:
    """Log-decay -20 a step over 65 steps, β = 1."""
    time = 65
    q, k, v = (x[:, :, :time].to(dtype).requires_grad_() for x in (Q, normalize(K, dim=-1), V))
    shape = (BATCH, HEADS, time, KEY) if channels else (BATCH, HEADS, time)
    g = torch.full(shape, -20.0, dtype=dtype, requires_grad=True)
    beta = torch.ones(BATCH, HEADS, time, dtype=dtype, requires_grad=True)
    state = STATE.to(dtype).requires_grad_()
    for output, last in (
        delta_rule(q, k, v, beta, g, state, chunk=64),
        decayed_attention(q, k, v, g, state, chunk=64),
        decayed_attention(q, k, v, g, state, torch.ones(HEADS, KEY, dtype=dtype), chunk=64),
    ):
        gradients = torch.autograd.grad(output.sum() + last.sum(), [q, k, v, g, state])
        assert all(part.isfinite().all() for part in (output, last, *gradients))
