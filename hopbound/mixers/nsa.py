r"""Native sparse attention (NSA, arXiv 2502.11089): three views of the past, each with a gate for each head.

    block i = tokens i B .. (i + 1) B - 1 ,    mK_i, mV_i = means of its keys and values
    compressed: p_ti = softmax_i(scale · q_t · mK_i) over the blocks complete at t ,    c_t = Σ_i p_ti mV_i
    selected:   the k blocks with the largest Σ p_ti over the query heads of a group; t's own block, the one before it
                and the first come before all others (in this order, if k < 3);  softmax over their tokens up to t
    window:     softmax over the last w tokens, the token itself included
    o_t = g^c_t c_t + g^s_t s_t + g^w_t w_t ,    g = sigmoid(W_g x_t)

A block that is not complete has no p and is selected only as t's own. Where no block is complete c_t is 0.

What the paper leaves open, or does otherwise: its compression is a learned map of a block with position encodings,
over blocks that may overlap; here it is the mean over disjoint blocks, which are the selected ones too, as in fla. Its
branches have keys and values of their own; here they share them, as in fla. Position encodings stand outside.

Cache: H_kv (d_k + d_v) numbers a token; the means follow from it.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.architecture.sizes import NativeSparseAttention
from hopbound.mixers.mixer import linear, split_heads
from hopbound.mixers.selection import Blocks, Past, Selection, best, softmax_over, weights_over

FORCED = 2.0  # above every sum of shares, which are averaged here


class GatedSparseAttention(Selection[NativeSparseAttention]):
    """Compressed, selected and window branches."""

    def __init__(self, spec: NativeSparseAttention, width: int) -> None:
        super().__init__(spec, width)
        self.gate = linear(width, 3 * spec.heads)

    def asking(self) -> tuple[Float[Tensor, "_ width"], ...]:
        """The gates too."""
        return (self.query.weight, self.gate.weight)

    def gates(self, past: Past) -> tuple[Tensor, Tensor, Tensor]:
        """Of the three branches: [batch, kv_heads, group, time, 1] each."""
        gates = split_heads(self.gate(past.x).to(past.queries.dtype).sigmoid(), self.spec.heads)
        return gates.unflatten(1, past.queries.shape[1:3]).split(1, dim=-1)  # pyright: ignore[reportReturnType]

    def attend(self, past: Past) -> Float[Tensor, "batch kv_heads group time value_dim"]:
        """The three branches, weighed."""
        blocks = Blocks(past, self.spec.block)
        block = torch.arange(blocks.number, device=past.own.device)
        complete = block < blocks.complete[:, None, None, :, None]
        scores = self.scale * past.queries @ blocks.means(past.keys)[:, :, None].transpose(-1, -2)
        shares = softmax_over(scores, complete)
        branches = (
            shares @ blocks.means(past.values)[:, :, None],
            weights_over(past, self.selected(past, blocks, shares), self.scale) @ past.values[:, :, None],
            weights_over(past, self.near(past)[:, None, None], self.scale) @ past.values[:, :, None],
        )
        return sum(gate * branch for gate, branch in zip(self.gates(past), branches, strict=True))  # pyright: ignore[reportReturnType]

    def selected(
        self, past: Past, blocks: Blocks, shares: Float[Tensor, "batch kv_heads group time number"]
    ) -> Bool[Tensor, "batch kv_heads 1 time total"]:
        """The tokens of the selected blocks."""
        block, own = torch.arange(blocks.number, device=past.own.device), blocks.own[:, None, :, None]
        with torch.no_grad():
            scores = shares.mean(dim=2)
            scores = scores.masked_fill((block == own) | (block == own - 1) | (block == 0), FORCED)
            scores = scores.masked_fill(block > own, -torch.inf)
            chosen = best(scores, self.spec.k)[:, :, None]
            return blocks.tokens_of(chosen) & past.visible[:, None, None]

    def near(self, past: Past) -> Bool[Tensor, "batch time total"]:
        """The tokens of the window."""
        return past.visible & (past.number[:, None, :] > past.own[..., None] - self.spec.w)
