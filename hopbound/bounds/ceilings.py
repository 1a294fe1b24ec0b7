"""All explicit bounds beside the theorems on composition, asked of one stack."""

from hopbound.architecture import Architecture
from hopbound.bounds import copying, rank, reach, recall, sparse_two_sum, two_functions
from hopbound.bounds.ceiling import Ceiling, Question, Silence

BOUNDS = (reach, recall, copying, rank, two_functions, sparse_two_sum)


def ceilings(architecture: Architecture, question: Question | None = None) -> tuple[Ceiling | Silence, ...]:
    """What each bound says of a stack, or why it is silent.

    Args:
        architecture: the stack.
        question: how many values, pairs, and what accuracy; by default 8,192 values, recalled without error.
    """
    return tuple(bound.ceiling(architecture, question or Question()) for bound in BOUNDS)
