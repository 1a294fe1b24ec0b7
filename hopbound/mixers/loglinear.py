r"""Log-linear attention (arXiv 2506.04761): a state for each power of two of the past, each read with its own weight.

    S_t^{(l)} = Σ_{s ∈ block l of t} (Π_{s<r≤t} a_r) k_s v_sᵀ ,    y_t = W_o [ Σ_l λ_t^{(l)} S_t^{(l)ᵀ} q_t ]
    a_t = exp(-exp(A) softplus(w_a · x_t + b)) ,   λ_t^{(l)} = softplus(w_l · x_t + c_l)               (one each a head)

The tokens up to t, counted from 0, are in the blocks of a Fenwick tree: token s is in block l of t, where l is the
number of binary digits up to the highest in which s and t differ; block 0 is t itself. This is the paper's log-linear
Mamba-2. With n levels, prompts of up to 2^(n-1) tokens have each block for itself; beyond, the last level holds all
that is older.

Blocks only ever merge whole, so that what is kept is one matrix a level. State: levels · H d_k d_v numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.chunks import HeadDecays
from hopbound.mixers.mixer import accumulator, linear, spaced_steps, unmasked
from hopbound.mixers.recurrence import Recurrence


@dataclass(frozen=True)
class Levels:
    """One matrix a level, and how many tokens that count there were.

    Attributes:
        matrices: of the blocks of the last token.
        seen: tokens that count.
    """

    matrices: Float[Tensor, "batch heads levels key_dim value_dim"]
    seen: Int[Tensor, " batch"]


def digits(x: Int[Tensor, "*some"]) -> Int[Tensor, "*some"]:
    """How many binary digits a number has; 0 has none."""
    return torch.frexp(x.double()).exponent.to(torch.int64)


def level_of_block(later: Int[Tensor, "batch time"], last: Int[Tensor, " batch"], levels: int) -> Tensor:
    """Block l of token `last` is in which block of a `later` token: [batch, time, levels].

    Tokens in block l ≥ 1 of `last` agree in their digits from l - 1 on; as a number these are one less than `last`'s.
    """
    shift = (torch.arange(levels, device=later.device) - 1).clamp(min=0)
    within = last[:, None] >> shift
    within[:, 1:] -= 1
    apart = (later[..., None] >> shift) ^ within[:, None]
    return (shift + digits(apart)).clamp(0, levels - 1)


def occupied(last: Int[Tensor, " batch"], levels: int) -> Bool[Tensor, "batch levels"]:
    """Which blocks of token `last` (-1: of none) hold tokens: where a digit is 1, and itself."""
    places = torch.arange(levels, device=last.device)
    higher = last.clamp(min=0)[:, None] >> (places - 1).clamp(min=0)
    held = torch.where(places == levels - 1, higher > 0, higher % 2 == 1)
    return torch.where(places == 0, last[:, None] >= 0, held)


def log_linear_attention(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    log_decay: Float[Tensor, "batch heads time"],
    weights: Float[Tensor, "batch heads time levels"],
    state: Levels,
    counts: Int[Tensor, " batch"],
    *,
    chunk: int,
) -> tuple[Float[Tensor, "batch heads time value_dim"], Levels]:
    """The sums above, chunk by chunk: inside a chunk pair by pair, before it level by level.

    Args:
        queries: q.
        keys: k.
        values: v.
        log_decay: log a, at most 0.
        weights: λ.
        state: before the first token.
        counts: how many of the tokens, the first ones, count; the keys of the others are 0.
        chunk: tokens a chunk.
    """
    levels = weights.shape[-1]
    seen = state.seen
    matrices = state.matrices * occupied(seen - 1, levels)[:, None, :, None, None]
    outputs = []
    done = 0
    pieces = (part.split(chunk, dim=2) for part in (queries, keys, values, log_decay, weights))
    for q, k, v, g, share in zip(*pieces, strict=True):
        size = q.shape[2]
        places = torch.arange(size, device=q.device)
        index = seen[:, None] + places
        decays = HeadDecays(g[:, :, None])
        # Pairs of the chunk: the level is in the digits in which their numbers differ.
        level = digits(index[:, :, None] ^ index[:, None, :]).clamp(0, levels - 1)
        pairs = share.gather(-1, level[:, None].expand(-1, q.shape[1], -1, -1))
        output = ((q @ k.transpose(-1, -2)) * decays.between(strict=False)[:, :, 0] * pairs) @ v
        # What was before it: all tokens of a block are in the same block of a later token.
        moved = level_of_block(index, seen - 1, levels)
        shares = share.gather(-1, moved[:, None].expand(-1, q.shape[1], -1, -1)) * decays.through[:, :, 0, :, None]
        asked = shares[..., None] * q[..., None, :]  # [batch, heads, size, levels, key_dim]
        output = output + asked.flatten(-2) @ matrices.flatten(2, 3)
        outputs.append(output)
        # The blocks of the last token that counts.
        left = (counts - done).clamp(0, size)
        last = (seen + left - 1)[:, None]
        joined = one_hot(level_of_block(last, seen - 1, levels)[:, 0], levels).to(q.dtype)
        own = one_hot(digits(index ^ last).clamp(0, levels - 1), levels).to(q.dtype)
        kept = torch.einsum("bol,bhokv->bhlkv", joined, matrices) * decays.whole[:, :, 0, None, None, None]
        added = (k * decays.rest[:, :, 0, :, None])[:, :, :, None] * own[:, None, :, :, None]
        written = added.flatten(3).transpose(2, 3) @ v
        matrices = kept + written.unflatten(2, (levels, -1))
        seen = seen + left
        done += size
    return torch.cat(outputs, dim=2), Levels(matrices, seen)


class LogLinearAttention(Recurrence[Levels]):
    """Linear attention with a decay for each head over a logarithmic number of states."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.rate = linear(width, spec.heads)
        self.rate_bias = nn.Parameter(torch.zeros(spec.heads))
        self.log_rate_scale = nn.Parameter(torch.zeros(spec.heads))
        self.share = nn.Linear(width, spec.heads * spec.levels)
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Steps and rates spread over the ranges of the published code."""
        rates = torch.linspace(1, 16, self.spec.heads, dtype=torch.float64, device="cpu")
        return {"log_rate_scale": rates.log(), "rate_bias": spaced_steps(self.spec.heads)}

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: Levels | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], Levels]:
        """Tokens that do not count are moved behind the others: blocks are of tokens that do."""
        wide, heads, time = accumulator(x.dtype), self.spec.heads, x.shape[1]
        rate = nn.functional.softplus(self.rate(x).to(wide) + self.rate_bias.to(wide))
        decay = (-self.log_rate_scale.to(wide).exp() * rate).transpose(1, 2)
        share = softplus(self.share(x).to(wide)).unflatten(-1, (heads, -1)).transpose(1, 2)
        counts = torch.full((x.shape[0],), time, device=x.device)
        keys, decay, order = unmasked(keys, mask), unmasked(decay, mask), None
        if mask is not None:
            counts, order = mask.sum(dim=1), mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
            queries, keys, values, decay, share = (
                _placed(part, order) for part in (queries, keys, values, decay, share)
            )
        if state is None:
            shape = (x.shape[0], heads, self.spec.levels, self.spec.head_dim, self.spec.value_dim)
            state = Levels(torch.zeros(shape, dtype=wide, device=x.device), torch.zeros_like(counts))
        read, after = log_linear_attention(queries, keys, values, decay, share, state, counts, chunk=self.chunk)
        return read if order is None else _placed(read, order.argsort(dim=1)), after

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and rates."""
        return self.key.weight, self.rate.weight

    def query_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Queries and the weights of the levels."""
        return self.query.weight, self.share.weight


def _placed(
    part: Float[Tensor, "batch heads time *rest"], order: Int[Tensor, "batch time"]
) -> Float[Tensor, "batch heads time *rest"]:
    """Tokens in another order."""
    index = order.reshape(order.shape[0], 1, order.shape[1], *(1,) * (part.dim() - 3))
    return part.gather(2, index.expand_as(part))
