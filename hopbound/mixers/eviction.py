r"""Softmax attention over a cache of fixed size, from which the entries that were attended to least are evicted.

For each key-value head, with a cache S of tokens s and their scores A_s (arXiv 2306.14048, Algorithm 1):

    w_ts = softmax_{s ∈ S ∪ {t}}(scale · q_t · k_s) ,    o_t = Σ_s w_ts v_s
    A_s += Σ w_ts  (over the query heads of the group)  for s ∈ S ∪ {t} ,    A_t = 0 before
    S ← S ∪ {t} without what is evicted

A policy says what is evicted, token by token; the `recent` newest tokens never are. Equal scores: the older goes (of
equal tokens, rounded sums may differ in their last bit). A query sees what the step before it left, and itself.

What a token sees depends on all decisions before it, so the decisions are made one token after the other, on scores
alone and without gradients; then the weights of a chunk are computed at once, from the cache and the chunk's tokens.
Gradients flow through the weights and the values of what is kept, not through the choice. With `chunk` = 1 this is the
recurrence above.
"""

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from hopbound.architecture.sizes import EvictingAttention
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    Sight,
    State,
    accumulator,
    columns_read,
    linear,
    merge_heads,
    rows_written,
    split_heads,
)


@dataclass(frozen=True)
class Entries:
    """The entries of each head side by side, oldest first, the newest last.

    Attributes:
        keys: of the tokens.
        values: of the tokens.
        scores: the weight that they got until now.
        alive: which places hold a token; the others are in front.
        gaps: whether there may be others: some tokens did not count.
    """

    keys: Float[Tensor, "batch kv_heads places key_dim"]
    values: Float[Tensor, "batch kv_heads places value_dim"]
    scores: Float[Tensor, "batch kv_heads places"]
    alive: Bool[Tensor, "batch kv_heads places"]
    gaps: bool


class Eviction(Mixer[EvictingAttention, State], Generic[State]):
    """Attention over a cache that a policy keeps at its size."""

    def __init__(self, spec: EvictingAttention, width: int) -> None:
        super().__init__(spec, width)
        self.scale = spec.head_dim**-0.5
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.kv_heads * spec.head_dim)
        self.value = linear(width, spec.kv_heads * spec.value_dim)
        self.out = linear(spec.heads * spec.value_dim, width)

    @abstractmethod
    def kept(
        self,
        scores: Float[Tensor, "batch kv_heads places"],
        alive: Bool[Tensor, "batch kv_heads places"],
        old: Bool[Tensor, "batch kv_heads places"],
    ) -> Bool[Tensor, "batch kv_heads places"]:
        """Of the entries that are `alive`, those that stay; only `old` ones may go."""

    @abstractmethod
    def entries_of(self, state: State) -> Entries:
        """The entries of a state."""

    @abstractmethod
    def stored(self, entries: Entries) -> State:
        """The state that holds the entries that are alive."""

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: State | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        """Chunk by chunk."""
        spec, batch = self.spec, x.shape[0]
        queries = split_heads(self.query(x), spec.heads).unflatten(1, (spec.kv_heads, -1))
        keys, values = (split_heads(projection(x), spec.kv_heads) for projection in (self.key, self.value))
        if state is None:
            empty = torch.zeros(batch, spec.kv_heads, 0, dtype=accumulator(x.dtype), device=x.device)
            entries = Entries(keys[:, :, :0], values[:, :, :0], empty, empty.bool(), gaps=False)
            state = self.stored(entries)
        outputs = []
        pieces = (queries.split(self.chunk, dim=3), *(part.split(self.chunk, dim=2) for part in (keys, values)))
        counts = itertools.repeat(None) if mask is None else mask.split(self.chunk, dim=1)
        for (q, k, v), counted in zip(zip(*pieces, strict=True), counts, strict=False):
            output, entries = self.attend(q, k, v, counted, self.entries_of(state))
            state = self.stored(entries)
            outputs.append(output)
        return self.out(merge_heads(torch.cat(outputs, dim=2)).to(x.dtype)), state

    def attend(
        self,
        queries: Float[Tensor, "batch kv_heads group size key_dim"],
        keys: Float[Tensor, "batch kv_heads size key_dim"],
        values: Float[Tensor, "batch kv_heads size value_dim"],
        counts: Bool[Tensor, "batch size"] | None,
        held: Entries,
    ) -> tuple[Float[Tensor, "batch heads size value_dim"], Entries]:
        """What the tokens of a chunk read, and the entries after it."""
        wide = accumulator(queries.dtype)
        keys, values = torch.cat([held.keys, keys], dim=2), torch.cat([held.values, values], dim=2)
        scores = self.scale * queries.to(wide) @ keys.to(wide)[:, :, None].transpose(-1, -2)
        with torch.no_grad():
            visible, given, alive = self.decided(scores, counts, held)
        weights = scores.masked_fill(~visible[:, :, None], -torch.inf).softmax(dim=-1)
        output = weights @ values.to(wide)[:, :, None]
        return output.flatten(1, 2), Entries(keys, values, given, alive, held.gaps or counts is not None)

    def decided(
        self,
        scores: Float[Tensor, "batch kv_heads group size places"],
        counts: Bool[Tensor, "batch size"] | None,
        held: Entries,
    ) -> tuple[
        Bool[Tensor, "batch kv_heads size places"],
        Float[Tensor, "batch kv_heads places"],
        Bool[Tensor, "batch kv_heads places"],
    ]:
        """What each token of a chunk sees, the weights given until its end, and what is left then.

        Token by token; one that does not count sees what is there and itself, and changes nothing.
        """
        size, places = scores.shape[-2:]
        before = places - size
        place = torch.arange(places, device=scores.device)
        # The number of each token, 0 for the first new one: exact for the recent ones, which are all there.
        number = (place - before)[None]
        if counts is not None:
            number = torch.cat([number[:, :before].expand(len(counts), -1), counts.cumsum(dim=1) - 1], dim=1)
        given, alive = pad(held.scores, (0, size)), pad(held.alive, (0, size))
        seen = []
        for step, row in enumerate(scores.unbind(dim=-2)):
            sees = alive | (place == before + step)
            seen.append(sees)
            weights = row.masked_fill(~sees[:, :, None], -torch.inf).softmax(dim=-1).sum(dim=2)
            alive = sees
            if counts is not None:
                counted = counts[:, step, None, None]
                weights, alive = weights.masked_fill(~counted, 0), sees & (counted | (place != before + step))
            given = given + weights
            old = number <= number[:, before + step, None] - self.spec.recent
            alive = self.kept(given, alive, alive & old[:, None])
        return torch.stack(seen, dim=2), given, alive

    @property
    def sight(self) -> Sight:
        """Every token enters, and every query has a part in what is evicted."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Of the past keys and values, and queries too: their weights are the scores."""
        query = columns_read(self.query.weight)
        memory = query | columns_read(self.key.weight, self.value.weight)
        return Reads(query=query, memory=memory, gate=memory)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
