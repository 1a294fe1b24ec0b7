"""The key-value pairs at the head of a GGUF file, by the package `gguf`; of tensors nothing but the list is passed.

`GGUFReader` alone makes an array of every token of a vocabulary (seconds, half a gigabyte), believes any length that a
file gives, and wants all of the tensors' data to be there. What is overridden here steps over lists of strings, takes
lists of numbers whole, and checks every read against the end of the file.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (the format).
"""

import struct
from pathlib import Path
from typing import Any

from gguf import GGUFReader, GGUFValueType

Value = int | float | bool | str | list[int] | list[float] | list[bool]
"""Of a key; lists of strings are left out."""

SKIPPED = ("GGUF.", "tokenizer.")
ARRAY_HEAD = 12  # bytes: the type of the items, and their number


class _Header(GGUFReader):
    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        try:
            found = super()._get(offset, dtype, count, override_order)
        except ValueError as error:  # a part of a number
            raise ValueError("it ends too early") from error
        if len(found) != int(count):
            raise ValueError("it ends too early")
        return found

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[GGUFValueType]]:
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        item = GGUFValueType(int(self._get(orig_offs, "u4")[0]))
        count = int(self._get(orig_offs + 4, "u8")[0])
        start = orig_offs + ARRAY_HEAD
        if item is GGUFValueType.STRING:
            return ARRAY_HEAD + self._length_of_strings(start, count), [], [], [GGUFValueType.ARRAY, item]
        kind = self.gguf_scalar_to_np.get(item)
        if kind is None:
            raise ValueError("a list of lists is in it")
        values = self._get(start, kind, count)
        return ARRAY_HEAD + int(values.nbytes), [values], [0], [GGUFValueType.ARRAY, item]

    def _length_of_strings(self, start: int, count: int) -> int:
        order = "<" if (self.byte_order == "I") == (struct.pack("=H", 1) == struct.pack("<H", 1)) else ">"
        length = struct.Struct(f"{order}Q")
        data: Any = self.data
        view, at = memoryview(data), start
        for _ in range(count):
            if at + length.size > len(view):
                raise ValueError("it ends too early")
            at += length.size + length.unpack_from(view, at)[0]
        if at > len(view):
            raise ValueError("it ends too early")
        return at - start

    def _build_tensors(self, start_offs: int, fields: list[Any]) -> None:
        """Nothing: their data need not be there."""


def metadata(file: Path) -> dict[str, Value]:
    """The keys of a file with their values, but for those of its tokenizer and for lists of strings.

    Raises:
        OSError: the file cannot be read.
        ValueError, KeyError, IndexError, OverflowError: it is no GGUF file, of an unknown version, or damaged.
    """
    found: dict[str, Value] = {}
    for key, field in _Header(file).fields.items():
        if not (key.isascii() and key.isprintable()):  # the format has keys of ASCII letters, figures, dots and `_`
            raise ValueError(f"a key is {key!r}")
        if key.startswith(SKIPPED) or not field.types:
            continue
        main = field.types[0]
        if main is GGUFValueType.STRING:
            found[key] = bytes(field.parts[-1]).decode("utf-8")
        elif main is not GGUFValueType.ARRAY:
            found[key] = field.parts[-1].tolist()[0]
        elif field.data:
            found[key] = field.parts[field.data[0]].tolist()
    return found
