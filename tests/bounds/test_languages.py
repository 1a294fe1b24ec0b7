"""Classifications of known languages, and the monoid against words themselves."""

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.bounds.languages import Dfa, after, classify, closure, derived, minimal
from hopbound.errors import InputError

PARITY = Dfa(((0, 1), (1, 0)), 0, frozenset({0}))
EVEN_AS = Dfa(((1, 0),), 0, frozenset({0}))  # (aa)*
A_STAR_B_STAR = Dfa(((0, 2, 2), (1, 1, 2)), 0, frozenset({0, 1}))
AB_STAR = Dfa(((1, 2, 2), (2, 0, 2)), 0, frozenset({0}))
EVERYTHING = Dfa(((0,),), 0, frozenset({0}))


def word_problem(*generators: tuple[int, ...]) -> Dfa:
    """The words whose product is the identity, over generators of a group of permutations."""
    identity = tuple(range(len(generators[0])))
    group = closure(generators, identity)
    number = {element: i for i, element in enumerate(group)}
    moves = tuple(tuple(number[after(element, g)] for element in group) for g in generators)
    return Dfa(moves, number[identity], frozenset({number[identity]}))


S3 = word_problem((1, 0, 2), (1, 2, 0))
A5 = word_problem((1, 2, 0, 3, 4), (0, 1, 3, 4, 2))
S5 = word_problem((1, 0, 2, 3, 4), (1, 2, 3, 4, 0))
S4 = word_problem((1, 0, 2, 3), (1, 2, 3, 0))


@pytest.mark.parametrize(
    ("dfa", "kind", "group"),
    [
        (PARITY, "solvable", 2),
        (EVEN_AS, "solvable", 2),
        (A_STAR_B_STAR, "star-free", 1),
        (AB_STAR, "star-free", 1),
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
