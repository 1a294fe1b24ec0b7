r"""Random-feature attention (RFA, arXiv 2103.02143): linear attention with sines and cosines of random projections.

    φ(u) = (sin(W u/|u|), cos(W u/|u|)) / √d_k ,   rows of W independent standard normal, one W a head, never trained
    E φ(q)·φ(k) = exp(-|q/|q| - k/|k||² / 2)

The normaliser is the mean of a kernel that may come out near 0 or negative with few features; as in the paper there is
no guard but the 1e-6 of linear attention. W comes from a seed of its own, so the same spec has the same features.
State: H (2 d_k d_v + 2 d_k) numbers.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.linear import NormalisedRecurrence

SEED = 2103_02143


class RandomFeatureAttention(NormalisedRecurrence):
    """Linear attention whose kernel approximates a Gaussian of unit queries and keys."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        generator = torch.Generator().manual_seed(SEED)
        shape = (spec.heads, spec.head_dim, spec.head_dim)
        # No buffer, which casts of the module would round: float64 wherever the weights are.
        self.directions = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")

    def features(self, u: Float[Tensor, "batch heads time dim"]) -> Float[Tensor, "batch heads time features"]:
        """Sines and cosines."""
        angles = normalize(u, dim=-1) @ self.directions.to(u).transpose(-1, -2)
        return torch.cat([angles.sin(), angles.cos()], dim=-1) * self.spec.head_dim**-0.5
