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

from hopbound.mixers import kernels
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
    dtype: torch.dtype = torch.float32,
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
        dtype: of the model; in half precision kernels may compute it.
    """
    time = queries.shape[2]
    if chunk == 1 or time == 1:
        return by_steps(queries, keys, values, strength, log_decay, matrix)
    if kernels.usable(queries, dtype):
        return kernels.delta_rule(queries, keys, values, strength, log_decay, matrix, dtype)
    size = chunk_size(time, chunk)
    q, k, v, beta = (cut(part, size) for part in (queries, keys, values, strength))
    turned = k.transpose(-1, -2)
    # Decays of whole heads multiply rows and columns of the small matrices; only those of channels touch the keys.
    through = rest = whole = None
    if log_decay is None:
        lower, scores = k @ turned, (q @ turned).tril_()
    elif log_decay.dim() == 3:
        decays = HeadDecays(cut(log_decay, size))
        between = decays.between(strict=False)
        lower, scores = (k @ turned) * between, (q @ turned) * between
        through, rest = decays.through[..., None], decays.rest[..., None]
        whole = decays.whole[..., None, None]
    else:
        decays = ChannelDecays(cut(log_decay, size))
        [[lower], [scores]] = decays.scores([(k, False), (q, False)], [k])
        through, rest, whole = decays.through, decays.rest, decays.whole[..., None]
    # What would be written into an empty state, and how the state that enters changes it.
    solver = unit_lower_inverse((beta[..., None] * lower).tril(-1)) * beta[..., None, :]
    written = solver @ v
    if through is None or rest is None:
        taken, k_out = solver @ k, turned
    elif through.shape[-1] == 1:
        taken, k_out = (solver * through.transpose(-1, -2)) @ k, (rest * k).transpose(-1, -2)
    else:
        taken, k_out = solver @ (through * k), (rest * k).transpose(-1, -2)
    factors = [None] * q.shape[2] if whole is None else whole.unbind(2)
    states, news = [], []
    for new, take, key, decay in zip(written.unbind(2), taken.unbind(2), k_out.unbind(2), factors, strict=True):
        states.append(matrix)
        new = new - take @ matrix
        news.append(new)
        matrix = (matrix if decay is None else decay * matrix) + key @ new
    entering = torch.stack(states, dim=2)
    if through is None:
        read = q @ entering
    else:  # a channel's decay belongs to the queries, a head's to what they read
        read = (q @ entering) * through if through.shape[-1] == 1 else (q * through) @ entering
    output = read + scores @ torch.stack(news, dim=2)
    return output.flatten(2, 3)[:, :, :time], matrix
