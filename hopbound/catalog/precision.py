"""Bits an element, from the dtype words of config files."""

from hopbound.catalog.fields import ABSENT, Fields

ASSUMED = 16
BITS = {
    "float64": 64,
    "float32": 32,
    "float": 32,
    "bfloat16": 16,
    "float16": 16,
    "half": 16,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
}


def bits_of(fields: Fields, name: str, word: str) -> int:
    """The bits of a dtype.

    Raises:
        InputError: nothing is known of it.
    """
    return BITS[fields.one_of(name, word.removeprefix("torch."), BITS)]


def model_bits(places: tuple[Fields, ...]) -> int:
    """The bits of the model's dtype (`dtype`, `torch_dtype` in older files), of the first of these objects that says.

    Raises:
        InputError: it is no dtype.
    """
    for fields in places:
        name, value = fields.find("dtype", "torch_dtype")
        if value is ABSENT or value is None or value == "auto":
            continue
        if not isinstance(value, str):
            raise fields.error(name, value, "the name of a dtype")
        return bits_of(fields, name, value)
    places[0].notes.say("no dtype in the file: bfloat16 is assumed for keys, values and activations")
    return ASSUMED
