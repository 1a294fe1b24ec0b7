r"""Attention over the k tokens that an indexer scores best (DeepSeek Sparse Attention, arXiv 2512.02556).

    I_ts = Σ_j w_tj ReLU(d_I^{-1/2} qI_tj · kI_s) ,    S_t = the k tokens s ≤ t with the largest I_ts
    o_t = Σ_{s ∈ S_t} softmax_s(scale · q_t · k_s) v_s

with `index_heads` index queries qI, one index key kI of `index_dim` numbers for all of them, and weights w, all linear
in x. The token itself competes like the others, and all heads share the choice. The published indexer normalises
its keys and rotates both sides by position; norms and position encodings stand outside here, as do its low-precision
numbers. Its main attention is MLA's; here it is `kv_heads` keys and values.

The choice lets no gradient through: the output gives none to the indexer. As published it learns from `index_loss`, the
divergence of its own distribution from that of the attention.

Cache: H_kv (d_k + d_v) + d_I numbers a token. Across a cut a query receives k entries at most: the k best tokens of
the left in the order of their scores, each with its score and the partial sums of each head.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import relu

from hopbound.architecture.sizes import SelectiveAttention
from hopbound.mixers.mixer import accumulator, linear
from hopbound.mixers.selection import Past, Selection, TokenCache, best, softmax_over, weights_over


class TopkAttention(Selection[SelectiveAttention]):
    """The tokens with the best scores of a score of their own."""

    def __init__(self, spec: SelectiveAttention, width: int) -> None:
        super().__init__(spec, width)
        self.index_query = linear(width, spec.index_heads * spec.index_dim)
        self.index_key = linear(width, spec.index_dim)
        self.index_weight = linear(width, spec.index_heads)

    def indexed(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time index_dim"]:
        """The index key."""
        return self.index_key(x)

    def asking(self) -> tuple[Float[Tensor, "_ width"], ...]:
        """Those of the indexer too."""
        return (self.query.weight, self.index_query.weight, self.index_weight.weight)

    def asked(self) -> tuple[Float[Tensor, "_ width"], ...]:
        """The index keys too."""
        return (self.key.weight, self.value.weight, self.index_key.weight)

    def index_scores(
        self, x: Float[Tensor, "batch time width"], index: Float[Tensor, "batch total index_dim"]
    ) -> Float[Tensor, "batch time total"]:
        """I, for queries of `x` and the index keys of all tokens."""
        spec, wide = self.spec, accumulator(x.dtype)
        queries = self.index_query(x).unflatten(-1, (spec.index_heads, spec.index_dim)).to(wide)
        similar = relu(spec.index_dim**-0.5 * torch.einsum("bthd,bsd->bhts", queries, index.to(wide)))
        return torch.einsum("bth,bhts->bts", self.index_weight(x).to(wide), similar)

    def chosen(self, past: Past) -> Bool[Tensor, "batch time total"]:
        """What each query sees."""
        assert past.index is not None
        with torch.no_grad():
            scores = self.index_scores(past.x, past.index)
            return best(scores.masked_fill(~past.visible, -torch.inf), self.spec.k)

    def attend(self, past: Past) -> Float[Tensor, "batch kv_heads group time value_dim"]:
        """Over the chosen tokens."""
        return weights_over(past, self.chosen(past)[:, None, None], self.scale) @ past.values[:, :, None]

    def index_loss(
        self,
        x: Float[Tensor, "batch time width"],
        state: TokenCache | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
        *,
        warm_up: bool = False,
    ) -> Float[Tensor, ""]:
        """What the indexer learns from: the mean over the tokens of KL(p_t ‖ softmax_s I_ts).

        p_t is the mean of the heads' attention weights. Over the chosen tokens; with `warm_up` over all, and so are the
        weights. Gradients reach the indexer's own projections alone.
        """
        with torch.no_grad():
            past, _ = self.gathered(x, state, mask)
            visible = past.visible if warm_up else self.chosen(past)
            target = weights_over(past, visible[:, None, None], self.scale).mean(dim=(1, 2))
        index = self.indexed(x.detach())
        if state is not None and state.index is not None:
            index = torch.cat([state.index.detach(), index], dim=1)
        predicted = softmax_over(self.index_scores(x.detach(), index), visible)
        tiny = torch.finfo(target.dtype).tiny
        apart = target * (target.clamp(min=tiny).log() - predicted.clamp(min=tiny).log())
        each = apart.sum(dim=-1)
        return each.mean() if mask is None else each[mask].mean()
