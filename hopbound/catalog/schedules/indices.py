"""Lists of layer numbers, counted from 0 or from 1."""

from collections.abc import Mapping

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import Way, Words, counted, of_set


def marked(name: str, *, word: str, other: str) -> Way:
    """One list of layers, counted from 0, that are `word`; the others are `other`."""

    def way(fields: Fields, layers: int | None) -> Words | None:
        if fields.items(name) is None:
            return None
        n = counted(fields, layers)
        return Words(of_set(layer_numbers(fields, name, n), n, word, other), name, True)

    return way


def named_indices(inside: str, lists: Mapping[str, str], *, first: int) -> Way:
    """Several lists, each with its word, that hold every layer once.

    Args:
        inside: the object that holds the lists.
        lists: the word of each.
        first: the number of the first layer, 0 or 1.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        place = fields.child(inside)
        if place is None or not any(place.has(name) for name in lists):
            return None
        n = counted(fields, layers)
        words: dict[int, str] = {}
        for name, word in lists.items():
            if place.items(name) is None:
                raise place.error(name, None, "a list of layers")
            for i in layer_numbers(place, name, n, first=first):
                if i in words:
                    raise place.error(name, i + first, "each layer in one list only")
                words[i] = word
        missing = [i + first for i in range(n) if i not in words]
        if missing:
            raise place.error(next(iter(lists)), f"no layer {missing[0]}", f"every layer from {first} in a list")
        return Words(tuple(words[i] for i in range(n)), ", ".join(f"{place.path}{name}" for name in lists), True)

    return way


def layer_numbers(fields: Fields, name: str, layers: int, *, first: int = 0) -> list[int]:
    """A list of different layers, as indices from 0.

    Raises:
        InputError: a number out of range or twice in the list.
    """
    numbers = fields.numbers(name, least=first, most=layers - 1 + first) or []
    if len(set(numbers)) != len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise fields.error(name, twice, "each layer once")
    return [number - first for number in numbers]
