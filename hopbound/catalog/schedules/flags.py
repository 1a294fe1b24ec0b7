"""A list of numbers, one a layer, each of which stands for a word."""

from collections.abc import Mapping

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import Way, Words, counted


def flags(name: str, meaning: Mapping[int, str], *, inside: str = "", beyond: tuple[str, ...] = ()) -> Way:
    """A list of numbers.

    Args:
        name: the field.
        meaning: the word of each number.
        inside: the object that holds the field; empty for the file itself.
        beyond: fields that count further layers of multi-token prediction, which some files append to the list.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        place = fields.child(inside) if inside else fields
        values = None if place is None else place.numbers(name)
        if values is None or place is None:
            return None
        n = counted(fields, layers)
        extra = sum(fields.maybe(field, least=0) or 0 for field in beyond)
        if extra and len(values) == n + extra:
            fields.notes.say(f"{name} has {extra} entries beyond the {n} layers: multi-token prediction, left out")
            values = values[:n]
        if len(values) != n:
            raise place.error(name, f"{len(values)} numbers", f"{n} numbers, one a layer")
        for at, value in enumerate(values):
            if value not in meaning:
                raise place.error(f"{name}[{at}]", value, f"one of {' '.join(map(str, meaning))}")
        return Words(tuple(meaning[value] for value in values), f"{place.path}{name}", True)

    return way
