"""From the JSON of a config to a model: find the text model, its family, the schedule, then build layer by layer."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hopbound.catalog.families import FAMILIES, MAMBA_SSM, Family
from hopbound.catalog.fields import Fields, Notes
from hopbound.catalog.model import Block, Model, ModelLayer
from hopbound.catalog.precision import model_bits
from hopbound.catalog.schedules import Words, listed
from hopbound.catalog.schedules.nested import text_model
from hopbound.catalog.schedules.overrides import layer_overrides
from hopbound.errors import InputError

MAX_LAYERS = 10_000
PLAIN_WORDS = frozenset({"full_attention", "sliding_attention", "chunked_attention", "mlp", "moe"})


@cache
def class_defaults() -> Mapping[str, Mapping[str, Any]]:
    """What each model type's class says of fields that a file leaves open (transformers 5.24)."""
    return json.loads(files("hopbound.catalog").joinpath("defaults.json").read_text(encoding="utf-8"))


LONGEST_TYPE = 80  # characters of a model type; the longest known has fewer than half as many


def read_config(config: object, name: str = "config.json") -> Model:
    """The model of a config, given as the parsed JSON of its file.

    Args:
        config: the JSON.
        name: what the model is called in answers.

    Returns:
        The model; `notes` lists everything that the reading assumed.

    Raises:
        InputError: something is missing, wrong or not understood; one line that names the field, its value and what
            was expected.
    """
    if not isinstance(config, dict):
        raise InputError(name, type(config).__name__, "a JSON object")
    notes = Notes()
    whole = Fields(config, notes)
    if "model_type" not in config and {"d_model", "n_layer"} <= config.keys():
        model_type, fields = MAMBA_SSM, whole
    else:
        model_type, fields = text_model(whole, class_defaults(), FAMILIES)
    if not model_type.isprintable() or len(model_type) > LONGEST_TYPE:
        raise fields.error("model_type", model_type, f"a word of at most {LONGEST_TYPE} printable characters")
    family = FAMILIES.get(model_type)
    if family is None:
        family, model_type = _unknown(fields, model_type), model_type or "unknown"
    return _read(name, model_type, family, fields, whole)


def _unknown(fields: Fields, model_type: str) -> Family:
    """A stand-in for the family of an unknown type, if the file itself says what every layer is.

    Raises:
        InputError: it does not.
    """
    found = listed()(fields, None)
    if found is None:
        raise fields.error(
            "model_type",
            model_type or None,
            "a model type that is understood, or layer_types that say what every layer is",
        )
    for at, word in enumerate(found.words):
        if word not in PLAIN_WORDS:
            raise fields.error(
                f"layer_types[{at}]", word, f"a word whose sizes are known for model type {model_type or None!r}"
            )
    if not fields.has("num_attention_heads"):
        raise fields.error("num_attention_heads", None, "a whole number of at least 1")
    fields.notes.say(
        f"model_type {model_type or None!r} is unknown: read by layer_types and the fields of its attention"
    )
    return Family(types=(), schedule=(listed(),))


def _read(name: str, model_type: str, family: Family, fields: Fields, whole: Fields) -> Model:
    told = class_defaults().get(model_type, {})
    aliases = {**told.get("_aliases", {}), **family.aliases}
    fields = Fields(fields.raw, fields.notes, defaults=told, aliases=aliases, path=fields.path)
    fields = family.before(fields)
    words = _schedule(family, fields)
    overrides = layer_overrides(fields, len(words))
    layers = [_layer(family, fields.at(i, overrides.get(i)), i, word) for i, word in enumerate(words)]
    for change in family.after:
        layers = change(fields, words, layers)
    for line in family.notes:
        fields.notes.say(line)
    context = fields.maybe(*family.context) if family.context else None
    precisions = family.precisions(fields, model_bits((fields, whole)))
    return Model(
        name=name,
        model_type=model_type,
        layers=tuple(layers),
        precisions=precisions,
        context=context,
        notes=fields.notes.all(),
    )


def _schedule(family: Family, fields: Fields) -> tuple[str, ...]:
    """One word a layer: what is declared first, then what the class makes of the file's silence.

    Raises:
        InputError: no way applies, or a word means nothing.
    """
    count = _count(family, fields)
    found: Words | None = None
    for way in family.schedule:
        found = way(fields, count)
        if found is not None:
            break
    if found is None:
        raise fields.error("layer_types", None, "a word a layer")
    if not found.declared and len(family.schedule) > 1:
        fields.notes.say(f"no field lists the layers: {found.by} says what they are")
    elif count is None:
        fields.notes.say(f"{family.count[0]} is not given: {found.by} has {len(found.words)} layers")
    for at, word in enumerate(found.words):
        if family.builder(word) is None:
            raise fields.error(f"{found.by}[{at}]", word, f"one of {' '.join(family.words)}")
    if not 1 <= len(found.words) <= MAX_LAYERS:
        raise fields.error(found.by, f"{len(found.words)} layers", f"from 1 to {MAX_LAYERS} layers")
    return found.words


def _count(family: Family, fields: Fields) -> int | None:
    """The number of layers; None where only the list can say it.

    Raises:
        InputError: it is no number of layers.
    """
    name, value = fields.find(*family.count)
    if fields.has(*family.count):
        return fields.checked(name, value, 1, MAX_LAYERS)
    if any(isinstance(fields.raw.get(field), list | str) for field in ("layer_types", "layers_block_type")):
        return None
    if fields.has("hybrid_override_pattern"):
        return None
    count = fields.maybe(*family.count)
    if count is None:
        raise fields.error(family.count[0], None, "the number of layers")
    return count


def _layer(family: Family, fields: Fields, index: int, word: str) -> ModelLayer:
    builder = family.builder(word)
    assert builder is not None
    try:
        block: Block = builder(fields)
    except InputError as error:
        if " " not in error.field:  # a field of the file; a mixer's own complaint names the mixer and its key
            raise
        raise InputError(f"{fields.path}layer {index} ({word}), {error.field}", error.value, error.expected) from error
    return ModelLayer.of(index, block)
