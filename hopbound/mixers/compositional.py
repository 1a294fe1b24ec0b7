r"""Compositional attention (arXiv 2110.09419): searches and retrievals, paired anew by every query.

    a_s = softmax over the past of q_s,t · k_s / √d_k          S searches (`heads`), each with queries and keys
    r_sj = Σ_u a_s,u v_j,u                                     by each of R retrievals (`retrievals`), which have values
    c_sj = softmax over j of (W_s x_t) · (W' r_sj) / √d_r      a query for each search, W' the same for all
    o_s = Σ_j c_sj r_sj ,    y_t = W_o (o_1 .. o_S)

d_r is `select_dim`. With R = 1 this is attention whose heads share their values. The paper's dropout stands outside.

Cache: S d_k + R d_v numbers a token. Across a cut a query receives a running maximum and a normaliser for each search,
and the R partial sums of values, for the second softmax is of the query's own: S (R d_v + 2) numbers.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hopbound.architecture.sizes import SearchRetrieval
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


@dataclass(frozen=True)
class SearchCache:
    """What is kept of every token.

    Attributes:
        keys: for each search.
        values: for each retrieval.
        counts: which tokens count; None: all.
    """

    keys: Float[Tensor, "batch searches past key_dim"]
    values: Float[Tensor, "batch retrievals past value_dim"]
    counts: Bool[Tensor, "batch past"] | None = None


class CompositionalAttention(Mixer[SearchRetrieval, SearchCache]):
    """Searches that choose among retrievals."""

    def __init__(self, spec: SearchRetrieval, width: int) -> None:
        super().__init__(spec, width)
        self.query = linear(width, spec.heads * spec.head_dim)
        self.key = linear(width, spec.heads * spec.head_dim)
        self.value = linear(width, spec.retrievals * spec.value_dim)
        self.select = linear(width, spec.heads * spec.select_dim)
        self.selected = nn.Parameter(torch.empty(spec.value_dim, spec.select_dim))
        nn.init.xavier_uniform_(self.selected)
        self.out = linear(spec.heads * spec.value_dim, width)

    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: SearchCache | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], SearchCache]:
        """Search, retrieve, choose."""
        spec, wide = self.spec, accumulator(x.dtype)
        queries, keys = (split_heads(projection(x), spec.heads) for projection in (self.query, self.key))
        values, order = split_heads(self.value(x), spec.retrievals), numbered(x, 0, None, mask)
        if state is not None:
            order = numbered(x, state.keys.shape[2], state.counts, mask)
            keys, values = torch.cat([state.keys, keys], dim=2), torch.cat([state.values, values], dim=2)
        scores = spec.head_dim**-0.5 * queries.to(wide) @ keys.to(wide).transpose(-1, -2)
        weights = scores.masked_fill(~order.visible[:, None], -torch.inf).softmax(dim=-1)
        retrieved = weights[:, :, None] @ values.to(wide)[:, None]  # [batch, searches, retrievals, time, value_dim]
        asked = spec.select_dim**-0.5 * split_heads(self.select(x), spec.heads).to(wide)
        shares = (retrieved @ self.selected.to(wide) * asked[:, :, None]).sum(dim=-1).softmax(dim=2)
        output = (shares[..., None] * retrieved).sum(dim=2)
        return self.out(merge_heads(output).to(x.dtype)), SearchCache(keys, values, order.counts)

    @property
    def sight(self) -> Sight:
        """The whole past."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Both kinds of queries where the output is wanted, keys and values in the past."""
        memory = columns_read(self.key.weight, self.value.weight)
        return Reads(query=columns_read(self.query.weight, self.select.weight), memory=memory, gate=memory)

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
