"""Each mixer against its published formula, written here with explicit loops in numpy, and against torch as a peer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hopbound.mixers import REGISTRY, Mixer, SoftmaxAttention
from tests.mixers.examples import every_mixer, example, random_input

Array = NDArray[np.float64]


def weight(mixer: Mixer[Any, Any], name: str) -> Array:
    return dict(mixer.named_parameters())[name].detach().double().numpy()


def per_head(matrix: Array, x: Array, heads: int) -> Array:
    """Projections of one sequence, [time, heads, dim]."""
    return np.array([[row.reshape(heads, -1)[h] for h in range(heads)] for row in x @ matrix.T])


def attention(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    k = per_head(weight(mixer, "key.weight"), x, spec.kv_heads)
    v = per_head(weight(mixer, "value.weight"), x, spec.kv_heads)
    window = spec.w if mixer.spec.name == "window" else time
    out = []
    for t in range(time):
        heads = []
        for h in range(spec.heads):
            shared = h * spec.kv_heads // spec.heads
            seen = range(max(0, t - window + 1), t + 1)
            scores = [np.exp(q[t, h] @ k[s, shared] / np.sqrt(spec.head_dim)) for s in seen]
            heads.append(sum(e * v[s, shared] for e, s in zip(scores, seen, strict=True)) / sum(scores))
        out.append(np.concatenate(heads))
    return np.array(out) @ weight(mixer, "out.weight").T


def linear(mixer: Mixer[Any, Any], x: Array) -> Array:
    def phi(u: Array) -> Array:
        return np.where(u > 0, u + 1, np.exp(np.minimum(u, 0)))

    spec, time = mixer.spec, len(x)
    q = phi(per_head(weight(mixer, "query.weight"), x, spec.heads))
    k = phi(per_head(weight(mixer, "key.weight"), x, spec.heads))
    v = per_head(weight(mixer, "value.weight"), x, spec.heads)
    out = []
    for t in range(time):
        heads = []
        for h in range(spec.heads):
            weights = [q[t, h] @ k[s, h] for s in range(t + 1)]
            heads.append(sum(a * v[s, h] for s, a in enumerate(weights)) / (sum(weights) + 1e-6))
        out.append(np.concatenate(heads))
    return np.array(out) @ weight(mixer, "out.weight").T


def sigmoid(u: Array) -> Array:
    return 1 / (1 + np.exp(-u))


def delta(mixer: Mixer[Any, Any], x: Array, decay: Array | None = None) -> Array:
    """S_t = α_t (I - β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ, multiplied out as matrices."""
    spec, time = mixer.spec, len(x)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    k = per_head(weight(mixer, "key.weight"), x, spec.heads)
    v = per_head(weight(mixer, "value.weight"), x, spec.heads)
    beta = sigmoid(x @ weight(mixer, "strength.weight").T)
    out = np.zeros((time, spec.heads, spec.value_dim))
    for h in range(spec.heads):
        state = np.zeros((spec.head_dim, spec.value_dim))
        for t in range(time):
            key = k[t, h] / np.linalg.norm(k[t, h])
            alpha = 1.0 if decay is None else decay[t, h]
            state = alpha * (np.eye(spec.head_dim) - beta[t, h] * np.outer(key, key)) @ state
            state += beta[t, h] * np.outer(key, v[t, h])
            out[t, h] = state.T @ (q[t, h] / np.linalg.norm(q[t, h]))
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def gated_delta(mixer: Mixer[Any, Any], x: Array) -> Array:
    rate = x @ weight(mixer, "rate.weight").T + weight(mixer, "rate_bias")
    softplus = np.log(1 + np.exp(rate))
    return delta(mixer, x, np.exp(-np.exp(weight(mixer, "log_rate_scale")) * softplus))


def convolution(mixer: Mixer[Any, Any], x: Array) -> Array:
    u, taps = x @ weight(mixer, "inner.weight").T, weight(mixer, "filter")
    out = np.zeros_like(u)
    for t in range(len(x)):
        for j in range(min(len(taps), t + 1)):
            out[t] += taps[j] * u[t - j]
    return out @ weight(mixer, "out.weight").T


DEFINITIONS: dict[str, Callable[[Mixer[Any, Any], Array], Array]] = {
    "full": attention,
    "window": attention,
    "linear": linear,
    "delta": delta,
    "gdn": gated_delta,
    "conv": convolution,
}


def test_every_registered_mixer_has_a_definition_here() -> None:
    assert set(DEFINITIONS) == set(REGISTRY)


@every_mixer
@pytest.mark.parametrize("time", [1, 23])
@pytest.mark.parametrize("seed", [0, 1])
def test_definition(name: str, time: int, seed: int) -> None:
    mixer, x = example(name, seed=seed), random_input(time, seed=seed + 10)
    output = mixer(x, None)[0].detach().numpy()
    for index in range(len(x)):
        expected = DEFINITIONS[name](mixer, x[index].numpy())
        np.testing.assert_allclose(output[index], expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("window", [None, 1, 5])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_attention_equals_torch_s(kv_heads: int, window: int | None, scale: float | None) -> None:
    mixer = example("full", kv_heads=kv_heads) if window is None else example("window", kv_heads=kv_heads, w=window)
    assert isinstance(mixer, SoftmaxAttention)
    mixer.scale = mixer.scale if scale is None else scale
    x, spec = random_input(19), mixer.spec
    q, k, v = (
        projection(x).unflatten(-1, (heads, -1)).transpose(1, 2)
        for projection, heads in (
            (mixer.query, spec.heads),
            (mixer.key, spec.kv_heads),
            (mixer.value, spec.kv_heads),
        )
    )
    distance = torch.arange(19)[:, None] - torch.arange(19)
    visible = (distance >= 0) & (distance < (window or 19))
    peer = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale, enable_gqa=True)
    expected = mixer.out(peer.transpose(1, 2).flatten(2))
    torch.testing.assert_close(mixer(x, None)[0], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("window", [20, 21, 1000])
def test_a_window_that_holds_everything_is_full_attention(window: int) -> None:
    full, local, x = example("full"), example("window", w=window), random_input(20)
    assert torch.equal(full(x, None)[0], local(x, None)[0])


def test_a_window_one_shorter_is_not() -> None:
    full, local, x = example("full"), example("window", w=19), random_input(20)
    difference = (full(x, None)[0] - local(x, None)[0]).abs().amax(dim=(0, 2))
    assert difference[:19].max() < 1e-12 < 1e-3 < difference[19]


def test_gdn_with_decay_1_is_the_delta_rule() -> None:
    gated, plain, x = example("gdn"), example("delta", seed=1), random_input(20)
    weights = {key: value for key, value in gated.state_dict().items() if "rate" not in key}
    plain.load_state_dict(weights)
    with torch.no_grad():
        gated.get_parameter("rate.weight").zero_()
        gated.get_parameter("rate_bias").fill_(-1000.0)
    assert torch.equal(gated(x, None)[0], plain(x, None)[0])


def test_the_delta_rule_overwrites() -> None:
    # With strength 1 a key read after it was written gives the last value, whatever it held before.
    mixer = example("delta", heads=1)
    with torch.no_grad():
        mixer.get_parameter("strength.weight").zero_()[:, 5] = 1000.0
        mixer.get_parameter("key.weight")[:, 3:] = 0.0
        mixer.get_parameter("query.weight").copy_(mixer.get_parameter("key.weight"))
        mixer.get_parameter("value.weight")[:, :3] = 0.0
    x = random_input(12)
    x[:, :, :3], x[:, :, 5] = x[:, :1, :3], 1.0
    expected = mixer.get_submodule("out")(mixer.get_submodule("value")(x))
    torch.testing.assert_close(mixer(x, None)[0], expected, atol=1e-12, rtol=0)
