"""What constructions for function composition with other roles than C1-C3 share: codes of a prompt, gates on digits.

Every position carries, by rule, the digits of its function's number ("tag"; 0 the start, L + 1 the query, L + 2 the
token that asks) and of its address there ("address value", "address query"), and constants of its segment: what its
tokens ask for, and flags that say which digits a position-wise map lets through.

*Gated digits.* For a flag f in {0, 1} and a digit u with |u| ≥ 1/2,

    f · clip(2u, -1, 1) = relu(2u + 1 - C (1 - f)) - relu(2u - 1 - C (1 - f)) - relu(f) ,

with C = 16: while f = 0 and |u| ≤ 7 all three are 0, whatever u means there. The sum over flags of which at most one
is 1 is therefore the digit let through, ±1, or 0 if none is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from hopbound.architecture import Architecture
from hopbound.architecture.sizes import Attention
from hopbound.constructions.directions import Directions
from hopbound.constructions.lookup import LookUp, write_lookup
from hopbound.decoder import DigitField, PointwiseMap, PositionCode, SegmentCode, TokenCode, bit_length, signs
from hopbound.mixers import SoftmaxAttention
from hopbound.tasks import FunctionComposition
from hopbound.tasks.composition import Segment

SHUT = 16.0  # C: what a shut gate takes away, more than twice any digit
UNITS_A_DIGIT = 2

Constants = Mapping[str, Sequence[float]]


def start_bits(task: FunctionComposition) -> int:
    """Digits that hold any i_0 .. i_L."""
    return bit_length(max(task.m, *task.values))


def tag_count_bits(task: FunctionComposition) -> int:
    """Digits of the number of a function, of the start, of the query and of the token that asks."""
    return bit_length(task.hops + 3)


def tag_of(task: FunctionComposition, segment: Segment) -> int:
    """The number of a segment: that of its function, L + 1 for the query, L + 2 for the token that asks."""
    return segment.function if segment.function >= 0 else task.hops - segment.function


def query_bits(task: FunctionComposition) -> int:
    """Digits that hold any w_l."""
    return bit_length(max((1, *task.n)))


def value_size(task: FunctionComposition, function: int) -> int:
    """How many values the argument i_{l-1} of z_l has."""
    return task.m if function <= 1 else task.values[function - 2]


def add_addresses(directions: Directions, task: FunctionComposition) -> None:
    """Hand out the coordinates of every position's address, and of its token's digits."""
    directions.add("one", 1)
    directions.add("tag", tag_count_bits(task))
    directions.add("address value", start_bits(task))
    directions.add("address query", query_bits(task))
    directions.add("token", start_bits(task))
    for part, count in enumerate(task.n, start=1):
        directions.add(f"w_{part}", bit_length(count))


def token_code(task: FunctionComposition, directions: Directions, extra: Sequence[DigitField] = ()) -> TokenCode:
    """Digits of the token's number, and, as of a query token, of each w_l."""
    token = directions["token"]
    fields, divisor = [DigitField(token.start, 1, 2 ** len(token), len(token))], 1
    for part, count in enumerate(task.n, start=1):
        span = directions[f"w_{part}"]
        fields.append(DigitField(span.start, divisor, count, len(span)))
        divisor *= count
    return TokenCode(tuple(field for field in (*fields, *extra) if field.bits))


def segment_code(
    task: FunctionComposition, directions: Directions, segment: Segment, constants: Constants
) -> SegmentCode:
    """The addresses of a segment's positions, and its constants by the names of their directions."""
    digits = {"one": [1.0], "tag": signs(tag_of(task, segment), len(directions["tag"])), **constants}
    held = tuple(
        (column, float(value))
        for name, values in digits.items()
        for column, value in zip(directions[name], values, strict=True)
        if value
    )
    fields = []
    if segment.function > 0:
        size, value, query = (
            value_size(task, segment.function),
            directions["address value"],
            directions["address query"],
        )
        parts = task.domains[segment.function - 1] // size
        fields = [DigitField(value.start, 1, size, len(value)), DigitField(query.start, size, parts, len(query))]
    return SegmentCode(segment.name, segment.length, tuple(field for field in fields if field.bits), held)


