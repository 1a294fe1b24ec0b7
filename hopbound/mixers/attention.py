r"""Softmax attention, over the whole past or over a window; what the two share with others is in `softmax.py`.

    o_t = Σ_{s ≤ t, s > t - W} softmax_s(scale · q_t · k_s) v_s ,   y_t = W_o o_t

with W = ∞ for full attention; a window of W tokens holds the token itself. Cache: H_kv (d_k + d_v) numbers a token; of
a window those of W - 1 tokens. In an encoder (`causal` = False) full attention ranges over all tokens, also later ones.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopbound.architecture.sizes import Attention, WindowAttention
from hopbound.errors import InputError
from hopbound.mixers.mixer import Sight
from hopbound.mixers.positions import Encoding
from hopbound.mixers.softmax import SoftmaxMixer, Tokens


class SoftmaxAttention(SoftmaxMixer[Attention | WindowAttention]):
    """Full or sliding-window attention; which of the two, the spec says.

    Attributes:
        causal: whether a token sees those before it alone; False, for full attention: it sees all that count.
    """

    def __init__(
        self,
        spec: Attention | WindowAttention,
        width: int,
        scale: float | None = None,
        encoding: Encoding = None,
    ) -> None:
        super().__init__(spec, width, scale, encoding)
        self.window = spec.w if isinstance(spec, WindowAttention) else None
        self.causal = True

    def attend(self, tokens: Tokens) -> Float[Tensor, "batch heads time value_dim"]:
        """All tokens, or the window.

        Raises:
            InputError: tokens are kept from before, in an encoder.
        """
        if not self.causal:
            if tokens.total != tokens.time:
                raise InputError("state", "given", "none: an encoder reads a sequence as a whole")
            columns = torch.arange(tokens.total, device=tokens.keys.device)
            counted = columns < tokens.added.clamp(min=1)[:, None, None, None]  # those that count stand first
            return self._dot_product(tokens.queries, tokens.keys, tokens.values, counted)
        if self.window is None or self.window >= tokens.total:
            return self.attend_to_all(tokens)
        return self.attend_near(tokens, self.window)

    def needed(self, seen: Int[Tensor, " batch"] | int) -> int | None:
        """All tokens, or the window without the token itself."""
        return None if self.window is None else self.window - 1

    @property
    def sight(self) -> Sight:
        """The whole past, or the window; with encoded positions the past cannot be summed up before it is asked."""
        if self.window is not None:
            return Sight.NEAR
        return Sight.ALL if self.encoding is None else Sight.WRITERS

    @property
    def reach(self) -> int:
        """The window without the token itself."""
        return 0 if self.window is None else self.window - 1
