r"""A window, a few global tokens and drawn blocks (BigBird, arXiv 2007.14062), made causal.

    o_t = Σ_{s ∈ S_t} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t
    S_t = {s ≤ t : s > t - W, or s < g, or ⌊s/b⌋ is one of the `random` blocks drawn for block ⌊t/b⌋}

The blocks of b tokens that are drawn lie before the token's own. The draw is a rule of the two block numbers alone, the
same for all heads, layers and inputs: of the earlier blocks those with the smallest values of a hash (`hashed`). The
window and the global tokens are counted in tokens, not in blocks as in the paper's code. Cache: all tokens.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopbound.architecture.sizes import BlockSparseAttention
from hopbound.mixers.mixer import Sight
from hopbound.mixers.softmax import SoftmaxMixer, Tokens

WORD = 2**32 - 1


def hashed(x: Int[Tensor, "*some"]) -> Int[Tensor, "*some"]:
    """32 bits that mix those of x: multiply and shift, twice."""
    x = (x ^ (x >> 16)) * 0x7FEB352D & WORD
    x = (x ^ (x >> 15)) * 0x846CA68B & WORD
    return x ^ (x >> 16)


def drawn_blocks(blocks: int, random: int, device: torch.device) -> Bool[Tensor, "blocks blocks"]:
    """Which earlier blocks are drawn for each block."""
    places = torch.arange(blocks, device=device)
    values = hashed(hashed(places)[:, None] + places)
    values = values.masked_fill(places[:, None] <= places, WORD + 1)
    count = min(random, blocks)
    chosen = values.sort(dim=1, stable=True).indices[:, :count]
    drawn = torch.zeros(blocks, blocks, dtype=torch.bool, device=device).scatter(1, chosen, True)
    return drawn & (places[:, None] > places)


class BlockSparse(SoftmaxMixer[BlockSparseAttention]):
    """Softmax attention to near tokens, first tokens and drawn blocks."""

    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """To those of the sets above."""
        spec, device = self.spec, tokens.keys.device
        seen, past = tokens.seen[:, None], tokens.total - tokens.time
        asking = seen + torch.arange(tokens.time, device=device)
        asked = (seen + torch.arange(-past, tokens.time, device=device)).clamp(min=0)  # below 0: of no token
        near = asking[:, :, None] - asked[:, None] < spec.w
        first = (asked < spec.global_tokens)[:, None]
        blocks = int(asking.max()) // spec.block + 1 if asking.numel() else 1
        drawn = drawn_blocks(blocks, spec.random, device)
        far = drawn[asking // spec.block].gather(2, (asked // spec.block)[:, None].expand(-1, tokens.time, -1))
        return self.attend_to_all(tokens, near | first | far)

    def needed(self, seen: Int[Tensor, " batch"] | int) -> None:
        """All tokens: a later block may draw any."""

    @property
    def sight(self) -> Sight:
        """All positions; the past cannot be summed up before it is asked."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0
