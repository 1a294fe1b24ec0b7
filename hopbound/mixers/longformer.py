r"""A window and a few global tokens (Longformer, arXiv 2004.05150), made causal.

    o_t = Σ_{s ≤ t, s > t - W or s < g} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t

The first g tokens are global: every later token sees them. The paper's projections of their own for global tokens are
not taken over. Cache: H_kv (d_k + d_v) numbers for each of the W - 1 last tokens and of the g first.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopbound.architecture.sizes import GlobalWindowAttention
from hopbound.errors import InputError
from hopbound.mixers.mixer import Sight
from hopbound.mixers.positions import Alibi, Encoding
from hopbound.mixers.softmax import Beside, Extra, SoftmaxMixer, Tokens


class GlobalWindow(SoftmaxMixer[GlobalWindowAttention]):
    """Softmax attention to the last tokens and to the first ones."""

    def __init__(
        self, spec: GlobalWindowAttention, width: int, scale: float | None = None, encoding: Encoding = None
    ) -> None:
        if isinstance(encoding, Alibi):
            raise InputError("encoding", "Alibi", "none or Rotary for longformer")
        super().__init__(spec, width, scale, encoding)

    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """The window, and the global tokens once they have left it."""
        first = self.kept_beside(tokens)
        since = torch.arange(first.keys.shape[2], device=first.keys.device) + self.spec.w
        extra = Extra(first.keys, first.values, since.expand(len(tokens.seen), -1))
        return self.attend_near(tokens, self.spec.w, extra=extra)

    def needed(self, seen: Int[Tensor, " batch"] | int) -> int:
        """The window without the token itself."""
        return self.spec.w - 1

    def kept_beside(self, tokens: Tokens) -> Beside:
        """The first tokens: what there was, and what the new ones add."""
        count, past = self.spec.global_tokens, tokens.total - tokens.time
        places = torch.arange(count, device=tokens.seen.device)
        new = (places - tokens.seen[:, None])[:, None, :, None]
        there = ((places < (tokens.seen + tokens.added)[:, None]) & (tokens.time > 0))[:, None, :, None]

        def first(kept: Tensor | None, all_: Tensor) -> Tensor:
            index = (past + new.clamp(0, max(tokens.time - 1, 0))).clamp(max=max(tokens.total - 1, 0))
            added = all_.gather(2, index.expand(-1, all_.shape[1], -1, all_.shape[3]))
            if kept is None:
                return added.masked_fill(~there, 0)
            return torch.where(new < 0, kept, added.masked_fill(~there, 0))

        kept = tokens.beside
        return Beside(
            first(None if kept is None else kept.keys, tokens.keys),
            first(None if kept is None else kept.values, tokens.values),
        )

    @property
    def sight(self) -> Sight:
        """The first tokens are seen from everywhere."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0
