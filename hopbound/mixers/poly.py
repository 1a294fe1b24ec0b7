r"""Polynomial attention (FAST, arXiv 2402.07901): linear attention with the second-order expansion of the softmax.

    φ(u) = (1, u', (u' ⊗ u')/√2) ,  u' = u / d_k^{1/4} ,   φ(q)·φ(k) = 1 + s + s²/2 ,  s = q·k / √d_k

The kernel is at least 1/2, so the normaliser never vanishes. State: H (r d_v + r) numbers, r = 1 + d_k + d_k².
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.mixers.linear import NormalisedRecurrence


class PolynomialAttention(NormalisedRecurrence):
    """Linear attention whose kernel is 1 + s + s²/2."""

    def features(self, u: Float[Tensor, "batch heads time dim"]) -> Float[Tensor, "batch heads time features"]:
        """Degree 0, 1 and 2."""
        u = u * self.spec.head_dim**-0.25
        products = (u[..., :, None] * u[..., None, :]).flatten(-2) * 2**-0.5
        return torch.cat([torch.ones_like(u[..., :1]), u, products], dim=-1)
