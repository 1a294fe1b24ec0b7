r"""RWKV-7 (Goose, arXiv 2503.14456): a generalised delta rule; what is taken away and what is written part ways.

    w_t = exp(-e^{-1/2} sigmoid(W_w x_t + b_w)) ,   a_t = sigmoid(W_a x_t + b_a)           (for each key channel)
    κ_t = u/|u| with u = ξ ⊙ k_t ,   k̃_t = k_t ⊙ (1 + α ⊙ (a_t - 1))
    S_t = diag(w_t) S_{t-1} - (a_t ⊙ κ_t) (S_{t-1}ᵀ κ_t)ᵀ + k̃_t v_tᵀ ,   y_t = W_o [ S_tᵀ r_t ]

`query` makes r. The decay is at least exp(-0.6066) a token. Token shifts, gate, group norm, and the bonus that is added
after it, are position-wise or mixers of their own and stand outside; the paper's W_w and W_a are thin, here they are
any matrix. State: H d_k d_v numbers.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.chunks import MILD
from hopbound.mixers.delta import SMALL_CHUNK
from hopbound.mixers.dplr import dplr
from hopbound.mixers.mixer import accumulator, linear, split_heads, unmasked
from hopbound.mixers.recurrence import Recurrence

FASTEST = math.exp(-0.5)  # the largest loss of a token, as a logarithm


class Rwkv7(Recurrence[Tensor]):
    """A matrix state from which each token takes by one key and to which it writes by another."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.chunk = SMALL_CHUNK
        inner = spec.heads * spec.head_dim
        self.rate = linear(width, inner)
        self.rate_bias = nn.Parameter(torch.zeros(inner))
        self.share = linear(width, inner)
        self.share_bias = nn.Parameter(torch.zeros(inner))
        self.removal = nn.Parameter(torch.zeros(spec.heads, spec.head_dim))
        self.blend = nn.Parameter(torch.zeros(spec.heads, spec.head_dim))
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Keys take away what they write."""
        return {"removal": 1.0, "blend": 1.0}

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: Float[Tensor, "batch heads key_dim value_dim"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """Decay, take away, write, read."""
        wide, heads = accumulator(x.dtype), self.spec.heads
        rate, share = (
            split_heads((projection(x).to(wide) + bias.to(wide)).sigmoid(), heads)
            for projection, bias in ((self.rate, self.rate_bias), (self.share, self.share_bias))
        )
        removed = normalize(keys * self.removal.to(wide)[:, None], dim=-1)
        written = keys * (1 + self.blend.to(wide)[:, None] * (share - 1))
        return dplr(
            queries,
            unmasked(written, mask),
            values,
            -removed,
            unmasked(share * removed, mask),
            unmasked(-FASTEST * rate, mask),
            self.empty_matrix(x) if state is None else state,
            chunk=self.chunk,
            dtype=x.dtype,
            mild=self.chunk * FASTEST <= MILD,
        )

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys, rates and shares."""
        return self.key.weight, self.rate.weight, self.share.weight
