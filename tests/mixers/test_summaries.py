"""What one query learns of the past across a cut fits in the summary that the spec states: it is written out here.

For each mixer two functions: `left` makes a summary of the tokens before the cut for a query, and says its numbers one
by one; `right` computes the output from these numbers, the query and the tokens behind the cut. Partial sums of a
softmax are a largest score, a sum of powers and a sum of values weighted with them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hopbound.mixers import Mixer
from tests.mixers.examples import example, random_input
from tests.mixers.test_definitions import choosing, per_head, seen_by, sigmoid, softmax, weight

Array = NDArray[np.float64]
TIME = 30


class Query:
    """The mixer's projections of one sequence, and the query of one token."""

    def __init__(self, mixer: Mixer[Any, Any], x: Array, t: int) -> None:
        self.mixer, self.spec, self.x, self.t = mixer, mixer.spec, x, t
        self.heads = range(self.spec.heads)
        if self.spec.name == "compositional":
            self.q, self.k = (
                per_head(weight(mixer, f"{name}.weight"), x, self.spec.heads) for name in ("query", "key")
            )
            self.q = self.q / np.sqrt(self.spec.head_dim)
            self.v = np.tile(x @ weight(mixer, "value.weight").T, (self.spec.heads, 1, 1)).transpose(1, 0, 2)
        elif self.spec.name == "mla":
            q = per_head(weight(mixer, "query.weight"), x, self.spec.heads)
            shared, c = x @ weight(mixer, "key.weight").T, x @ weight(mixer, "latent.weight").T
            made = per_head(weight(mixer, "key_of_latent.weight"), c, self.spec.heads)
            self.k = np.concatenate([np.repeat(shared[:, None], self.spec.heads, axis=1), made], axis=2)
            self.q = q / np.sqrt(q.shape[2])
            self.v = per_head(weight(mixer, "value_of_latent.weight"), c, self.spec.heads)
        else:
            self.q, self.k, self.v = choosing(mixer, x)

    def score(self, h: int, s: int) -> float:
        return float(self.q[self.t, h] @ self.k[s, h])

    def partial(self, h: int, tokens: Sequence[int]) -> Array:
        """Largest score, sum of powers, weighted sum of values: d_v + 2 numbers."""
        if not len(tokens):
            return np.array([-np.inf, 0.0, *np.zeros(self.v.shape[2])])
        scores = np.array([self.score(h, s) for s in tokens])
        powers = np.exp(scores - scores.max())
        return np.array([scores.max(), powers.sum(), *(powers @ self.v[tokens, h])])

    def index(self, s: int) -> float:
        """The indexer's score of a token."""
        asks = (self.x[self.t] @ weight(self.mixer, "index_query.weight").T).reshape(self.spec.index_heads, -1)
        key = weight(self.mixer, "index_key.weight") @ self.x[s]
        return float(weight(self.mixer, "index_weight.weight") @ self.x[self.t] @ np.maximum(asks @ key, 0))

    def block(self, i: int) -> list[int]:
        return list(range(i * self.spec.block, (i + 1) * self.spec.block))

    def mean_score(self, h: int, tokens: Sequence[int]) -> float:
        """The part of these tokens in the score of the mean key of their block."""
        return sum(self.score(h, s) for s in tokens) / self.spec.block

    def output(self, heads: list[Array]) -> Array:
        return weight(self.mixer, "out.weight") @ np.concatenate(heads)


def merged(parts: Sequence[Array]) -> Array:
    """The value of several partial sums together."""
    top = max(part[0] for part in parts)
    powers = [np.exp(part[0] - top) for part in parts]
    return sum(e * part[2:] for e, part in zip(powers, parts, strict=True)) / sum(  # pyright: ignore[reportReturnType]
        e * part[1] for e, part in zip(powers, parts, strict=True)
    )


def in_order(scores: dict[int, float]) -> list[int]:
    """From the best on, of equals the newer first."""
    return sorted(scores, key=lambda s: (scores[s], s), reverse=True)


# -- full and compositional attention: partial sums -----------------------------------------------------------------


def sums_left(query: Query, cut: int) -> Array:
    return np.concatenate([query.partial(h, range(cut)) for h in query.heads])


def sums_right(query: Query, numbers: Array, cut: int) -> Array:
    parts = numbers.reshape(query.spec.heads, -1)
    heads = []
    for h in query.heads:
        retrieved = merged([parts[h], query.partial(h, range(cut, query.t + 1))])
        if query.spec.name == "compositional":
            each = retrieved.reshape(query.spec.retrievals, -1)
            asks = (weight(query.mixer, "select.weight") @ query.x[query.t]).reshape(query.spec.heads, -1)[h]
            scores = each @ weight(query.mixer, "selected") @ asks / np.sqrt(query.spec.select_dim)
            retrieved = softmax(list(scores)) @ each
        heads.append(retrieved)
    return query.output(heads)


# -- bigbird: partial sums over those of the left that the query sees -------------------------------------------------


def drawn_left(query: Query, cut: int) -> Array:
    seen = [s for s in seen_by(query.mixer, TIME)[query.t] if s < cut]
    return np.concatenate([query.partial(h, seen) for h in query.heads])


