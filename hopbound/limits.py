"""What of a task must fit into a layer: the codes of L-hop composition at its sizes, and limits on them.

A rule of `moves.py` answers with limits: at most so much of a code, because of a size of the mixer.
"""

from dataclasses import dataclass
from enum import Enum

from hopbound.architecture import Precisions

DIGITS = 5  # of a number of a packed state: also in bfloat16 whole numbers below 2^5 stay apart, with errors of 2^-9


@dataclass(frozen=True)
class TaskSizes:
    """Sizes of L-hop composition as the constructions need them: `D_1..D_L`, `M_1..M_L`, `n_1..n_{L-1}`."""

    domains: tuple[int, ...]
    values: tuple[int, ...]
    n: tuple[int, ...]

    @property
    def hops(self) -> int:
        """L."""
        return len(self.domains)

    @property
    def tag_bits(self) -> int:
        """Bits that tell the functions z_1..z_L, the start and the query apart."""
        return tag_bits(self.hops)

    def value_bits(self, hop: int) -> int:
        """Bits of i_hop; i_0 is the start."""
        return (self.possible(hop) - 1).bit_length()

    def query_bits(self, hop: int) -> int:
        """Bits of the query part w_{hop-1} that the address of the look-up to i_hop holds; 0 for the first hop."""
        return 0 if hop == 1 else (self.n[hop - 2] - 1).bit_length()

    def possible(self, hop: int) -> int:
        """How many values i_hop may have."""
        return self.domains[0] if hop == 0 else self.values[hop - 1]

    def two_address_bits(self, hop: int) -> int:
        """Bits of a code that holds the addresses of z_{hop-1}, or of the start, and those of z_hop."""
        before = (0, 0) if hop == 1 else (self.query_bits(hop - 1), self.value_bits(hop - 2))
        return self.tag_bits + max(before[0], self.query_bits(hop)) + max(before[1], self.value_bits(hop - 1))

    @property
    def addresses_bits(self) -> int:
        """Bits of a code that holds the addresses of every function, and the start."""
        hops = range(1, self.hops + 1)
        return self.tag_bits + max(map(self.query_bits, hops)) + max(self.value_bits(hop - 1) for hop in hops)

    @property
    def token_bits(self) -> int:
        """Bits of a token: of any i_hop."""
        return max(self.value_bits(hop) for hop in range(self.hops + 1))

    def row_entries(self, hop: int) -> int:
        """How many values i_hop may have where i_{hop-1} is known: one for each query part."""
        return 1 if hop == 1 else self.n[hop - 2]

    def row_bits(self, hop: int) -> int:
        """Bits of all of them."""
        return self.row_entries(hop) * self.value_bits(hop)

    def address_bits(self, hop: int) -> int:
        """Bits of the code of an address of z_hop: function, query part, value."""
        return self.tag_bits + self.query_bits(hop) + self.value_bits(hop - 1)


def tag_bits(hops: int) -> int:
    """Bits that tell the functions z_1..z_L, the start and the query apart."""
    return (hops + 1).bit_length()


class Code(Enum):
    """What of a task must fit into a mixer, and how that is said of the most that fits."""

    FUNCTION = "function codes of at most {} bits"
    ADDRESS = "address codes of at most {} bits"
    VALUE = "value codes of at most {} bits"
    FUNCTION_AND_VALUE = "function and value codes of at most {} bits together"
    ADDRESS_AND_VALUE = "address and value codes of at most {} bits together"
    ENTRIES = "m at most {}"
    ENTRIES_AND_VALUE = "2 m and the bits of a value code at most {} together"
    PACKED = "⌈m / {rows}⌉ value codes of at most {} bits together"
    ADDRESS_OF_TWO = "codes of at most {} bits for addresses of two functions"
    BRANCHES = "branches of fewer than {} values, where a head returns a whole value code"
    ADDRESS_OF_ALL = "codes of at most {} bits for addresses of all functions"
    ENTRIES_OF_ROW = "rows of at most {} entries, where a head returns a whole value code"
    ADDRESS_OF_ROW = "codes of at most {} bits for the addresses of rows"
    ROW = "rows of at most {} bits"
    ADDRESS_AND_ROW = "address codes and rows of at most {} bits together"

    def needed(self, sizes: TaskSizes, hop: int) -> int:
        """How much of it a move to the value of `hop` needs."""
        match self:
            case Code.FUNCTION:
                return sizes.tag_bits
            case Code.ADDRESS:
                return sizes.address_bits(hop)
            case Code.VALUE:
                return sizes.value_bits(hop)
            case Code.FUNCTION_AND_VALUE:
                return sizes.tag_bits + sizes.value_bits(hop)
            case Code.ADDRESS_AND_VALUE:
                return sizes.address_bits(hop) + sizes.value_bits(hop)
            case Code.ENTRIES:
                return sizes.domains[0]
            case Code.ENTRIES_AND_VALUE:
                return 2 * sizes.domains[0] + sizes.value_bits(hop)
            case Code.PACKED:
                return sizes.domains[0] * sizes.value_bits(hop)
            case Code.ADDRESS_OF_TWO:
                return sizes.two_address_bits(hop)
            case Code.BRANCHES:
                return sizes.possible(hop - 1) + 1
            case Code.ADDRESS_OF_ALL:
                return sizes.addresses_bits
            case Code.ENTRIES_OF_ROW:
                return sizes.row_entries(hop)
            case Code.ADDRESS_OF_ROW:
                return sizes.address_bits(hop - 1)
            case Code.ROW:
                return sizes.row_bits(hop)
            case Code.ADDRESS_AND_ROW:
                return sizes.address_bits(hop - 1) + sizes.row_bits(hop)


