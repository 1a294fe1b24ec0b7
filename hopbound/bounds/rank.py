"""Rank (worst case): how many vectors of free choice one head's linear read returns exactly.

Statement. A head holds a state `S` of d_v × f numbers and answers a query q, a vector of f numbers, by `S q`, in real
arithmetic. For fixed queries `q_1..q_N` it can return all tuples of N vectors only if `N ≤ f`. With a normaliser, the
answer being `S q / (z · q)` with a further vector z of the state, only if `N d_v ≤ f d_v + f - 1`.

Proof. If N > f the queries are linearly dependent, `Σ c_i q_i = 0` with some c_i ≠ 0, so all that is returned obeys
`Σ c_i S q_i = 0`: tuples of vectors with `Σ c_i v_i ≠ 0` are never returned. With a normaliser the tuple is a rational
function of the f d_v + f numbers (S, z) that is constant along scalings of them, so its values have dimension at most
`f d_v + f - 1`, less than the N d_v of all tuples. ∎

Domain of validity: one head of one layer, queries that do not depend on the values, real vectors returned exactly.
It is *not* a bound on recall: choosing the largest entry of `S q` recalls any number of values from f = 2 on, because
an answer only has to point to the right entry (`accuracy_ceiling` bounds that by bits). Position-wise maps after the
read may do so too.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import ChannelState, GroupedState, MatrixState
from hopbound.bounds.ceiling import Ceiling, Question, Silence, whole_number
from hopbound.errors import InputError

NAME = "rank"


def vectors_readable(features: int, value_dim: int, *, normaliser: bool = False) -> int:
    """The largest number of vectors of free choice that the statement lets a head return.

    Args:
        features: f, the rows of the state.
        value_dim: d_v.
        normaliser: whether the answer is divided by `z · q`.

    Raises:
        InputError: a size below 1.
    """
    whole_number("features", features, 1)
    whole_number("value_dim", value_dim, 1)
    return (features * value_dim + features - 1) // value_dim if normaliser else features


def dependence(queries: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Whole numbers c_i, not all 0, with `Σ c_i q_i = 0`; None if the queries are independent. Exact.

    Args:
        queries: vectors of whole numbers, all of one length.

    Raises:
        InputError: vectors of different lengths.
    """
    if len({len(query) for query in queries}) > 1:
        raise InputError("queries", [len(query) for query in queries], "vectors of one length")
    reduced: list[tuple[int, list[Fraction], list[Fraction]]] = []  # pivot, what is left of a query, how it was made
    for number, query in enumerate(queries):
        left = [Fraction(entry) for entry in query]
        made = [Fraction(int(i == number)) for i in range(len(queries))]
        for pivot, other, how in reduced:
            factor = left[pivot] / other[pivot]
            left = [a - factor * b for a, b in zip(left, other, strict=True)]
            made = [a - factor * b for a, b in zip(made, how, strict=True)]
        pivot = next((i for i, entry in enumerate(left) if entry), None)
        if pivot is None:
            scale = lcm(*(entry.denominator for entry in made))
            return tuple(int(entry * scale) for entry in made)
        reduced.append((pivot, left, made))
    return None


def mixer_rank(mixer: MixerSpec) -> int | None:
    """Vectors of free choice that a head of the mixer returns at most; None where its read is not of this form."""
    if isinstance(mixer, MatrixState):
        return vectors_readable(mixer.features * mixer.levels, mixer.value_dim, normaliser=bool(mixer.normaliser))
    if isinstance(mixer, GroupedState):
        return vectors_readable(mixer.state, mixer.head_dim)
    if isinstance(mixer, ChannelState) and mixer.name == "mamba":
        return mixer.state
    return None


def ceiling(architecture: Architecture, question: Question) -> Ceiling | Silence:
    """The largest number over the stack's linear reads."""
    ranks = {m.name: r for layer in architecture.layers for m in layer.mixers if (r := mixer_rank(m)) is not None}
    if not ranks:
        return Silence(NAME, "no layer reads a state linearly")
    each = ", ".join(f"{name} {rank:,}" for name, rank in ranks.items())
    return Ceiling(
        NAME,
        {"vectors": max(ranks.values())},
        "worst",
        f"vectors of free choice that one head's linear read returns exactly, at most: {each}",
        "one head of one layer, queries fixed; picking the largest entry afterwards can do better",
        "linear dependence of the queries",
    )
