"""Each mixer against its published formula, written here with explicit loops in numpy, and against torch as a peer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hopbound.mixers import REGISTRY, Alibi, Mixer, Rotary, SoftmaxAttention, SoftmaxMixer
from hopbound.mixers.mla import MultiHeadLatentAttention
from hopbound.mixers.rfa import RandomFeatureAttention
from tests.mixers.examples import CHOOSE, every_mixer, example, random_input
from tests.mixers.peers import alike

Array = NDArray[np.float64]


def weight(mixer: Mixer[Any, Any], name: str) -> Array:
    return mixer.state_dict()[name].double().numpy()


def per_head(matrix: Array, x: Array, heads: int) -> Array:
    """Projections of one sequence, [time, heads, dim]."""
    return np.array([[row.reshape(heads, -1)[h] for h in range(heads)] for row in x @ matrix.T])


def sigmoid(u: Array) -> Array:
    return 1 / (1 + np.exp(-u))


def silu(u: Array) -> Array:
    return u * sigmoid(u)


def convolved(mixer: Mixer[Any, Any], parts: list[Array]) -> list[Array]:
    """Each channel's last values weighed by its taps, then silu; as they are without a short convolution."""
    if "short.filter" not in mixer.state_dict():
        return parts
    u, taps = np.concatenate(parts, axis=1), weight(mixer, "short.filter")
    sums = np.array([sum(taps[j] * u[t - j] for j in range(min(len(taps), t + 1))) for t in range(len(u))])
    return np.split(silu(sums), np.cumsum([part.shape[1] for part in parts])[:-1], axis=1)


