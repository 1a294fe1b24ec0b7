"""From a GGUF file to a model: its metadata, the fields of a config.json that say the same, then the layers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopbound.catalog.fields import Fields, Notes
from hopbound.catalog.gguf.architectures import ARCHITECTURES
from hopbound.catalog.gguf.stack import Spelling, Stack
from hopbound.catalog.model import Model
from hopbound.catalog.reader import MAX_LAYERS, read_config
from hopbound.errors import InputError

MAGIC = b"GGUF"
MAX_SAID = 200  # characters of what the package says of a damaged file
NEXTN = "nextn_predict_layers"
# Keys that change what a layer keeps: an architecture that does not read one of them may be something else.
TELLING = (
    "attention.sliding_window",
    "attention.shared_kv_layers",
    "attention.kv_lora_rank",
    "attention.key_length_",
    "attention.value_length_",
    "attention.indexer.",
    "attention.recurrent_layers",
    "attention.compress_ratios",
    "decoder_block_count",
    "full_attention_interval",
    "kda.",
    "shortconv.",
    "ssm.",
    "token_shift_count",
    "wkv.",
)


def is_gguf(file: Path) -> bool:
    """Whether a file is meant to be a GGUF file: by its name, or by its first four bytes."""
    if file.suffix.lower() == ".gguf":
        return True
    try:
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError:  # whoever reads it says so
        return False


def read_gguf(file: Path, name: str) -> Model:
    """The model of a GGUF file, by its metadata alone.

    Args:
        file: of a split model, the first one.
        name: what the model is called in answers.

    Returns:
        The model; `model_type` is the file's architecture, `notes` lists everything that the reading assumed.

    Raises:
        InputError: the file cannot be read, or something is missing, wrong or not understood; one line that names
            the key, its value and what was expected.
    """
    return model_of(_metadata(file), name)


def _metadata(file: Path) -> Mapping[str, Any]:
    """The keys of a file.

    Raises:
        InputError: the package is not installed, or the file cannot be read.
    """
    try:
        from hopbound.catalog.gguf.header import metadata
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "gguf":
            raise
        raise InputError("model", str(file), 'a config.json; for GGUF files: pip install "hopbound[gguf]"') from error
    try:
        return metadata(file)
    except OSError as error:
        raise InputError("model", str(file), f"a file that can be read ({error.strerror or error})") from error
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        said = "".join(c if c.isprintable() else " " for c in str(error))[:MAX_SAID]
        raise InputError("model", str(file), f"a whole GGUF file ({said})") from error


def model_of(metadata: Mapping[str, Any], name: str) -> Model:
    """The model that the keys of a GGUF file describe.

    Args:
        metadata: all keys with their values.
        name: what the model is called in answers.

    Raises:
        InputError: as `read_gguf`.
    """
    notes = Notes()
    whole = Fields(metadata, notes)
    part = whole.maybe("split.no", least=0)
    if part:
        raise whole.error("split.no", part, "0: the first file of a split model, which holds its metadata")
    kind = whole.text("general.type")
    if kind not in (None, "model"):
        raise whole.error("general.type", kind, "model")
    architecture = whole.text("general.architecture")
    spelling = ARCHITECTURES.get(architecture or "")
    if architecture is None or spelling is None:
        known = " ".join(sorted(ARCHITECTURES))
        raise whole.error("general.architecture", architecture, f"an architecture that is understood: {known}")
    prefix = f"{architecture}."
    inner = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    fields = Fields(inner, notes, path=prefix)
    _refuse_what_is_not_read(fields, spelling)
    config = _config(spelling, _stack(fields))
    notes.say(f"GGUF metadata of architecture {architecture}, read as the config.json of model type {spelling.family}")
    for line in spelling.notes:
        notes.say(line)
    model = read_config(config, name)
    told = [*notes.all(), *model.notes]
    if any(layer.state_elements for layer in model.layers):
        told.append(f"no dtype of the recurrent state in the file: {model.precisions.state} bits are assumed")
    return replace(model, model_type=architecture, notes=tuple(told))


def _refuse_what_is_not_read(fields: Fields, spelling: Spelling) -> None:
    """Raises where a file gives a key that changes layers, and this architecture is not known to have it.

    Raises:
        InputError: it does.
    """
    for key, value in fields.raw.items():
        if key.startswith(TELLING) and key not in spelling.keys and value not in (0, False):
            raise fields.error(key, value, "no such key: what it does in this architecture is not understood")
    if fields.flag("attention.causal", derived=True) is False:
        raise fields.error("attention.causal", False, "true: a model that reads from left to right")


def _stack(fields: Fields) -> Stack:
    """The layers; blocks that predict further tokens are left out.

    Raises:
        InputError: it is no number of layers.
    """
    value = fields.number("block_count")
    blocks = fields.checked("block_count", value, 1, MAX_LAYERS)
    ahead = fields.maybe(NEXTN, least=0) or 0
    if ahead >= blocks:
        raise fields.error(NEXTN, ahead, f"less than {fields.path}block_count={blocks}")
    if ahead:
        fields.notes.say(f"{NEXTN}: the last {ahead} of {blocks} blocks predict further tokens and are left out")
    return Stack(fields, layers=blocks - ahead, blocks=blocks)


def _config(spelling: Spelling, stack: Stack) -> dict[str, Any]:
    """The fields of a config.json that say the same.

    Raises:
        InputError: a key is missing, wrong, or does not determine a layer.
    """
    config: dict[str, Any] = {"model_type": spelling.family, "num_hidden_layers": stack.layers}
    for one in spelling.rules:
        config |= one.make(stack)
    return config | {field: stack.number(key) for field, key in spelling.sizes.items()}
