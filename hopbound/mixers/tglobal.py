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
from torch.nn.functional import pad

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
        (keys, _), (values, _) = self._blocks(tokens)
        since = self.spec.block * (torch.arange(keys.shape[2], device=keys.device) + 1) - 1
        extra = Extra(keys, values, since.expand(len(tokens.seen), -1))
        return self.attend_near(tokens, self.spec.w, extra=extra)

    def needed(self, seen: Int[Tensor, " batch"] | int) -> int:
        """The window without the token itself."""
        return self.spec.w - 1

    def kept_beside(self, tokens: Tokens) -> Beside:
        """The summaries, and the sums of the last block."""
        (keys, key_sums), (values, value_sums) = self._blocks(tokens)
        complete = (tokens.seen + tokens.added) // self.spec.block
        count = int(complete.max()) if len(complete) else 0
        missing = (torch.arange(count, device=keys.device) >= complete[:, None])[:, None, :, None]
        last = complete[:, None, None, None]

        def open_(sums: Tensor) -> Tensor:
            return sums.gather(2, last.expand(-1, sums.shape[1], -1, sums.shape[3]))[:, :, 0]

        keys, values = (part[:, :, :count].masked_fill(missing, 0) for part in (keys, values))
        return Beside(keys, values, open_(key_sums), open_(value_sums))

    def _blocks(self, tokens: Tokens) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """For keys and for values the means of all blocks up to the one after the last token, and their sums.

        Sums are in the accumulator's precision; those of blocks that were complete before are left out.
        """
        block, time, device = self.spec.block, tokens.time, tokens.keys.device
        places = torch.arange(time, device=device)
        index = ((tokens.seen[:, None] + places) // block)[:, None, :, None]
        blocks = (int((tokens.seen + time).max()) if len(tokens.seen) else 0) // block + 1
        masked = (places >= tokens.added[:, None])[:, None, :, None]
        at = (tokens.seen // block)[:, None, None, None]
        old = torch.arange(blocks, device=device)[:, None] < at

        def part(all_: Tensor, means: Tensor | None, rest: Tensor | None) -> tuple[Tensor, Tensor]:
            new = all_[:, :, all_.shape[2] - time :].masked_fill(masked, 0).to(accumulator(all_.dtype))
            sums = torch.zeros_like(new[:, :, :1]).expand(-1, -1, blocks, -1)
            sums = sums.scatter_add(2, index.expand_as(new), new)
            if means is None or rest is None:
                return (sums / block).to(all_.dtype), sums
            sums = sums.scatter_add(2, at.expand(-1, sums.shape[1], -1, sums.shape[3]), rest[:, :, None])
            kept = pad(means, (0, 0, 0, blocks - means.shape[2]))
            return torch.where(old, kept, (sums / block).to(all_.dtype)), sums

        kept = tokens.beside or Beside(tokens.keys, tokens.values)
        return (
            part(tokens.keys, kept.keys, kept.key_sum),
            part(tokens.values, kept.values, kept.value_sum),
        )

    @property
    def sight(self) -> Sight:
        """Summaries are seen from everywhere."""
        return Sight.WRITERS

    @property
    def reach(self) -> int:
        """Not by distance."""
        return 0