def projected(mixer: Mixer[Any, Any], x: Array) -> tuple[Array, Array, Array]:
    """Queries, keys and values of each head: [time, heads, dim]; heads of a group have the same queries and keys."""
    parts = convolved(mixer, [x @ weight(mixer, f"{name}.weight").T for name in ("query", "key", "value")])
    heads = mixer.spec.heads
    keys = getattr(mixer.spec, "key_heads", heads)
    query, key = (np.repeat(part.reshape(len(x), keys, -1), heads // keys, axis=1) for part in parts[:2])
    return query, key, parts[2].reshape(len(x), heads, -1)


def rotated(x: Array, base: float) -> Array:
    """Pairs of coordinates as complex numbers, turned by p base^(-2i/d)."""
    half, out = x.shape[-1] // 2, x.copy()
    for p in range(len(x)):
        for i in range(half):
            turned = (x[p, :, i] + 1j * x[p, :, i + half]) * np.exp(1j * p * base ** (-i / half))
            out[p, :, i], out[p, :, i + half] = turned.real, turned.imag
    return out


def attention(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    k = per_head(weight(mixer, "key.weight"), x, spec.kv_heads)
    v = per_head(weight(mixer, "value.weight"), x, spec.kv_heads)
    assert isinstance(mixer, SoftmaxMixer)
    if isinstance(mixer.encoding, Rotary):
        q, k = rotated(q, mixer.encoding.base), rotated(k, mixer.encoding.base)
    window = spec.w if spec.name == "window" else time
    chunk = spec.w if spec.name in ("chunk", "block") else time
    out = []
    for t in range(time):
        heads = []
        for h in range(spec.heads):
            shared = h * spec.kv_heads // spec.heads
            slope = 2.0 ** (-8 * (h + 1) / spec.heads) if isinstance(mixer.encoding, Alibi) else 0.0
            seen = [s for s in range(t + 1) if t - s < window and s // chunk == t // chunk]
            scores = [np.exp(q[t, h] @ k[s, shared] / np.sqrt(spec.head_dim) - slope * (t - s)) for s in seen]
            heads.append(sum(e * v[s, shared] for e, s in zip(scores, seen, strict=True)) / sum(scores))
        out.append(np.concatenate(heads))
    read = np.array(out)
    if spec.gate:
        read = read * sigmoid(x @ weight(mixer, "gate.weight").T)
    return read @ weight(mixer, "out.weight").T


def hashed(x: int) -> int:
    """32 bits, by whole numbers of any length."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> shift)) * factor % 2**32
    return x ^ (x >> 16)


def seen_by(mixer: Mixer[Any, Any], time: int) -> list[list[int]]:
    """For each token the earlier ones that it sees, in longformer and bigbird."""
    spec = mixer.spec
    sets = [[s for s in range(t + 1) if t - s < spec.w or s < spec.global_tokens] for t in range(time)]
    if spec.name == "bigbird":
        for t, seen in enumerate(sets):
            own = t // spec.block
            mixed = [hashed(hashed(own) + b) for b in range(own)]
            drawn = sorted(range(own), key=lambda b: mixed[b])[: spec.random]
            seen[:] = sorted({*seen, *(s for s in range(t + 1) if s // spec.block in drawn)})
    return sets


def chosen_attention(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    assert isinstance(mixer, SoftmaxMixer)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    k = per_head(weight(mixer, "key.weight"), x, spec.kv_heads)
    v = per_head(weight(mixer, "value.weight"), x, spec.kv_heads)
    if isinstance(mixer.encoding, Rotary):
        q, k = rotated(q, mixer.encoding.base), rotated(k, mixer.encoding.base)
    read = np.zeros((time, spec.heads, spec.value_dim))
    for t, seen in enumerate(seen_by(mixer, time)):
        for h in range(spec.heads):
            g = h * spec.kv_heads // spec.heads
            weights = softmax([q[t, h] @ k[s, g] / np.sqrt(spec.head_dim) for s in seen])
            read[t, h] = sum(a * v[s, g] for a, s in zip(weights, seen, strict=True))
    read = read.reshape(time, -1)
    if spec.gate:
        read = read * sigmoid(x @ weight(mixer, "gate.weight").T)
    return read @ weight(mixer, "out.weight").T


def block_summaries(mixer: Mixer[Any, Any], x: Array) -> Array:
    """What the tokens of a complete block hold is averaged, then projected."""
    spec, time = mixer.spec, len(x)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    read = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        means = [x[m * spec.block : (m + 1) * spec.block].mean(axis=0) for m in range((t + 1) // spec.block)]
        entries = np.array([*means, *x[max(0, t - spec.w + 1) : t + 1]])
        k = per_head(weight(mixer, "key.weight"), entries, spec.kv_heads)
        v = per_head(weight(mixer, "value.weight"), entries, spec.kv_heads)
        for h in range(spec.heads):
            g = h * spec.kv_heads // spec.heads
            weights = softmax([q[t, h] @ key / np.sqrt(spec.head_dim) for key in k[:, g]])
            read[t, h] = weights @ v[:, g]
    read = read.reshape(time, -1)
    if spec.gate:
        read = read * sigmoid(x @ weight(mixer, "gate.weight").T)
    return read @ weight(mixer, "out.weight").T


def latent(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    assert isinstance(mixer, MultiHeadLatentAttention)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    shared, c = x @ weight(mixer, "key.weight").T, x @ weight(mixer, "latent.weight").T
    if isinstance(mixer.encoding, Rotary):
        base = mixer.encoding.base
        q = np.concatenate([rotated(q[..., : spec.rope_dim], base), q[..., spec.rope_dim :]], axis=-1)
        shared = rotated(shared[:, None], base)[:, 0]
    made = per_head(weight(mixer, "key_of_latent.weight"), c, spec.heads)
    v = per_head(weight(mixer, "value_of_latent.weight"), c, spec.heads)
    read = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        for h in range(spec.heads):
            keys = [np.concatenate([shared[s], made[s, h]]) for s in range(t + 1)]
            weights = softmax([q[t, h] @ key / np.sqrt(spec.rope_dim + spec.value_dim) for key in keys])
            read[t, h] = weights @ v[: t + 1, h]
    return read.reshape(time, -1) @ weight(mixer, "out.weight").T


def linear(mixer: Mixer[Any, Any], x: Array) -> Array:
    def phi(u: Array) -> Array:
        return np.where(u > 0, u + 1, np.exp(np.minimum(u, 0)))

    spec, time = mixer.spec, len(x)
    q, k, v = projected(mixer, x)
    q, k = phi(q), phi(k)
    out = []
    for t in range(time):
        heads = []
        for h in range(spec.heads):
            weights = [q[t, h] @ k[s, h] for s in range(t + 1)]
            heads.append(sum(a * v[s, h] for s, a in enumerate(weights)) / (sum(weights) + 1e-6))
        out.append(np.concatenate(heads))
    return np.array(out) @ weight(mixer, "out.weight").T


def delta(mixer: Mixer[Any, Any], x: Array, decay: Array | None = None) -> Array:
    """S_t = α_t (I - β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ, multiplied out as matrices."""
    spec, time = mixer.spec, len(x)
    q, k, v = projected(mixer, x)
    beta = spec.beta * sigmoid(x @ weight(mixer, "strength.weight").T)
    out = np.zeros((time, spec.heads, spec.value_dim))
    for h in range(spec.heads):
        state = np.zeros((spec.head_dim, spec.value_dim))
        for t in range(time):
            key = k[t, h] / np.linalg.norm(k[t, h])
            alpha = 1.0 if decay is None else decay[t, h]
            state = (np.eye(spec.head_dim) - beta[t, h] * np.outer(key, key)) @ (np.reshape(alpha, (-1, 1)) * state)
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


def decayed(mixer: Mixer[Any, Any], q: Array, k: Array, v: Array, decay: Array, bonus: Array | None = None) -> Array:
    """o_t = Σ_{s ≤ t} (Σ_c q_tc k_sc Π_{s < r ≤ t} a_rc) v_s: all products written out, no state anywhere."""
    time, heads, _ = q.shape
    out = np.zeros((time, heads, v.shape[2]))
    for h in range(heads):
        for t in range(time):
            for s in range(t + 1):
                stop = t if bonus is not None else t + 1
                factor = np.prod(decay[s + 1 : stop, h], axis=0)
                if bonus is not None and s == t:
                    factor = bonus[h]
                out[t, h] += (q[t, h] * k[s, h] * factor).sum() * v[s, h]
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def retention(mixer: Mixer[Any, Any], x: Array) -> Array:
    q, k, v = projected(mixer, x)
    rates = np.array([1 - 2.0 ** (-5 - h) for h in range(mixer.spec.heads)])
    return decayed(mixer, q / np.sqrt(mixer.spec.head_dim), k, v, np.broadcast_to(rates[None, :, None], k.shape))


def lightning(mixer: Mixer[Any, Any], x: Array) -> Array:
    q, k, v = (silu(part) for part in projected(mixer, x))
    rates = np.array([np.exp(-(2.0 ** (-8 * (h + 1) / mixer.spec.heads))) for h in range(mixer.spec.heads)])
    return decayed(mixer, q, k, v, np.broadcast_to(rates[None, :, None], k.shape))


def gla(mixer: Mixer[Any, Any], x: Array) -> Array:
    q, k, v = projected(mixer, x)
    gate = sigmoid(x @ weight(mixer, "gate.weight").T + weight(mixer, "gate_bias")) ** (1 / 16)
    return decayed(mixer, q / np.sqrt(mixer.spec.head_dim), k, v, gate.reshape(k.shape))


def hgrn2(mixer: Mixer[Any, Any], x: Array) -> Array:
    q, f, v = projected(mixer, x)
    return decayed(mixer, silu(q), 1 - sigmoid(f), v, sigmoid(f))


def rwkv6(mixer: Mixer[Any, Any], x: Array) -> Array:
    r, k, v = projected(mixer, x)
    rate = np.exp(x @ weight(mixer, "rate.weight").T + weight(mixer, "rate_bias"))
    return decayed(mixer, r, k, v, np.exp(-rate).reshape(k.shape), weight(mixer, "boost"))


def mamba2(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    parts = convolved(mixer, [x @ weight(mixer, f"{name}.weight").T for name in ("channel", "write", "read")])
    group = np.arange(spec.heads) // (spec.heads // spec.groups)
    u, B, C = (part.reshape(time, n, -1) for part, n in zip(parts, (spec.heads, *[spec.groups] * 2), strict=True))
    B, C = B[:, group], C[:, group]
    step = np.log(1 + np.exp(x @ weight(mixer, "step.weight").T + weight(mixer, "step_bias")))
    a = np.exp(-np.exp(weight(mixer, "log_rate")) * step)
    out = np.zeros((time, spec.heads, spec.head_dim))
    for h in range(spec.heads):
        state = np.zeros((spec.state, spec.head_dim))
        for t in range(time):
            state = a[t, h] * state + np.outer(B[t, h], step[t, h] * u[t, h])
            out[t, h] = C[t, h] @ state + weight(mixer, "skip")[h] * u[t, h]
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def delta_product(mixer: Mixer[Any, Any], x: Array) -> Array:
    """The state as a product of n generalised reflections a token."""
    spec, time = mixer.spec, len(x)
    q, k, v = projected(mixer, x)
    k, v = (part.reshape(time, spec.heads, spec.steps, -1) for part in (k, v))
    beta = spec.beta * sigmoid(x @ weight(mixer, "strength.weight").T).reshape(time, spec.heads, spec.steps)
    out = np.zeros((time, spec.heads, spec.value_dim))
    for h in range(spec.heads):
        state = np.zeros((spec.head_dim, spec.value_dim))
        for t in range(time):
            for j in range(spec.steps):
                key = k[t, h, j] / np.linalg.norm(k[t, h, j])
                factor = np.eye(spec.head_dim) - beta[t, h, j] * np.outer(key, key)
                state = factor @ state + beta[t, h, j] * np.outer(key, v[t, h, j])
            out[t, h] = state.T @ (q[t, h] / np.linalg.norm(q[t, h]))
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def rwkv7(mixer: Mixer[Any, Any], x: Array) -> Array:
    """The state transposed, as in the paper: S_t = S_{t-1} (diag(w) - κᵀ (a ⊙ κ)) + vᵀ k̃."""
    spec, time = mixer.spec, len(x)
    r, k, v = projected(mixer, x)
    w = np.exp(-np.exp(-0.5) * sigmoid(x @ weight(mixer, "rate.weight").T + weight(mixer, "rate_bias")))
    a = sigmoid(x @ weight(mixer, "share.weight").T + weight(mixer, "share_bias"))
    w, a = w.reshape(k.shape), a.reshape(k.shape)
    out = np.zeros((time, spec.heads, spec.value_dim))
    for h in range(spec.heads):
        state = np.zeros((spec.value_dim, spec.head_dim))
        for t in range(time):
            removal = weight(mixer, "removal")[h] * k[t, h]
            kappa = removal / np.linalg.norm(removal)
            written = k[t, h] * (1 + weight(mixer, "blend")[h] * (a[t, h] - 1))
            state = state @ (np.diag(w[t, h]) - np.outer(kappa, a[t, h] * kappa)) + np.outer(v[t, h], written)
            out[t, h] = state @ r[t, h]
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def channels(mixer: Mixer[Any, Any], x: Array, *, activated: bool) -> Array:
    """What a recurrence over channels is made from, behind its convolution."""
    u = x @ weight(mixer, "channel.weight").T
    if "short.filter" not in mixer.state_dict():
        return u
    taps = weight(mixer, "short.filter")
    sums = np.array([sum(taps[j] * u[t - j] for j in range(min(len(taps), t + 1))) for t in range(len(u))])
    return silu(sums) if activated else sums


def affine(mixer: Mixer[Any, Any], name: str, u: Array) -> Array:
    return u @ weight(mixer, f"{name}.weight").T + weight(mixer, f"{name}.bias")


def real_gated(mixer: Mixer[Any, Any], x: Array) -> Array:
    u = channels(mixer, x, activated=False)
    r, i = sigmoid(affine(mixer, "forget", u)), sigmoid(affine(mixer, "admit", u))
    a = sigmoid(-weight(mixer, "rate")) ** (8 * r)  # exp(-softplus(Λ)) = sigmoid(-Λ)
    h, out = np.zeros(u.shape[1]), []
    for t in range(len(x)):
        h = a[t] * h + np.sqrt(1 - a[t] ** 2) * i[t] * u[t]
        out.append(h)
    return np.array(out) @ weight(mixer, "out.weight").T


def mamba(mixer: Mixer[Any, Any], x: Array) -> Array:
    u = channels(mixer, x, activated=True)
    B, C = u @ weight(mixer, "write.weight").T, u @ weight(mixer, "read.weight").T
    step = np.log(1 + np.exp(affine(mixer, "step", u)))
    rates, out = np.exp(weight(mixer, "log_rate")), np.zeros_like(u)
    for c in range(u.shape[1]):
        h = np.zeros(B.shape[1])
        for t in range(len(x)):
            h = np.exp(-rates[c] * step[t, c]) * h + step[t, c] * u[t, c] * B[t]
            out[t, c] = h @ C[t] + weight(mixer, "skip")[c] * u[t, c]
    return out @ weight(mixer, "out.weight").T


def rwkv4(mixer: Mixer[Any, Any], x: Array) -> Array:
    """The average written out, with no state and no maximum."""
    r, k, v = (x @ weight(mixer, f"{name}.weight").T for name in ("receptance", "key", "value"))
    rate, boost, out = np.exp(weight(mixer, "log_rate")), weight(mixer, "boost"), np.zeros_like(v)
    for t in range(len(x)):
        weights = [np.exp(k[s] - (t - 1 - s) * rate) for s in range(t)] + [np.exp(boost + k[t])]
        out[t] = sum(w * v[s] for s, w in enumerate(weights)) / sum(weights)
    return (sigmoid(r) * out) @ weight(mixer, "out.weight").T


def exponential_gates(mixer: Mixer[Any, Any], x: Array) -> Array:
    """Weights of all earlier tokens written out, with no maximum."""
    q, k, v = projected(mixer, x)
    i, f = np.exp(affine(mixer, "admit", x)), sigmoid(affine(mixer, "forget", x))
    out = np.zeros(v.shape)
    for h in range(mixer.spec.heads):
        for t in range(len(x)):
            kept = [i[s, h] * np.prod(f[s + 1 : t + 1, h]) for s in range(t + 1)]
            weights = [w * (q[t, h] @ k[s, h]) / np.sqrt(mixer.spec.head_dim) for s, w in enumerate(kept)]
            m = max(np.log(kept[-1]), max(np.log(kept)), np.log(np.prod(f[: t + 1, h])))
            # The guard of 1e-6 is added to what has been divided by e^m.
            least = max(abs(sum(weights)), 1.0) + 1e-6 * np.exp(m)
            out[t, h] = sum(w * v[s, h] for s, w in enumerate(weights)) / least
    return out.reshape(len(x), -1) @ weight(mixer, "out.weight").T


def log_linear(mixer: Mixer[Any, Any], x: Array) -> Array:
    """Pair by pair: the level is that of the highest digit in which two numbers differ, or the last that there is."""
    q, k, v = projected(mixer, x)
    rate = np.log(1 + np.exp(x @ weight(mixer, "rate.weight").T + weight(mixer, "rate_bias")))
    decay = np.exp(-np.exp(weight(mixer, "log_rate_scale")) * rate)
    share = np.log(1 + np.exp(affine(mixer, "share", x))).reshape(len(x), mixer.spec.heads, -1)
    out = np.zeros(v.shape)
    for h in range(mixer.spec.heads):
        for t in range(len(x)):
            for s in range(t + 1):
                level = min((t ^ s).bit_length(), mixer.spec.levels - 1)
                out[t, h] += share[t, h, level] * np.prod(decay[s + 1 : t + 1, h]) * (q[t, h] @ k[s, h]) * v[s, h]
    return out.reshape(len(x), -1) @ weight(mixer, "out.weight").T


def kimi(mixer: Mixer[Any, Any], x: Array) -> Array:
    rate = np.log(1 + np.exp(x @ weight(mixer, "rate.weight").T + weight(mixer, "rate_bias")))
    rate = rate.reshape(len(x), mixer.spec.heads, mixer.spec.head_dim)
    return delta(mixer, x, np.exp(-np.exp(weight(mixer, "log_rate_scale"))[:, None] * rate))


def kernel_attention(mixer: Mixer[Any, Any], x: Array, kernel: Callable[[int, Array, Array], float]) -> Array:
    """Σ_s κ(q_t, k_s) v_s / (Σ_s κ(q_t, k_s) + 1e-6), with the kernel itself and no features."""
    q, k, v = projected(mixer, x)
    out = np.zeros(v.shape)
    for h in range(mixer.spec.heads):
        for t in range(len(x)):
            weights = [kernel(h, q[t, h], k[s, h]) for s in range(t + 1)]
            out[t, h] = sum(a * v[s, h] for s, a in enumerate(weights)) / (sum(weights) + 1e-6)
    return out.reshape(len(x), -1) @ weight(mixer, "out.weight").T


def polynomial(mixer: Mixer[Any, Any], x: Array) -> Array:
    def kernel(_: int, q: Array, k: Array) -> float:
        s = q @ k / np.sqrt(mixer.spec.head_dim)
        return 1 + s + s * s / 2

    return kernel_attention(mixer, x, kernel)


def random_features(mixer: Mixer[Any, Any], x: Array) -> Array:
    assert isinstance(mixer, RandomFeatureAttention)
    directions = mixer.directions.numpy()

    def kernel(h: int, q: Array, k: Array) -> float:
        apart = q / np.linalg.norm(q) - k / np.linalg.norm(k)
        return float(np.cos(directions[h] @ apart).mean())  # sin sin + cos cos

    return kernel_attention(mixer, x, kernel)


def shift(mixer: Mixer[Any, Any], x: Array) -> Array:
    u, share = x @ weight(mixer, "inner.weight").T, weight(mixer, "share")
    before = np.concatenate([np.zeros_like(u[:1]), u[:-1]])
    return ((1 - share) * u + share * before) @ weight(mixer, "out.weight").T


def softmax(scores: list[float]) -> Array:
    powers = np.exp(np.array(scores) - max(scores))
    return powers / powers.sum()


def evicting(
    mixer: Mixer[Any, Any], x: Array, evict: Callable[[list[list[int]], list[dict[int, float]]], None]
) -> Array:
    """A cache of tokens and of the weight that they got for each key-value head; `evict` shortens it after a token."""
    spec, time = mixer.spec, len(x)
    q = per_head(weight(mixer, "query.weight"), x, spec.heads)
    k = per_head(weight(mixer, "key.weight"), x, spec.kv_heads)
    v = per_head(weight(mixer, "value.weight"), x, spec.kv_heads)
    caches: list[list[int]] = [[] for _ in range(spec.kv_heads)]
    scores: list[dict[int, float]] = [{} for _ in range(spec.kv_heads)]
    out = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        for shared, (cache, given) in enumerate(zip(caches, scores, strict=True)):
            cache.append(t)
            given[t] = 0.0
            for h in range(spec.heads):
                if h * spec.kv_heads // spec.heads == shared:
                    weights = softmax([q[t, h] @ k[s, shared] / np.sqrt(spec.head_dim) for s in cache])
                    for s, part in zip(cache, weights, strict=True):
                        out[t, h] += part * v[s, shared]
                        given[s] += part
        evict(caches, scores)
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def heavy_hitters(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec = mixer.spec

    def evict(caches: list[list[int]], scores: list[dict[int, float]]) -> None:
        for cache, given in zip(caches, scores, strict=True):
            if len(cache) > spec.budget:
                cache.remove(min(cache[: len(cache) - spec.recent], key=lambda s: (given[s], s)))

    return evicting(mixer, x, evict)


def adaptive_budgets(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec = mixer.spec

    def evict(caches: list[list[int]], scores: list[dict[int, float]]) -> None:
        while sum(map(len, caches)) > spec.kv_heads * spec.budget:
            entries = [
                (scores[h][s], h, s)
                for h, cache in enumerate(caches)
                if len(cache) > spec.floor
                for s in cache[: len(cache) - spec.recent]
            ]
            _, head, token = min(entries)
            caches[head].remove(token)

    return evicting(mixer, x, evict)


def choosing(mixer: Mixer[Any, Any], x: Array) -> tuple[Array, Array, Array]:
    """Queries of each head, and keys and values for each head: [time, heads, dim]."""
    spec = mixer.spec
    group = np.arange(spec.heads) * spec.kv_heads // spec.heads
    q = per_head(weight(mixer, "query.weight"), x, spec.heads) / np.sqrt(spec.head_dim)
    k = per_head(weight(mixer, "key.weight"), x, spec.kv_heads)[:, group]
    v = per_head(weight(mixer, "value.weight"), x, spec.kv_heads)[:, group]
    return q, k, v


def attended(q: Array, k: Array, v: Array, tokens: list[int]) -> Array:
    """One query of one head over the tokens."""
    return softmax([q @ k[s] for s in tokens]) @ v[tokens]


def largest(scores: dict[int, float], count: int) -> list[int]:
    """Whose scores are largest, of equals the later, in order of place."""
    return sorted(sorted(scores, key=lambda s: (scores[s], s), reverse=True)[:count])


def compositional(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    q, k = (per_head(weight(mixer, f"{name}.weight"), x, spec.heads) for name in ("query", "key"))
    v = per_head(weight(mixer, "value.weight"), x, spec.retrievals)
    asks = per_head(weight(mixer, "select.weight"), x, spec.heads) / np.sqrt(spec.select_dim)
    out = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        for h in range(spec.heads):
            search = softmax([q[t, h] @ k[s, h] / np.sqrt(spec.head_dim) for s in range(t + 1)])
            retrieved = [search @ v[: t + 1, r] for r in range(spec.retrievals)]
            shares = softmax([asks[t, h] @ (weight(mixer, "selected").T @ each) for each in retrieved])
            out[t, h] = sum(share * each for share, each in zip(shares, retrieved, strict=True))
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def top_tokens(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    q, k, v = choosing(mixer, x)
    asks = per_head(weight(mixer, "index_query.weight"), x, spec.index_heads)
    key, share = x @ weight(mixer, "index_key.weight").T, x @ weight(mixer, "index_weight.weight").T
    out = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        scores = {
            s: float(sum(share[t, j] * max(asks[t, j] @ key[s], 0.0) for j in range(spec.index_heads)))
            for s in range(t + 1)
        }
        tokens = largest(scores, spec.k)
        for h in range(spec.heads):
            out[t, h] = attended(q[t, h], k[:, h], v[:, h], tokens)
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def block_mixture(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    q, k, v = choosing(mixer, x)
    out = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        own = t // spec.block
        for h in range(spec.heads):
            means = {i: k[i * spec.block : (i + 1) * spec.block, h].mean(axis=0) for i in range(own)}
            chosen = [*largest({i: float(q[t, h] @ mean) for i, mean in means.items()}, spec.k - 1), own]
            tokens = [s for s in range(t + 1) if s // spec.block in chosen]
            out[t, h] = attended(q[t, h], k[:, h], v[:, h], tokens)
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


def native_sparse(mixer: Mixer[Any, Any], x: Array) -> Array:
    spec, time = mixer.spec, len(x)
    q, k, v = choosing(mixer, x)
    gates = sigmoid(per_head(weight(mixer, "gate.weight"), x, spec.heads))
    out = np.zeros((time, spec.heads, spec.value_dim))
    for t in range(time):
        blocks = [slice(i * spec.block, (i + 1) * spec.block) for i in range((t + 1) // spec.block)]
        shares = np.zeros((spec.heads, len(blocks)))
        for h in range(spec.heads if blocks else 0):
            shares[h] = softmax([q[t, h] @ k[block, h].mean(axis=0) for block in blocks])
            out[t, h] += gates[t, h, 0] * sum(a * v[b, h].mean(axis=0) for a, b in zip(shares[h], blocks, strict=True))
        own = t // spec.block
        for h in range(spec.heads):
            size = spec.heads // spec.kv_heads
            group = range(h // size * size, (h // size + 1) * size)
            first = list(dict.fromkeys(i for i in (own, own - 1, 0) if i >= 0))[: spec.k]
            others = {i: float(sum(shares[g, i] for g in group)) for i in range(len(blocks)) if i not in first}
            chosen = first + largest(others, spec.k - len(first))
            selected = [s for s in range(t + 1) if s // spec.block in chosen]
            window = list(range(max(0, t - spec.w + 1), t + 1))
            for branch, tokens in ((1, selected), (2, window)):
                out[t, h] += gates[t, h, branch] * attended(q[t, h], k[:, h], v[:, h], tokens)
    return out.reshape(time, -1) @ weight(mixer, "out.weight").T


DEFINITIONS: dict[str, Callable[[Mixer[Any, Any], Array], Array]] = {
    "full": attention,
    "window": attention,
    "chunk": attention,
    "block": attention,
    "mla": latent,
    "longformer": chosen_attention,
    "bigbird": chosen_attention,
    "tglobal": block_summaries,
    "compositional": compositional,
    "topk": top_tokens,
    "moba": block_mixture,
    "nsa": native_sparse,
    "h2o": heavy_hitters,
    "adakv": adaptive_budgets,
    "linear": linear,
    "delta": delta,
    "deltaproduct": delta_product,
    "gdn": gated_delta,
    "conv": convolution,
    "shift": shift,
    "rfa": random_features,
    "poly": polynomial,
    "retnet": retention,
    "gla": gla,
    "hgrn2": hgrn2,
    "kda": kimi,
    "rwkv4": rwkv4,
    "rwkv6": rwkv6,
    "rwkv7": rwkv7,
    "mamba": mamba,
    "mamba2": mamba2,
    "rglru": real_gated,
    "mlstm": exponential_gates,
    "loglinear": log_linear,
    "lightning": lightning,
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
        expected = DEFINITIONS[mixer.spec.name](mixer, x[index].numpy())
        np.testing.assert_allclose(output[index], expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("window", [None, 1, 5, 17, 300])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_attention_equals_torch_s(kv_heads: int, window: int | None, scale: float | None) -> None:
    mixer = example("full", kv_heads=kv_heads) if window is None else example("window", kv_heads=kv_heads, w=window)
    assert isinstance(mixer, SoftmaxAttention)
    mixer.scale = mixer.scale if scale is None else scale
    time = 19 if window is None else 19 + 3 * window
    x, spec = random_input(time).requires_grad_(), mixer.spec
    q, k, v = (
        projection(x).unflatten(-1, (heads, -1)).transpose(1, 2)
        for projection, heads in (
            (mixer.query, spec.heads),
            (mixer.key, spec.kv_heads),
            (mixer.value, spec.kv_heads),
        )
    )
    distance = torch.arange(time)[:, None] - torch.arange(time)
    visible = (distance >= 0) & (distance < (window or time))
    peer = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale, enable_gqa=True)
    expected = mixer.out(peer.transpose(1, 2).flatten(2))
    alike(mixer, x, expected, tolerance=1e-12)


@pytest.mark.parametrize("name", ["window rotary", "window alibi", "chunk", "longformer", "tglobal gate"])
@pytest.mark.parametrize("window", [30, 300, 1100])
def test_long_windows_in_blocks_are_one_token_after_the_other(name: str, window: int) -> None:
    """Blocks are as long as the window, or shorter, or there is one; a single token sees its cache without blocks."""
    mixer, x, first = example(name, w=window), random_input(1210, batch=1), 1190
    whole, _ = mixer(x, None)
    before, state = mixer(x[:, :first], None)
    assert (whole[:, :first] - before).abs().max() < 1e-10
    for place in range(first, x.shape[1]):
        output, state = mixer(x[:, place : place + 1], state)
        assert (output[:, 0] - whole[:, place]).abs().max() < 1e-10


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


@pytest.mark.parametrize("warm_up", [False, True])
def test_the_loss_of_the_indexer(warm_up: bool) -> None:
    """The mean of the heads' weights against the softmax of the index scores; a step along its gradient lowers it."""
    mixer: Any = example("topk", k=5)
    spec, inputs = mixer.spec, random_input(12)
    expected = []
    for x in inputs.numpy():
        q, k, _ = choosing(mixer, x)
        asks = per_head(weight(mixer, "index_query.weight"), x, spec.index_heads) / np.sqrt(spec.index_dim)
        key, share = x @ weight(mixer, "index_key.weight").T, x @ weight(mixer, "index_weight.weight").T
        for t in range(len(x)):
            scores = {s: float(share[t] @ np.maximum(asks[t] @ key[s], 0)) for s in range(t + 1)}
            tokens = list(scores) if warm_up else largest(scores, spec.k)
            p = np.mean([softmax([q[t, h] @ k[s, h] for s in tokens]) for h in range(spec.heads)], axis=0)
            expected.append(float((p * np.log(p / softmax([scores[s] for s in tokens]))).sum()))
    loss = mixer.index_loss(inputs, warm_up=warm_up)
    np.testing.assert_allclose(loss.item(), np.mean(expected), atol=1e-11, rtol=0)
    loss.backward()
    assert {name for name, p in mixer.named_parameters() if p.grad is not None} == set(CHOOSE["topk"])
    with torch.no_grad():
        for name in CHOOSE["topk"]:
            parameter = mixer.get_parameter(name)
            parameter -= 1e-3 * parameter.grad
    assert mixer.index_loss(inputs, warm_up=warm_up) < loss


def test_the_loss_of_the_indexer_in_pieces_and_with_a_mask() -> None:
    mixer: Any = example("topk", k=5)
    x = random_input(12)
    _, state = mixer(x[:, :5])
    later = mixer.index_loss(x[:, 5:], state)
    parts = 5 * mixer.index_loss(x[:, :5]) + 7 * later
    torch.testing.assert_close(parts / 12, mixer.index_loss(x), atol=1e-12, rtol=0)
    mask = torch.ones(2, 12, dtype=torch.bool)
    mask[:, 3:6] = False
    without = mixer.index_loss(torch.cat([x[:, :3], x[:, 6:]], dim=1))
    torch.testing.assert_close(mixer.index_loss(x, None, mask), without, atol=1e-12, rtol=0)
