r"""A window and a summary of each block (transient global attention of LongT5, arXiv 2112.07916), made causal.

    k̄_m, v̄_m = the means of k_s, v_s over block m, of b tokens
    o_t = attention of q_t to k_s, v_s for t - W < s ≤ t, and to k̄_m, v̄_m of every block that is complete at t

The paper normalises the sum of what the tokens of a block hold; here it is their mean, so that keys and values, being
linear, are means too. A block's own tokens may be in the window beside its summary, as there. Positions are not
encoded: a summary has none. Cache: keys and values of W - 1 tokens, the sums of the last block, and one key and value
for each complete block, so that it grows by H_kv (d_k + d_v) numbers every b tokens.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopbound.architecture.sizes import TransientGlobalAttention
from hopbound.errors import InputError
from hopbound.mixers.mixer import Sight, accumulator
from hopbound.mixers.positions import Encoding
from hopbound.mixers.softmax import Beside, Extra, SoftmaxMixer, Tokens


class TransientGlobal(SoftmaxMixer[TransientGlobalAttention]):
    """Softmax attention to near tokens and to summaries of blocks."""

    def __init__(
        self, spec: TransientGlobalAttention, width: int, scale: float | None = None, encoding: Encoding = None
    ) -> None:
        if encoding is not None:
            raise InputError("encoding", type(encoding).__name__, "none for tglobal, whose summaries have no position")
        super().__init__(spec, width, scale)

    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """The window, and the summaries of the blocks that are complete."""
        keys, values = self._sums(tokens)
        since = self.spec.block * (torch.arange(keys.shape[2], device=keys.device) + 1) - 1
        kept = tokens.keys.dtype
        extra = Extra(self._means(keys, kept), self._means(values, kept), since.expand(len(tokens.seen), -1))
        return self.attend_near(tokens, self.spec.w, extra=extra)

    def needed(self, seen: Int[Tensor, " batch"] | int) -> int:
        """The window without the token itself."""
        return self.spec.w - 1

    def kept_beside(self, tokens: Tokens) -> Beside:
        """The summaries, and the sums of the last block."""
        keys, values = self._sums(tokens)
        complete = (tokens.seen + tokens.added) // self.spec.block
        count = int(complete.max()) if len(complete) else 0
        there = (torch.arange(count, device=keys.device) < complete[:, None])[:, None, :, None]
        last = complete[:, None, None, None]

        def open_(sums: Tensor) -> Tensor:
            return sums.gather(2, last.expand(-1, sums.shape[1], -1, sums.shape[3]))[:, :, 0]

        def means(sums: Tensor) -> Tensor:
            return self._means(sums[:, :, :count], tokens.keys.dtype).masked_fill(~there, 0)

        return Beside(means(keys), means(values), open_(keys), open_(values))

    def _means(self, sums: Tensor, dtype: torch.dtype) -> Tensor:
        """The summaries of blocks, as they are kept."""
        return (sums / self.spec.block).to(dtype)

    def _sums(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """The sums of all blocks up to the one after the last token, in the accumulator's precision."""
        block, time, device = self.spec.block, tokens.time, tokens.keys.device
        places = torch.arange(time, device=device)
        index = (tokens.seen[:, None] + places) // block
        blocks = (int((tokens.seen + time).max()) if len(tokens.seen) else 0) // block + 1
        counts = (places < tokens.added[:, None])[:, None, :, None]

        def sums(all_: Tensor, means: Tensor | None, rest: Tensor | None) -> Tensor:
            new = all_[:, :, all_.shape[2] - time :].masked_fill(~counts, 0).to(accumulator(all_.dtype))
            total = torch.zeros_like(new[:, :, :1]).expand(-1, -1, blocks, -1)
            total = total.scatter_add(2, index[:, None, :, None].expand_as(new), new)
            if means is None or rest is None:
                return total
            held = torch.zeros_like(total)
            held[:, :, : means.shape[2]] = block * means.to(held.dtype)
            at = (tokens.seen // block)[:, None, None, None].expand(-1, total.shape[1], -1, total.shape[3])
            return total + held.scatter_add(2, at, rest[:, :, None])

        kept = tokens.beside
        if kept is None:
            return sums(tokens.keys, None, None), sums(tokens.values, None, None)
        return sums(tokens.keys, kept.keys, kept.key_sum), sums(tokens.values, kept.values, kept.value_sum)

    @property
    def sight(self) -> Sight:
        """Summaries are seen from everywhere."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0