@dataclass(frozen=True)
class Limit:
    """At most so much of a code fits, because of a size of the mixer.

    Attributes:
        code: what must fit.
        most: how much of it does; of a packed table how many numbers there are in a row.
        size: what the number is of.
        rows: of a packed table.
        digits: binary digits that a packed table keeps in a number.
    """

    code: Code
    most: int
    size: str
    rows: int = 1
    digits: int = 1

    def needed(self, sizes: TaskSizes, hop: int) -> int:
        """How much of it a move to the value of `hop` needs."""
        if self.code is Code.PACKED:
            bits = -(-sizes.domains[0] // self.rows) * sizes.value_bits(hop)
            return -(-bits // self.digits)
        return self.code.needed(sizes, hop)

    def forced(self, sizes: TaskSizes, hop: int) -> bool:
        """Whether a memory can be written beyond it, to see it fail: only what it holds may be too much."""
        match self.code:
            case Code.ENTRIES:
                return True
            case Code.PACKED:
                return sizes.value_bits(hop) <= self.most * self.digits
            case Code.ROW | Code.ADDRESS_AND_ROW:
                return self.entries(sizes, hop) >= 1
            case _:
                return False

    def entries(self, sizes: TaskSizes, hop: int) -> int:
        """How many entries of a row fit, of one with too many the first ones."""
        fixed = sizes.address_bits(hop - 1) if self.code is Code.ADDRESS_AND_ROW else 0
        bits = sizes.value_bits(hop)
        return (self.most - fixed) // bits if bits else sizes.row_entries(hop)

    def said(self) -> str:
        """In words, as a condition."""
        return self.code.value.format(self.most * self.digits, rows=self.rows)

    def exceeded(self, needed: int) -> str:
        """Why more does not fit."""
        match self.code:
            case Code.FUNCTION:
                return f"a function code of {needed} bits is wider than {self.size} {self.most}"
            case Code.ADDRESS:
                return f"an address code of {needed} bits is wider than {self.size} {self.most}"
            case Code.VALUE:
                return f"a value code of {needed} bits is wider than the {self.most} value channels"
            case Code.FUNCTION_AND_VALUE | Code.ADDRESS_AND_VALUE:
                return f"a key's code and a value code of {needed} bits together are wider than {self.size} {self.most}"
            case Code.ENTRIES:
                return f"z_1 has m = {needed} addresses, the state holds {self.most} of them (its {self.size})"
            case Code.ENTRIES_AND_VALUE:
                return f"keys, queries and values of z_1 take {needed} channels of {self.most}"
            case Code.PACKED:
                rows = f"{self.rows} rows of {self.most} numbers of {self.digits} digits"
                return f"z_1 takes {needed} numbers a row, packed, the state has {rows}"
            case Code.ADDRESS_OF_TWO:
                return f"a code of {needed} bits for addresses of two functions is wider than {self.size} {self.most}"
            case Code.BRANCHES:
                return f"a look-up for each value and one more take {needed} heads, there are {self.most}"
            case Code.ADDRESS_OF_ALL:
                return f"a code of {needed} bits for addresses of all functions is wider than {self.size} {self.most}"
            case Code.ENTRIES_OF_ROW:
                return f"a look-up for each entry of a row takes {needed} heads, there are {self.most}"
            case Code.ADDRESS_OF_ROW:
                return f"an address code of {needed} bits is wider than {self.size} {self.most}"
            case Code.ROW:
                return f"a row of {needed} bits is wider than the {self.most} value channels"
            case Code.ADDRESS_AND_ROW:
                return f"a key's code and a row of {needed} bits together are wider than {self.size} {self.most}"


@dataclass(frozen=True)
class HeadsLimit(Limit):
    """At most so many look-ups at once, each of which returns a whole value code.

    Key-value heads hold a part of the code each, `channels` digits; a look-up takes one query at every part.

    Attributes:
        group: query heads of a key-value head.
        channels: of a key-value head's values.
    """

    group: int = 1
    channels: int = 1

    def parts(self, bits: int) -> int:
        """Key-value heads over which a code of so many bits is spread."""
        return max(1, -(-bits // self.channels))

    def at_once(self, bits: int) -> int:
        """How many look-ups of codes of so many bits fit."""
        return self.most // self.group // self.parts(bits) * self.group

    def needed(self, sizes: TaskSizes, hop: int) -> int:
        """Query heads that the look-ups take, with those of a key-value head that are left over."""
        parts = self.parts(self._bits(sizes, hop))
        return parts * self.group * -(-super().needed(sizes, hop) // self.group)

    def forced(self, sizes: TaskSizes, hop: int) -> bool:
        """The look-ups of the last values or entries can be left out, as long as one is looked up."""
        return self.at_once(self._bits(sizes, hop)) >= (2 if self.code is Code.BRANCHES else 1)

    def _bits(self, sizes: TaskSizes, hop: int) -> int:
        """Bits of what a head reads: rows are gathered beside any other look-up."""
        if self.code is Code.BRANCHES:
            return max(sizes.value_bits(hop - 1), sizes.value_bits(hop))
        return sizes.token_bits


def packed_digits(precisions: Precisions) -> int:
    """Binary digits that a packed memory keeps in one number of a state."""
    return min(DIGITS, precisions.state)