def position_code(
    task: FunctionComposition,
    directions: Directions,
    constants: Callable[[Segment], Constants],
    after: Sequence[SegmentCode] = (),
) -> PositionCode:
    """The codes of all segments of the prompt, and of what comes after it."""
    codes = [segment_code(task, directions, segment, constants(segment)) for segment in task.segments]
    return PositionCode((*codes, *after))


class Gates:
    """Gated digits, written into a ReLU map unit after unit; see the head of this file."""

    def __init__(self, pointwise: PointwiseMap | None) -> None:
        self.pointwise = pointwise
        self.unit = 0

    def let_through(self, source: Sequence[int], flag: int, target: Sequence[int]) -> None:
        """Add f · sign(source) to `target`, digit by digit, for the flag f in column `flag`."""
        if self.pointwise is None:
            raise ValueError("gates need a position-wise map")
        rise, bias, fall = self.pointwise.rise.weight, self.pointwise.rise.bias, self.pointwise.fall.weight
        for read, write in zip(source, target, strict=True):
            for offset, sign in ((1.0, 1.0), (-1.0, -1.0)):
                _unit(rise, bias, fall, self.unit, read, flag, write, offset, sign)
                self.unit += 1
        if len(source):
            rise[self.unit, flag] = 1.0
            for write in target:
                fall[write, self.unit] = -1.0
            self.unit += 1

    @staticmethod
    def units(digits: int) -> int:
        """Hidden units of letting so many digits through."""
        return UNITS_A_DIGIT * digits + 1 if digits else 0


def _unit(
    rise: Tensor, bias: Tensor, fall: Tensor, unit: int, read: int, flag: int, write: int, offset: float, sign: float
) -> None:
    rise[unit, read] = 2.0
    rise[unit, flag] = SHUT
    bias[unit] = offset - SHUT
    fall[write, unit] = sign


@dataclass(frozen=True, kw_only=True)
class Room:
    """What the look-ups of a construction need of the full layers, in digits.

    Attributes:
        key: function and address.
        value: what is returned.
    """

    key: int
    value: int

    def shortage(self, architecture: Architecture, layers: Sequence[int]) -> str | None:
        """Why the full mixers of these layers are too small, with what would fit; None if they are not."""
        for layer in layers:
            spec = full_mixer(architecture, layer)[1]
            if self.key > spec.head_dim:
                return f"address codes of {self.key} bits, head_dim={spec.head_dim} holds fewer (layer {layer + 1})"
            if self.value > (held := spec.value_dim * spec.kv_heads):
                return f"value codes of {self.value} bits, the heads hold {held} (layer {layer + 1})"
        return None


def full_layers(architecture: Architecture) -> list[int]:
    """The layers that hold full attention."""
    return [i for i, layer in enumerate(architecture.layers) if any(spec.name == "full" for spec in layer.mixers)]


def full_mixer(architecture: Architecture, layer: int) -> tuple[int, Attention]:
    """Which mixer of a layer is full attention (counted without `mlp`, as weights are), and its sizes."""
    mixers = [spec for spec in architecture.layers[layer].mixers if spec.name != "mlp"]
    return next((i, spec) for i, spec in enumerate(mixers) if spec.name == "full" and isinstance(spec, Attention))


def write_cut(mixer: SoftmaxAttention, directions: Directions, look_up: LookUp) -> None:
    """Write a look-up, cut to the digits that the mixer has room for (all of them, unless it is overfilled)."""
    spec, room = mixer.spec, mixer.spec.head_dim - len(directions["tag"])
    compared = []
    for asked, key in look_up.compared:
        compared.append((asked[:room], key[:room]))
        room -= len(compared[-1][0])
    kept = slice(0, spec.value_dim * spec.kv_heads)
    source, target = look_up.source[kept], look_up.target[kept]
    write_lookup(mixer, directions, replace(look_up, compared=compared, source=source, target=target))
