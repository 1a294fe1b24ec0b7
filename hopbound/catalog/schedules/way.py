"""What a way of writing a schedule gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hopbound.catalog.fields import Fields

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"


@dataclass(frozen=True)
class Words:
    """One word a layer.

    Attributes:
        words: from the first layer to the last.
        by: the field that says so.
        declared: whether the file gives that field; else the class fills it in.
    """

    words: tuple[str, ...]
    by: str
    declared: bool


Way = Callable[[Fields, int | None], Words | None]


def counted(fields: Fields, layers: int | None) -> int:
    """The number of layers, where a way cannot do without.

    Raises:
        InputError: the file does not give it.
    """
    if layers is None:
        raise fields.error("num_hidden_layers", None, "the number of layers")
    return layers


def ruled(rule: Callable[[int, int], str], by: str) -> Way:
    """The class's own rule, which no field changes: a function of layer and number of layers."""

    def way(fields: Fields, layers: int | None) -> Words | None:
        n = counted(fields, layers)
        return Words(tuple(rule(i, n) for i in range(n)), by, False)

    return way


def of_set(chosen: Sequence[int], layers: int, word: str, other: str) -> tuple[str, ...]:
    """`word` at the chosen layers, `other` elsewhere."""
    members = frozenset(chosen)
    return tuple(word if i in members else other for i in range(layers))
