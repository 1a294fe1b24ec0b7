"""Softmax attention over a chosen or pooled part of the past: a full layer with its own summary."""

from dataclasses import dataclass
from typing import ClassVar

from hopbound.architecture.mixer import Elements, Kind, MixerSpec
from hopbound.architecture.sizes.softmax import GatedHeads, GroupedHeads


@dataclass(frozen=True, kw_only=True)
class SelectiveAttention(GroupedHeads):
    """Attention over the k best of all past blocks of `block` tokens, chosen by the query; for claims a full layer.

    Attributes:
        k: how many blocks; where a block is longer than a token, the query's own is always one of them.
        block: tokens a block.
        selections: how many selections a query makes: 1 for all heads together, or one a head.
        index_heads: index queries of a query, where the score is one of its own; else 0.
        index_dim: numbers of the index key of a token; else 0.
    """

    kind: ClassVar[Kind] = Kind.FULL

    k: int
    block: int
    selections: int
    index_heads: int
    index_dim: int

    @property
    def elements(self) -> Elements:
        """Summary: the k best scores of each selection, and the partial sums of what is selected.

        A block that a boundary cuts in two has its final score only on the right, so its left part is in the summary
        beside the best whole blocks: with the query's own block among the k that makes k entries, not more.
        """
        return Elements(
            summary=self.k * (self.selections + self.partial_sums),
            kv_per_token=self.one_token + self.index_dim,
        )


@dataclass(frozen=True, kw_only=True)
class SelectiveLatentAttention(MixerSpec):
    """Latent attention over the k tokens with the best index scores (DeepSeek sparse attention, arXiv 2512.02556).

    Attributes:
        heads: query heads H.
        latent: numbers of the latent of a token.
        rope_dim: numbers of its rotary key.
        value_dim: value dimension d_v of a head after up-projection.
        k: how many tokens.
        index_dim: numbers of the index key of a token; 0 where the layer uses the choice of an earlier one.
    """

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    latent: int
    rope_dim: int
    value_dim: int
    k: int
    index_dim: int

    @property
    def width(self) -> int:
        """Heads times value dimension after up-projection."""
        return self.heads * self.value_dim

    @property
    def elements(self) -> Elements:
        """Summary: the k best scores and the partial sums of what is selected. Cache: latent, rotary and index key."""
        return Elements(
            summary=self.k * (1 + self.heads * (self.value_dim + 2)),
            kv_per_token=self.latent + self.rope_dim + self.index_dim,
        )


@dataclass(frozen=True, kw_only=True)
class NativeSparseAttention(GroupedHeads):
    """Native sparse attention (arXiv 2502.11089): compressed, selected and window branches over one cache.

    Attributes:
        k: how many blocks are selected, the first and the query's own and the one before it among them.
        block: tokens a block, which are compressed to their mean.
        w: tokens of the window, the token itself included.
    """

    kind: ClassVar[Kind] = Kind.FULL

    k: int
    block: int
    w: int

    @property
    def elements(self) -> Elements:
        """Summary: k selected blocks as in `SelectiveAttention`; partial sums of the compressed and the window branch;
        the share of a block that a boundary cuts in two, its score and its value sum.

        It suffices where each query head has a key-value head of its own. Otherwise blocks are ranked by sums of shares
        of a whole that lies on both sides of a boundary, and nothing of this size decides which of the left are best.
        """
        share = self.heads * (self.value_dim + 1)
        return Elements(
            summary=self.k * (self.heads + self.partial_sums) + 2 * self.partial_sums + share,
            kv_per_token=self.one_token,
        )


@dataclass(frozen=True, kw_only=True)
class CompressedAttention(MixerSpec):
    """Attention over pooled blocks and a window, of one key that is the value too (DeepSeek-V4).

    Attributes:
        heads: query heads H.
        head_dim: numbers d of the one key and value of a token or block.
        w: tokens of the window, the token itself included.
        block: tokens from one pooled entry to the next.
        k: how many pooled entries a query reads, chosen by index scores; 0: all of them.
        index_dim: numbers of the index key of an entry; else 0.
        overlap: 1 if an entry pools the block before its own as well; else 0.
    """

    kind: ClassVar[Kind] = Kind.FULL

    heads: int
    head_dim: int
    w: int
    block: int
    k: int
    index_dim: int
    overlap: int

    @property
    def width(self) -> int:
        """Heads times head dimension."""
        return self.heads * self.head_dim

    @property
    def elements(self) -> Elements:
        """Summary: partial sums over the window and over the entries (or over the k best, with their scores), and the
        left part of the entries that a boundary cuts: maximum, normaliser and sum for each pooled channel.
        Window: its ring, and the keys and gates of the tokens that are not pooled yet.
        """
        sums = self.heads * (self.head_dim + 2)
        channels, spread = self.head_dim + self.index_dim, 1 + self.overlap
        waiting = 2 * spread * channels * (self.block - 1) + 2 * self.overlap * channels * self.block
        return Elements(
            window=self.head_dim * (self.w - 1) + waiting,
            summary=sums + (self.k * (1 + sums) if self.k else sums) + 3 * spread * channels,
            kv_per_token=channels,
            kv_every=self.block,
        )


@dataclass(frozen=True, kw_only=True)
class BlockSparseAttention(GatedHeads):
    """A window, the first tokens, and `random` earlier blocks of `block` tokens, drawn once for all inputs.

    A drawn block may lie anywhere in the past, so that this is a full layer: every token is kept.
    """

    kind: ClassVar[Kind] = Kind.FULL

    w: int
    global_tokens: int
    block: int
    random: int

    @property
    def elements(self) -> Elements:
        """As full attention."""
        return Elements(
            summary=self.partial_sums,
            kv_per_token=self.one_token,
        )


@dataclass(frozen=True, kw_only=True)
class TransientGlobalAttention(GatedHeads):
    """A window of `w` tokens, and one summary of each completed block of `block` tokens."""

    kind: ClassVar[Kind] = Kind.FULL

    w: int
    block: int

    @property
    def elements(self) -> Elements:
        """Keys and values of the window, the sums of the block that is not complete, one key and value a block.

        A block that a boundary cuts in two is summed up on the right: its left part is in the summary.
        """
        return Elements(
            state=self.one_token,
            window=self.one_token * (self.w - 1),
            summary=self.partial_sums + self.one_token,
            kv_per_token=self.one_token,
            kv_every=self.block,
        )
