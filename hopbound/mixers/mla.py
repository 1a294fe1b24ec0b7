r"""Multi-head latent attention (MLA, arXiv 2405.04434): keys and values of all heads from one small latent a token.

    c_t = W_c x_t ,   k_t^R = turned(W_R x_t)            (kept: the latent, and one key of `rope_dim` for all heads)
    k_t = [k_t^R ; W_k c_t] ,   v_t = W_v c_t ,   q_t = [turned(q_t^R) ; q_t^C] = W_q x_t
    o_t = Σ_{s ≤ t} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t ,   scale = 1/√(d_v + rope_dim)

Keys that are made from the latent have d_v coordinates, as in DeepSeek's models. `turned` is the rotary embedding, if
there is one; without, this is the form of Kimi Linear. The norm of the latent in the published blocks stands outside,
and their thin W_q is here any matrix. Cache: latent + rope_dim numbers a token.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopbound.architecture.sizes import LatentAttention
from hopbound.mixers.mixer import Reads, Sight, columns_read, linear, rows_written, split_heads
from hopbound.mixers.positions import Encoding, Rotary
from hopbound.mixers.softmax import TokenAttention, Tokens


class MultiHeadLatentAttention(TokenAttention[LatentAttention]):
    """Full attention whose cache is a latent."""

    def __init__(
        self, spec: LatentAttention, width: int, scale: float | None = None, encoding: Encoding = None
    ) -> None:
        super().__init__(spec, width, scale, encoding)
        self.query = linear(width, spec.heads * self.dim)
        self.key, self.latent = linear(width, spec.rope_dim), linear(width, spec.latent)
        self.key_of_latent = linear(spec.latent, spec.heads * spec.value_dim)
        self.value_of_latent = linear(spec.latent, spec.heads * spec.value_dim)
        self.out = linear(spec.heads * spec.value_dim, width)

    @property
    def dim(self) -> int:
        """Those that meet the shared key, and those that meet keys made from the latent."""
        return self.spec.value_dim + self.spec.rope_dim

    def projected(
        self, x: Float[Tensor, "batch time width"]
    ) -> tuple[
        Float[Tensor, "batch heads time dim"],
        Float[Tensor, "batch one time rope_dim"],
        Float[Tensor, "batch one time latent"],
    ]:
        """Queries; the shared key stands for the keys and the latent for the values."""
        return split_heads(self.query(x), self.spec.heads), self.key(x)[:, None], self.latent(x)[:, None]

    def turned(
        self,
        queries: Float[Tensor, "batch heads time dim"],
        keys: Float[Tensor, "batch one time rope_dim"],
        positions: Int[Tensor, "#batch time"],
    ) -> tuple[Float[Tensor, "batch heads time dim"], Float[Tensor, "batch one time rope_dim"]]:
        """The shared key, and of the queries the coordinates that meet it."""
        if not isinstance(self.encoding, Rotary):
            return queries, keys
        meet, rest = queries.split([self.spec.rope_dim, self.spec.value_dim], dim=-1)
        meet, keys = self.encoding.turn(meet, positions), self.encoding.turn(keys, positions)
        return torch.cat([meet, rest], dim=-1), keys

    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """To all, with keys and values made from the latents."""
        heads, latents = self.spec.heads, tokens.values[:, 0]
        made, values = (split_heads(part(latents), heads) for part in (self.key_of_latent, self.value_of_latent))
        keys = torch.cat([tokens.keys.expand(-1, heads, -1, -1), made], dim=-1)
        return self.attend_to_all(Tokens(tokens.queries, keys, values, tokens.absent, tokens.seen, tokens.added, None))

    def needed(self, seen: Int[Tensor, " batch"] | int) -> None:
        """All tokens."""

    def projected_back(
        self, read: Float[Tensor, "batch time inner"], x: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch time width"]:
        """What the heads read, in the stream."""
        return self.out(read)

    @property
    def sight(self) -> Sight:
        """All positions; the past cannot be summed up before it is asked."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0

    def reads(self) -> Reads:
        """Queries where the output is wanted, shared keys and latents in the past."""
        memory = columns_read(self.key.weight, self.latent.weight)
        return Reads(query=columns_read(self.query.weight), memory=memory, gate=torch.zeros_like(memory))

    def writes(self) -> Bool[Tensor, "width"]:
        """The rows of the output projection."""
        return rows_written(self.out.weight)
