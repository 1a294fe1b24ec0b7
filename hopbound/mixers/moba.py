r"""Mixture of block attention (MoBA, arXiv 2502.13189): each head sees its own block and the k - 1 best before it.

    block i = tokens i B .. (i + 1) B - 1 ,    m_i = mean of its keys
    S_t = the k - 1 blocks before t's own with the largest q_t · m_i, and the tokens up to t of its own block
    o_t = Σ_{s ∈ S_t} softmax_s(scale · q_t · k_s) v_s

Each query head chooses for itself; with `kv_heads` < `heads` heads of a group choose by the same means. The blocks
before t's own are complete. Position encodings stand outside.

Cache: H_kv (d_k + d_v) numbers a token; the means follow from the keys. Across a cut a query receives k entries at
most: of the complete blocks the k - 1 best, each with its score and partial sums for each head, and the same of the
left part of the block that the cut goes through, be it t's own or not.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.architecture.sizes import SelectiveAttention
from hopbound.mixers.selection import Blocks, Past, Selection, best, weights_over


class MixtureOfBlockAttention(Selection[SelectiveAttention]):
    """The blocks whose mean key answers the query best."""

    def attend(self, past: Past) -> Float[Tensor, "batch kv_heads group time value_dim"]:
        """Over the tokens of the chosen blocks."""
        blocks = Blocks(past, self.spec.block)
        with torch.no_grad():
            scores = past.queries @ blocks.means(past.keys)[:, :, None].transpose(-1, -2)
            block, own = torch.arange(blocks.number, device=scores.device), blocks.own[:, None, None, :, None]
            chosen = best(scores.masked_fill(block >= own, -torch.inf), self.spec.k - 1) | (block == own)
            visible = blocks.tokens_of(chosen) & past.visible[:, None, None]
        return weights_over(past, visible, self.scale) @ past.values[:, :, None]
