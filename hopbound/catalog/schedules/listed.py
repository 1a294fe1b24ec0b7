"""The explicit list: one word a layer, in the words of today or of older files."""

from collections.abc import Mapping

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import FULL, LINEAR, Way, Words

LEGACY = {
    "mamba": LINEAR,
    "attention": FULL,
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


def listed(
    *names: str, legacy: Mapping[str, str] | None = None, beyond: tuple[str, ...] = (), own_length: bool = False
) -> Way:
    """A list of words.

    Args:
        names: the fields that may hold it; `layer_types` if none is given.
        legacy: words of older files beside the common ones, with what they mean today.
        beyond: fields that count further layers of multi-token prediction, which some files append to the list.
        own_length: whether the list, and no other field, says how many layers there are.
    """
    names = names or ("layer_types",)
    meaning = {**LEGACY, **(legacy or {})}

    def way(fields: Fields, layers: int | None) -> Words | None:
        found = [(name, words) for name in names if (words := fields.words(name)) is not None]
        if not found:
            return None
        name, words = found[0]
        spoken = tuple(meaning.get(word, word) for word in words)
        for other, others in found[1:]:
            if tuple(meaning.get(word, word) for word in others) != spoken:
                raise fields.error(other, others, f"the same layers as {name}")
        if layers is not None and len(spoken) != layers:
            spoken = _cut(fields, name, spoken, layers, beyond, own_length)
        if not spoken:
            raise fields.error(name, words, "at least one layer")
        return Words(spoken, name, True)

    return way


def _cut(
    fields: Fields, name: str, words: tuple[str, ...], layers: int, beyond: tuple[str, ...], own_length: bool
) -> tuple[str, ...]:
    if own_length:
        fields.notes.say(f"num_hidden_layers={layers} is not used: {name} has {len(words)} layers")
        return words
    extra = sum(fields.maybe(field, least=0) or 0 for field in beyond)
    if extra and len(words) == layers + extra:
        fields.notes.say(f"{name} has {extra} words beyond the {layers} layers: multi-token prediction, left out")
        return words[:layers]
    raise fields.error(name, f"{len(words)} words", f"{layers} words, one a layer")
