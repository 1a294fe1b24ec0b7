r"""The recall: a recurrent state that holds a whole function, read by the last token.

The tokens of z_h write, each under a key of its own (one-hot in its address), the last token reads with the one-hot
key of the address that it wants. A position-wise map makes one-hot keys from ±1 digits, one unit an address a:

    relu(t·c + Σ address digits · digits of a - B + 1)         1 at the token of address a of z_h, 0 at every other

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
    units: range,
    digits: Sequence[tuple[range, Sequence[Sequence[int]]]],
    target: range,
) -> None:
    """Let `units` of a ReLU map write the one-hot code of an address to `target`.

    Args:
        rise: weights into the units.
        rise_bias: their biases.
        fall: weights out of them.
        units: one an address.
        digits: pairs (columns that hold digits, for each address the ±1 digits there).
        target: one column an address.
    """
    for address, (unit, column) in enumerate(zip(units, target, strict=True)):
        compared = 0
        for columns, codes in digits:
            for source, digit in zip(columns, codes[address], strict=True):
                rise[unit, source] = digit
                compared += 1
        rise_bias[unit] = 1.0 - compared
        fall[column, unit] = 1.0


def address_digits(
    count: int, values: int, query_bits: int, value_bits: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Digits of the query part and of the value part of the addresses 0..count-1, address = w · values + i."""
    query = [list(signs(address // values, query_bits)) for address in range(count)]
    value = [list(signs(address % values, value_bits)) for address in range(count)]
    return query, value


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
