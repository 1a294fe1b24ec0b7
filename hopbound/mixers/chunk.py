r"""Attention inside chunks: a token sees those of its own chunk of w tokens that are not after it.

    o_t = Σ_{s ≤ t, ⌊s/w⌋ = ⌊t/w⌋} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t

Chunked attention (Llama 4) and block-local attention (arXiv 1911.02972) are this, under two names; what it shares with
other softmax mixers is in `softmax.py`. Cache: H_kv (d_k + d_v) numbers for each token of the chunk so far, of at most
w - 1: a full chunk is forgotten.
"""

from jaxtyping import Float, Int
from torch import Tensor

from hopbound.architecture.sizes import WindowAttention
from hopbound.mixers.mixer import Sight
from hopbound.mixers.softmax import SoftmaxMixer, Tokens


class ChunkAttention(SoftmaxMixer[WindowAttention]):
    """Softmax attention to the token's own chunk."""

    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """Of the last w tokens those in the same chunk."""
        return self.attend_near(tokens, self.spec.w, chunk=self.spec.w)

    def needed(self, seen: Int[Tensor, " batch"] | int) -> Int[Tensor, " batch"] | int:
        """What is in the chunk so far."""
        return seen % self.spec.w

    @property
    def sight(self) -> Sight:
        """Where chunks begin depends on all positions."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance alone."""
        return 0
