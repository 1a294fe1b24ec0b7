r"""The recall: a recurrent state that holds all of z_1, read by the last token.

The tokens of z_1 write, each under a key of its own (one-hot in its address), the last token reads with the one-hot
key of i_0. A position-wise map makes one-hot keys from ±1 digits, one unit an address a:

    relu(t·c + Σ address digits · digits of a - B + 1)         1 at the token of address a of z_1, 0 at every other

(B: digits compared; a digit that is off by δ changes the unit by at most δ). Each address is written once, under a key
that is orthogonal to all others: `memory.py` says for each mixer why what is read is what was written.

Capacity: as many addresses as keys have coordinates. With more (`overfill`, for demonstration) address a shares the key
of a mod d_k: sums mix two values, the delta rule keeps the later one.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from hopbound.constructions.carry import DISTANCE
from hopbound.constructions.directions import Directions
from hopbound.constructions.memory import Table, write_memory
from hopbound.decoder.codes import signs
from hopbound.mixers import Mixer


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
    mixer: Mixer[Any, Any],
    directions: Directions,
    *,
    keys: range,
    queries: range,
    source: range,
    target: range,
    writers: Sequence[int] = (),
) -> None:
    """Let a zeroed recurrence write `source` under the one-hot `keys` and read with the one-hot `queries`.

    Args:
        mixer: one with a rule for recalls in `moves.py`; all weights zero.
        directions: of the residual stream; has "one", and "start" for a packed table.
        keys: a column for each address of z_1, in the order of its tokens; of a packed table for each row.
        queries: likewise.
        source: columns at the tokens of z_1.
        target: columns at the last token.
        writers: of a packed table, how many tokens write under each key.
    """
    ages = [len(keys) - address + DISTANCE for address in range(len(keys))]
    filler = directions["start"].start if writers else None
    table = Table(keys=keys, queries=queries, ages=ages, source=source, target=target, writers=writers, filler=filler)
    write_memory(mixer, directions, table)
