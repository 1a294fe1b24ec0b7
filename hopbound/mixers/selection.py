r"""Softmax attention over what a query selects of its past: what `topk`, `moba` and `nsa` share.

    o_t = Σ_{s ∈ S_t} softmax_s(scale · q_t · k_s) v_s ,    S_t ⊆ {1..t} the choice of the mixer

Tokens are numbered by those that count, so that one that does not neither fills a block nor stands between two. What
is chosen is chosen by scores in the accumulator's precision; of equal scores the newer token or block is taken.
Gradients flow through the weights of what is chosen, not through the choice.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopbound.architecture.sizes import NativeSparseAttention, SelectiveAttention
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    Sight,
    accumulator,
    columns_read,
    linear,
    merge_heads,
    rows_written,
    split_heads,
)
from hopbound.mixers.numbering import numbered

Spec = TypeVar("Spec", bound=SelectiveAttention | NativeSparseAttention)


@dataclass(frozen=True)
class TokenCache:
    """What is kept of every token.

    Attributes:
        keys: of the tokens.
        values: of the tokens.
        index: what a score of its own is computed from (`topk`); None: there is none.
        counts: which of them count; None: all.
    """

    keys: Float[Tensor, "batch kv_heads past key_dim"]
    values: Float[Tensor, "batch kv_heads past value_dim"]
    index: Float[Tensor, "batch past index_dim"] | None = None
    counts: Bool[Tensor, "batch past"] | None = None


@dataclass(frozen=True)
class Past:
    """All tokens until now, and the last ones, whose outputs are wanted.

    Attributes:
        x: what the last tokens hold.
        queries: of the last tokens, by key-value head.
        keys: of all, in the accumulator's precision.
        values: of all, in the accumulator's precision.
        index: of all.
        number: of each token among those that count, from 0; that of one that does not is of no use.
        own: the numbers of the last tokens.
        visible: which are not after a query and count; a query that does not count sees itself.
    """

    x: Float[Tensor, "batch time width"]
    queries: Float[Tensor, "batch kv_heads group time key_dim"]
    keys: Float[Tensor, "batch kv_heads total key_dim"]
    values: Float[Tensor, "batch kv_heads total value_dim"]
    index: Float[Tensor, "batch total index_dim"] | None
    number: Int[Tensor, "batch total"]
    own: Int[Tensor, "batch time"]
    visible: Bool[Tensor, "batch time total"]


class Selection(Mixer[Spec, TokenCache], Generic[Spec]):
    """Attention whose queries choose what they see."""

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__(spec, width)
        self.scale = spec.head_dim**-0.5
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.kv_heads * spec.head_dim)
        self.value = linear(width, spec.kv_heads * spec.value_dim)
        self.out = linear(spec.heads * spec.value_dim, width)

    @abstractmethod
    def attend(self, past: Past) -> Float[Tensor, "batch kv_heads group time value_dim"]:
        """What the last tokens read."""

    def indexed(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time index_dim"] | None:
        """What is kept of each token beside its key and value."""
        return None

    def asking(self) -> tuple[Float[Tensor, "_ width"], ...]:
        """The projections that are read where the output is wanted."""
        return (self.query.weight,)

    def asked(self) -> tuple[Float[Tensor, "_ width"], ...]:
        """The projections that are read in the past."""
        return (self.key.weight, self.value.weight)

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: TokenCache | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], TokenCache]:
        """Attend to the cached tokens and to the new ones."""
        past, state = self.gathered(x, state, mask)
        return self.out(merge_heads(self.attend(past).flatten(1, 2)).to(x.dtype)), state

    def gathered(
        self,
        x: Float[Tensor, "batch time width"],
        state: TokenCache | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Past, TokenCache]:
        """The new tokens behind those of the state."""
        spec, wide = self.spec, accumulator(x.dtype)
        keys, values = (split_heads(projection(x), spec.kv_heads) for projection in (self.key, self.value))
        index, order = self.indexed(x), numbered(x, 0, None, mask)
        if state is not None:
            order = numbered(x, state.keys.shape[2], state.counts, mask)
            keys, values = torch.cat([state.keys, keys], dim=2), torch.cat([state.values, values], dim=2)
            if index is not None and state.index is not None:
                index = torch.cat([state.index, index], dim=1)
        queries = split_heads(self.query(x), spec.heads).unflatten(1, (spec.kv_heads, -1))
        past = Past(x, queries.to(wide), keys.to(wide), values.to(wide), index, order.number, order.own, order.visible)
        return past, TokenCache(keys, values, index, order.counts)

    @property
    def sight(self) -> Sight:
        """Any earlier token may be chosen."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Queries where the output is wanted, what they choose from in the past."""
        memory = columns_read(*self.asked())
        return Reads(query=columns_read(*self.asking()), memory=memory, gate=memory)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)


def softmax_over(
    scores: Float[Tensor, "*some places"], visible: Bool[Tensor, "*other places"]
) -> Float[Tensor, "*some places"]:
    """Weights of what is visible; zeros where nothing is."""
    least = torch.finfo(scores.dtype).min
    return scores.masked_fill(~visible, least).softmax(dim=-1).masked_fill(~visible, 0)


def weights_over(
    past: Past, visible: Bool[Tensor, "batch some_heads some_groups time total"], scale: float
) -> Float[Tensor, "batch kv_heads group time total"]:
    """Weights of the visible tokens."""
    return softmax_over(scale * past.queries @ past.keys[:, :, None].transpose(-1, -2), visible)


def best(scores: Float[Tensor, "*some places"], count: int) -> Bool[Tensor, "*some places"]:
    """The `count` largest scores, of equal ones the last; none that is -∞."""
    count = min(count, scores.shape[-1])
    if count == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    least = scores.topk(count, dim=-1).values[..., -1:]
    above, equal = scores > least, scores == least
    room = count - above.sum(dim=-1, keepdim=True)
    chosen = above | (equal & (equal.flip(-1).cumsum(dim=-1).flip(-1) <= room))
    return chosen & (scores > -torch.inf)


class Blocks:
    """Consecutive blocks of `size` tokens, in which only tokens that count are counted.

    Attributes:
        number: of the blocks.
        block: of each token.
        own: the block of each of the last tokens.
        complete: for each of the last tokens, how many blocks are complete with it.
    """

    def __init__(self, past: Past, size: int) -> None:
        self.size = size
        self.number = -(-past.number.shape[1] // size)
        self.block = past.number.clamp(min=0) // size
        self.own = past.own.clamp(min=0) // size
        self.complete = (past.own + 1) // size
        counted = torch.diff(past.number, dim=1, prepend=past.number.new_full((len(past.number), 1), -1)) > 0
        place = torch.arange(self.number, device=self.block.device)
        self._members = (place[:, None] == self.block[:, None]) & counted[:, None]

    def means(self, tokens: Float[Tensor, "batch kv_heads total dim"]) -> Float[Tensor, "batch kv_heads number dim"]:
        """The mean over each block; of one that is not complete it is of no use."""
        return self._members[:, None].to(tokens.dtype) @ tokens / self.size

    def tokens_of(
        self, chosen: Bool[Tensor, "batch some_heads some_groups time number"]
    ) -> Bool[Tensor, "batch some_heads some_groups time total"]:
        """The tokens of the chosen blocks."""
        return chosen.take_along_dim(self.block[:, None, None, None], dim=-1)
