"""Classifications of known languages, and the monoid against words themselves."""

import json
from itertools import permutations, product
from math import lcm
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture.specs import ROWS
from hopbound.bounds.languages import (
    FACTS,
    NAMED,
    Classification,
    Dfa,
    after,
    classify,
    closure,
    derived,
    dyck,
    minimal,
    read_dfa,
    word_problem,
)
from hopbound.errors import InputError

EVERYTHING = Dfa(((0,),), 0, frozenset({0}))
S3, S4, A5, S5 = (NAMED[name] for name in ("S3", "S4", "A5", "S5"))


@pytest.mark.parametrize(
    ("dfa", "kind", "group"),
    [
        (NAMED["parity"], "solvable", 2),
        (NAMED["(aa)*"], "solvable", 2),
        (NAMED["a*b*"], "star-free", 1),
        (NAMED["(ab)*"], "star-free", 1),
        (EVERYTHING, "star-free", 1),
        (S3, "solvable", 6),
        (S4, "solvable", 24),
        (A5, "not solvable", 60),
        (S5, "not solvable", 120),
    ],
)
def test_known_languages(dfa: Dfa, kind: str, group: int) -> None:
    found = classify(dfa)
    assert (found.kind, found.largest_group) == (kind, group)


def test_only_the_language_counts() -> None:
    """A state that nothing tells apart, one that nothing reaches, and a group that acceptance does not see."""
    doubled = Dfa(((1, 0, 0), (1, 0, 2)), 0, frozenset({0, 1}))  # accepts everything
    assert classify(doubled).kind == "star-free"
    assert classify(doubled).states == 1


def test_a_group_beside_a_sink() -> None:
    """Parity of a's until a b: the group is at an idempotent that is not the identity of all states."""
    reset = Dfa(((1, 0, 2), (2, 2, 2)), 0, frozenset({0}))
    assert classify(reset).kind == "solvable"


dfas = st.integers(1, 4).flatmap(
    lambda n: st.builds(
        Dfa,
        st.lists(st.tuples(*[st.integers(0, n - 1)] * n), min_size=1, max_size=2).map(tuple),
        st.integers(0, n - 1),
        st.frozensets(st.integers(0, n - 1)),
    )
)


@given(dfas)
def test_the_minimal_automaton_has_the_same_language_and_no_two_alike_states(dfa: Dfa) -> None:
    small = minimal(dfa)
    words = [word for length in range(6) for word in product(range(len(dfa.transitions)), repeat=length)]
    assert all(dfa.accepts(word) == small.accepts(word) for word in words)
    rows = [
        tuple(Dfa(small.transitions, state, small.accepting).accepts(word) for word in words)
        for state in range(len(small.transitions[0]))
    ]
    assert len(set(rows)) == len(rows)


@given(dfas)
def test_star_free_is_aperiodic(dfa: Dfa) -> None:
    """By the definition: every element has a power that one more factor does not change."""
    small = minimal(dfa)
    monoid = closure(small.transitions, tuple(range(len(small.transitions[0]))))
    assert {after(s, t) for s in monoid for t in small.transitions} <= set(monoid)

    def aperiodic(element: tuple[int, ...]) -> bool:
        power = element
        for _ in range(len(monoid)):
            power = after(power, element)
        return after(power, element) == power

    assert (classify(dfa).kind == "star-free") == all(map(aperiodic, monoid))


@pytest.mark.parametrize(
    ("dfa", "orders"), [(S3, [6, 3, 1]), (S4, [24, 12, 4, 1]), (A5, [60, 60]), (S5, [120, 60, 60])]
)
def test_derived_series(dfa: Dfa, orders: list[int]) -> None:
    group = set(closure(dfa.transitions, tuple(range(len(dfa.transitions[0])))))
    series = [group]
    while len(series) < len(orders):
        series.append(derived(series[-1]))
    assert [len(one) for one in series] == orders
    identity = tuple(range(len(dfa.transitions[0])))
    inverse = {g: next(h for h in group if after(g, h) == identity) for g in group}
    commutators = {after(after(inverse[g], inverse[h]), after(g, h)) for g in group for h in group}
    assert set(closure(sorted(commutators), identity)) == series[1]


def test_too_large_a_monoid_is_refused() -> None:
    cycle, swap = (*range(1, 8), 0), (1, 0, *range(2, 8))
    accepting = frozenset({0})
    with pytest.raises(InputError, match="transitions"):
        classify(Dfa((cycle, swap), 0, accepting))  # 8! = 40,320 elements
    assert len(list(permutations(range(8)))) > 20_000


