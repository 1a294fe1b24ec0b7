r"""Attention of every position to all that it sees, in memory that grows with the prompt's length and not its square.

Where every position must look something up, n² scores are computed whatever is done; they need not be held. torch's
fused kernel goes through them in tiles, with the running maximum, normaliser and sum of `demand.py`: the softmax is
exact, in the accumulator's type. The kernel needs queries, keys and values of one size, so that the smaller ones get
zeros behind them, which change neither scores nor sums. No other kernel is let in, as it would hold all scores.
"""

from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import pad, scaled_dot_product_attention

from hopbound.mixers import SoftmaxAttention
from hopbound.mixers.mixer import accumulator, merge_heads


def attend_everywhere(
    mixer: SoftmaxAttention, x: Float[Tensor, "batch time width"]
) -> Float[Tensor, "batch time width"]:
    """What the mixer adds to each token of the sequences `x`, equal to its own forward up to rounding.

    Args:
        mixer: full attention without an encoding of positions, causal or not.
        x: what the tokens hold.
    """
    wide, group = accumulator(x.dtype), mixer.spec.heads // mixer.spec.kv_heads
    size = max(mixer.spec.head_dim, mixer.spec.value_dim)
    queries, keys, values = (pad(part.to(wide), (0, size - part.shape[-1])) for part in mixer.projected(x))
    if group > 1:
        keys, values = keys.repeat_interleave(group, dim=1), values.repeat_interleave(group, dim=1)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        read = scaled_dot_product_attention(queries, keys, values, is_causal=mixer.causal, scale=mixer.scale)
    return mixer.projected_back(merge_heads(read[..., : mixer.spec.value_dim]).to(x.dtype), x)


def pairs_seen(mixer: SoftmaxAttention, length: int, positions: int) -> int:
    """How many scores so many positions of a prompt need: half as many where all ask and see only what is before."""
    halves = mixer.causal and positions == length
    pairs = length * (length + 1) // 2 if halves else length * positions
    return mixer.spec.heads * pairs
