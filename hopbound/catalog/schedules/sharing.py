"""Layers that hold no keys and values of their own but read those of an earlier layer."""

from collections.abc import Callable
from dataclasses import replace

from hopbound.catalog.fields import Fields
from hopbound.catalog.model import ModelLayer

Change = Callable[[Fields, tuple[str, ...], list[ModelLayer]], list[ModelLayer]]


def last_layers_share(name: str) -> Change:
    """The last `name` layers read the last layer of their own kind before them."""

    def change(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
        shared = fields.maybe(name, least=0) or 0
        if not shared:
            return layers
        first = len(layers) - shared
        if first < 1:
            raise fields.error(name, shared, f"less than the {len(layers)} layers")
        changed = list(layers)
        for i in range(first, len(layers)):
            sources = [j for j in range(first) if words[j] == words[i]]
            if not sources:
                raise fields.error(name, shared, f"a layer before layer {first} of the kind of layer {i}, {words[i]}")
            changed[i] = replace(layers[i], kv_shared_from=sources[-1])
        return changed

    return change


def listed_sources(name: str) -> Change:
    """A list that gives each layer the one whose keys and values it reads, itself if it has its own."""

    def change(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
        sources = fields.numbers(name, most=len(layers) - 1)
        if sources is None:
            return layers
        if len(sources) != len(layers):
            raise fields.error(name, f"{len(sources)} numbers", f"{len(layers)} numbers, one a layer")
        for i, source in enumerate(sources):
            if source > i or sources[source] != source:
                raise fields.error(
                    f"{name}[{i}]", source, "the layer itself, or an earlier one with a cache of its own"
                )
        return [
            layer if source == layer.index else replace(layer, kv_shared_from=source)
            for layer, source in zip(layers, sources, strict=True)
        ]

    return change


def all_share_from(first: int) -> Change:
    """All layers from `first` on read one cache, which that layer holds."""

    def change(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
        return [replace(layer, kv_shared_from=first) if layer.index > first else layer for layer in layers]

    return change


def shared_weights(word: str, blocks: str) -> Change:
    """The attention of all layers of a word is one block, or a few in turn, used again and again.

    Args:
        word: of those layers.
        blocks: field of how many blocks there are; empty for one.
    """

    def change(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
        count = fields.number(blocks, derived=1) if blocks else 1
        uses = [i for i, one in enumerate(words) if one == word]
        changed = list(layers)
        for turn, i in enumerate(uses):
            if turn >= count:
                changed[i] = replace(layers[i], weights_from=uses[turn % count])
        return changed

    return change
