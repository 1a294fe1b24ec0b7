r"""Positional encodings inside softmax attention: what queries and keys, or their scores, know of where tokens stand.

Rotary embedding (RoPE, arXiv 2104.09864), for a head of d coordinates at position p, with pairs (i, i + d/2):

    θ_i = base^{-2i/d} ,   (x_i, x_{i+d/2}) ← (x_i cos pθ_i - x_{i+d/2} sin pθ_i ,  x_{i+d/2} cos pθ_i + x_i sin pθ_i)

so that q_t · k_s depends on t - s alone. Pairs lie half a head apart, as in most published models; of an odd d the last
coordinate stays as it is, as do those beyond `dims`.

ALiBi (arXiv 2108.12409): the score of a token that is j back is lowered by m_h j, with m_h = 2^{-8h/H}, h = 1..H; where
H is no power of two, the slopes of the next smaller one and then every second of the next larger one.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopbound.mixers.mixer import accumulator


@dataclass(frozen=True)
class Rotary:
    """Queries and keys are turned by angles that grow with the position.

    Attributes:
        base: of the angles' geometric sequence.
        dims: leading coordinates of a head that are turned; None: all.
    """

    base: float = 10000.0
    dims: int | None = None

    def turn(
        self, x: Float[Tensor, "batch heads time dim"], positions: Int[Tensor, "#batch time"]
    ) -> Float[Tensor, "batch heads time dim"]:
        """`x` turned to its positions; angles are computed in float64."""
        half = min(x.shape[3], self.dims or x.shape[3]) // 2
        rates = self.base ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
        angles = positions[:, None, :, None] * rates
        wide = accumulator(x.dtype)
        cos, sin = angles.cos().to(wide), angles.sin().to(wide)
        first, second, rest = x.split([half, half, x.shape[3] - 2 * half], dim=3)
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=3)
        return torch.cat([turned.to(x.dtype), rest], dim=3)


@dataclass(frozen=True)
class Alibi:
    """Scores are lowered in proportion to the distance."""

    @staticmethod
    def slopes(heads: int) -> Float[Tensor, " heads"]:
        """m_h of each head, in float64."""
        power = 2 ** int(math.log2(heads))
        regular = torch.exp2(-8 * torch.arange(1, power + 1, dtype=torch.float64) / power)
        between = torch.exp2(-4 * (2 * torch.arange(heads - power, dtype=torch.float64) + 1) / power)
        return torch.cat([regular, between])

    def bias(self, heads: int, back: Int[Tensor, "time total"]) -> Float[Tensor, "heads time total"]:
        """What is added to the score of a token that is `back` positions back."""
        return -self.slopes(heads).to(back.device)[:, None, None] * back


Encoding = Rotary | Alibi | None


def encoding_to_json(encoding: Encoding) -> dict[str, object] | None:
    """As a JSON object."""
    match encoding:
        case Rotary():
            return {"kind": "rotary", "base": encoding.base, "dims": encoding.dims}
        case Alibi():
            return {"kind": "alibi"}
        case None:
            return None
