"""One layer in so many is different: `full_attention_interval`, `sliding_window_pattern`, `layer_group_size`."""

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import FULL, SLIDING, Way, Words, counted, ruled

MAX_PERIOD = 10_000


def spaced(period: int, word: str = FULL, other: str = SLIDING, *, at: int = -1, last: bool = False) -> Way:
    """A fixed rule of the class: `word` at every layer i with `i % period == at % period`, and at the `last` one."""

    def rule(i: int, layers: int) -> str:
        return word if i % period == at % period or (last and i == layers - 1) else other

    return ruled(rule, f"the rule of its class (one layer in {period})")


def every(
    *names: str, word: str = FULL, other: str = SLIDING, at: int = -1, derived: int | None = None, tail: bool = False
) -> Way:
    """`word` at every layer i with `i % period == at % period`, the period given by a field.

    Args:
        names: the field; its class default counts where the file is silent.
        word: of the layers that are different.
        other: of the rest.
        at: which layer of a period it is; -1 for its last.
        derived: the period where file and class give none; None: this way then says nothing.
        tail: whether the layers after the last whole period are all `word`.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        name, value = fields.find(*names)
        declared = fields.has(*names)
        if isinstance(value, str):  # LLLG: one letter a layer of the period
            period = _written_out(fields, name, value)
        else:
            given = fields.maybe(*names)
            if given is None and derived is None:
                return None
            period = fields.checked(name, given if given is not None else derived, 1, MAX_PERIOD)
            if given is None:
                fields.notes.assume(f"{fields.path}{names[0]}", period)
        n = counted(fields, layers)
        end = n // period * period if tail else n
        words = tuple(word if i % period == at % period or i >= end else other for i in range(n))
        return Words(words, name, declared)

    return way


def _written_out(fields: Fields, name: str, text: str) -> int:
    """The period of a pattern of letters, local ones and a global one at the end."""
    if not text or text != "L" * (len(text) - 1) + "G":
        raise fields.error(name, text, "a whole number, or letters as in 'LLLG'")
    return len(text)
