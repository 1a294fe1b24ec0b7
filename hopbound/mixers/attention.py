r"""Softmax attention, over the whole past or over a window.

    q_t = W_q x_t,  k_t = W_k x_t,  v_t = W_v x_t               (heads of dimension d_k, d_k, d_v)
    o_t = Σ_{s ≤ t, s > t - W} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t

with W = ∞ for full attention; a window of W tokens holds the token itself. `kv_heads` < `heads` shares keys and
values among groups of query heads (arXiv 2305.13245). Scores, weights and sums are kept in float32 at least, as the
common kernels do: this accumulator is the summary of the theory (arXiv 2602.01763, Section 2).

There is no positional encoding here: it is the embedding's affair.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.architecture.sizes import Attention, WindowAttention
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


@dataclass(frozen=True)
class Cache:
    """Keys and values of the tokens that later ones can still see.

    Attributes:
        keys: of these tokens.
        values: of these tokens.
        counts: which of them count; None: all.
    """

    keys: Float[Tensor, "batch kv_heads past key_dim"]
    values: Float[Tensor, "batch kv_heads past value_dim"]
    counts: Bool[Tensor, "batch past"] | None = None


def _all_of(
    counts: Bool[Tensor, "batch past"] | None, keys: Float[Tensor, "batch kv_heads past key_dim"]
) -> Bool[Tensor, "batch past"]:
    """Which tokens count, written out."""
    return keys.new_ones(keys.shape[0], keys.shape[2], dtype=torch.bool) if counts is None else counts


class SoftmaxAttention(Mixer[Attention | WindowAttention, Cache]):
    """Full or sliding-window attention; which of the two, the spec says."""

    def __init__(self, spec: Attention | WindowAttention, width: int, scale: float | None = None) -> None:
        super().__init__(spec, width)
        self.scale = spec.head_dim**-0.5 if scale is None else scale
        self.window = spec.w if isinstance(spec, WindowAttention) else None
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.kv_heads * spec.head_dim)
        self.value = linear(width, spec.kv_heads * spec.value_dim)
        self.out = linear(spec.heads * spec.value_dim, width)

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: Cache | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], Cache]:
        """Attend to the cached tokens and to the new ones."""
        keys = split_heads(self.key(x), self.spec.kv_heads)
        values = split_heads(self.value(x), self.spec.kv_heads)
        counts = mask
        if state is not None:
            if mask is not None or state.counts is not None:
                parts = (state.counts, state.keys), (mask, keys)
                counts = torch.cat([_all_of(part, like) for part, like in parts], dim=1)
            keys = torch.cat([state.keys, keys], dim=2)
            values = torch.cat([state.values, values], dim=2)
        visible = self.visible(x.shape[1], keys.shape[2], counts, x.device)
        output = self.out(self.attend(split_heads(self.query(x), self.spec.heads), keys, values, visible))
        kept = self.kept(keys.shape[2], counts)
        keys, values = keys[:, :, kept:], values[:, :, kept:]
        return output, Cache(keys, values, None if counts is None else counts[:, kept:])

    def visible(
        self, time: int, total: int, counts: Bool[Tensor, "batch total"] | None, device: torch.device
    ) -> Bool[Tensor, "*batch time total"]:
        """Which of `total` tokens the last `time` of them see; a token that does not count sees itself alone."""
        rows = torch.arange(total - time, total, device=device)[:, None]
        columns = torch.arange(total, device=device)[None, :]
        if counts is None:
            near = columns > rows - (self.window or total)
            return (columns <= rows) & near
        rank = counts.cumsum(dim=1)
        near = rank[:, None, :] > rank[:, total - time :, None] - (self.window or total)
        return ((columns <= rows) & near & counts[:, None, :]) | (columns == rows)

    def kept(self, total: int, counts: Bool[Tensor, "batch total"] | None) -> int:
        """The first token that later ones can still see."""
        if self.window is None:
            return 0
        if counts is None:
            return max(0, total - self.window + 1)
        later = counts.flip(1).cumsum(dim=1).flip(1)  # how many count from here on
        return int((later >= self.window).sum(dim=1).min()) if total else 0

    def attend(
        self,
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch kv_heads total key_dim"],
        values: Float[Tensor, "batch kv_heads total value_dim"],
        visible: Bool[Tensor, "*batch time total"],
    ) -> Float[Tensor, "batch time inner"]:
        """Weighted value sums, in the accumulator's precision, then rounded to that of the queries."""
        wide = accumulator(queries.dtype)
        group = self.spec.heads // self.spec.kv_heads
        keys = keys.repeat_interleave(group, dim=1).to(wide)
        values = values.repeat_interleave(group, dim=1).to(wide)
        scores = self.scale * queries.to(wide) @ keys.transpose(2, 3)
        hidden = ~visible if visible.dim() == 2 else ~visible[:, None]
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        return merge_heads(weights @ values).to(queries.dtype)

    @property
    def sight(self) -> Sight:
        """The whole past, or the window."""
        return Sight.ALL if self.window is None else Sight.NEAR

    @property
    def reach(self) -> int:
        """The window without the token itself."""
        return 0 if self.window is None else self.window - 1

    def reads(self) -> Reads:
        """Queries where the output is wanted, keys and values in the past."""
        memory = columns_read(self.key.weight, self.value.weight)
        return Reads(query=columns_read(self.query.weight), memory=memory, gate=torch.zeros_like(memory))

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
