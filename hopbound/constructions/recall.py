r"""The recall: a recurrent state that holds all of z_1, read by the last token.

The tokens of z_1 write, each under a key of its own (one-hot in its address), the last token reads with the one-hot
key of i_0. A position-wise map makes one-hot keys from ±1 digits, one unit an address a:

    relu(t·c + Σ address digits · digits of a - B + 1)         1 at the token of address a of z_1, 0 at every other

(B: digits compared; a digit that is off by δ changes the unit by at most δ). Each address is written once, so that

- in *linear attention*, with key 128 · onehot - 64 (φ = 65 at its coordinate, exactly 0 at the others), sum and
  normaliser share the factor and the read returns the digits of the value;
- in the *delta rule*, key = onehot, strength 1, nothing is overwritten.

Capacity: d_k addresses. With more (`overfill`, for demonstration) address a shares the key of a mod d_k: sums mix two
values, the delta rule keeps the later one.
"""

from collections.abc import Sequence

from torch import Tensor

from hopbound.constructions.carry import NOTHING, SURE, hold, write_values
from hopbound.constructions.directions import Directions
from hopbound.decoder.codes import signs
from hopbound.mixers import DeltaNet, GatedDeltaNet, LinearAttention


def write_one_hot(
    rise: Tensor,
    rise_bias: Tensor,
    fall: Tensor,
    *,
    first_unit: int,
    digits: range,
    required: Sequence[tuple[int, int]],
    target: range,
) -> None:
    """Let units of a ReLU map write the one-hot code of a number, one unit for each coordinate of `target`.

    Args:
        rise: weights into the units.
        rise_bias: their biases.
        fall: weights out of them.
        first_unit: the units are this one and those after it.
        digits: columns that hold the number's ±1 digits.
        required: (column, ±1) pairs that must hold beside, or nothing is written.
        target: one column for each number.
    """
    for number, column in enumerate(target):
        unit = first_unit + number
        compared = [*zip(digits, signs(number, len(digits)), strict=True), *required]
        for source, digit in compared:
            rise[unit, source] = digit
        rise_bias[unit] = 1.0 - len(compared)
        fall[column, unit] = 1.0


def write_recall(
    mixer: LinearAttention | DeltaNet | GatedDeltaNet,
    directions: Directions,
    *,
    keys: range,
    queries: range,
    source: range,
    target: range,
) -> None:
    """Let a zeroed recurrence write `source` under the one-hot `keys` and read with the one-hot `queries`."""
    (one,) = directions["one"]
    spec = mixer.spec
    for head in range(spec.heads):
        first = head * spec.head_dim
        if isinstance(mixer, LinearAttention):
            mixer.key.weight[first : first + spec.head_dim, one] = NOTHING
            mixer.query.weight[first : first + spec.head_dim, one] = NOTHING
        factor = -2 * NOTHING if isinstance(mixer, LinearAttention) else 1.0
        for address in range(len(keys)):
            row = first + address % spec.head_dim
            mixer.key.weight[row, keys[address]] = factor
            mixer.query.weight[row, queries[address]] = factor
    if not isinstance(mixer, LinearAttention):
        mixer.strength.weight[:, one] = SURE
        hold(mixer)
    write_values(mixer, source, target)
