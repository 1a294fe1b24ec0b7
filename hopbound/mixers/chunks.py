"""What chunked recurrences share: cutting into chunks, scores under decay, the inverse of a unit triangular matrix.

A chunk of C tokens is computed by matrix products, and only the state passes from chunk to chunk (arXiv 2312.06635,
arXiv 2406.06484). Decays are carried as logarithms. Where those of a chunk may add up to anything, every factor that is
formed is the exponential of a number of at most 0: products of decays over a stretch of tokens, never their inverses.
So strong decays underflow to the zero that they mean, and nothing overflows, forward or backward. Where the sums are
known to be small (`MILD`), the decay between two tokens is one factor of each: exp(G_i) exp(-G_j).
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

CHUNK = 64  # tokens a chunk, where nothing else is asked for
# Logarithms of the decays, at most 0: of a head, or of each of its key channels; None: there are none. Where they are
# the same for all examples, a batch of one will do.
Decays = Float[Tensor, "#batch heads time"] | Float[Tensor, "#batch heads time key_dim"] | None

BLOCK = 16  # chunks are multiples of it; triangles up to this size are inverted by substitution
MILD = 40.0  # sums of decays' logarithms up to here are split into factors: exp(40) = 2e17, at 3e-6 in float32
GONE = -100.0  # the logarithm of a decay that leaves nothing; below it, sums would cost their neighbours' precision
PIECE = 4  # tokens among which the decays of single channels are multiplied out pair by pair


def chunk_size(time: int, chunk: int) -> int:
    """The size of the chunks for `time` tokens: `chunk`, or less where one smaller chunk holds them all."""
    return min(chunk, -(-time // BLOCK) * BLOCK)


def cut(x: Float[Tensor, "batch heads time *rest"], size: int) -> Float[Tensor, "batch heads chunks size *rest"]:
    """Chunks of `size` tokens, the last filled up with zeros."""
    missing = -x.shape[2] % size
    if missing:
        x = pad(x, (*(0, 0) * (x.dim() - 3), 0, missing))
    return x.contiguous().unflatten(2, (-1, size))


class HeadDecays:
    """Decays of whole heads inside chunks, from their logarithms g.

    Sums of logarithms, and with them their gradients, are kept in float64: they grow over the chunk, and what is read
    off them are small differences.

    Attributes:
        through: the decay from the chunk's start to each token, itself included.
        before: the same without the token itself.
        rest: the decay from each token, itself not included, to the chunk's end.
        whole: the decay over the chunk.
    """

    def __init__(self, g: Float[Tensor, "batch heads chunks size"]) -> None:
        self.dtype = g.dtype
        g = g.clamp(min=GONE)
        self._sum = g.double().cumsum(dim=-1)
        self._start = self._sum - g
        self.through, self.before = self._sum.exp().to(self.dtype), self._start.exp().to(self.dtype)
        self.rest = (self._sum[..., -1:] - self._sum).exp().to(self.dtype)
        self.whole = self.through[..., -1]

    def between(self, *, strict: bool) -> Float[Tensor, "batch heads chunks size size"]:
        """From token j to token i: including i's own decay for j ≤ i; strict: without it, for j < i; 0 elsewhere."""
        read = self._start if strict else self._sum
        size = read.shape[-1]
        visible = torch.ones(size, size, dtype=torch.bool, device=read.device).tril(-1 if strict else 0)
        apart = (read[..., :, None] - self._sum[..., None, :]).to(self.dtype)
        return apart.masked_fill(~visible, -torch.inf).exp()


def sum_before(g: Float[Tensor, "*some size dim"]) -> Float[Tensor, "*some size dim"]:
    """For each token the sum over those before it."""
    return pad(g[..., :-1, :], (0, 0, 1, 0)).cumsum(dim=-2)


def sum_after(g: Float[Tensor, "*some size dim"]) -> Float[Tensor, "*some size dim"]:
    """For each token the sum over those after it."""
    return pad(g[..., 1:, :], (0, 0, 0, 1)).flip(-2).cumsum(dim=-2).flip(-2)


