"""Typed access to the metadata of one file, and rules: from some of its keys to some fields of a config."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hopbound.catalog.fields import Fields


@dataclass(frozen=True)
class Stack:
    """What a file says of its architecture's layers.

    Attributes:
        fields: its keys, without the architecture's name before them.
        layers: how many there are.
        blocks: the same with the blocks that predict further tokens, which come last and are left out.
    """

    fields: Fields
    layers: int
    blocks: int

    def number(self, key: str, least: int = 1) -> int:
        """A whole number.

        Raises:
            InputError: it is none, or not given.
        """
        return self.fields.number(key, least=least)

    def maybe(self, key: str, least: int = 1) -> int | None:
        """A whole number; None where it is not given.

        Raises:
            InputError: it is something else.
        """
        return self.fields.maybe(key, least=least)

    def each(self, key: str) -> list[int]:
        """A whole number a layer, which a file may give once for all.

        Raises:
            InputError: it is something else, or a list of another length.
        """
        if not isinstance(self.fields.raw.get(key), list):
            return self.layers * [self.number(key, least=0)]
        return self._cut(key, self.fields.numbers(key) or [])

    def listed(self, key: str, expected: str) -> list[int]:
        """A whole number a layer, where one for all would say nothing.

        Raises:
            InputError: it is no list, or one of another length.
        """
        value = self.fields.raw.get(key)
        if not isinstance(value, list):
            raise self.fields.error(key, value, expected)
        return self.each(key)

    def flags(self, key: str) -> list[bool]:
        """True or false for every layer.

        Raises:
            InputError: it is something else, or a list of another length.
        """
        values = self.fields.items(key) or []
        for at, value in enumerate(values):
            if value not in (0, 1):
                raise self.fields.error(f"{key}[{at}]", value, "true or false")
        return [bool(value) for value in self._cut(key, values)]

    def _cut(self, key: str, values: list[Any]) -> list[Any]:
        """A list of as many values as there are blocks, without those of the last ones that are left out."""
        if len(values) not in (self.layers, self.blocks):
            raise self.fields.error(key, f"{len(values)} values", f"{self.layers} values, one a layer")
        return values[: self.layers]

    def share(self, key: str, of: str) -> int:
        """What one of several parts has: the number of `of`, divided by that of `key`.

        Raises:
            InputError: one is missing, or it does not divide.
        """
        total, parts = self.number(of), self.number(key)
        if total % parts:
            raise self.fields.error(key, parts, f"a divisor of {self.fields.path}{of}={total}")
        return total // parts

    def say(self, line: str) -> None:
        """Write down what the file does not say."""
        self.fields.notes.say(line)


@dataclass(frozen=True)
class Rule:
    """From some keys to some fields of a config.

    Attributes:
        make: the fields; `per_layer_config` holds those of single layers.
        keys: all keys that it reads.
    """

    make: Callable[[Stack], dict[str, Any]]
    keys: tuple[str, ...] = ()


def rule(*keys: str) -> Callable[[Callable[[Stack], dict[str, Any]]], Rule]:
    """Makes a function of a stack a rule that reads these keys."""
    return lambda make: Rule(make, keys)


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """How the keys of an architecture say what the config.json of a family says.

    Attributes:
        family: the `model_type` of that config.json.
        rules: what makes its fields, the schedule among them.
        sizes: fields that are whole numbers of the file, and their keys.
        ignored: keys that change no layer of this architecture.
        notes: what is to be said of each of its files.
    """

    family: str
    rules: tuple[Rule, ...]
    sizes: Mapping[str, str]
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """All keys that are understood."""
        read = (key for one in self.rules for key in one.keys)
        return frozenset((*read, *self.sizes.values(), *self.ignored))
