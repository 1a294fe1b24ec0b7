"""A string with one letter a layer, as in `M*M-ME`."""

from collections.abc import Mapping

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import Way, Words


def letters(name: str, meaning: Mapping[str, str]) -> Way:
    """A string, whose length is the number of layers.

    Args:
        name: the field.
        meaning: the word of each letter.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        if not fields.has(name):
            return None
        text = fields.text(name) or ""
        for at, letter in enumerate(text):
            if letter not in meaning:
                raise fields.error(f"{name}[{at}]", letter, f"one of {' '.join(meaning)}")
        if not text or len(text) > 10_000:
            raise fields.error(name, text, "a letter a layer")
        if layers is not None and len(text) != layers:
            fields.notes.say(f"num_hidden_layers={layers} is not used: {name} has {len(text)} layers")
        return Words(tuple(meaning[letter] for letter in text), name, True)

    return way
