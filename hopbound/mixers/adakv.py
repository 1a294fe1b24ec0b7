r"""Adaptive budgets (Ada-KV, arXiv 2407.11550): the heads of a layer share one budget, a head keeps what it needs.

    S_h ← S_h ∪ {t} for every head h; while Σ_h |S_h| > H_kv budget, the entry of the smallest score goes, over all
    heads h with |S_h| > `floor` and all s ∈ S_h that are not among the `recent` newest tokens

The paper splits the budget once, after a prompt, by the weights of its last queries; here this goes on token by token
with the accumulated weights of H2O, so that it is causal and the same however the tokens come. The floor is the
paper's safeguard: B_i = α B_i* + (1 - α) B / H with α = 0.2 leaves each head four fifths of its equal share, the
default of `floor`. With `floor` = `budget` this is H2O. Equal scores: the head with the lower number goes first, in a
head the older token. The definition is `hopbound.mixers.eviction`; position encodings stand outside.

State: H_kv budget entries over all heads, whoever holds them: d_k + d_v numbers of key and value and a score each; and
how many each head holds, H_kv numbers. They lie head after head, without gaps.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopbound.mixers.eviction import Entries, Eviction


@dataclass(frozen=True)
class SharedBudget:
    """What the heads keep, head after head, in each the oldest first; what is beyond the last head's is empty.

    Attributes:
        keys: of the entries.
        values: of the entries.
        scores: the weight that they got until now.
        held: how many entries each head holds.
    """

    keys: Float[Tensor, "batch entries key_dim"]
    values: Float[Tensor, "batch entries value_dim"]
    scores: Float[Tensor, "batch entries"]
    held: Float[Tensor, "batch kv_heads"]


def _rank(scores: Float[Tensor, "*some places"]) -> Int[Tensor, "*some places"]:
    """How many come before each when the smallest comes first, and of equals the one in front."""
    return scores.argsort(dim=-1, stable=True).argsort(dim=-1)


class AdaptiveBudgetAttention(Eviction[SharedBudget]):
    """The heads evict from one budget."""

    def kept(
        self,
        scores: Float[Tensor, "batch kv_heads places"],
        alive: Bool[Tensor, "batch kv_heads places"],
        old: Bool[Tensor, "batch kv_heads places"],
    ) -> Bool[Tensor, "batch kv_heads places"]:
        """Without the smallest scores of all heads, as many as are too many, of each head down to its floor.

        One after the other or at once is the same: of a head that holds n entries only the n - floor smallest scores
        can ever go.
        """
        if scores.shape[-1] <= self.spec.floor:
            return alive
        spare = alive.sum(dim=-1, keepdim=True) - self.spec.floor
        may_go = old & (_rank(scores.masked_fill(~old, torch.inf)) < spare)
        excess = alive.flatten(1).sum(dim=1, keepdim=True) - self.spec.kv_heads * self.spec.budget
        going = _rank(scores.masked_fill(~may_go, torch.inf).flatten(1)) < excess
        return alive & ~(may_go & going.view_as(alive))

    def entries_of(self, state: SharedBudget) -> Entries:
        """Heads side by side."""
        held = state.held.detach().long()
        # Compiled, how many a head holds is not known: as many places as all together.
        places = state.keys.shape[1] if torch.compiler.is_compiling() else int(held.max())
        heads = self.spec.kv_heads
        empty = places - held[..., None]  # in front of the entries of each head
        start = held.cumsum(dim=1)[..., None] - places
        place = torch.arange(places, device=held.device)
        index = (start + place).clamp(min=0).flatten(1)
        keys, values = (
            part.take_along_dim(index[..., None], dim=1).unflatten(1, (heads, places))
            for part in (state.keys, state.values)
        )
        scores = state.scores.detach().gather(1, index).unflatten(1, (heads, places))
        return Entries(keys, values, scores, place >= empty, gaps=True)

    def stored(self, entries: Entries) -> SharedBudget:
        """Head after head, without gaps: as many places as the row of the batch that holds most."""
        held, alive = entries.alive.sum(dim=-1), entries.alive.flatten(1)
        most = self.spec.kv_heads * self.spec.budget
        if not torch.compiler.is_compiling():
            most = int(held.sum(dim=1).max())
        order = (~alive).byte().argsort(dim=1, stable=True)[:, :most]
        gone = ~alive.gather(1, order)
        keys, values = (
            part.flatten(1, 2).take_along_dim(order[..., None], dim=1).masked_fill(gone[..., None], 0)
            for part in (entries.keys, entries.values)
        )
        scores = entries.scores.flatten(1).gather(1, order).masked_fill(gone, 0)
        return SharedBudget(keys, values, scores, held.to(scores.dtype))