@pytest.mark.parametrize(
    ("transitions", "start", "accepting"),
    [
        ((), 0, set()),
        (((),), 0, set()),
        (((0, 2),), 0, set()),
        (((0,), (0, 1)), 0, set()),
        (((0,),), 1, set()),
        (((0,),), 0, {1}),
    ],
)
def test_wrong_input(transitions: tuple[tuple[int, ...], ...], start: int, accepting: set[int]) -> None:
    with pytest.raises(InputError):
        Dfa(transitions, start, frozenset(accepting))


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("parity", lambda word: word.count(1) % 2 == 0),
        ("(aa)*", lambda word: len(word) % 2 == 0),
        ("a*b*", lambda word: list(word) == sorted(word)),
        ("(ab)*", lambda word: word == (0, 1) * (len(word) // 2)),
        ("mod3", lambda word: len(word) % 3 == 0),
    ],
)
def test_the_named_automata_are_what_they_are_called(name: str, language) -> None:
    letters = range(len(NAMED[name].transitions))
    for length in range(9):
        for word in product(letters, repeat=length):
            assert NAMED[name].accepts(word) == language(word), word


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_bounded_brackets(depth: int) -> None:
    dfa = dyck(depth)
    for length in range(11):
        for word in product((0, 1), repeat=length):
            heights = [0]
            for letter in word:
                heights.append(heights[-1] + (1 if letter == 0 else -1))
            assert dfa.accepts(word) == (min(heights) >= 0 and max(heights) <= depth and heights[-1] == 0)
    assert classify(dfa).kind == "star-free"


@given(st.lists(st.integers(0, 1), max_size=12))
def test_a_word_problem_multiplies(word: list[int]) -> None:
    generators = ((1, 0, 2), (1, 2, 0))
    product_of_all: tuple[int, ...] = (0, 1, 2)
    for letter in word:
        product_of_all = after(product_of_all, generators[letter])
    assert word_problem(*generators).accepts(word) == (product_of_all == (0, 1, 2))


@given(dfas)
def test_the_letter_period_is_when_repeated_letters_come_back(dfa: Dfa) -> None:
    found = classify(dfa)
    small = minimal(dfa)
    periods = []
    for letter in range(len(small.transitions)):
        for start in range(found.states):
            state, seen = start, []
            while state not in seen:
                seen.append(state)
                state = small.transitions[letter][state]
            periods.append(len(seen) - seen.index(state))
    assert found.letter_period == lcm(*periods)
    if found.kind == "star-free":
        assert found.letter_period == 1


def excluded(found: Classification) -> set[str]:
    """The mixers that the facts exclude, conditions or not."""
    return {mixer for fact in FACTS if fact.excluded and fact.speaks_of(found) for mixer in fact.mixers}


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("parity", {"mamba", "gla", "delta", "gdn"}, {"full", "deltaproduct", "rwkv7"}),
        ("mod3", {"mamba", "gla", "delta"}, {"full", "deltaproduct", "rwkv7"}),
        ("a*b*", set(), {"full", "mamba", "delta"}),
        ("S3", {"mamba", "delta"}, {"full", "deltaproduct", "rwkv7"}),
        ("A5", {"full", "mamba", "delta"}, {"deltaproduct", "rwkv7"}),
        ("S5", {"full", "mamba", "delta"}, {"deltaproduct", "rwkv7"}),
    ],
)
def test_which_mixers_are_excluded(name: str, inside: set[str], outside: set[str]) -> None:
    found = excluded(classify(NAMED[name]))
    assert inside <= found
    assert not outside & found


def test_no_fact_contradicts_another() -> None:
    """No mixer is both excluded and able, whatever the language; only NC¹ statements are conditional."""
    for dfa in NAMED.values():
        found = classify(dfa)
        able = {mixer for fact in FACTS if not fact.excluded and fact.speaks_of(found) for mixer in fact.mixers}
        assert not able & excluded(found)
    assert {fact.conditional for fact in FACTS if fact.about == "not solvable"} == {"TC⁰ ≠ NC¹"}
    assert all(not fact.conditional for fact in FACTS if fact.about != "not solvable")
    assert all(mixer in ROWS and "arXiv" in fact.source for fact in FACTS for mixer in fact.mixers)


def test_an_automaton_is_read_from_json(tmp_path: Path) -> None:
    path = tmp_path / "dfa.json"
    path.write_text(json.dumps({"letters": {"a": [0, 1], "b": [1, 0]}, "start": 0, "accepting": [0]}))
    assert read_dfa(json.loads(path.read_text())) == NAMED["parity"]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "automaton"),
        ({"letters": {}, "start": 0}, "automaton"),
        ({"letters": [], "start": 0, "accepting": []}, "letters"),
        ({"letters": {"a": 1}, "start": 0, "accepting": []}, "letters"),
        ({"letters": {}, "start": 0, "accepting": []}, "transitions"),
        ({"letters": {"a": [0.0]}, "start": 0, "accepting": []}, "transitions"),
        ({"letters": {"a": [[0]]}, "start": 0, "accepting": []}, "transitions"),
        ({"letters": {"a": [0]}, "start": True, "accepting": []}, "start"),
        ({"letters": {"a": [0]}, "start": [0], "accepting": []}, "start"),
        ({"letters": {"a": [0]}, "start": 0, "accepting": 0}, "accepting"),
        ({"letters": {"a": [0]}, "start": 0, "accepting": [1]}, "accepting"),
        ({"letters": {"a": [0], "b": [0, 1]}, "start": 0, "accepting": []}, "transitions"),
    ],
)
def test_a_wrong_automaton_is_one_line(document: object, field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}"):
        read_dfa(document)


@pytest.mark.parametrize("given_ones", [(), ((0, 0),), ((0, 1), (0, 1, 2)), ((1, 2),)])
def test_what_is_no_permutation_is_refused(given_ones: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputError, match="permutation"):
        word_problem(*given_ones)
