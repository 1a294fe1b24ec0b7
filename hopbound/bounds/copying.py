"""Copying (average case): how long a string a state of σ bits can repeat.

Statement (arXiv 2402.01032, Theorem 2.7). A uniformly random string of ℓ symbols out of D is read; what is left of it
is a state of σ bits, from which a model writes ℓ symbols. It writes the string with probability at most `2^σ / D^ℓ`.

Proof. What is written is a function of the state (and of the model's own random choices, which may be fixed to the
best ones): at most `2^σ` different strings are ever written, and each is right for one of the `D^ℓ` strings. ∎

Domain of validity: nothing but the state crosses from the string to what is written (no full layer).
"""

from math import log2

from hopbound.architecture import Architecture
from hopbound.bounds.ceiling import Ceiling, Question, Silence, counted, held_bits, whole_number

NAME = "copying"


def copying_ceiling(length: int, symbols: int, state_bits: int) -> float:
    """The largest probability of an exact copy: `min(1, 2^σ / D^ℓ)`.

    Args:
        length: ℓ.
        symbols: D.
        state_bits: σ.

    Raises:
        InputError: no symbol to copy, fewer than two symbols to choose from, or a negative state.
    """
    whole_number("length", length, 1)
    whole_number("symbols", symbols, 2)
    whole_number("state_bits", state_bits, 0)
    excess = length * log2(symbols) - state_bits
    return 1.0 if excess <= 0 else 2.0**-excess


def length_copyable(symbols: int, state_bits: int, accuracy: float = 1.0) -> int:
    """The longest string that the statement lets a state copy with some probability.

    Args:
        symbols: D.
        state_bits: σ.
        accuracy: the probability that is wanted, above 0.

    Raises:
        InputError: as `copying_ceiling`, or an accuracy out of range.
    """
    whole_number("symbols", symbols, 2)
    whole_number("state_bits", state_bits, 0)
    room = state_bits - log2(Question(symbols, accuracy=accuracy).accuracy)
    return int(room / log2(symbols) * (1 + 1e-12))


def ceiling(architecture: Architecture, question: Question) -> Ceiling | Silence:
    """The longest string that the stack's states can repeat."""
    bits = held_bits(architecture)
    if bits is None:
        return Silence(NAME, "a full layer reads the string itself")
    longest = length_copyable(question.values, bits, question.accuracy)
    return Ceiling(
        NAME,
        {"symbols": longest, "state_bits": bits},
        "average",
        f"of uniform strings over {question.values:,} symbols, {counted(longest, 'symbol')} at most are repeated "
        f"exactly with probability {question.accuracy:g}",
        "the string is read to its end before it is repeated; only states of fixed size cross",
        "arXiv 2402.01032, Theorem 2.7",
    )
