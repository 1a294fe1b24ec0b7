"""Where one mixer becomes another: engines and mixers at the limits of their decays, strengths, keys and sizes."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.mixers import Mixer
from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.delta_rule import delta_rule
from hopbound.mixers.dplr import dplr
from hopbound.mixers.retnet import Retention
from hopbound.mixers.selection import best
from tests.mixers.examples import WIDTH, example, random_input

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
@pytest.mark.parametrize("strong", [-50.0, -1e4, -1e13])
def test_a_token_that_forgets_everything_costs_its_neighbours_no_precision(channels: bool, strong: float) -> None:
    """In float32 a sum that holds -1e13 has lost what else is in it."""
    g = (G[..., None].expand(-1, -1, -1, KEY) if channels else G).clone() * 0.1
    g[:, :, 5::9] = strong
    q, k, v, g, beta, state = (x.float() for x in (Q, normalize(K, dim=-1), V, g, BETA, STATE))
    for one, other in (
        (delta_rule(q, k, v, beta, g, state, chunk=32), delta_rule(q, k, v, beta, g, state, chunk=1)),
        (decayed_attention(q, k, v, g, state, chunk=64), decayed_attention(q, k, v, g, state, chunk=1)),
    ):
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5 * float(b.abs().max()), rtol=0)


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
    channel_decays = g if channels else g[..., None].expand_as(k)
    for output, last in (
        dplr(q, k, v, -k, beta[..., None] * k, channel_decays, state, chunk=64),
        delta_rule(q, k, v, beta, g, state, chunk=64),
        decayed_attention(q, k, v, g, state, chunk=64),
        decayed_attention(q, k, v, g, state, torch.ones(HEADS, KEY, dtype=dtype), chunk=64),
    ):
        gradients = torch.autograd.grad(output.sum() + last.sum(), [q, k, v, g, state])
        assert all(part.isfinite().all() for part in (output, last, *gradients))


def same_weights(name: str, other: str, time: int, **sizes: int) -> tuple[Tensor, Tensor]:
    """Outputs of two mixers with the weights of the first for the same tokens."""
    one, two = example(name, torch.float64, 0, **sizes), example(other, torch.float64, 1, **sizes)
    weights = one.state_dict()
    two.load_state_dict({key: weights[key] for key in two.state_dict()})
    x = random_input(time)
    return one(x, None)[0], two(x, None)[0]


def differ_from(token: int, one: Tensor, other: Tensor) -> None:
    """Alike before the token, and not at it."""
    torch.testing.assert_close(one[:, :token], other[:, :token], atol=1e-12, rtol=0)
    assert (one[:, token] - other[:, token]).abs().max() > 1e-6


@pytest.mark.parametrize("name", ["h2o", "adakv"])
def test_a_budget_for_all_tokens_is_full_attention(name: str) -> None:
    """A query sees `budget` tokens and itself."""
    for budget in (29, 30, 100):
        torch.testing.assert_close(*same_weights(name, "full", 30, budget=budget), atol=1e-12, rtol=0)
    differ_from(29, *same_weights(name, "full", 30, budget=28))


@pytest.mark.parametrize("name", ["h2o", "adakv"])
def test_a_budget_of_recent_tokens_is_a_window(name: str) -> None:
    torch.testing.assert_close(*same_weights(name, "window", 30, budget=6, recent=6, w=7), atol=1e-12, rtol=0)
    differ_from(7, *same_weights(name, "window", 30, budget=6, recent=5, w=7))


def test_with_the_budget_as_floor_heads_do_not_share() -> None:
    torch.testing.assert_close(*same_weights("adakv", "h2o", 40, kv_heads=4, budget=6, floor=6), atol=1e-12, rtol=0)
    one, other = same_weights("adakv", "h2o", 40, kv_heads=4, budget=6, floor=0)
    assert (one - other).abs().max() > 1e-3


def test_heads_that_need_more_of_a_shared_budget_get_it() -> None:
    """No head falls below its floor, all together hold the budget, and they do not hold the same."""
    mixer, x = example("adakv", kv_heads=4, budget=8, recent=1, floor=3), random_input(60, batch=5)
    held = mixer(x, None)[1].held
    assert (held.sum(dim=1) == 4 * 8).all()
    assert held.min() >= 3
    assert held.max() > 8 > held.min()


def weights_of(mixer: Mixer[Any, Any], *, but: str) -> dict[str, Tensor]:
    return {key: value for key, value in mixer.state_dict().items() if not key.startswith(but)}


def test_kimi_delta_attention_with_equal_channels_is_gated_deltanet() -> None:
    gated, channels, x = example("gdn"), example("kda"), random_input(TIME)
    channels.load_state_dict(weights_of(gated, but="rate"), strict=False)
    with torch.no_grad():
        for name in ("rate.weight", "rate_bias"):
            each = gated.get_parameter(name).repeat_interleave(gated.spec.head_dim, dim=0)
            channels.get_parameter(name).copy_(each)
    torch.testing.assert_close(channels(x)[0], gated(x)[0], atol=1e-10, rtol=0)


def test_gla_with_constant_gates_is_retnet() -> None:
    retention, gated, x = example("retnet"), example("gla"), random_input(TIME)
    gated.load_state_dict(retention.state_dict(), strict=False)
    assert isinstance(retention, Retention)
    rates = retention.log_rates
    with torch.no_grad():
        gated.get_parameter("gate.weight").zero_()
        gates = torch.special.logit((16 * rates).exp()).repeat_interleave(gated.spec.head_dim)
        gated.get_parameter("gate_bias").copy_(gates)
    torch.testing.assert_close(gated(x)[0], retention(x)[0], atol=1e-10, rtol=0)


def test_retnet_without_decay_is_linear_attention_without_a_normaliser() -> None:
    mixer, x = example("retnet"), random_input(TIME)
    assert isinstance(mixer, Retention)
    mixer.log_rates.zero_()
    q, k, v, _ = mixer.projected(x)
    read = (q @ k.transpose(-1, -2)).tril() @ v * mixer.spec.head_dim**-0.5
    torch.testing.assert_close(mixer(x)[0], mixer.out(read.transpose(1, 2).flatten(2)), atol=1e-10, rtol=0)


@pytest.mark.parametrize("chunk", [1, 32])
def test_deltanet_counts_parity(chunk: int) -> None:
    """β = 2 bit, k = 1, v = 0: the state's sign is the parity of the bits so far."""
    mixer = example("delta", heads=1, head_dim=1, value_dim=1, beta=2)
    mixer.chunk = chunk
    bits = torch.randint(0, 2, (1, 200), generator=torch.Generator().manual_seed(1))
    x = torch.zeros(1, 200, WIDTH, dtype=torch.float64)
    x[0, :, 0], x[0, :, 1] = 1.0, 2.0 * bits - 1
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.zero_()
        for name in ("query", "key"):
            mixer.get_parameter(f"{name}.weight")[:, 0] = 1.0
        mixer.get_parameter("strength.weight")[:, 1] = 1000.0
        mixer.get_parameter("out.weight")[0] = 1.0
    output, _ = mixer(x, torch.ones(1, 1, 1, 1, dtype=torch.float64))
    assert torch.equal(output[0, :, 0], (-1.0) ** bits[0].cumsum(0).double())


