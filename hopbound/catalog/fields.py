"""Typed access to the fields of one config.json: what is there is checked, what is assumed is written down.

A field can be there, be `null`, or be absent. An absent one takes the default of its model type's class
(`defaults.json`), a null one what the class makes of null; both are kept in `Notes`, so that no number of an answer
rests on something that neither the file nor the notes say.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hopbound.errors import InputError, shortened

MAX_NUMBER = 2**40
MAX_ITEMS = 10_000
WHOLE = "a whole number"


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


@dataclass
class Notes:
    """What a reading rests on beside the file.

    Attributes:
        lines: statements, in the order in which they came up.
        assumed: fields that the file leaves open, with the value that the class gives them.
    """

    lines: list[str] = field(default_factory=list)
    assumed: dict[str, object] = field(default_factory=dict)

    def say(self, line: str) -> None:
        """Add a line, once."""
        if line not in self.lines:
            self.lines.append(line)

    def assume(self, name: str, value: object) -> None:
        """Say that the file does not give `name`."""
        self.assumed.setdefault(name, value)

    def all(self) -> tuple[str, ...]:
        """Every line, and one for all that is assumed."""
        if not self.assumed:
            return tuple(self.lines)
        listed = ", ".join(f"{name}={_short(value)}" for name, value in self.assumed.items())
        return (*self.lines, f"not in the file, by the rules and defaults of its class: {listed}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class Fields:
    """One JSON object of a config, seen as the layer `index` sees it.

    Attributes:
        raw: the object.
        notes: where assumptions go, shared by all views of one config.
        defaults: what the class says where the file is silent.
        aliases: other spellings of a field, as the class reads them.
        path: where the object stands in the file, with a dot at its end; empty for the file itself.
        index: the layer that is read.
    """

    raw: Mapping[str, Any]
    notes: Notes
    defaults: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    index: int = 0

    def at(self, index: int, overrides: Mapping[str, Any] | None = None) -> "Fields":
        """The view of one layer, some of its fields given for it alone."""
        raw = {**self.raw, **overrides} if overrides else self.raw
        return replace(self, index=index, raw=raw)

    def spellings(self, name: str) -> tuple[str, ...]:
        """All names under which a field may stand in a file."""
        known = [name]
        if name in self.aliases:
            known.append(self.aliases[name])
        known += [alias for alias, meant in self.aliases.items() if meant in known and alias not in known]
        return tuple(known)

    def _all_spellings(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spelling for name in names for spelling in self.spellings(name)))

    def find(self, *names: str) -> tuple[str, Any]:
        """The name and value of the one of these fields that the file gives; `ABSENT` if it gives none.

        Raises:
            InputError: the file gives several that differ.
        """
        given: list[tuple[str, Any]] = []
        for name in self._all_spellings(names):
            if name in self.raw:
                given.append((name, self.raw[name]))
        told = [(name, value) for name, value in given if value is not None]
        for name, value in told[1:]:
            if value != told[0][1] or type(value) is not type(told[0][1]):
                raise self.error(name, value, f"the same as {told[0][0]}={shortened(repr(told[0][1]))}")
        if told:
            return told[0]
        return given[0] if given else (names[0], ABSENT)

    def error(self, name: str, value: object, expected: str) -> InputError:
        """The complaint about one field."""
        return InputError(f"{self.path}{name}", None if value is ABSENT else value, expected)

    def has(self, *names: str) -> bool:
        """Whether the file gives one of these fields, and not as null."""
        value = self.find(*names)[1]
        return value is not ABSENT and value is not None

    def default(self, *names: str) -> Any:
        """What the class says where the file is silent; `ABSENT` if it says nothing."""
        for name in self._all_spellings(names):
            if name in self.defaults:
                return self.defaults[name]
        return ABSENT

    def _value(self, names: Sequence[str]) -> tuple[str, Any]:
        """The file's value, else the class's, which is noted; None where neither gives one that is not null."""
        name, value = self.find(*names)
        if value is ABSENT:
            value = self.default(*names)
            value = None if value is ABSENT else value
            if value is not None:
                self.notes.assume(f"{self.path}{name}", value)
        return name, value

    def _given(self, name: str) -> tuple[str, Any]:
        """The file's value alone; None where it gives none that is not null."""
        shown, value = self.find(name)
        return shown, None if value is ABSENT else value

    def number(self, *names: str, least: int = 1, derived: int | None = None) -> int:
        """A whole number.

        Args:
            names: of the field, the first for messages.
            least: the smallest that makes sense.
            derived: what the class makes of a field that is absent or null; noted.

        Raises:
            InputError: none is given and none follows, or it is not a whole number from `least` to 2^40.
        """
        found = self.maybe(*names, least=least)
        if found is not None:
            return found
        if derived is None:
            name, value = self.find(*names)
            raise self.error(name, value, f"{WHOLE} of at least {least}")
        self.notes.assume(f"{self.path}{names[0]}", derived)
        return derived

    def maybe(self, *names: str, least: int = 1) -> int | None:
        """A whole number, or None where file and class give none.

        Raises:
            InputError: as `number`, for a value that is given.
        """
        name, value = self._value(names)
        return None if value is None else self.checked(name, value, least)

    def checked(self, name: str, value: object, least: int = 1, most: int = MAX_NUMBER) -> int:
        """A value that must be a whole number.

        Raises:
            InputError: it is none, or out of range.
        """
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            bound = f"of at least {least}" if most == MAX_NUMBER else f"from {least} to {most}"
            raise self.error(name, value, f"{WHOLE} {bound}" if least <= most else "no value at all")
        return value

    def real(self, *names: str, derived: float | None = None) -> float:
        """A positive number.

        Raises:
            InputError: it is none, or absent with nothing that follows.
        """
        name, value = self._value(names)
        if value is None and derived is not None:
            self.notes.assume(f"{self.path}{names[0]}", derived)
            return derived
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_NUMBER:
            raise self.error(name, value, "a number above 0")
        return float(value)

    def flag(self, *names: str, derived: bool | None = None) -> bool:
        """True or false.

        Raises:
            InputError: it is neither, or absent with nothing that follows.
        """
        name, value = self._value(names)
        if value is None and derived is not None:
            return derived
        if not isinstance(value, bool):
            raise self.error(name, value, "true or false")
        return value

    def text(self, *names: str) -> str | None:
        """A string, or None.

        Raises:
            InputError: it is something else.
        """
        name, value = self._value(names)
        if value is not None and not isinstance(value, str):
            raise self.error(name, value, "a string")
        return value

    def items(self, name: str) -> list[Any] | None:
        """A list that the file gives, or None.

        Raises:
            InputError: it is something else, or longer than 10,000 items.
        """
        shown, value = self._given(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            raise self.error(shown, value, f"a list of at most {MAX_ITEMS} items")
        return value

    def words(self, name: str) -> list[str] | None:
        """A list of strings that the file gives, or None.

        Raises:
            InputError: it is something else.
        """
        value = self.items(name)
        if value is None:
            return None
        for at, word in enumerate(value):
            if not isinstance(word, str):
                raise self.error(f"{name}[{at}]", word, "a string")
        return value

    def numbers(self, name: str, *, least: int = 0, most: int = MAX_NUMBER) -> list[int] | None:
        """A list of whole numbers that the file gives, or None.

        Raises:
            InputError: it is something else.
        """
        value = self.items(name)
        if value is None:
            return None
        return [self.checked(f"{name}[{at}]", one, least, most) for at, one in enumerate(value)]

    def child(self, name: str) -> "Fields | None":
        """An object inside the object, or None.

        Raises:
            InputError: it is something else.
        """
        shown, value = self._given(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(shown, value, "an object")
        inner = self.default(name)
        return replace(
            self,
            raw=value,
            defaults=inner if isinstance(inner, dict) else {},
            aliases={},
            path=f"{self.path}{shown}.",
        )

    def one_of(self, name: str, value: str, known: Iterable[str]) -> str:
        """A string that must be one of some.

        Raises:
            InputError: it is not.
        """
        known = tuple(known)
        if value not in known:
            raise self.error(name, value, f"one of {' '.join(known)}")
        return value
