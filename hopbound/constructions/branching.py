r"""The branch: one full layer makes two hops, by a head for each value that i_t may have and one more.

*Layer.* The last token knows i_{t-1} and w. One head looks up i_t, at the address (w_{t-1}, i_{t-1}) of z_t. For each
of the M_t values v that i_t may have another head looks up what i_{t+1} would be, at the address (w_t, v) of z_{t+1}:
v is written into the head's query, so that no head waits for another. For t = 0 the one head fetches i_0 and the
others, m of them, read all of z_1.

Each is an exact look-up (`lookup.py`) with a query of its own; a key holds what any of them compares, and the query is
0 at digits that are not compared, so that scores are as there. In a key-value head all queries read the same value
channels. A value code that is wider than a head's is spread over P key-value heads, and a look-up takes a query at each
of them: ⌊kv_heads / P⌋ · heads / kv_heads look-ups fit.

*Choice.* Let r_{v,b} be the digits that head v returns, p_c those of i_t, all ±1 up to an error η each, B the number of
digits p_c and s_v = Σ_c v_c p_c - B: 0 for v = i_t, at most -2 for others. The map behind the layer adds

    Σ_v clip(u_v, -1, 1) + (M_t - 1)  =  Σ_v (relu(u_v + 1) - relu(u_v - 1)) - 1 ,   u_v = 2 (r_{v,b} + s_v) .

For v ≠ i_t both ReLUs are of at most 2 (1 - 2) + 1 = -1 plus errors, so 0; for v = i_t they are those that restore ±1.
It is exact while (B + 1) η ≤ 1/2: at η = 2^-8, a look-up's leak of 2^-9 and a rounding to bfloat16, for B ≤ 127. The
biases, whole numbers of at most 2 B + 1 ≤ 255, are numbers of bfloat16.

With fewer heads than values (`overfill`, for demonstration) the last values have none: after one of them no unit is
open, all digits of i_{t+1} are -1, and it is taken for 0.

So a bound on hops can only hold at sizes with at least as many values as such heads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hopbound.architecture import MixerSpec
from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.lookup import OPEN, sharpness, upward
from hopbound.constructions.packing import Weights
from hopbound.decoder.codes import signs
from hopbound.limits import HeadsLimit, TaskSizes
from hopbound.mixers import Mixer, SoftmaxMixer
from hopbound.moves import Move, limits


@dataclass(frozen=True, kw_only=True)
class Branch:
    """The two look-ups of a layer.

    Attributes:
        sizes: of the task.
        hop: t + 1, the hop whose value the branch brings.
        told_apart: values of i_t that have a head, the first ones.
        parts: key-value heads over which a value code is spread.
    """

    sizes: TaskSizes
    hop: int
    told_apart: int
    parts: int

    @property
    def raw(self) -> str:
        """The name of the digits of i_t."""
        return f"raw i_{self.hop - 1}"

    @property
    def branches(self) -> str:
        """The name of the digits that i_{t+1} would have, for one value after the other."""
        return f"branches of i_{self.hop}"

    @property
    def target(self) -> str:
        """The name of the digits of i_{t+1}: those that the answer is read from, after the last hop."""
        return f"i_{self.hop}" if self.hop < self.sizes.hops else f"raw i_{self.hop}"

    @property
    def bits(self) -> int:
        """Of i_{t+1}."""
        return self.sizes.value_bits(self.hop)

    @property
    def stored_bits(self) -> int:
        """Digits of a token that are read: of i_t or i_{t+1}."""
        return max(self.sizes.value_bits(self.hop - 1), self.bits)

    @property
    def units(self) -> int:
        """Units of the map that chooses."""
        return 2 * self.told_apart * self.bits

    def add_to(self, directions: Directions) -> None:
        """Hand out coordinates for what the heads return."""
        directions.add(self.raw, self.sizes.value_bits(self.hop - 1))
        directions.add(self.branches, self.told_apart * self.bits)

    def of_value(self, directions: Directions, value: int) -> range:
        """Where the digits stand that i_{t+1} has if i_t is `value`."""
        return directions[self.branches][value * self.bits : (value + 1) * self.bits]


# A digit of a query: the key's column that it is compared with, the column of the asking token, times ±1.
Asked = tuple[int, int, int]


def branch_of(mixer: MixerSpec, sizes: TaskSizes, hop: int) -> Branch:
    """As the rule for branches has it for this mixer, with as many values told apart as there are heads for.

    Args:
        mixer: one with a rule for branches in `moves.py`.
        sizes: of the task.
        hop: whose value the branch brings.
    """
    found = limits(mixer, Move.BRANCH)
    assert not isinstance(found, str)
    (heads,) = (limit for limit in found if isinstance(limit, HeadsLimit))
    bits = max(sizes.value_bits(hop - 1), sizes.value_bits(hop))
    told_apart = min(sizes.possible(hop - 1), heads.at_once(bits) - 1)
    return Branch(sizes=sizes, hop=hop, told_apart=told_apart, parts=heads.parts(bits))


def write_branch(mixer: Mixer[Any, Any], directions: Directions, branch: Branch, in_sight: int) -> None:
    """Let a zeroed full attention mixer make all look-ups of a branch at once.

    Args:
        mixer: softmax attention; all weights zero.
        directions: of the residual stream; has those of `Branch.add_to`.
        branch: which look-ups.
        in_sight: how many positions the softmax ranges over.
    """
    assert isinstance(mixer, SoftmaxMixer)
    spec, beta = mixer.spec, upward(sharpness(in_sight) / mixer.scale)
    columns = _compared(directions, branch)
    digit_of = {column: digit for digit, column in enumerate(columns)}
    group, copies = spec.heads // spec.kv_heads, spec.kv_heads // branch.parts
    stored = directions.low("token", branch.stored_bits)
    for part in range(branch.parts):
        source = stored[part * spec.value_dim : (part + 1) * spec.value_dim]
        for head in range(part * copies, (part + 1) * copies):
            copy(mixer.key.weight, range(head * spec.head_dim, head * spec.head_dim + len(columns)), columns)
            copy(mixer.value.weight, range(head * spec.value_dim, head * spec.value_dim + len(source)), source)
        for number, (asked, target) in enumerate(_look_ups(directions, branch)):
            head = part * copies * group + number
            for key, column, sign in asked:
                mixer.query.weight[head * spec.head_dim + digit_of[key], column] = sign * beta
            wanted = target[part * spec.value_dim : (part + 1) * spec.value_dim]
            copy(mixer.out.weight, wanted, range(head * spec.value_dim, head * spec.value_dim + len(wanted)))
    if mixer.gate is not None:
        (one,) = directions["one"]
        mixer.gate.weight[:, one] = OPEN


def write_choice(
    unit: int, weights: Weights, *, known: Sequence[int], found: Sequence[Sequence[int]], target: Sequence[int]
) -> int:
    """Let units of a map, from `unit` on, write the digits of the one that is wanted of several codes.

    Args:
        unit: the first of 2 units a digit.
        weights: of the map.
        known: columns with the digits of its number.
        found: columns of each code, by number.
        target: columns that receive it; all -1 if there is no code of this number.

    Returns:
        The first unit behind them.
    """
    for value, code in enumerate(found):
        agreeing = signs(value, len(known))
        for digit_found, wanted in zip(code, target, strict=True):
            for shift in (1.0, -1.0):
                weights.rise[unit, digit_found] = 2.0
                for column, digit in zip(known, agreeing, strict=True):
                    weights.rise[unit, column] = 2.0 * digit
                weights.rise_bias[unit] = shift - 2.0 * len(known)
                weights.fall[wanted, unit] = shift
                unit += 1
    for wanted in target:
        weights.fall_bias[wanted] = -1.0
    return unit


def write_branch_choice(unit: int, weights: Weights, directions: Directions, branch: Branch) -> None:
    """Let units of a map, from `unit` on, write the digits of i_{t+1} for the value that i_t has."""
    found = [branch.of_value(directions, value) for value in range(branch.told_apart)]
    write_choice(unit, weights, known=directions[branch.raw], found=found, target=directions[branch.target])


def _compared(directions: Directions, branch: Branch) -> list[int]:
    """The columns of a key: all that one of the look-ups compares."""
    columns = dict.fromkeys(directions["tag"])
    for asked, _ in _look_ups(directions, branch):
        columns.update(dict.fromkeys(key for key, _, _ in asked))
    return list(columns)


def _look_ups(directions: Directions, branch: Branch) -> Iterator[tuple[list[Asked], range]]:
    """What each head asks for and where its answer goes: the head for i_t first."""
    sizes, hop = branch.sizes, branch.hop
    (one,) = directions["one"]
    first = _function_and_query(directions, sizes, hop - 1)
    if hop > 1:
        places = directions.low("address value", sizes.value_bits(hop - 2))
        first += [(key, asked, 1) for key, asked in zip(places, directions[f"i_{hop - 2}"], strict=True)]
    yield first, directions[branch.raw]
    places = directions.low("address value", sizes.value_bits(hop - 1))
    for value in range(branch.told_apart):
        written = [(key, one, digit) for key, digit in zip(places, signs(value, len(places)), strict=True)]
        yield _function_and_query(directions, sizes, hop) + written, branch.of_value(directions, value)


def _function_and_query(directions: Directions, sizes: TaskSizes, hop: int) -> list[Asked]:
    """The digits of a function's number, and those of its query part."""
    (one,) = directions["one"]
    asked = [(key, one, digit) for key, digit in zip(directions["tag"], signs(hop, sizes.tag_bits), strict=True)]
    if hop > 1 and sizes.query_bits(hop):
        places = directions.low("address query", sizes.query_bits(hop))
        asked += [(key, own, 1) for key, own in zip(places, directions[f"w_{hop - 1}"], strict=True)]
    return asked
