"""The schedule grammar: `"2*(5*mamba2[heads=64,head_dim=64,state=128] full[kv_heads=2]) window[w=512]"`.

schedule = item { (" " | ",") item }
item     = [ count "*" ] ( layer | "(" schedule ")" )
layer    = mixer { "|" mixer }                      mixers in parallel in one layer
mixer    = name [ "[" key "=" number { "," key "=" number } "]" ]
"""

import re
from collections.abc import Sequence

from hopbound.architecture.mixer import MixerSpec, Precisions
from hopbound.architecture.model import Architecture, Layer
from hopbound.architecture.specs import Defaults, mixer_spec, spec_text
from hopbound.errors import InputError

MAX_LAYERS = 10_000
MAX_TEXT = 2**17  # characters
MAX_DEPTH = 64

_TOKEN = re.compile(
    r"(?P<space>[\s,]+)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>-?[0-9]+(?:\.[0-9]+)?)|(?P<mark>[*()|=\[\]])"
)


class _Reader:
    """Reads one schedule from left to right; every complaint points at its column (from 1)."""

    def __init__(self, text: str, defaults: Defaults) -> None:
        self.text = text
        self.defaults = defaults
        if len(text) > MAX_TEXT:
            raise InputError("schedule", f"{len(text)} characters", f"at most {MAX_TEXT}")
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(at, "a name, a number or one of * ( ) | = [ ] ,")
            if match.lastgroup == "space":
                if "," in match[0]:
                    self.tokens.append(("mark", ",", at))
            else:
                self.tokens.append((str(match.lastgroup), match[0], at))
            at = match.end()
        self.tokens.append(("end", "", len(text)))
        self.next = 0

    def error(self, at: int, expected: str) -> InputError:
        where = f"{self.text[at : at + 12]!r}" if at < len(self.text) else "the end"
        return InputError("schedule", self.text, f"{expected} at column {at + 1}, where {where} stands")

    def peek(self, value: str) -> bool:
        return self.tokens[self.next][1] == value and self.tokens[self.next][0] == "mark"

    def take(self, value: str, expected: str) -> int:
        if not self.peek(value):
            raise self.error(self.tokens[self.next][2], expected)
        self.next += 1
        return self.tokens[self.next - 1][2]

    def count(self, expected: str, least: int = 1) -> int:
        kind, value, at = self.tokens[self.next]
        if kind != "number" or "." in value or len(value) > 15 or int(value) < least:
            raise self.error(at, expected)
        self.next += 1
        return int(value)

    def schedule(self, depth: int) -> list[Layer]:
        layers: list[Layer] = []
        while True:
            while self.peek(","):
                self.next += 1
            kind, _, at = self.tokens[self.next]
            if kind == "end" or self.peek(")"):
                return layers
            layers += self.item(depth)
            if len(layers) > MAX_LAYERS:
                raise self.error(at, f"at most {MAX_LAYERS} layers")

    def item(self, depth: int) -> list[Layer]:
        repeat = 1
        if self.tokens[self.next][0] == "number":
            at = self.tokens[self.next][2]
            repeat = self.count("a count of at least 1")
            self.take("*", "'*' after the count")
            if repeat > MAX_LAYERS:
                raise self.error(at, f"at most {MAX_LAYERS} layers")
        if not self.peek("("):
            return repeat * [self.layer()]
        opening = self.take("(", "'('")
        if depth >= MAX_DEPTH:
            raise self.error(opening, f"at most {MAX_DEPTH} nested brackets")
        inner = self.schedule(depth + 1)
        if not self.peek(")"):
            raise self.error(opening, "a ')' that closes the bracket")
        closing = self.take(")", "')'")
        if not inner:
            raise self.error(closing, "at least one layer between the brackets")
        if repeat * len(inner) > MAX_LAYERS:
            raise self.error(opening, f"at most {MAX_LAYERS} layers")
        return repeat * inner

    def layer(self) -> Layer:
        mixers = [self.mixer()]
        while self.peek("|"):
            self.next += 1
            mixers.append(self.mixer())
        return Layer(tuple(mixers))

    def mixer(self) -> MixerSpec:
        kind, name, at = self.tokens[self.next]
        if kind != "word":
            raise self.error(at, "the name of a mixer")
        self.next += 1
        given: dict[str, int] = {}
        if self.peek("["):
            opening = self.take("[", "'['")
            while True:
                key_kind, key, key_at = self.tokens[self.next]
                if key_kind != "word":
                    raise self.error(key_at, "a key, as in name[key=value]")
                if key in given:
                    raise self.error(key_at, "each key once")
                self.next += 1
                self.take("=", "'=' after the key")
                given[key] = self.count("a whole number of at most 15 digits, not negative", least=0)
                if self.peek(","):
                    self.next += 1
                    continue
                if not self.peek("]"):
                    raise self.error(opening, "a ']' that closes the bracket")
                self.next += 1
                break
        try:
            return mixer_spec(name, given, self.defaults)
        except InputError as error:
            known = error.field == "mixer"
            expected = error.expected if known else f"{error.field} to be {error.expected}, not {error.value!r},"
            raise self.error(at, expected) from error


def parse_layers(text: str, defaults: Defaults | None = None) -> tuple[Layer, ...]:
    """Read a schedule; what it leaves open comes from `defaults`.

    Raises:
        InputError: one line that names the column and what was expected there.
    """
    reader = _Reader(text, defaults or Defaults())
    layers = reader.schedule(0)
    if reader.tokens[reader.next][0] != "end":
        raise reader.error(reader.tokens[reader.next][2], "a '(' before this ')'")
    if not layers:
        raise InputError("schedule", text, "at least one layer")
    return tuple(layers)


def parse_schedule(text: str, defaults: Defaults | None = None, precisions: Precisions | None = None) -> Architecture:
    """The architecture of a schedule, with the default precisions unless others are given.

    Raises:
        InputError: as `parse_layers`.
    """
    return Architecture(parse_layers(text, defaults), precisions or Precisions())


def format_schedule(layers: Sequence[Layer]) -> str:
    """The schedule with all sizes written out: reading it gives the same layers, whatever the defaults."""
    return _fold(["|".join(spec_text(mixer) for mixer in layer.mixers) for layer in layers])


def format_names(layers: Sequence[Layer]) -> str:
    """The schedule by names only."""
    return _fold(["|".join(mixer.name for mixer in layer.mixers) for layer in layers])


def _fold(words: Sequence[str]) -> str:
    """Write repeats as `k*word` or `k*(words)`: at each place the repeat that saves the most words."""
    parts: list[str] = []
    at = 0
    while at < len(words):
        length, times = _best_repeat(words, at)
        body = words[at] if length == 1 else f"({_fold(words[at : at + length])})"
        parts.append(body if times == 1 else f"{times}*{body}")
        at += length * times
    return " ".join(parts)


def _best_repeat(words: Sequence[str], at: int) -> tuple[int, int]:
    best = (1, 1)
    for length in range(1, min((len(words) - at) // 2, 64) + 1):
        times = 1
        while words[at : at + length] == words[at + times * length : at + (times + 1) * length]:
            times += 1
        if times > 1 and length * (times - 1) > best[0] * (best[1] - 1):
            best = (length, times)
    return best
