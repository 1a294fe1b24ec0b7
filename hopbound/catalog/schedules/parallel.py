"""Layers that are all alike: plain stacks, and stacks whose every layer has attention and a recurrence in parallel."""

from hopbound.catalog.schedules.way import FULL, Way, ruled


def all_alike(word: str = FULL) -> Way:
    """The same word for every layer."""
    return ruled(lambda i, layers: word, "its class")