def decayed_scores(
    queries: Float[Tensor, "*some size kinds dim"],
    keys: Float[Tensor, "*some size dim"],
    g: Float[Tensor, "*some size dim"],
    *,
    strict: bool,
) -> Float[Tensor, "*some kinds size size"]:
    """`Σ_c q_ic k_jc exp(g_{j+1,c} + … + g_ic)` for j ≤ i, 0 elsewhere, for several kinds of queries.

    By halves: what the second half reads of the first is one product of matrices, the decay taken from each side to
    the middle. Pairs of the smallest pieces are multiplied out. Sums of logarithms run over no more tokens than they
    have to, so that strong decays cost no precision.

    Args:
        queries: of the tokens i of a chunk.
        keys: of its tokens j.
        g: logarithms of the decays.
        strict: for j < i only, and without token i's own decay.
    """
    size, kinds = queries.shape[-3], queries.shape[-2]
    if size <= PIECE or size % 2:
        write = g.cumsum(dim=-2)
        read = sum_before(g) if strict else write
        visible = torch.ones(size, size, dtype=torch.bool, device=keys.device).tril(-1 if strict else 0)
        apart = (read[..., :, None, :] - write[..., None, :, :]).masked_fill(~visible[..., None], -torch.inf).exp()
        pairs = (apart * keys[..., None, :, :]) @ queries.transpose(-1, -2)
        return pairs.movedim(-1, -3)
    half = size // 2
    q = queries.unflatten(queries.dim() - 3, (2, half))
    k, decays = (part.unflatten(part.dim() - 2, (2, half)) for part in (keys, g))
    first, second = decayed_scores(q, k, decays, strict=strict).unbind(-4)
    early, late = decays.unbind(-3)
    earlier = k.unbind(-3)[0] * sum_after(early).exp()
    later = q.unbind(-4)[1] * (sum_before(late) if strict else late.cumsum(dim=-2)).exp()[..., None, :]
    corner = (later.flatten(-3, -2) @ earlier.transpose(-1, -2)).unflatten(-2, (half, kinds)).transpose(-2, -3)
    above = torch.zeros_like(first)
    return torch.cat([torch.cat([first, above], dim=-1), torch.cat([corner, second], dim=-1)], dim=-2)


class ChannelDecays:
    """Decays of single key channels inside chunks, from their logarithms g.

    Attributes:
        through: the decay from the chunk's start to each token, itself included.
        before: the same without the token itself.
        rest: the decay from each token, itself not included, to the chunk's end.
        whole: the decay over the chunk.
    """

    def __init__(self, g: Float[Tensor, "batch heads chunks size dim"], *, mild: bool = False) -> None:
        """`mild`: the sum over a chunk is known to be at least -`MILD`; otherwise it is looked up."""
        self._g = g = g.clamp(min=GONE)
        total = g.cumsum(dim=-2)
        lasts = total[..., -1, :]
        # Under torch.compile what the numbers are is not known, so the form that is right for all of them is taken.
        self._mild = mild or (not torch.compiler.is_compiling() and bool(lasts.detach().min() >= -MILD))
        self.through, self.whole = total.exp(), lasts.exp()
        if self._mild:
            self._inverse = (-total).exp()
            self.before = (total - g).exp()
            self.rest = self._inverse * self.whole[..., None, :]
        else:
            self.before, self.rest = sum_before(g).exp(), sum_after(g).exp()

    def scores(
        self,
        asks: Sequence[tuple[Float[Tensor, "batch heads chunks size dim"], bool]],
        keys: Sequence[Float[Tensor, "batch heads chunks size dim"]],
    ) -> list[list[Float[Tensor, "batch heads chunks size size"]]]:
        """`decayed_scores` of each of `asks`, (queries, strict), with each of `keys`."""
        if not self._mild:
            return [
                [decayed_scores(q[..., None, :], k, self._g, strict=strict)[..., 0, :, :] for k in keys]
                for q, strict in asks
            ]
        size = self._g.shape[-2]
        left = torch.cat([q * (self.before if strict else self.through) for q, strict in asks], dim=-2)
        right = torch.cat([k * self._inverse for k in keys], dim=-2)
        rows = (left @ right.transpose(-1, -2)).split(size, dim=-2)
        return [
            [part.tril(-1 if strict else 0) for part in row.split(size, dim=-1)]
            for row, (_, strict) in zip(rows, asks, strict=True)
        ]


class _UnitLowerInverse(Function):
    """The inverse of I + L, with the gradient written out: dL = -(Tᵀ dT Tᵀ) below the diagonal."""

    @staticmethod
    def forward(ctx: Any, lower: Tensor) -> Tensor:
        inverse = _inverse(lower)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        turned = inverse.transpose(-1, -2)
        return -(turned @ grads[0] @ turned).tril(-1)


def _inverse(lower: Tensor) -> Tensor:
    """By halves: [[A, 0], [C, B]] has the inverse [[A', 0], [-B' C A', B']]; small ones by substitution."""
    size = lower.shape[-1]
    if size <= BLOCK:
        eye = torch.eye(size, dtype=lower.dtype, device=lower.device)
        return torch.linalg.solve_triangular(lower + eye, eye.expand_as(lower), upper=False, unitriangular=True)
    half = size // 2 // BLOCK * BLOCK or size // 2
    first, second = _inverse(lower[..., :half, :half]), _inverse(lower[..., half:, half:])
    corner = -second @ lower[..., half:, :half] @ first
    above = lower.new_zeros(*lower.shape[:-2], half, size - half)
    return torch.cat([torch.cat([first, above], dim=-1), torch.cat([corner, second], dim=-1)], dim=-2)


def unit_lower_inverse(lower: Float[Tensor, "*some size size"]) -> Float[Tensor, "*some size size"]:
    """`(I + L)^-1` for an L that is zero on and above the diagonal, by merging blocks (stable also for equal keys)."""
    return _UnitLowerInverse.apply(lower)  # pyright: ignore[reportReturnType]
