r"""The elementwise recurrence behind Mamba, RG-LRU and RWKV-4: each number decays for itself.

    h_t = a_t ⊙ h_{t-1} + b_t ,     a_t ∈ [0, 1]

This is the definition (`by_steps`). `scan` computes the same in chunks: inside a chunk of C tokens, pairs (a, b) are
composed over spans of 1, 2, 4, … tokens, (a, b) ∘ (a', b') = (a a', a b' + b), in log₂ C passes; then the last state
of each chunk is carried to the next. Only products of decays are formed, so that nothing overflows. The gradient is the
same recurrence backwards, λ_t = g_t + a_{t+1} λ_{t+1}, so that only a and h are kept for it.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from hopbound.mixers.chunks import chunk_size


def by_steps(
    a: Float[Tensor, "batch time *rest"], b: Float[Tensor, "batch time *rest"], h: Float[Tensor, "batch *rest"]
) -> Float[Tensor, "batch time *rest"]:
    """The definition: the state after each token, a token at a time."""
    states = []
    for decay, added in zip(a.unbind(1), b.unbind(1), strict=True):
        h = decay * h + added
        states.append(h)
    return torch.stack(states, dim=1)


def scan(
    a: Float[Tensor, "batch time *rest"],
    b: Float[Tensor, "batch time *rest"],
    h: Float[Tensor, "batch *rest"],
    *,
    chunk: int,
) -> Float[Tensor, "batch time *rest"]:
    """The state after each token; `chunk` = 1, or a single token: by steps.

    Args:
        a: decays.
        b: what is added.
        h: the state before the first token.
        chunk: tokens a chunk.
    """
    if chunk == 1 or a.shape[1] == 1:
        return by_steps(a, b, h)
    return _Scan.apply(a, b, h, chunk_size(a.shape[1], chunk))  # pyright: ignore[reportReturnType]


def _states(a: Tensor, b: Tensor, h: Tensor, size: int) -> Tensor:
    """The chunked form; no gradients."""
    time, rest = a.shape[1], (0, 0) * (a.dim() - 2)
    missing = -time % size
    a, b = (pad(part, (*rest, 0, missing)).unflatten(1, (-1, size)) for part in (a, b))
    span = 1
    while span < size:
        late = torch.addcmul(b[:, :, span:], a[:, :, span:], b[:, :, :-span])
        b = torch.cat([b[:, :, :span], late], dim=2)
        a = torch.cat([a[:, :, :span], a[:, :, span:] * a[:, :, :-span]], dim=2)
        span *= 2
    entering = []
    for decay, added in zip(a[:, :, -1].unbind(1), b[:, :, -1].unbind(1), strict=True):
        entering.append(h)
        h = decay * h + added
    states = torch.addcmul(b, a, torch.stack(entering, dim=1)[:, :, None])
    return states.flatten(1, 2)[:, :time]


class _Scan(Function):
    """`_states` with the gradient written out."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h: Tensor, size: int) -> Tensor:
        states = _states(a, b, h, size)
        ctx.size = size
        ctx.save_for_backward(a, h, states)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        a, h, states = ctx.saved_tensors
        later = torch.cat([a[:, 1:], torch.zeros_like(a[:, :1])], dim=1)
        added = _states(later.flip(1), grads[0].flip(1), torch.zeros_like(h), ctx.size).flip(1)
        before = torch.cat([h[:, None], states[:, :-1]], dim=1)
        return added * before, added, a[:, 0] * added[:, 0], None
