r"""The delta rule with decays: the recurrence behind DeltaNet, Gated DeltaNet, Kimi Delta Attention and DeltaProduct.

    S_t = diag(a_t) S_{t-1} + β_t k_t (v_t - (diag(a_t) S_{t-1})ᵀ k_t)ᵀ ,     o_t = S_tᵀ q_t

with a decay a_t ∈ [0, 1] for each head (arXiv 2412.06464) or for each head and key channel (arXiv 2510.26692), or none
(arXiv 2406.06484). The decay comes before the error: what is taken away is what the decayed state holds.

This is the definition (`by_steps`). `delta_rule` computes the same in chunks. With G the sum of log a inside a chunk
and u_t = β_t (v_t - …) what token t really writes, the chunk's U solves a unit triangular system:

    (I + L) U = diag(β) (V - (K ⊙ exp G) S_0) ,   L_ij = β_i Σ_c k_ic k_jc exp(G_ic - G_jc)   for j < i
    O = (Q ⊙ exp G) S_0 + A U ,                   A_ij = Σ_c q_ic k_jc exp(G_ic - G_jc)        for j ≤ i
    S_C = diag(exp G_C) S_0 + (K ⊙ exp(G_C - G))ᵀ U
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.mixers.chunks import ChannelDecays, Decays, HeadDecays, chunk_size, cut, unit_lower_inverse


def by_steps(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    strength: Float[Tensor, "batch heads time"],
    log_decay: Decays,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The definition, a token at a time."""
    decays = [None] * queries.shape[2] if log_decay is None else log_decay.exp().unbind(2)
    steps = zip(queries.unbind(2), keys.unbind(2), values.unbind(2), strength.unbind(2), decays, strict=True)
    outputs = []
    for q, k, v, beta, a in steps:
        if a is not None:
            matrix = (a[..., None] if a.dim() == 3 else a[..., None, None]) * matrix
        error = v - (k[..., None, :] @ matrix)[..., 0, :]
        matrix = matrix + k[..., :, None] * (beta[..., None] * error)[..., None, :]
        outputs.append((q[..., None, :] @ matrix)[..., 0, :])
    return torch.stack(outputs, dim=2), matrix


def delta_rule(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    strength: Float[Tensor, "batch heads time"],
    log_decay: Decays,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    *,
    chunk: int,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The recurrence in chunks; `chunk` = 1, or a single token: by steps.

    Args:
        queries: q.
        keys: k.
        values: v.
        strength: β.
        log_decay: log a, at most 0; a head's, or each key channel's.
        matrix: the state before the first token.
        chunk: tokens a chunk.
    """
    time = queries.shape[2]
    if chunk == 1 or time == 1:
        return by_steps(queries, keys, values, strength, log_decay, matrix)
    size = chunk_size(time, chunk)
    q, k, v, beta = (cut(part, size) for part in (queries, keys, values, strength))
    beta = beta[..., None]
    if log_decay is not None and log_decay.dim() == 4:
        decays = ChannelDecays(cut(log_decay, size))
        [[lower], [scores]] = decays.scores([(beta * k, False), (q, False)], [k])
        decay_out = decays.whole[..., None]
        q_in, k_in, k_out = q * decays.through, k * decays.through, k * decays.rest
    else:
        lower, scores = (torch.cat([beta * k, q], dim=-2) @ k.transpose(-1, -2)).split(size, dim=-2)
        q_in, k_in, k_out, decay_out = q, k, k, None
        if log_decay is None:
            scores = scores.tril()
        else:
            decays = HeadDecays(cut(log_decay, size))
            between = decays.between(strict=False)
            lower, scores = lower * between, scores * between
            inner, rest = decays.through[..., None], decays.rest[..., None]
            decay_out = decays.whole[..., None, None]
            q_in, k_in, k_out = q * inner, k * inner, k * rest
    lower = lower.tril(-1)
    # What would be written into an empty state, and how the state that enters changes it.
    solved = unit_lower_inverse(lower) @ (beta * torch.cat([v, k_in], dim=-1))
    written, taken = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    count = q.shape[2]
    factors = [None] * count if decay_out is None else decay_out.unbind(2)
    outer, news = [], []
    entering = torch.cat([taken, q_in], dim=-2)
    parts = (written.unbind(2), entering.unbind(2), k_out.transpose(-1, -2).unbind(2))
    for new, asks, key, decay in zip(*parts, factors, strict=True):
        held, read = (asks @ matrix).split(size, dim=-2)
        new = new - held
        news.append(new)
        outer.append(read)
        matrix = (matrix if decay is None else decay * matrix) + key @ new
    output = torch.stack(outer, dim=2) + scores @ torch.stack(news, dim=2)
    return output.flatten(2, 3)[:, :, :time], matrix