def drawn_right(query: Query, numbers: Array, cut: int) -> Array:
    seen = [s for s in seen_by(query.mixer, TIME)[query.t] if s >= cut]
    parts = numbers.reshape(query.spec.heads, -1)
    return query.output([merged([parts[h], query.partial(h, seen)]) for h in query.heads])


# -- transient global attention: partial sums over window and summaries, and the sums of the block that is cut --------


def transient_left(query: Query, cut: int) -> Array:
    spec, first = query.spec, max(0, query.t - query.spec.w + 1)
    whole = cut // spec.block
    parts = []
    for h in query.heads:
        near, far = query.partial(h, range(first, cut)), means(query, h, range(whole))
        top = max(near[0], far[0])
        scaled = [np.exp(part[0] - top) * part[1:] if part[1] else part[1:] for part in (near, far)]
        parts.append(np.array([top, *(scaled[0] + scaled[1])]))
    part, group = list(range(whole * spec.block, cut)), spec.heads // spec.kv_heads
    sums = [np.concatenate([query.k[part, h].sum(axis=0), query.v[part, h].sum(axis=0)]) for h in query.heads[::group]]
    return np.concatenate([*parts, *sums])


def transient_right(query: Query, numbers: Array, cut: int) -> Array:
    spec, t, whole = query.spec, query.t, cut // query.spec.block
    parts, sums = np.split(numbers, [spec.heads * (spec.value_dim + 2)])
    parts, sums = parts.reshape(spec.heads, -1), sums.reshape(spec.kv_heads, -1)
    heads = []
    for h in query.heads:
        mine = [parts[h], query.partial(h, range(max(cut, t - spec.w + 1), t + 1))]
        mine.append(means(query, h, range(whole + 1, (t + 1) // spec.block)))
        if (whole + 1) * spec.block <= t + 1:
            rest = list(range(cut, (whole + 1) * spec.block))
            key, value = np.split(sums[h * spec.kv_heads // spec.heads], [query.k.shape[2]])
            key = (key + query.k[rest, h].sum(axis=0)) / spec.block
            value = (value + query.v[rest, h].sum(axis=0)) / spec.block
            mine.append(np.array([query.q[t, h] @ key, 1.0, *value]))
        heads.append(merged([part for part in mine if part[1] > 0]))
    return query.output(heads)


# -- top-k tokens: the k best of the left in order, each with its score and its part for each head -------------------


def tokens_left(query: Query, cut: int) -> Array:
    best = in_order({s: query.index(s) for s in range(cut)})[: query.spec.k]
    entries = [np.concatenate([[query.index(s)], *(query.partial(h, [s]) for h in query.heads)]) for s in best]
    none = np.concatenate([[-np.inf], *(query.partial(h, []) for h in query.heads)])
    return np.concatenate(entries + [none] * (query.spec.k - len(best)))


def tokens_right(query: Query, numbers: Array, cut: int) -> Array:
    entries = numbers.reshape(query.spec.k, -1)
    # Left entries stand in their order before every token of the right: numbers below 0.
    scores = {i - query.spec.k: float(entry[0]) for i, entry in enumerate(entries[::-1])}
    scores |= {s: query.index(s) for s in range(cut, query.t + 1)}
    best = [s for s in in_order(scores)[: query.spec.k] if scores[s] > -np.inf]
    heads = []
    for h in query.heads:
        parts = entries[::-1, 1:].reshape(query.spec.k, query.spec.heads, -1)[:, h]
        heads.append(merged([parts[s + query.spec.k] if s < 0 else query.partial(h, [s]) for s in best]))
    return query.output(heads)


# -- blocks: the k - 1 best whole blocks of the left, and the left part of the block that is cut ----------------------


def forced(query: Query, i: int) -> float:
    """What comes before all others in native sparse attention."""
    return 1e9 if query.spec.name == "nsa" and (i == 0 or i == query.t // query.spec.block - 1) else 0.0


def blocks_left(query: Query, cut: int) -> Array:
    entries, (whole, k) = [], (cut // query.spec.block, query.spec.k)
    for h in query.heads:
        scores = {i: query.mean_score(h, query.block(i)) + forced(query, i) for i in range(whole)}
        best = in_order(scores)[: k - 1]
        entries += [[query.mean_score(h, query.block(i)), *query.partial(h, query.block(i))] for i in best]
        entries += [[-np.inf, *query.partial(h, [])]] * (k - 1 - len(best))
        part = range(whole * query.spec.block, cut)
        entries += [[query.mean_score(h, part), *query.partial(h, part)]]
    return np.concatenate(entries)


def blocks_right(query: Query, numbers: Array, cut: int) -> list[Array]:
    """What each head reads from the blocks."""
    k, size, own = query.spec.k, query.spec.block, query.t // query.spec.block
    entries, whole = numbers.reshape(query.spec.heads, k, -1), cut // size
    heads = []
    for h in query.heads:
        parts: dict[int, list[Array]] = {}
        scores: dict[int, float] = {}
        # Those that are forced are the first of the left, the newer before; the others stand in their order.
        known = [i for i in (own - 1, 0) if 0 <= i < whole and forced(query, i)]
        known = list(dict.fromkeys(known))
        for place, entry in enumerate(entries[h, : k - 1]):
            i = known[place] if place < len(known) else -1 - place
            scores[i], parts[i] = float(entry[0]) + (forced(query, i) if i >= 0 else 0.0), [entry[1:]]
        part = [s for s in query.block(whole) if cut <= s <= query.t]
        cut_parts = [entries[h, k - 1, 1:], query.partial(h, part)]
        if own > whole:
            scores[whole] = float(entries[h, k - 1, 0]) + query.mean_score(h, part) + forced(query, whole)
            parts[whole] = cut_parts
        for i in range(whole + 1, own):
            scores[i] = query.mean_score(h, query.block(i)) + forced(query, i)
            parts[i] = [query.partial(h, query.block(i))]
        mine = cut_parts if own == whole else [query.partial(h, range(own * size, query.t + 1))]
        chosen = [i for i in in_order(scores)[: k - 1] if scores[i] > -np.inf]
        heads.append(merged([*mine, *(part for i in chosen for part in parts[i])]))
    return heads


def mixture_right(query: Query, numbers: Array, cut: int) -> Array:
    return query.output(blocks_right(query, numbers, cut))


# -- native sparse attention: blocks, and the partial sums of the window and of the compressed blocks ----------------


def means(query: Query, h: int, blocks: Sequence[int]) -> Array:
    """Partial sums over compressed blocks."""
    scores = np.array([query.mean_score(h, query.block(i)) for i in blocks])
    if not len(blocks):
        return query.partial(h, [])
    powers = np.exp(scores - scores.max())
    values = np.array([query.v[query.block(i), h].mean(axis=0) for i in blocks])
    return np.array([scores.max(), powers.sum(), *(powers @ values)])


def native_left(query: Query, cut: int) -> Array:
    whole, first = cut // query.spec.block, max(0, query.t - query.spec.w + 1)
    part = list(range(whole * query.spec.block, cut))
    rest = []
    for h in query.heads:
        rest += [means(query, h, range(whole)), query.partial(h, range(first, cut))]
        rest += [[query.mean_score(h, part)], query.v[part, h].sum(axis=0) / query.spec.block]
    return np.concatenate([blocks_left(query, cut), *rest])


def native_right(query: Query, numbers: Array, cut: int) -> Array:
    spec, t, whole = query.spec, query.t, cut // query.spec.block
    held = spec.k * spec.heads * (spec.value_dim + 3)
    selected = blocks_right(query, numbers[:held], cut)
    gates = sigmoid(weight(query.mixer, "gate.weight") @ query.x[t]).reshape(spec.heads, 3)
    heads = []
    for h, rest in enumerate(numbers[held:].reshape(spec.heads, -1)):
        compressed, window, cut_score, cut_value = np.split(rest, np.cumsum([spec.value_dim + 2] * 2 + [1]))
        complete = range(whole + 1, (t + 1) // spec.block)
        parts = [compressed, means(query, h, complete)]
        if (whole + 1) * spec.block <= t + 1:
            part = list(range(cut, (whole + 1) * spec.block))
            value = cut_value + query.v[part, h].sum(axis=0) / spec.block
            parts.append(np.array([cut_score[0] + query.mean_score(h, part), 1.0, *value]))
        seen = any(part[1] > 0 for part in parts)
        near = merged([window, query.partial(h, range(max(cut, t - spec.w + 1), t + 1))])
        branches = (merged(parts) if seen else np.zeros(spec.value_dim), selected[h], near)
        heads.append(sum(gate * branch for gate, branch in zip(gates[h], branches, strict=True)))
    return query.output(heads)


Left = Callable[[Query, int], Array]
Right = Callable[[Query, Array, int], Array]
SUMMARIES: dict[str, tuple[Left, Right, dict[str, int]]] = {
    "full": (sums_left, sums_right, {}),
    "mla": (sums_left, sums_right, {}),
    "bigbird": (drawn_left, drawn_right, {}),
    "tglobal": (transient_left, transient_right, {"block": 4, "w": 5}),
    "compositional": (sums_left, sums_right, {}),
    "topk": (tokens_left, tokens_right, {"k": 3}),
    "moba": (blocks_left, mixture_right, {"k": 3, "block": 4}),
    "nsa": (native_left, native_right, {"k": 4, "block": 3, "kv_heads": 4}),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_summary_is_enough(name: str) -> None:
    left, right, sizes = SUMMARIES[name]
    mixer: Mixer[Any, Any] = example(name, **sizes)  # pyright: ignore[reportArgumentType]
    inputs = random_input(TIME)
    output = mixer(inputs)[0].detach().numpy()
    for x, expected in zip(inputs.numpy(), output, strict=True):
        for t in (5, 17, TIME - 1):
            for cut in range(1, t + 1):
                query = Query(mixer, x, t)
                numbers = left(query, cut)
                assert len(numbers) == mixer.spec.elements.summary
                np.testing.assert_allclose(right(query, numbers, cut), expected[t], atol=1e-10, rtol=0)
