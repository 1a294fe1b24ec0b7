"""Reach (worst case): windows and convolutions alone see back only so far.

Statement. In a stack of layers of which the i-th sees the token itself and at most r_i tokens before it, the output
at a token depends on that token and the `R = Σ r_i` tokens before it. A window, chunk or block of W tokens, the token
included, has r = W - 1; a convolution of width k has r = k - 1; parallel mixers have the largest r among them.

Proof. By induction over the layers: what stands at a token after layer i depends on what stood, after layer i - 1, at
the token and the r_i tokens before it. ∎

Consequence. No such stack makes L hops, for any L ≥ 1, on prompts of `R + 2` tokens or more: two prompts that differ
only in the first token, the entry of `z_L` at address 0, have the same output at the last token, and with
`w_{L-1} = 0` and functions that send the start to 0 their right answers differ.

Domain of validity: no recurrence and no full layer in the stack; their reach is unbounded.
"""

from hopbound.architecture import Architecture, Kind, MixerSpec
from hopbound.architecture.sizes import Columns, WindowAttention
from hopbound.bounds.ceiling import Ceiling, Question, Silence, counted

NAME = "reach"


def mixer_reach(mixer: MixerSpec) -> int | None:
    """How many earlier tokens a mixer sees at most; None without a limit."""
    if mixer.kind is Kind.POINTWISE:
        return 0
    if isinstance(mixer, WindowAttention):
        return mixer.w - 1
    if isinstance(mixer, Columns):
        return mixer.kernel - 1
    return None


def reach(architecture: Architecture) -> int | None:
    """How many earlier tokens the last token's output can depend on; None without a limit."""
    total = 0
    for layer in architecture.layers:
        seen = [mixer_reach(mixer) for mixer in layer.mixers]
        if None in seen:
            return None
        total += max(r for r in seen if r is not None)
    return total


def ceiling(architecture: Architecture, question: Question) -> Ceiling | Silence:
    """How far the stack sees, and the prompt length from which it makes no hop."""
    seen = reach(architecture)
    if seen is None:
        return Silence(NAME, "a full or recurrent layer sees back without a limit")
    return Ceiling(
        NAME,
        {"tokens": seen, "no_hop_from": seen + 2},
        "worst",
        f"the output depends on the last {counted(seen + 1, 'token')} alone; no hop on prompts of {seen + 2:,} or more",
        "windows, chunks, blocks and convolutions only",
        "induction over the layers",
    )
