"""Softmax attention over the whole past, a window, or a cache of fixed size."""

from dataclasses import dataclass
from typing import ClassVar

from hopbound.architecture.mixer import Elements, Kind, MixerSpec


@dataclass(frozen=True, kw_only=True)
class GroupedHeads(MixerSpec):
    """Softmax attention of heads that share keys and values in groups: what several families have in common.

    Attributes:
        heads: query heads H.
        kv_heads: heads of keys and values H_kv, a divisor of H.
        head_dim: key dimension d_k of a head.
        value_dim: value dimension d_v of a head.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)

    @property
    def one_token(self) -> int:
        """Keys and values of one token, H_kv (d_k + d_v)."""
        return self.kv_heads * (self.head_dim + self.value_dim)

    @property
    def partial_sums(self) -> int:
        """Running maximum, normaliser and value sum of each query head, H (d_v + 2)."""
        return self.heads * (self.value_dim + 2)


@dataclass(frozen=True, kw_only=True)
class GatedHeads(GroupedHeads):
    """Grouped heads whose outputs the token itself may gate.

    Attributes:
        gate: 1 if it does; it changes no size.
    """

    gate: int


@dataclass(frozen=True, kw_only=True)
class Attention(GatedHeads):
    """Softmax attention over the whole past; `kv_heads` < `heads` is grouped-query attention."""

    kind: ClassVar[Kind] = Kind.FULL

    @property
    def elements(self) -> Elements:
        """Summary H (d_v + 2), cache H_kv (d_k + d_v) a token."""
        return Elements(
            summary=self.partial_sums,
            kv_per_token=self.one_token,
        )


@dataclass(frozen=True, kw_only=True)
class ForgettingAttention(GroupedHeads):
    """Softmax attention with a forget gate a head and token, whose sum each token keeps beside its key and value.

    What the gates right of a boundary forget is one factor for all that lies left of it: the summary is that of full
    attention.
    """

    kind: ClassVar[Kind] = Kind.FULL

    @property
    def elements(self) -> Elements:
        """As full attention, and a number a head and token."""
        return Elements(summary=self.partial_sums, kv_per_token=self.one_token + self.heads)


@dataclass(frozen=True, kw_only=True)
class LatentAttention(MixerSpec):
    """Multi-head latent attention (arXiv 2405.04434): one latent and one rotary key a token, values up-projected."""

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    latent: int
    rope_dim: int
    value_dim: int

    @property
    def width(self) -> int:
        """Heads times value dimension after up-projection."""
        return self.heads * self.value_dim

    @property
    def elements(self) -> Elements:
        """Summary H (d_v + 2) with d_v after up-projection, cache latent + rotary part a token."""
        return Elements(summary=self.heads * (self.value_dim + 2), kv_per_token=self.latent + self.rope_dim)


@dataclass(frozen=True, kw_only=True)
class SearchRetrieval(MixerSpec):
    """Compositional attention (arXiv 2110.09419): `heads` searches, each of which chooses among `retrievals` values."""

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    retrievals: int
    head_dim: int
    value_dim: int
    select_dim: int

    @property
    def width(self) -> int:
        """Searches times the larger of key dimension and what a search retrieves."""
        return self.heads * max(self.head_dim, self.retrievals * self.value_dim)

    @property
    def elements(self) -> Elements:
        """Summary: each search with all retrievals, as it chooses after the sums. Cache: keys and values of either."""
        return Elements(
            summary=self.heads * (self.retrievals * self.value_dim + 2),
            kv_per_token=self.heads * self.head_dim + self.retrievals * self.value_dim,
        )


@dataclass(frozen=True, kw_only=True)
class WindowAttention(GatedHeads):
    """Softmax attention over a window, chunk or block of `w` tokens, the token itself included."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    w: int

    @property
    def elements(self) -> Elements:
        """Keys and values of at most W - 1 earlier tokens."""
        return Elements(window=self.one_token * (self.w - 1))


@dataclass(frozen=True, kw_only=True)
class EvictingAttention(GroupedHeads):
    """Softmax attention over a cache of fixed size: when it is full, entries with the smallest scores are evicted.

    Attributes:
        budget: entries a key-value head; where the heads share, on average over them.
        recent: the newest tokens, which are never evicted.
        floor: entries that each head keeps at least; `budget`: the heads do not share.
        shared: 1 if the heads share one budget, so that the state says how many entries each holds; else 0.
    """

    kind: ClassVar[Kind] = Kind.BOUNDED

    budget: int
    recent: int
    floor: int
    shared: int

    @property
    def elements(self) -> Elements:
        """Keys, values and a score for each entry; with a shared budget the number of entries of each head."""
        return Elements(
            state=self.kv_heads * (self.budget + self.shared),
            window=self.budget * self.one_token,
        )


@dataclass(frozen=True, kw_only=True)
class GlobalWindowAttention(GatedHeads):
    """A window of `w` tokens, and the first `global_tokens` of all, which every later token sees."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    w: int
    global_tokens: int

    @property
    def elements(self) -> Elements:
        """Keys and values of at most W - 1 earlier tokens and of the global ones."""
        return Elements(window=self.one_token * (self.w - 1 + self.global_tokens))
