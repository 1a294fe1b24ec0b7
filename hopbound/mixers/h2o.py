r"""The heavy-hitter oracle (H2O, arXiv 2306.14048): each head keeps what it attended to most, and the newest tokens.

    S ← S ∪ {t};  if |S| > budget: S ← S without argmin_{s ∈ S, s not among the `recent` newest} A_s

With `recent` = `budget` this is a window of `budget` + 1 tokens. The definition is `hopbound.mixers.eviction`. The
paper's code lets a whole prompt see itself in full before anything is evicted; here eviction goes token by token from
the start, so that a prompt and the same tokens one at a time give the same. With `kv_heads` < `heads` the scores of a
group are added up, and the group shares what it keeps. Position encodings stand outside.

State: H_kv budget (d_k + d_v) keys and values, H_kv budget scores.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopbound.mixers.eviction import Entries, Eviction


@dataclass(frozen=True)
class HeavyHitters:
    """What each head keeps, oldest first.

    Attributes:
        keys: of the tokens.
        values: of the tokens.
        scores: the weight that they got until now.
        alive: which places hold a token; None: all.
    """

    keys: Float[Tensor, "batch kv_heads places key_dim"]
    values: Float[Tensor, "batch kv_heads places value_dim"]
    scores: Float[Tensor, "batch kv_heads places"]
    alive: Bool[Tensor, "batch kv_heads places"] | None = None


class HeavyHitterAttention(Eviction[HeavyHitters]):
    """Each head evicts for itself."""

    def kept(
        self,
        scores: Float[Tensor, "batch kv_heads places"],
        alive: Bool[Tensor, "batch kv_heads places"],
        old: Bool[Tensor, "batch kv_heads places"],
    ) -> Bool[Tensor, "batch kv_heads places"]:
        """Without the one of the smallest score, the oldest of several, where there is one too many."""
        if scores.shape[-1] <= self.spec.budget:
            return alive
        full = alive.sum(dim=-1, keepdim=True) > self.spec.budget
        least = scores.masked_fill(~old, torch.inf).argmin(dim=-1, keepdim=True)
        return alive.scatter(-1, least, alive.gather(-1, least) & ~full)

    def entries_of(self, state: HeavyHitters) -> Entries:
        """As it is held."""
        alive = torch.ones_like(state.scores, dtype=torch.bool) if state.alive is None else state.alive
        return Entries(state.keys, state.values, state.scores.detach(), alive, state.alive is not None)

    def stored(self, entries: Entries) -> HeavyHitters:
        """The places that are alive moved to the end, and no more places than the budget."""
        order = entries.alive.byte().argsort(dim=-1, stable=True)[..., -self.spec.budget :]
        alive = entries.alive.gather(-1, order)
        keys, values = (
            part.take_along_dim(order[..., None], dim=2).masked_fill(~alive[..., None], 0)
            for part in (entries.keys, entries.values)
        )
        scores = entries.scores.gather(-1, order).masked_fill(~alive, 0)
        return HeavyHitters(keys, values, scores, alive if entries.gaps else None)
