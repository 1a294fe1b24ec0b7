r"""A diagonal plus a matrix of rank one: the recurrence behind RWKV-7.

    S_t = diag(w_t) S_{t-1} + b_t (S_{t-1}ᵀ a_t)ᵀ + k_t v_tᵀ ,     o_t = S_tᵀ q_t

with a decay w_t ∈ [0, 1] for each key channel; a_t reads the state as it was, b_t is where that is written. With
w = 1, a = -k and b = β k this is the delta rule (arXiv 2503.14456, Section 3).

This is the definition (`by_steps`). `dplr` computes the same in chunks. With G the sum of log w inside a chunk and
u_t = S_{t-1}ᵀ a_t, the chunk's U solves a unit triangular system; ⟨x, y⟩_ij = Σ_c x_ic y_jc times the decay between:

    (I - ⟨a, b⟩) U = (a ⊙ exp(G - g)) S_0 + ⟨a, k⟩ V               j < i, without i's own decay
    O = (q ⊙ exp G) S_0 + ⟨q, b⟩ U + ⟨q, k⟩ V                       j ≤ i
    S_C = diag(exp G_C) S_0 + (b ⊙ exp(G_C - G))ᵀ U + (k ⊙ exp(G_C - G))ᵀ V
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.mixers import kernels
from hopbound.mixers.chunks import ChannelDecays, chunk_size, cut, unit_lower_inverse


def by_steps(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    asks: Float[Tensor, "batch heads time key_dim"],
    replies: Float[Tensor, "batch heads time key_dim"],
    log_decay: Float[Tensor, "batch heads time key_dim"],
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The definition, a token at a time."""
    outputs = []
    steps = (part.unbind(2) for part in (queries, keys, values, asks, replies, log_decay.exp()))
    for q, k, v, a, b, w in zip(*steps, strict=True):
        held = a[..., None, :] @ matrix
        matrix = w[..., None] * matrix + b[..., None] * held + k[..., None] * v[..., None, :]
        outputs.append((q[..., None, :] @ matrix)[..., 0, :])
    return torch.stack(outputs, dim=2), matrix


def dplr(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    asks: Float[Tensor, "batch heads time key_dim"],
    replies: Float[Tensor, "batch heads time key_dim"],
    log_decay: Float[Tensor, "batch heads time key_dim"],
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    *,
    chunk: int,
    mild: bool = False,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The recurrence in chunks; `chunk` = 1, or a single token: by steps.

    Args:
        queries: q.
        keys: k.
        values: v.
        asks: a.
        replies: b.
        log_decay: log w, at most 0.
        matrix: the state before the first token.
        chunk: tokens a chunk.
        mild: the decays are known to be so mild that their logarithms add up to no less than -`MILD` over a chunk.
        dtype: of the model; in half precision kernels may compute it.
    """
    time = queries.shape[2]
    if chunk == 1 or time == 1:
        return by_steps(queries, keys, values, asks, replies, log_decay, matrix)
    if kernels.usable(queries, dtype):
        return kernels.dplr(queries, keys, values, asks, replies, log_decay, matrix, dtype)
    size = chunk_size(time, chunk)
    q, k, v, a, b, g = (cut(part, size) for part in (queries, keys, values, asks, replies, log_decay))
    decays = ChannelDecays(g, mild=mild)
    [[lower, ask_key], [reply, score]] = decays.scores([(a, True), (q, False)], [b, k])
    # What is asked of the tokens of the chunk itself, and of the state that enters.
    solved = unit_lower_inverse(-lower) @ torch.cat([ask_key @ v, a * decays.before], dim=-1)
    inside, entering = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    b_out = (b * decays.rest).transpose(-1, -2)
    written = (k * decays.rest).transpose(-1, -2) @ v
    answers, outer = [], []
    reads = torch.cat([entering, q * decays.through], dim=-2)
    parts = (reads.unbind(2), inside.unbind(2), b_out.unbind(2), written.unbind(2), decays.whole[..., None].unbind(2))
    for read, own, back, added, decay in zip(*parts, strict=True):
        asked, out = (read @ matrix).split(size, dim=-2)
        answer = asked + own
        answers.append(answer)
        outer.append(out)
        matrix = decay * matrix + back @ answer + added
    output = torch.stack(outer, dim=2) + torch.cat([reply, score], dim=-1) @ torch.cat(
        [torch.stack(answers, dim=2), v], dim=-2
    )
    return output.flatten(2, 3)[:, :, :time], matrix