def test_as_many_tokens_as_there_are_is_full_attention() -> None:
    for k in (30, 31, 1000):
        torch.testing.assert_close(*same_weights("topk", "full", 30, k=k), atol=1e-12, rtol=0)
    differ_from(29, *same_weights("topk", "full", 30, k=29))


def test_as_many_blocks_as_there_are_is_full_attention() -> None:
    for k, block in ((8, 4), (9, 4), (30, 1), (1, 30), (2, 15)):
        torch.testing.assert_close(*same_weights("moba", "full", 30, k=k, block=block), atol=1e-12, rtol=0)
    differ_from(28, *same_weights("moba", "full", 30, k=7, block=4))


def gated(open_branch: int, **sizes: int) -> Tensor:
    """Native sparse attention with one gate at 1 and two at 0."""
    mixer, x = example("nsa", torch.float64, 0, **sizes), random_input(30)
    gate = torch.tensor([-1000.0] * 3).double()
    gate[open_branch] = 1000.0
    with torch.no_grad():
        mixer.get_parameter("gate.weight").zero_()[:, 0] = gate.repeat(4)
        for name in ("query", "key", "value"):
            mixer.get_parameter(f"{name}.weight")[:, 0] = 0.0
    x[:, :, 0] = 1.0
    return mixer(x)[0]


def full_without_the_first_column(time: int = 30) -> Tensor:
    mixer, x = example("full"), random_input(time)
    nsa = example("nsa").state_dict()
    mixer.load_state_dict({key: nsa[key] for key in mixer.state_dict()})
    with torch.no_grad():
        for name in ("query", "key", "value"):
            mixer.get_parameter(f"{name}.weight")[:, 0] = 0.0
    return mixer(x)[0]


def test_branches_of_native_sparse_attention_that_see_everything_are_full_attention() -> None:
    """All blocks selected; a window of all tokens; blocks of one token compressed."""
    full = full_without_the_first_column()
    for branch, sizes in ((1, {"k": 8, "block": 4}), (2, {"w": 30}), (0, {"block": 1})):
        torch.testing.assert_close(gated(branch, **sizes), full, atol=1e-12, rtol=0)
    assert (gated(1, k=7, block=4) - full).abs().max() > 1e-6
    assert (gated(2, w=29) - full).abs().max() > 1e-6
    assert (gated(0, block=2) - full).abs().max() > 1e-6


def test_equal_scores_choose_the_newer() -> None:
    scores = torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 3.0, 2.0, 0.0, 0.0]])
    scores[1, 4] = -torch.inf
    for count, expected in (
        (0, [[0, 0, 0, 0, 0]] * 3),
        (1, [[0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]),
        (2, [[0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]),
        (4, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]]),
        (9, [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]),
    ):
        assert best(scores, count).int().tolist() == expected


def test_searches_with_one_retrieval_are_heads_that_share_their_values() -> None:
    one, full, x = example("compositional", retrievals=1), example("full", kv_heads=4), random_input(20)
    weights = one.state_dict()
    full.load_state_dict({key: weights[key] for key in ("query.weight", "key.weight", "out.weight")}, strict=False)
    with torch.no_grad():
        full.get_parameter("value.weight").copy_(weights["value.weight"].repeat(4, 1))
    torch.testing.assert_close(one(x)[0], full(x)[0], atol=1e-12, rtol=0)


def test_retrievals_that_are_alike_count_for_one() -> None:
    several, one, x = example("compositional", retrievals=3), example("compositional", retrievals=1), random_input(20)
    weights = one.state_dict()
    several.load_state_dict(weights | {"value.weight": weights["value.weight"].repeat(3, 1)})
    torch.testing.assert_close(several(x)[0], one(x)[0], atol=1e-12, rtol=0)
