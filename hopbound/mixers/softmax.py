r"""What softmax mixers over their own tokens share: projections, positions, the cache, two ways to compute.

    q_t = W_q x_t,  k_t = W_k x_t,  v_t = W_v x_t               (heads of dimension d_k, d_k, d_v)
    o_t = Σ_{s ≤ t, s seen by t} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t

`kv_heads` < `heads` shares keys and values among groups of query heads (arXiv 2305.13245). With `gate` = 1 the heads
are gated before the last projection, y_t = W_o [o_t ⊙ sigmoid(W_g x_t)], as in Qwen3-Next (arXiv 2505.06708). Scores,
weights and sums are kept in float32 at least: this accumulator is the summary of the theory (arXiv 2602.01763,
Section 2).

Tokens that do not count are moved behind those that do, where no one sees them, so that what is computed is always over
consecutive tokens; outputs are put back in their places. Kept tokens stand at the end of the cache. A token's position
is the number of those before it that count.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from hopbound.architecture import MixerSpec
from hopbound.architecture.sizes import GatedHeads
from hopbound.mixers.mixer import (
    Mixer,
    Reads,
    accumulator,
    columns_read,
    linear,
    merge_heads,
    rows_written,
    split_heads,
)
from hopbound.mixers.positions import Alibi, Encoding, Rotary

Spec = TypeVar("Spec", bound=MixerSpec)
Heads = TypeVar("Heads", bound=GatedHeads)
LEAST_BLOCK, MOST_BLOCK = 16, 256  # queries that are computed together, of windows up to four times as long


@dataclass(frozen=True)
class Cache:
    """Keys and values of the tokens that later ones can still see, at the end of the axis of time.

    Attributes:
        keys: of these tokens, turned to their positions.
        values: of these tokens.
        absent: how many places at the front hold no token, for each example; None: no place.
        seen: how many tokens that count there were, in each example or in all alike.
        beside: what a mixer keeps besides.
    """

    keys: Float[Tensor, "batch kv_heads past key_dim"]
    values: Float[Tensor, "batch kv_heads past value_dim"]
    absent: Int[Tensor, " batch"] | None
    seen: Int[Tensor, " batch"] | int
    beside: "Beside | None" = None


@dataclass(frozen=True)
class Beside:
    """Further entries that a mixer keeps, and sums that are still to become one.

    Attributes:
        keys: of the entries.
        values: of the entries.
        key_sum: of the tokens since the last entry; None: there are no sums.
        value_sum: of the tokens since the last entry; None: there are no sums.
    """

    keys: Float[Tensor, "batch kv_heads entries key_dim"]
    values: Float[Tensor, "batch kv_heads entries value_dim"]
    key_sum: Float[Tensor, "batch kv_heads key_dim"] | None = None
    value_sum: Float[Tensor, "batch kv_heads value_dim"] | None = None


@dataclass(frozen=True)
class Tokens:
    """The kept tokens and then the new ones, consecutive: what a softmax mixer computes with.

    Attributes:
        queries: of the new tokens.
        keys: of all.
        values: of all.
        absent: how many places at the front hold no token, for each example; None: no place.
        seen: how many tokens that count there were before the new ones.
        added: how many of the new ones count, the first ones.
        beside: what the mixer kept besides.
    """

    queries: Float[Tensor, "batch heads time key_dim"]
    keys: Float[Tensor, "batch kv_heads total kept_dim"]
    values: Float[Tensor, "batch kv_heads total value_dim"]
    absent: Int[Tensor, " batch"] | None
    seen: Int[Tensor, " batch"]
    added: Int[Tensor, " batch"]
    beside: Beside | None

    @property
    def time(self) -> int:
        """How many are new."""
        return self.queries.shape[2]

    @property
    def total(self) -> int:
        """How many there are."""
        return self.keys.shape[2]


@dataclass(frozen=True)
class Extra:
    """Entries beside the tokens near a query, each seen from a position on.

    Attributes:
        keys: of the entries.
        values: of the entries.
        since: the first position from which each is seen.
    """

    keys: Float[Tensor, "batch kv_heads entries key_dim"]
    values: Float[Tensor, "batch kv_heads entries value_dim"]
    since: Int[Tensor, "batch entries"]


class TokenAttention(Mixer[Spec, Cache], Generic[Spec]):
    """Attention to earlier tokens, whatever queries, keys and values are made of."""

    def __init__(self, spec: Spec, width: int, scale: float | None = None, encoding: Encoding = None) -> None:
        super().__init__(spec, width)
        self.scale = self.dim**-0.5 if scale is None else scale
        self.encoding = encoding

    @property
    @abstractmethod
    def dim(self) -> int:
        """How many coordinates queries and keys have when they meet."""

    @abstractmethod
    def projected(
        self, x: Float[Tensor, "batch time width"]
    ) -> tuple[
        Float[Tensor, "batch heads time key_dim"],
        Float[Tensor, "batch kv_heads time some_dim"],
        Float[Tensor, "batch kv_heads time value_dim"],
    ]:
        """Queries, and keys and values as they are kept."""

    @abstractmethod
    def projected_back(
        self, read: Float[Tensor, "batch time inner"], x: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch time width"]:
        """What the heads of the tokens `x` read, in the stream."""

    def turned(
        self,
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch kv_heads time some_dim"],
        positions: Int[Tensor, "#batch time"],
    ) -> tuple[Float[Tensor, "batch heads time key_dim"], Float[Tensor, "batch kv_heads time some_dim"]]:
        """Queries and keys turned to their positions, if the encoding does so."""
        if not isinstance(self.encoding, Rotary):
            return queries, keys
        return self.encoding.turn(queries, positions), self.encoding.turn(keys, positions)

    @abstractmethod
    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """What the new tokens read, in the accumulator's precision."""

    @abstractmethod
    def needed(self, seen: Int[Tensor, " batch"] | int) -> Int[Tensor, " batch"] | int | None:
        """How many of the last of `seen` tokens later ones can see, at most; None: all."""

    def kept_beside(self, tokens: Tokens) -> Beside | None:
        """What is kept besides after the new tokens."""
        return None

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: Cache | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], Cache]:
        """Attend to the cached tokens and to the new ones."""
        batch, time, _ = x.shape
        order = None if mask is None else mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        placed = x if order is None else x.gather(1, order[..., None].expand_as(x))
        queries, keys, values = self.projected(placed)
        before = 0 if state is None else state.seen
        seen, added = (
            count if isinstance(count, Tensor) else torch.full((batch,), count, device=x.device)
            for count in (before, time if mask is None else mask.sum(dim=1))
        )
        queries, keys = self.turned(queries, keys, seen[:, None] + torch.arange(time, device=x.device))
        absent, beside = (None, None) if state is None else (state.absent, state.beside)
        if state is not None:
            keys, values = torch.cat([state.keys, keys], dim=2), torch.cat([state.values, values], dim=2)
        tokens = Tokens(queries, keys, values, absent, seen, added, beside)
        output = merge_heads(self.attend(tokens)).to(x.dtype)
        if order is not None:
            output = torch.zeros_like(output).scatter(1, order[..., None].expand_as(output), output)
        return self.projected_back(output, x), self._kept(tokens, before, mask is not None)

    def _kept(self, tokens: Tokens, before: Int[Tensor, " batch"] | int, masked: bool) -> Cache:
        """The tokens that later ones can see, moved to the end."""
        beside = self.kept_beside(tokens)
        if not masked and tokens.absent is None:  # all examples hold as many tokens, one after the other
            needed = self.needed(before + tokens.time)
            kept = needed if isinstance(needed, int) else tokens.total if needed is None else int(needed.max())
            first = max(tokens.total - kept, 0)
            keys, values = tokens.keys[:, :, first:].clone(), tokens.values[:, :, first:].clone()
            return Cache(keys, values, None, before + tokens.time, beside)
        past, added, seen = tokens.total - tokens.time, tokens.added, tokens.seen + tokens.added
        absent = torch.zeros_like(added) if tokens.absent is None else tokens.absent
        alive = past - absent + added
        needed = self.needed(seen)
        kept = alive if needed is None else alive.clamp(max=torch.as_tensor(needed, device=alive.device))
        places = int(kept.max()) if len(kept) else 0
        missing = places - kept
        index = (past + added - places)[:, None] + torch.arange(places, device=added.device)
        gone = (torch.arange(places, device=added.device) < missing[:, None])[:, None, :, None]

        def moved(x: Float[Tensor, "batch kv_heads total dim"]) -> Float[Tensor, "batch kv_heads past dim"]:
            chosen = index.clamp(min=0)[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3])
            return x.gather(2, chosen).masked_fill(gone, 0)

        return Cache(moved(tokens.keys), moved(tokens.values), missing, seen, beside)

    def attend_to_all(
        self, tokens: Tokens, chosen: Bool[Tensor, "batch time total"] | None = None
    ) -> Float[Tensor, "batch heads time value_dim"]:
        """Each new token to itself and to all before it, or of these to those that are `chosen`."""
        time, total, device = tokens.time, tokens.total, tokens.keys.device
        if time == total and tokens.absent is None and chosen is None and not isinstance(self.encoding, Alibi):
            return self._dot_product(tokens.queries, tokens.keys, tokens.values, None)
        rows, columns = torch.arange(total - time, total, device=device), torch.arange(total, device=device)
        back = rows[:, None] - columns
        visible = (back >= 0)[None, None]
        if tokens.absent is not None:
            alone = back == 0  # what has no place before it sees itself, so that it sees something
            visible = visible & ((columns >= tokens.absent[:, None, None, None]) | alone)
        if chosen is not None:
            visible = visible & (chosen[:, None] | (back == 0))
        mask = self._biased(visible, back, tokens.queries.shape[1], accumulator(tokens.queries.dtype))
        return self._dot_product(tokens.queries, tokens.keys, tokens.values, mask)

    def attend_near(
        self, tokens: Tokens, window: int, chunk: int | None = None, extra: Extra | None = None
    ) -> Float[Tensor, "batch heads time value_dim"]:
        """Each new token to the last `window`, itself included, block by block: memory is linear in time.

        Args:
            tokens: of which at most `window` - 1 are old.
            window: how many are seen, at most.
            chunk: only those are seen that stand in the same chunk of so many.
            extra: what is seen besides.
        """
        time, total, device = tokens.time, tokens.total, tokens.keys.device
        batch, past = tokens.keys.shape[0], total - time
        window = min(window, total)
        size = max(
            min(window, MOST_BLOCK), -(-window // 4), LEAST_BLOCK
        )  # so that no key is copied more than five times
        size = min(size, time)
        blocks = -(-time // size)
        front, end = window - 1 - past, blocks * size - time
        span = size + window - 1  # a block of queries sees this many keys
        queries = pad(tokens.queries, (0, 0, 0, end)).unflatten(2, (blocks, size)).transpose(1, 2).flatten(0, 1)
        keys, values = (
            pad(part, (0, 0, front, end)).unfold(2, span, size).permute(0, 2, 1, 4, 3).flatten(0, 1)
            for part in (tokens.keys, tokens.values)
        )
        rows, columns = torch.arange(size, device=device), torch.arange(span, device=device)
        back = rows[:, None] + window - 1 - columns
        visible = ((back >= 0) & (back < window))[None, None]
        # Places of keys, from the first new token on; those before the kept tokens hold nothing.
        starts = size * torch.arange(blocks, device=device)[:, None]
        places = starts + columns - (window - 1)
        least = torch.full((batch,), -past, device=device) if tokens.absent is None else tokens.absent - past
        held = places >= least[:, None, None]
        visible = visible & (held[:, :, None] | (back == 0))
        asking = tokens.seen[:, None, None] + starts + rows
        if chunk is not None:
            asked = tokens.seen[:, None, None] + places
            same = asking[..., :, None].div(chunk, rounding_mode="floor") == asked[..., None, :].div(
                chunk, rounding_mode="floor"
            )
            visible = visible & same
        mask = self._biased(visible.flatten(0, 1)[:, None], back, queries.shape[1], accumulator(queries.dtype))
        if extra is not None:
            assert mask.dtype is torch.bool  # no entry has a distance
            since = (asking[..., None] >= extra.since[:, None, None, :]).flatten(0, 1)[:, None]
            mask = torch.cat([since, mask], dim=-1)
            keys = torch.cat([extra.keys.repeat_interleave(blocks, dim=0), keys], dim=2)
            values = torch.cat([extra.values.repeat_interleave(blocks, dim=0), values], dim=2)
        output = self._dot_product(queries, keys, values, mask)
        return output.unflatten(0, (batch, blocks)).transpose(1, 2).flatten(2, 3)[:, :, :time]

    def _biased(
        self,
        visible: Bool[Tensor, "some one time total"],
        back: Int[Tensor, "time total"],
        heads: int,
        dtype: torch.dtype,
    ) -> Bool[Tensor, "some one time total"] | Float[Tensor, "some heads time total"]:
        """The mask, with the encoding's bias where there is one."""
        if not isinstance(self.encoding, Alibi):
            return visible
        bias = self.encoding.bias(heads, back).to(dtype)
        return torch.where(visible, bias, -torch.inf)

    def _dot_product(
        self,
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch kv_heads total key_dim"],
        values: Float[Tensor, "batch kv_heads total value_dim"],
        mask: Tensor | None,
    ) -> Float[Tensor, "batch heads time value_dim"]:
        """Scaled dot-product attention in the accumulator's precision; without a mask: causal."""
        wide = accumulator(queries.dtype)
        group = queries.shape[1] // keys.shape[1]
        if group > 1:
            keys, values = keys.repeat_interleave(group, dim=1), values.repeat_interleave(group, dim=1)
        return scaled_dot_product_attention(
            queries.to(wide),
            keys.to(wide),
            values.to(wide),
            attn_mask=mask,
            is_causal=mask is None,
            scale=self.scale,
        )


class SoftmaxMixer(TokenAttention[Heads], Generic[Heads]):
    """Attention of grouped heads."""

    def __init__(self, spec: Heads, width: int, scale: float | None = None, encoding: Encoding = None) -> None:
        super().__init__(spec, width, scale, encoding)
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.kv_heads * spec.head_dim)
        self.value = linear(width, spec.kv_heads * spec.value_dim)
        self.gate = linear(width, spec.heads * spec.value_dim) if spec.gate else None
        self.out = linear(spec.heads * spec.value_dim, width)

    @property
    def dim(self) -> int:
        """Those of a head."""
        return self.spec.head_dim

    def projected(
        self, x: Float[Tensor, "batch time width"]
    ) -> tuple[
        Float[Tensor, "batch heads time key_dim"],
        Float[Tensor, "batch kv_heads time key_dim"],
        Float[Tensor, "batch kv_heads time value_dim"],
    ]:
        """Queries, keys and values of each head."""
        spec = self.spec
        keys, values = (split_heads(part(x), spec.kv_heads) for part in (self.key, self.value))
        return split_heads(self.query(x), spec.heads), keys, values

    def projected_back(
        self, read: Float[Tensor, "batch time inner"], x: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch time width"]:
        """What the heads of the tokens `x` read, gated if there is a gate, in the stream."""
        return self.out(read if self.gate is None else read * self.gate(x).sigmoid())

    def reads(self) -> Reads:
        """Queries and gates where the output is wanted, keys and values in the past."""
        asked = [self.query.weight] if self.gate is None else [self.query.weight, self.gate.weight]
        memory = columns_read(self.key.weight, self.value.weight)
        return Reads(query=columns_read(*asked), memory=memory, gate=torch.zeros_like(memory))

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
