r"""The packed memory: a state holds several entries of z_1 in each row, as binary digits of its numbers.

*Layout.* Entry a = s R + r stands in slot s of row r, for R rows. Its B value bits are the places s B .. s B + B - 1 of
the row; place i is digit i mod K of the number in channel ⌊i / K⌋. A row of C channels has ⌊C K / B⌋ slots.

*Writing.* The position code gives a token of z_1 its r and s. The map before the recall makes u_{s,b} = 1 where the
token is of slot s and bit b of its value is 1, else 0, by one ReLU each (all digits compared agree), and adds
2^{i mod K} u_{s,b} to the column of place i's channel. The recall writes these columns under the key of row r. Where
tokens add to the state (`memory.py`) the row of i_0 then holds the whole numbers

    N_c = Σ_k 2^k d_{c,k} ,   0 ≤ N_c < 2^K ,   d_{c,k} the bit at place c K + k :

each place is written by one token, so that no digit is carried over.

*Reading.* The last token knows i_0, so its slot too, one-hot as g_s. With

    step_t(N) = clip(2 (N - t) + 3/2, 0, 1) = relu(2 (N - t) + 3/2) - relu(2 (N - t) + 1/2)

step_t is 1 for N ≥ t - 1/4 and 0 for N ≤ t - 3/4: exact as long as N is off by at most 1/4. Digit k of N is

    d_k = Σ_{j ≥ 1} (-1)^{j+1} step_{j 2^k}(N) ,   j 2^k < 2^K ,

as it changes at multiples of 2^k, to 1 at odd ones and back at even ones. Both ReLUs are let through for the wanted
slot alone, by - 2^{K+1} (1 - g_s) inside: without it they are at most 2 (2^K - 1 - 1) + 3/2 < 2^{K+1}. So one map of at
most 2 (2^K - 1) units for each slot and each channel that it touches brings i_1, as exact ±1 digits 2 d - 1.

*Precision.* K ≤ 5: N ≤ 31, and rows are read with an error of at most 2^-9 of N for a query or an output that is
rounded to bfloat16, so ≤ 1/16; all biases, at most 2^7 in halves, and all weights are numbers of bfloat16. More digits
in a number need more units, 2^K, or more maps, one for each few digits.

*Capacity.* R ⌊C K / B⌋ entries of B bits: of the p bits of each number K are used. At p = 32 the counting bound has
M_1^m ≤ 2^{R C p}: the packed memory is within a factor p/K of its m log M_1 (docs/constructions.md has the numbers).

With more entries than fit (`overfill`, for demonstration) slots are taken again from the first on: two tokens add their
digits in the same places, and what is carried over hurts the slots behind them too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from hopbound.architecture import MixerSpec, Precisions
from hopbound.decoder.codes import signs
from hopbound.moves import Move, limits

Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Weights:
    """The weights of a ReLU map: fall · relu(rise · x + rise_bias) + fall_bias."""

    rise: Tensor
    rise_bias: Tensor
    fall: Tensor
    fall_bias: Tensor

    def agree(self, unit: int, compared: Pairs) -> None:
        """Let a unit be 1 where all digits, of columns, are as given, and 0 where one is not."""
        for column, digit in compared:
            self.rise[unit, column] = digit
        self.rise_bias[unit] = 1.0 - len(compared)


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Where the bits of a table stand in a state.

    Attributes:
        entries: m.
        bits: B, of a value.
        rows: R, of the state.
        channels: C, numbers in a row.
        digits: K, of a number.
    """

    entries: int
    bits: int
    rows: int
    channels: int
    digits: int

    @classmethod
    def of(cls, mixer: MixerSpec, precisions: Precisions, entries: int, bits: int) -> "Packing":
        """As the rule for packed recalls has it for this mixer."""
        found = limits(mixer, Move.RECALL_PACKED, precisions)
        assert not isinstance(found, str)
        (row,) = found
        return cls(entries=entries, bits=bits, rows=row.rows, channels=row.most, digits=row.digits)

    @property
    def slots(self) -> int:
        """Slots of a row that are used."""
        return min(self.channels * self.digits // self.bits, -(-self.entries // self.rows))

    @property
    def used(self) -> int:
        """Channels that are used."""
        return -(-self.slots * self.bits // self.digits)

    @property
    def writers(self) -> tuple[int, ...]:
        """How many entries there are in each row."""
        return tuple(len(range(row, self.entries, self.rows)) for row in range(min(self.rows, self.entries)))

    def slot(self, address: int) -> int:
        """The slot of an entry; beyond what fits the first ones again."""
        return address // self.rows % self.slots

    def place(self, slot: int, bit: int) -> tuple[int, int]:
        """Channel and digit of a value's bit."""
        return divmod(slot * self.bits + bit, self.digits)

    def touched(self, slot: int) -> Iterator[tuple[int, dict[int, int]]]:
        """The channels of a slot, each with the bits of the value by the digits where they stand."""
        found: dict[int, dict[int, int]] = {}
        for bit in range(self.bits):
            channel, digit = self.place(slot, bit)
            found.setdefault(channel, {})[digit] = bit
        yield from found.items()

    # -- units of the maps -----------------------------------------------------------------------------------------

    @property
    def key_units(self) -> int:
        """Units that `write_packed` takes."""
        return len(self.writers) + self.slots * self.bits

    @property
    def query_units(self) -> int:
        """Units that `write_wanted` takes."""
        return self.entries

    @property
    def read_units(self) -> int:
        """Units that `write_unpacking` takes."""
        return 2 * sum(len(self._steps(digits)) for slot in range(self.slots) for _, digits in self.touched(slot))

    def _steps(self, digits: dict[int, int]) -> range:
        """The numbers at which one of the digits changes."""
        finest = 2 ** min(digits)
        return range(finest, 2**self.digits, finest)

    def write_packed(
        self,
        unit: int,
        maps: Weights,
        *,
        row: range,
        slot: range,
        value: range,
        required: Pairs,
        key: range,
        target: range,
    ) -> None:
        """Let units of a map write the key of a token's row, and its value's digits in their places.

        Args:
            unit: the first one.
            maps: weights of the map.
            row: columns of the ±1 digits of the token's row.
            slot: of its slot.
            value: of its value.
            required: (column, ±1) pairs that must hold beside.
            key: a column for each row.
            target: a column for each channel that is used.
        """
        for number, column in enumerate(key):
            maps.agree(unit, [*zip(row, signs(number, len(row)), strict=True), *required])
            maps.fall[column, unit] = 1.0
            unit += 1
        for number in range(self.slots):
            here = [*zip(slot, signs(number, len(slot)), strict=True), *required]
            for bit in range(self.bits):
                channel, digit = self.place(number, bit)
                maps.agree(unit, [*here, (value[bit], 1)])
                maps.fall[target[channel], unit] = 2.0**digit
                unit += 1

    def write_wanted(self, unit: int, maps: Weights, *, address: range, key: range, slot: range) -> None:
        """Let units of a map write row and slot of an address, both one-hot.

        Args:
            unit: the first one.
            maps: weights of the map.
            address: columns of the address's ±1 digits.
            key: a column for each row.
            slot: a column for each slot.
        """
        for number in range(self.entries):
            maps.agree(unit, list(zip(address, signs(number, len(address)), strict=True)))
            maps.fall[key[number % self.rows], unit] = 1.0
            maps.fall[slot[self.slot(number)], unit] = 1.0
            unit += 1

    def write_unpacking(self, unit: int, maps: Weights, *, read: range, slot: range, target: range) -> None:
        """Let units of a map write the ±1 digits of the value in the wanted slot.

        Args:
            unit: the first one.
            maps: weights of the map.
            read: a column for each channel that is used, with what was read.
            slot: a column for each slot, 1 for the wanted one.
            target: a column for each bit.
        """
        shut = 2.0 ** (self.digits + 1)
        for number in range(self.slots):
            for channel, digits in self.touched(number):
                for t in self._steps(digits):
                    for offset, sign in ((1.5, 1.0), (0.5, -1.0)):
                        maps.rise[unit, read[channel]] = 2.0
                        maps.rise[unit, slot[number]] = shut
                        maps.rise_bias[unit] = offset - 2 * t - shut
                        for digit, bit in digits.items():
                            if t % 2**digit == 0:
                                maps.fall[target[bit], unit] = 2 * sign * (1 if t >> digit & 1 else -1)
                        unit += 1
        for column in target:
            maps.fall_bias[column] = -1.0
