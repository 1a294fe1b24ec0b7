r"""The exact look-up: softmax attention that returns what stands at one address, whatever stands elsewhere.

*Assumptions.* Every position carries the code of its own address as ±1 digits (function, query part, value part);
addresses of one function differ in at least one digit that the look-up compares, and those of other functions differ
in the function's digits. The query holds B digits of the wanted address.

*Scores.* Keys are codes, queries β times codes: the score is β (B - 2 · number of digits that differ), β B at the
match and at most β (B - 2) elsewhere; the gap 2β does not depend on B. With n positions in sight the other weights
sum to at most n e^{-2β}, so with

    2 β (1 - η) ≥ ln n + ln(1/ε)

the returned digits differ from the written ones by at most 2ε. η = 1/32 is what rounded query digits may lose: a digit
of the query that is off by η changes the gap by the factor 1 - η, and codes of positions and tokens are exact. ε is
2^-10, far below the 1/4 at which the position-wise sign (`clean`) stops restoring ±1.

*Value digits* are spread over the key-value heads, `value_dim` a head; all heads ask for the same address.
"""

import math
from collections.abc import Sequence

from torch import Tensor

from hopbound.constructions.directions import Directions, copy
from hopbound.decoder.codes import signs
from hopbound.mixers import SoftmaxAttention

LEAK = 2.0**-10
ROUNDING = 1 / 32


def sharpness(in_sight: int) -> float:
    """The least whole β with 2 β (1 - η) ≥ ln(in_sight) + ln(1/ε)."""
    return float(math.ceil((math.log(in_sight) - math.log(LEAK)) / (2 * (1 - ROUNDING))))


def write_lookup(
    mixer: SoftmaxAttention,
    directions: Directions,
    *,
    tag: int,
    compared: Sequence[tuple[range, range]],
    source: range,
    target: range,
    in_sight: int,
) -> None:
    """Let a zeroed attention mixer look up function `tag`, at the address that the asking token holds.

    Args:
        mixer: all weights zero.
        directions: of the residual stream; has "one" and "tag".
        tag: number of the function (0: the start).
        compared: pairs (columns of the query's digits, columns of the key's digits) beside the function's digits.
        source: columns that are returned from the address.
        target: columns of the asking token that receive them.
        in_sight: how many positions the softmax ranges over, at most.
    """
    spec, beta = mixer.spec, sharpness(in_sight)
    (one,) = directions["one"]
    for head in range(spec.heads):
        row = head * spec.head_dim
        for digit in signs(tag, len(directions["tag"])):
            mixer.query.weight[row, one] = beta * digit
            row += 1
        for asked, _ in compared:
            copy(mixer.query.weight, range(row, row + len(asked)), asked, beta)
            row += len(asked)
    for head in range(spec.kv_heads):
        row = head * spec.head_dim
        for columns in (directions["tag"], *(key for _, key in compared)):
            copy(mixer.key.weight, range(row, row + len(columns)), columns)
            row += len(columns)
    group = spec.heads // spec.kv_heads
    for start in range(0, len(source), spec.value_dim):
        head, part = start // spec.value_dim, source[start : start + spec.value_dim]
        stored, read = head * spec.value_dim, head * group * spec.value_dim
        copy(mixer.value.weight, range(stored, stored + len(part)), part)
        copy(mixer.out.weight, target[start : start + len(part)], range(read, read + len(part)))


def write_clean(rise: Tensor, rise_bias: Tensor, fall: Tensor, fall_bias: Tensor, raw: range, clean: range) -> None:
    """Let the first 2·len(raw) units of a ReLU map write clip(2 · raw, -1, 1) to `clean`: ±1 if |raw| ≥ 1/2.

    clip(u, -1, 1) = relu(u + 1) - relu(u - 1) - 1.
    """
    for index, (source, target) in enumerate(zip(raw, clean, strict=True)):
        up, down = 2 * index, 2 * index + 1
        rise[up, source] = rise[down, source] = 2.0
        rise_bias[up], rise_bias[down] = 1.0, -1.0
        fall[target, up], fall[target, down] = 1.0, -1.0
        fall_bias[target] = -1.0
