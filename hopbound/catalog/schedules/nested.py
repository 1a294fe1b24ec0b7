"""Where the text model stands in a file: at the top, or in an object of a multimodal one."""

from collections.abc import Mapping
from typing import Any

from hopbound.catalog.fields import ABSENT, Fields

NESTED = ("text_config", "language_config", "llm_config", "language_model_config", "decoder", "thinker_config")
FLAT = ("glm5_next", "dots3_note")  # outer types whose released files give the text model's fields at the top
MAX_NESTING = 3


def text_model(
    fields: Fields, classes: Mapping[str, Mapping[str, Any]], known: Mapping[str, object]
) -> tuple[str, Fields]:
    """The text model's type and fields.

    Args:
        fields: of the whole file.
        classes: defaults of each model type; those of a multimodal type name the key and type of its text model.
        known: the model types that are understood.

    Raises:
        InputError: the file gives no model type, or one that nothing is known of and no text model inside it.
    """
    for _ in range(MAX_NESTING):
        model_type = fields.text("model_type") or ""
        outer = classes.get(model_type, {})
        key, inner_type = next(
            ((key, value) for key, value in outer.items() if key in NESTED and isinstance(value, str)), ("", "")
        )
        place = next((name for name in (key, *NESTED) if name and isinstance(fields.raw.get(name), dict)), None)
        if model_type in known and (place is None or not key):
            return model_type, fields
        if place is None:
            if model_type in FLAT:
                return inner_type, fields
            if key:
                raise fields.error(key, fields.raw.get(key), "an object with the text model's fields")
            return model_type, fields
        child = fields.child(place)
        assert child is not None
        given = child.find("model_type")[1]
        if given is ABSENT or given is None:
            if not inner_type:
                raise child.error("model_type", None, "the text model's type")
            fields.notes.assume(f"{child.path}model_type", inner_type)
            raw = {**child.raw, "model_type": inner_type}
            child = Fields(raw, fields.notes, path=child.path)
        elif isinstance(given, str) and given == model_type and inner_type:
            child = Fields({**child.raw, "model_type": inner_type}, fields.notes, path=child.path)
        carried = _outer_fields(fields, child)
        fields = Fields(carried, fields.notes, path=child.path)
    raise fields.error("model_type", fields.raw.get("model_type"), "a text model within three objects")


def _outer_fields(outer: Fields, child: Fields) -> dict[str, Any]:
    """The inner object; older files give a window on the outer one alone."""
    if "sliding_window" in outer.raw and "sliding_window" not in child.raw:
        outer.notes.say("sliding_window is given outside the text model's object")
        return {**child.raw, "sliding_window": outer.raw["sliding_window"]}
    return dict(child.raw)
