"""The grammar: what is read, what is written, what is refused and where the complaint points."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import (
    ROWS,
    Defaults,
    Layer,
    canonical_name,
    format_names,
    format_schedule,
    mixer_spec,
    parse_layers,
)
from hopbound.architecture.mixer import MixerSpec
from hopbound.errors import InputError

REQUIRED = ("k", "block", "levels", "budget", "state")
MAY_BE_ZERO = ("conv", "recent", "floor", "rope_dim", "columns")
MOST = {"beta": 2, "overlap": 1}
DEFAULTS = Defaults(heads=2, head_dim=6, window=9, kernel=3)


@st.composite
def mixers(draw: st.DrawFn) -> tuple[str, MixerSpec]:
    """A mixer as text, and as the spec that the text should mean."""
    name = draw(st.sampled_from(list(ROWS)))
    called = draw(st.sampled_from([name, *ROWS[name].aliases]))
    given = {}
    for key in ROWS[name].keys:
        if key in REQUIRED or draw(st.booleans()):
            most = given["budget"] if key in ("recent", "floor") else MOST.get(key, 40)
            given[key] = draw(st.integers(0 if key in MAY_BE_ZERO else 1, most))
    for key in ("kv_heads", "key_heads"):
        if key in given:
            given["heads"] = given[key] * draw(st.integers(1, 3))
    order = draw(st.permutations(list(given)))
    space = draw(st.sampled_from(["", " ", "  "]))
    text = called + (f"{space}[{(',' + space).join(f'{key}{space}={given[key]}' for key in order)}]" if given else "")
    return text, mixer_spec(name, given, DEFAULTS)


@st.composite
def single_layers(draw: st.DrawFn) -> tuple[str, list[Layer]]:
    parts = draw(st.lists(mixers(), min_size=1, max_size=3))
    bar = draw(st.sampled_from(["|", " | "]))
    return bar.join(text for text, _ in parts), [Layer(tuple(spec for _, spec in parts))]


def grouped(
    inner: st.SearchStrategy[tuple[str, list[Layer]]],
) -> st.SearchStrategy[tuple[str, list[Layer]]]:
    """Schedules of schedules: side by side, with counts, in brackets."""

    @st.composite
    def group(draw: st.DrawFn) -> tuple[str, list[Layer]]:
        texts, layers = [], []
        for text, some in draw(st.lists(inner, min_size=1, max_size=3)):
            count = draw(st.integers(1, 3))
            star = draw(st.sampled_from(["*", " * "]))
            texts.append(f"{count}{star}({text})" if draw(st.booleans()) else f"( {text} )")
            layers += some * (count if texts[-1][0] != "(" else 1)
        separator = draw(st.sampled_from([" ", ",", ", ", "\n", " ,, "]))
        return separator.join(texts), layers

    return group()


schedules = st.recursive(single_layers(), grouped, max_leaves=8)


@given(schedules)
def test_text_is_read_as_it_was_meant(case: tuple[str, list[Layer]]) -> None:
    text, layers = case
    assert parse_layers(text, DEFAULTS) == tuple(layers)


@given(schedules, st.builds(Defaults, heads=st.integers(1, 9), head_dim=st.integers(1, 9), window=st.integers(1, 9)))
def test_round_trip_whatever_the_defaults(case: tuple[str, list[Layer]], defaults: Defaults) -> None:
    _, layers = case
    assert parse_layers(format_schedule(layers), defaults) == tuple(layers)


@given(st.lists(st.sampled_from(["full", "gdn", "linear|full"]), min_size=1, max_size=24))
def test_folding_never_changes_the_layers(words: list[str]) -> None:
    layers = parse_layers(" ".join(words))
    for folded in (format_names(layers), format_schedule(layers)):
        assert parse_layers(folded) == layers
    assert len(format_names(layers)) <= len(" ".join(words))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("full full full", "3*full"),
        ("gdn gdn gdn full gdn gdn gdn full", "2*(3*gdn full)"),
        ("gdn gdn gdn gdn full gdn gdn gdn gdn full full", "2*(4*gdn full) full"),
        ("linear full linear", "linear full linear"),
        ("12*(3*gdn full)", "12*(3*gdn full)"),
        ("2*full|gdn", "2*full|gdn"),
    ],
)
def test_folding_examples(text: str, folded: str) -> None:
    assert format_names(parse_layers(text)) == folded


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("3*full", ["full"] * 3),
        ("2*(gdn full)", ["gdn", "full"] * 2),
        ("2*(2*(gdn full) conv)", ["gdn", "full", "gdn", "full", "conv"] * 2),
        ("(gdn full)", ["gdn", "full"]),
        ("gdn,full", ["gdn", "full"]),
        (" gdn\tfull\n", ["gdn", "full"]),
        ("gdn,", ["gdn"]),
        ("2*gdn|full", ["gdn|full"] * 2),
    ],
)
def test_expansion(text: str, names: list[str]) -> None:
    layers = parse_layers(text)
    assert ["|".join(mixer.name for mixer in layer.mixers) for layer in layers] == names


@pytest.mark.parametrize("name", ROWS)
def test_aliases_mean_their_row(name: str) -> None:
    for alias in (name, *ROWS[name].aliases):
        assert canonical_name(alias) == name


def test_aliases_are_unambiguous() -> None:
    names = [alias for name, row in ROWS.items() for alias in (name, *row.aliases)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("full $", 6, "a name, a number or one of"),
        ("full ful", 6, "a mixer .did you mean 'full'"),
        ("full xyzzy", 6, "one of full mla window"),
        ("gdn full[color=3]", 5, "one of heads kv_heads head_dim value_dim"),
        ("mlp[heads=3]", 1, r"one of \(no keys\)"),
        ("gdn full[heads]", 15, "'=' after the key"),
        ("full[heads=]", 12, "a whole number"),
        ("full[heads=x]", 12, "a whole number"),
        ("full[heads=1.5]", 12, "a whole number"),
        ("full[heads=-1]", 12, "a whole number of at most 15 digits, not negative"),
        ("full[heads=0]", 1, "a whole number from 1 to"),
        (f"full[heads={2**40 + 1}]", 1, "a whole number from 1 to"),
        ("full[heads=4,heads=4]", 14, "each key once"),
        ("full[=4]", 6, "a key, as in"),
        ("full[]", 6, "a key, as in"),
        ("full[heads=4,]", 14, "a key, as in"),
        ("conv full[heads=4", 10, "a ']' that closes the bracket"),
        ("full[heads=4 gdn", 5, "a ']' that closes the bracket"),
        ("full[heads=4,kv_heads=3]", 1, "a divisor of heads=4"),
        ("full topk", 6, "a value: topk.k=….* has no default"),
        ("0*full", 1, "a count of at least 1"),
        ("gdn -2*full", 5, "a count of at least 1"),
        ("1.5*full", 1, "a count of at least 1"),
        ("3 full", 3, "'\\*' after the count"),
        ("gdn 3", 6, "'\\*' after the count"),
        ("3*", 3, "the name of a mixer"),
        ("full |", 7, "the name of a mixer"),
        ("| full", 1, "the name of a mixer"),
        ("full*3", 5, "the name of a mixer"),
        ("2*3*full", 3, "the name of a mixer"),
        ("full]", 5, "the name of a mixer"),
        ("gdn 2*(full", 7, "a '\\)' that closes the bracket"),
        ("gdn full)", 9, "a '\\(' before this '\\)'"),
        ("gdn 2*()", 8, "at least one layer between the brackets"),
        ("10001*full", 1, "at most 10000 layers"),
        ("101*(100*full)", 5, "at most 10000 layers"),
        ("5000*full 5000*full full", 21, "at most 10000 layers"),
        ("(" * 65 + "full" + ")" * 65, 65, "at most 64 nested brackets"),
        ("9" * 5000 + "*full", 1, "a count of at least 1"),
    ],
)
def test_complaints_are_one_line_and_point_at_the_column(text: str, column: int, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        parse_layers(text)
    message = str(caught.value)
    assert "\n" not in message
    assert re.search(rf" at column {column}, where ", message), message


@pytest.mark.parametrize("text", ["", "  ", ",", "\n"])
def test_an_empty_schedule_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^schedule: got .*, expected at least one layer$"):
        parse_layers(text)


def test_the_largest_schedule_is_read() -> None:
    assert len(parse_layers("100*(100*full)")) == 10_000
    assert len(parse_layers("(" * 64 + "full" + ")" * 64)) == 1


PIECES = [*"*()|=[],$ \n-.0123456789", "full", "gdn", "heads", "k", "2*", "topk[k=2]", "é", "٣", "²", "\x00", "’"]


@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=25).map("".join)))
def test_garbage_is_read_or_refused_in_one_line(text: str) -> None:
    complaint = ""
    try:
        parse_layers(text)
    except InputError as error:
        complaint = str(error)
    assert "\n" not in complaint


def test_the_package_needs_the_standard_library_only() -> None:
    script = (
        "import json, sys\n"
        "from hopbound.architecture import parse_schedule\n"
        "str(parse_schedule('2*(gdn full)'))\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "numpy", "scipy", "jaxtyping"} & set(json.loads(output))
