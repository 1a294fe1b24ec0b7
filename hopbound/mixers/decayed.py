r"""Decayed linear attention: the recurrence behind RetNet, GLA, HGRN2, Mamba-2, RWKV-6 and others.

    S_t = diag(a_t) S_{t-1} + k_t v_tᵀ ,     o_t = S_tᵀ q_t

with a decay a_t ∈ [0, 1] for each head, or for each head and key channel; without one: a_t = 1. With a bonus u the
token reads the state before it, and itself with a weight of its own (RWKV-6):

    o_t = (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ q_t

Decays come as logarithms g_t = log a_t ≤ 0. This is the definition (`by_steps`); `decayed_attention` computes the same
in chunks: with G the sum of g inside a chunk, token i reads what token j wrote with the factor exp(G_i - G_j).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.mixers import kernels
from hopbound.mixers.chunks import ChannelDecays, Decays, HeadDecays, chunk_size, cut


def by_steps(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    log_decay: Decays,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    bonus: Float[Tensor, "heads key_dim"] | None = None,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The definition, a token at a time."""
    decays = [None] * queries.shape[2] if log_decay is None else log_decay.exp().unbind(2)
    outputs = []
    for q, k, v, a in zip(queries.unbind(2), keys.unbind(2), values.unbind(2), decays, strict=True):
        written = k[..., :, None] * v[..., None, :]
        if bonus is not None:
            outputs.append((q[..., None, :] @ (matrix + bonus[..., None] * written))[..., 0, :])
        if a is not None:
            matrix = (a[..., None] if a.dim() == 3 else a[..., None, None]) * matrix
        matrix = matrix + written
        if bonus is None:
            outputs.append((q[..., None, :] @ matrix)[..., 0, :])
    return torch.stack(outputs, dim=2), matrix


def decayed_attention(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    log_decay: Decays,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    bonus: Float[Tensor, "heads key_dim"] | None = None,
    *,
    chunk: int,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The recurrence in chunks; `chunk` = 1, or a single token: by steps.

    Args:
        queries: q.
        keys: k.
        values: v.
        log_decay: g, at most 0; a head's, or each key channel's.
        matrix: the state before the first token.
        bonus: u, where the token reads the state before it.
        chunk: tokens a chunk.
        dtype: of the model; in half precision kernels may compute it.
    """
    time = queries.shape[2]
    if chunk == 1 or time == 1:
        return by_steps(queries, keys, values, log_decay, matrix, bonus)
    if kernels.usable(queries, dtype):
        return kernels.decayed_attention(queries, keys, values, log_decay, matrix, bonus, dtype)
    size = chunk_size(time, chunk)
    q, k, v = (cut(part, size) for part in (queries, keys, values))
    strict = bonus is not None
    if log_decay is None:
        scores = (q @ k.transpose(-1, -2)).tril_(-1 if strict else 0)
        q_in, k_out, decay_out = q, k, None
    else:
        g = cut(log_decay, size)
        if log_decay.dim() == 3:
            decays = HeadDecays(g)
            scores = (q @ k.transpose(-1, -2)) * decays.between(strict=strict)
            inner, rest = (decays.before if strict else decays.through)[..., None], decays.rest[..., None]
            decay_out = decays.whole[..., None, None]
        else:
            decays = ChannelDecays(g)
            [[scores]] = decays.scores([(q, strict)], [k])
            inner, rest = decays.before if strict else decays.through, decays.rest
            decay_out = decays.whole[..., None]
        q_in, k_out = q * inner, k * rest
    output = scores @ v
    if bonus is not None:
        output = output + (q * bonus[:, None, None, :] * k).sum(-1, keepdim=True) * v
    written = k_out.transpose(-1, -2) @ v
    factors = [None] * written.shape[2] if decay_out is None else decay_out.unbind(2)
    states = []
    for added, decay in zip(written.unbind(2), factors, strict=True):
        states.append(matrix)
        matrix = (matrix if decay is None else decay * matrix) + added
    entering = torch.stack(states, dim=2)
    output = torch.baddbmm(*(part.flatten(0, 2) for part in (output, q_in, entering))).view_as(output)
    return output.flatten(2, 3)[:, :, :time], matrix
