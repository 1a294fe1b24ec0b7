r"""Repulsion between heads (Repulsive Attention, arXiv 2009.09364): another gradient, the same forward pass.

The heads of an attention layer are taken for M samples θ_1 .. θ_M of one distribution p(θ) ∝ exp(-loss). Stein
variational gradient descent (SVGD, arXiv 1608.04471) moves them together:

    grad_i ← (1/M) Σ_j [ κ(θ_j, θ_i) ∇_{θ_j} loss - strength · ∇_{θ_j} κ(θ_j, θ_i) ]
    κ(θ, θ') = exp(-|θ - θ'|² / h) ,    h = (median over the pairs of |θ_i - θ_j|)² / log M

The first part lets a head follow the gradients of those near it, the second drives heads apart:
-∇_{θ_j} κ(θ_j, θ_i) = -(2/h) κ(θ_j, θ_i) (θ_i - θ_j), so that a step against it leads θ_i away from θ_j. Heads that are
equal to the last bit have no direction in which to part; they stay together, as they do in the paper.

As in the paper's code the rows of a head in the query, in the key and in the value projection are three separate
samples. Grouped key-value heads repel each other, M being their number. The output projection is left as it is.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.errors import InputError
from hopbound.mixers.attention import SoftmaxAttention


def repel_heads(attention: SoftmaxAttention, strength: float = 1.0) -> None:
    """Rewrite the gradients of the heads' parameters, between the backward pass and the optimizer's step.

    Args:
        attention: with gradients in `.grad`.
        strength: factor on the repulsion; 0 leaves the smoothed gradients alone.

    Raises:
        InputError: a projection has no gradient.
    """
    spec = attention.spec
    for name, heads in (("query", spec.heads), ("key", spec.kv_heads), ("value", spec.kv_heads)):
        weight = attention.get_parameter(f"{name}.weight")
        if weight.grad is None:
            raise InputError(f"{name}.weight.grad", None, "a gradient: call backward first")
        moved = svgd(weight.detach().view(heads, -1), weight.grad.view(heads, -1), strength)
        weight.grad.copy_(moved.view_as(weight))


def svgd(
    samples: Float[Tensor, "samples size"], gradients: Float[Tensor, "samples size"], strength: float = 1.0
) -> Float[Tensor, "samples size"]:
    """The gradients by the rule above; those of a single sample, or of samples that are all equal, are averaged."""
    count = samples.shape[0]
    apart = samples[:, None] - samples[None, :]  # θ_i - θ_j at [i, j]
    squares = (apart**2).sum(dim=-1)
    first, second = torch.triu_indices(count, count, offset=1, device=samples.device)
    pairs = squares[first, second].sqrt()
    median = pairs.quantile(0.5) if count > 1 else samples.new_zeros(())
    if median == 0:
        return gradients.mean(dim=0).expand_as(gradients)
    rate = log(count) / median**2
    kernel = torch.exp(-rate * squares)
    away = 2 * rate * (kernel[..., None] * apart).sum(dim=1)
    return (kernel @ gradients - strength * away) / count
