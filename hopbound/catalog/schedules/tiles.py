"""A short list of block types, repeated until the layers are full."""

from collections.abc import Mapping, Sequence

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import Way, Words, counted


def tiles(pattern: Sequence[str], *, name: str = "", meaning: Mapping[str, str] | None = None) -> Way:
    """A pattern that is repeated.

    Args:
        pattern: the class's own, in the file's words where there is a `meaning`.
        name: the field that may hold another one; empty if none does.
        meaning: the word of each of the file's words.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        given = fields.words(name) if name else None
        if given is not None and not given:
            raise fields.error(name, given, "at least one block")
        tile = given if given is not None else list(pattern)
        if meaning is not None:
            tile = [meaning[fields.one_of(name, word, meaning)] for word in tile]
        n = counted(fields, layers)
        by = name if given is not None else "the pattern of its class"
        return Words(tuple(tile[i % len(tile)] for i in range(n)), by, given is not None)

    return way


def counted_tiles(name: str, meaning: Mapping[str, str], default: Sequence[str]) -> Way:
    """Patterns with how often each is repeated, as in `[[["global", "local"], 12]]`.

    Args:
        name: the field.
        meaning: the word of each of the file's words.
        default: the pattern of a file without the field, repeated until the layers are full.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        parts = fields.items(name)
        n = counted(fields, layers)
        if parts is None:
            return Words(tuple(meaning[default[i % len(default)]] for i in range(n)), "the pattern of its class", False)
        words: list[str] = []
        for at, part in enumerate(parts):
            if not isinstance(part, list) or len(part) != 2 or not isinstance(part[0], list):
                raise fields.error(f"{name}[{at}]", part, "a list of words and how often it is repeated")
            times = fields.checked(f"{name}[{at}]", part[1], 1, n)
            for word in part[0]:
                if not isinstance(word, str):
                    raise fields.error(f"{name}[{at}]", word, "a string")
            words += times * [meaning[fields.one_of(f"{name}[{at}]", word, meaning)] for word in part[0]]
        if len(words) != n:
            raise fields.error(name, f"{len(words)} layers", f"{n} layers")
        return Words(tuple(words), name, True)

    return way
