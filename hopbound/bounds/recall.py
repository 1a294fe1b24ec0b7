r"""The recall ceiling (average case): how many key-value pairs a state of σ bits can hold, and how well.

Statement. D pairs with known distinct keys and independent uniform values in [V] are read; what is left of them is a
state of σ bits; then every key is asked for. The mean accuracy 1 - ε over pairs, values and the model's own choices
obeys

    D (log V - h(ε) - ε log(V - 1)) <= σ ,      h the binary entropy, logarithms to base 2.

Proof. Let ε_i be the error at pair i. By Fano's inequality the value v_i has entropy at most h(ε_i) + ε_i log(V - 1)
given the state, so the state carries at least log V - h(ε_i) - ε_i log(V - 1) bits about it. The values are
independent, so these sum to at most σ. The function h(ε) + ε log(V - 1) is concave, so the mean of the ε_i may stand
for each. ∎

Domain of validity: all queries stand after all pairs, and nothing but the state crosses from the pairs to the queries
(no full layer, no window that reaches back). It holds for every encoding, trained or not, and on average; it is not
about adversarial inputs. Guessing (1/V) is always allowed, so ε never exceeds 1 - 1/V.
"""

from math import ceil, log2

from hopbound.architecture import Architecture
from hopbound.bounds.ceiling import Ceiling, Question, Silence, counted, held_bits, whole_number
from hopbound.errors import InputError

NAME = "recall"
_STEPS = 200


def _check(values: int, *, pairs: int = 1, state_bits: float = 0, accuracy: float = 1) -> None:
    whole_number("pairs", pairs, 1)
    whole_number("values", values, 2)
    if isinstance(state_bits, bool) or not isinstance(state_bits, int | float) or not 0 <= state_bits < 2**1000:
        raise InputError("state_bits", state_bits, "a number of at least 0")
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 0 <= accuracy <= 1:
        raise InputError("accuracy", accuracy, "a number from 0 to 1")


def needed_bits(error: float, values: int) -> float:
    """Bits a pair must leave in the state for an error rate: log V - h(ε) - ε log(V - 1), 0 at chance.

    Args:
        error: ε, from 0 to 1 - 1/V.
        values: V.
    """
    entropy = 0.0 if error in (0.0, 1.0) else -error * log2(error) - (1 - error) * log2(1 - error)
    return log2(values) - entropy - error * log2(values - 1)


def accuracy_ceiling(pairs: int, values: int, state_bits: float) -> float:
    """The largest mean accuracy that the statement leaves open, rounded up by less than 10^-12.

    Args:
        pairs: D.
        values: V, the number of values.
        state_bits: σ.

    Raises:
        InputError: no pairs, fewer than two values, or a negative state.
    """
    _check(values, pairs=pairs, state_bits=state_bits)
    low, high = 0.0, 1 - 1 / values  # the bits that are needed fall from log V to 0 as the error grows to chance
    if pairs * needed_bits(low, values) <= state_bits:
        return 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if pairs * needed_bits(middle, values) <= state_bits:
            high = middle
        else:
            low = middle
    return min(1.0, 1 - low + 1e-13)


def pairs_recallable(values: int, state_bits: float, accuracy: float = 1.0) -> int | None:
    """The largest number of pairs that the statement leaves open at an accuracy; None where it limits none.

    Args:
        values: V.
        state_bits: σ.
        accuracy: 1 - ε, at most 1.

    Raises:
        InputError: as `accuracy_ceiling`, or an accuracy outside 0..1.
    """
    _check(values, state_bits=state_bits, accuracy=accuracy)
    if accuracy <= 1 / values:
        return None
    each = needed_bits(1 - accuracy, values)
    pairs = int(state_bits / each * (1 + 1e-12))
    while pairs and pairs * each > state_bits * (1 + 1e-12):
        pairs -= 1
    return pairs


def bits_to_recall(pairs: int, values: int, accuracy: float = 1.0) -> int:
    """The smallest whole number of state bits that the statement leaves open.

    Args:
        pairs: D.
        values: V.
        accuracy: 1 - ε, at most 1.

    Raises:
        InputError: as `pairs_recallable`.
    """
    _check(values, pairs=pairs, accuracy=accuracy)
    if accuracy <= 1 / values:
        return 0
    return ceil(pairs * needed_bits(1 - accuracy, values) * (1 - 1e-12))


def ceiling(architecture: Architecture, question: Question) -> Ceiling | Silence:
    """How many pairs the stack's states recall at the accuracy wanted, and how well they recall the pairs given."""
    bits = held_bits(architecture)
    if bits is None:
        return Silence(NAME, "a full layer reads the pairs themselves")
    numbers: dict[str, int | float] = {"state_bits": bits}
    most = pairs_recallable(question.values, bits, question.accuracy)
    said = "guessing is good enough" if most is None else f"{counted(most, 'pair')} at most"
    statement = f"with {question.values:,} values and {bits:,} bits of state, {said} at accuracy {question.accuracy:g}"
    if most is not None:
        numbers["pairs"] = most
    if question.pairs is not None:
        numbers["accuracy"] = accuracy_ceiling(question.pairs, question.values, bits)
        statement += f"; accuracy at most {numbers['accuracy']:.4g} on {counted(question.pairs, 'pair')}"
    return Ceiling(
        NAME,
        numbers,
        "average",
        statement,
        "distinct known keys, independent uniform values, all queries after all pairs; only states of fixed size cross",
        "Fano's inequality",
    )
