"""Regular languages: what a DFA's transition monoid says about the mixers that can recognise it.

The transition monoid of the minimal DFA decides (Schützenberger 1965; Barrington and Thérien 1988):

- *star-free*: every group in it is trivial. Definable in first-order logic with order; in AC⁰.
- *solvable*: every group in it is solvable. In ACC⁰, so in TC⁰.
- *not solvable*: some group is not. Complete for NC¹ under AC⁰ reductions (Barrington 1989).

What follows for mixers is in `FACTS`: all are about recognising the language at every length with one model. Statements
that rest on TC⁰ ≠ NC¹ are conditional and marked so; the others are theorems about the arithmetic that they name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Literal

from hopbound.bounds.ceiling import whole_number
from hopbound.errors import InputError

MAX_ELEMENTS = 20_000
Element = tuple[int, ...]  # where each state goes
Kind = Literal["star-free", "solvable", "not solvable"]


@dataclass(frozen=True)
class Dfa:
    """A complete deterministic automaton.

    Attributes:
        transitions: for each letter, where each state goes.
        start: the first state.
        accepting: the states that accept.

    Raises:
        InputError: no letters or states, or a state that does not exist.
    """

    transitions: tuple[Element, ...]
    start: int
    accepting: frozenset[int]

    def __post_init__(self) -> None:
        states = len(self.transitions[0]) if self.transitions else 0
        if states == 0:
            raise InputError("transitions", self.transitions, "a letter and a state at least")
        for letter in self.transitions:
            if len(letter) != states or not all(type(to) is int and 0 <= to < states for to in letter):
                raise InputError("transitions", letter, f"{states} states from 0 to {states - 1}")
        for name, given in (("start", (self.start,)), ("accepting", self.accepting)):
            if not all(type(state) is int and 0 <= state < states for state in given):
                raise InputError(name, given, f"states from 0 to {states - 1}")

    def accepts(self, word: Sequence[int]) -> bool:
        """Whether a word, given as letter numbers, is accepted."""
        state = self.start
        for letter in word:
            state = self.transitions[letter][state]
        return state in self.accepting


@dataclass(frozen=True)
class Classification:
    """What the minimal DFA's monoid is.

    Attributes:
        kind: star-free, solvable or not solvable.
        states: of the minimal DFA.
        elements: of its transition monoid.
        largest_group: the order of the largest group in the monoid.
        letter_period: after how many more of the same letter the state comes back at the latest: the least common
            multiple of the cycles of all letters; 1 if every letter, repeated, comes to rest.
    """

    kind: Kind
    states: int
    elements: int
    largest_group: int
    letter_period: int


def minimal(dfa: Dfa) -> Dfa:
    """The minimal automaton of the same language: reachable states, then Moore's refinement."""
    reachable = [dfa.start]
    for state in reachable:
        reachable += [to for to in dict.fromkeys(t[state] for t in dfa.transitions) if to not in reachable]
    block = {state: int(state in dfa.accepting) for state in reachable}
    while True:
        signature = {s: (block[s], *(block[t[s]] for t in dfa.transitions)) for s in reachable}
        numbers = {found: i for i, found in enumerate(dict.fromkeys(signature[s] for s in reachable))}
        refined = {s: numbers[signature[s]] for s in reachable}
        if len(numbers) == len(set(block.values())):
            break
        block = refined
    representative = {refined[s]: s for s in reversed(reachable)}
    blocks = range(len(representative))
    transitions = tuple(tuple(refined[t[representative[b]]] for b in blocks) for t in dfa.transitions)
    return Dfa(transitions, refined[dfa.start], frozenset(b for b in blocks if representative[b] in dfa.accepting))


def after(first: Element, second: Element) -> Element:
    """First the one, then the other."""
    return tuple(second[state] for state in first)


def closure(generators: Sequence[Element], identity: Element, limit: int = MAX_ELEMENTS) -> list[Element]:
    """Everything that products of the generators give, the identity included.

    Raises:
        InputError: more than `limit` elements.
    """
    found = {identity: None}
    waiting = [identity]
    while waiting:
        element = waiting.pop()
        for generator in generators:
            product = after(element, generator)
            if product not in found:
                if len(found) >= limit:
                    raise InputError("transitions", f"a monoid of more than {limit} elements", "a smaller automaton")
                found[product] = None
                waiting.append(product)
    return list(found)


def groups(monoid: Sequence[Element]) -> list[set[Element]]:
    """The maximal groups of a monoid, as permutations of the states that their idempotents keep."""
    found: dict[tuple[int, ...], set[Element]] = {}
    for e in monoid:
        if after(e, e) != e:
            continue
        image = tuple(sorted(set(e)))
        if image in found:  # idempotents with one image have groups that are the same permutations of it
            continue
        place = {state: i for i, state in enumerate(image)}
        permutations = set()
        for s in monoid:
            moved = tuple(s[state] for state in image)
            if len(set(moved)) == len(image) and set(moved) == set(image):
                permutations.add(tuple(place[state] for state in moved))
        found[image] = permutations
    return list(found.values())


def generators(group: set[Element], identity: Element) -> list[Element]:
    """A few elements that generate a group: each one doubles what the ones before give, at least."""
    chosen: list[Element] = []
    reached = {identity}
    for element in sorted(group):
        if element not in reached:
            chosen.append(element)
            reached = set(closure(chosen, identity))
    return chosen


def derived(group: set[Element]) -> set[Element]:
    """The subgroup that the commutators generate: the normal closure of those of generators."""
    identity = tuple(range(len(next(iter(group)))))
    chosen = generators(group, identity)

    def inverse(element: Element) -> Element:
        return tuple(sorted(identity, key=element.__getitem__))

    inside = [after(after(inverse(g), inverse(h)), after(g, h)) for g in chosen for h in chosen]
    reached = set(closure(inside, identity))
    for element in inside:
        for g in chosen:
            conjugate = after(after(inverse(g), element), g)
            if conjugate not in reached:
                inside.append(conjugate)
                reached = set(closure(inside, identity))
    return reached


def solvable(group: set[Element]) -> bool:
    """Whether the derived series of a group of permutations ends at the identity."""
    while len(group) > 1:
        inner = derived(group)
        if len(inner) == len(group):
            return False
        group = inner
    return True


def period(letter: Element) -> int:
    """The least common multiple of the cycles that a map of the states runs into."""
    result = 1
    for state in range(len(letter)):
        for _ in letter:  # now it is on its cycle
            state = letter[state]
        length, at = 1, letter[state]
        while at != state:
            length, at = length + 1, letter[at]
        result = lcm(result, length)
    return result


def classify(dfa: Dfa) -> Classification:
    """Star-free, solvable or not, by the groups in the minimal automaton's monoid.

    Raises:
        InputError: the monoid has more than `MAX_ELEMENTS` elements.
    """
    small = minimal(dfa)
    states = len(small.transitions[0])
    monoid = closure(small.transitions, tuple(range(states)))
    inner = groups(monoid)
    largest = max(len(group) for group in inner)
    kind: Kind = "star-free" if largest == 1 else "solvable" if all(map(solvable, inner)) else "not solvable"
    return Classification(kind, states, len(monoid), largest, lcm(*map(period, small.transitions)))


About = Literal["periodic", "odd period", "not star-free", "star-free", "not solvable", "regular", "a group", "Dyck"]


@dataclass(frozen=True)
class Fact:
    """What is known of a family of mixers and a kind of language.

    Attributes:
        families: the models, in words.
        mixers: their mixers, as the schedule grammar calls them.
        about: which languages: `periodic` (a letter repeated goes round in a cycle, as in parity), `odd period` (a
            cycle whose length is no power of two, as in counting modulo 3), `not star-free`, `not solvable`,
            `star-free`, `regular` (all of them); `a group` and `Dyck` as `language` says, no DFA decides these.
        language: the languages in words.
        excluded: whether the models cannot recognise them; else some of the models can.
        conditional: what it rests on; empty if it is a theorem without conditions.
        source: where it is proved.
    """

    families: str
    mixers: tuple[str, ...]
    about: About
    language: str
    excluded: bool
    conditional: str
    source: str

    def speaks_of(self, found: Classification) -> bool:
        """Whether the fact is about a language that was classified."""
        return {
            "periodic": found.letter_period > 1,
            "odd period": found.letter_period & (found.letter_period - 1) != 0,
            "not star-free": found.kind != "star-free",
            "star-free": found.kind == "star-free",
            "not solvable": found.kind == "not solvable",
            "regular": True,
        }.get(self.about, False)


_DECAYS = ("linear", "retnet", "gla", "hgrn2", "rwkv4", "rwkv6", "mamba", "mamba2", "rglru", "lightning")
_DELTA = ("delta", "gdn", "kda")

FACTS = (
    Fact(
        "diagonal recurrences with factors in [0, 1], any fixed depth, finite precision",
        _DECAYS,
        "not star-free",
        "every language that is not star-free, parity first",
        True,
        "",
        "Sarrof, Veitsman, Hahn, arXiv 2405.17394",
    ),
    Fact(
        "diagonal recurrences with factors in [0, 1] that depend on the token, depth as needed, finite precision",
        ("gla", "hgrn2", "rwkv6", "mamba", "mamba2", "rglru"),
        "star-free",
        "every star-free language",
        False,
        "",
        "Sarrof, Veitsman, Hahn, arXiv 2405.17394",
    ),
    Fact(
        "recurrences whose matrices have real eigenvalues of at least 0 (delta rules with strengths in (0, 1)), any "
        "fixed depth, finite precision",
        (*_DECAYS, *_DELTA),
        "periodic",
        "parity, and every language in which repeating a letter goes round in a cycle",
        True,
        "",
        "Grazzi et al., arXiv 2411.12537, Theorem 1",
    ),
    Fact(
        "recurrences with triangular real matrices, signs allowed, any fixed depth, finite precision",
        _DECAYS,
        "odd period",
        "counting modulo 3, and every cycle whose length is no power of two",
        True,
        "",
        "Grazzi et al., arXiv 2411.12537, Theorem 2",
    ),
    Fact(
        "products of enough generalised Householder factors with eigenvalues in [-1, 1] a token, a few layers",
        ("deltaproduct",),
        "regular",
        "every regular language",
        False,
        "",
        "Grazzi et al., arXiv 2411.12537; Siems et al., arXiv 2502.10297",
    ),
    Fact(
        "the generalised delta rule of RWKV-7 with token shift, four layers",
        ("rwkv7",),
        "regular",
        "every regular language",
        False,
        "",
        "Peng et al., arXiv 2503.14456",
    ),
    Fact(
        "softmax attention and diagonal recurrences, fixed depth, precision logarithmic in the length",
        ("full", "mla", "window", "chunk", "block", *_DECAYS),
        "not solvable",
        "every language whose monoid holds a group that is not solvable (A_5, S_5)",
        True,
        "TC⁰ ≠ NC¹",
        "Merrill, Sabharwal, arXiv 2207.00729; Merrill, Petty, Sabharwal, arXiv 2404.08819",
    ),
    Fact(
        "delta rule with strengths in (0, 2), eigenvalues in [-1, 1], one factor a token, one layer",
        _DELTA,
        "a group",
        "parity (S_2: one reflection)",
        False,
        "",
        "Grazzi et al., arXiv 2411.12537",
    ),
    Fact(
        "two Householder factors a token with eigenvalues in [-1, 1], one layer",
        ("deltaproduct",),
        "a group",
        "S_3, and groups of rotations of space, S_4 and A_5 (each rotation is two reflections)",
        False,
        "",
        "Siems et al., arXiv 2502.10297",
    ),
    Fact(
        "four Householder factors a token with eigenvalues in [-1, 1], one layer",
        ("deltaproduct",),
        "a group",
        "S_5 (a permutation of n things is at most n - 1 transpositions)",
        False,
        "",
        "Siems et al., arXiv 2502.10297",
    ),
    Fact(
        "hard-attention transformers, fixed size, any depth",
        ("full",),
        "Dyck",
        "parity and Dyck_2 (brackets of two kinds at any depth)",
        True,
        "",
        "Hahn, arXiv 1906.06755",
    ),
    Fact(
        "softmax attention with D + 1 layers; diagonal recurrences with two layers",
        ("full", "gla", "hgrn2", "mamba", "mamba2"),
        "Dyck",
        "Dyck languages of bounded depth D (they are regular and star-free)",
        False,
        "",
        "Yao et al., arXiv 2105.11115; Sarrof, Veitsman, Hahn, arXiv 2405.17394",
    ),
)


def word_problem(*given: Element) -> Dfa:
    """The words over some permutations whose product is the identity.

    Raises:
        InputError: no permutations of one set, or they generate more than `MAX_ELEMENTS`.
    """
    identity = tuple(range(len(given[0]))) if given else ()
    for permutation in given or ((),):
        if tuple(sorted(permutation)) != identity or not identity:
            raise InputError("permutation", permutation, "an arrangement of 0, 1, 2, …, as long as the others")
    number = {element: i for i, element in enumerate(closure(given, identity))}
    moves = tuple(tuple(number[after(element, g)] for element in number) for g in given)
    return Dfa(moves, number[identity], frozenset({number[identity]}))


def dyck(depth: int) -> Dfa:
    """Well-matched brackets of one kind, at most `depth` open at a time.

    Raises:
        InputError: a depth below 1.
    """
    whole_number("depth", depth, 1)
    lost = depth + 1
    opening = (*range(1, depth + 1), lost, lost)
    closing = (lost, *range(depth), lost)
    return Dfa((opening, closing), 0, frozenset({0}))


NAMED = {
    "parity": Dfa(((0, 1), (1, 0)), 0, frozenset({0})),  # an even number of b's
    "(aa)*": Dfa(((1, 0),), 0, frozenset({0})),
    "a*b*": Dfa(((0, 2, 2), (1, 1, 2)), 0, frozenset({0, 1})),
    "(ab)*": Dfa(((1, 2, 2), (2, 0, 2)), 0, frozenset({0})),
    "mod3": Dfa(((1, 2, 0),), 0, frozenset({0})),
    "Dyck-3": dyck(3),
    "S3": word_problem((1, 0, 2), (1, 2, 0)),
    "S4": word_problem((1, 0, 2, 3), (1, 2, 3, 0)),
    "A5": word_problem((1, 2, 0, 3, 4), (0, 1, 3, 4, 2)),
    "S5": word_problem((1, 0, 2, 3, 4), (1, 2, 3, 4, 0)),
}


def read_dfa(document: object) -> Dfa:
    """An automaton from a JSON document: `{"letters": {"a": [1, 0]}, "start": 0, "accepting": [0]}`.

    Each letter lists where it takes state 0, 1, 2, …

    Raises:
        InputError: other keys or types, or a state that does not exist.
    """
    keys = {"letters", "start", "accepting"}
    if not isinstance(document, dict) or set(document) != keys:
        raise InputError("automaton", type(document).__name__, f"an object with the keys {', '.join(sorted(keys))}")
    letters, accepting = document["letters"], document["accepting"]
    if not isinstance(letters, dict) or not all(isinstance(moves, list) for moves in letters.values()):
        raise InputError("letters", letters, "an object: for each letter the list of states that it leads to")
    if not isinstance(accepting, list) or not all(type(state) is int for state in accepting):
        raise InputError("accepting", accepting, "a list of states")
    return Dfa(tuple(tuple(moves) for moves in letters.values()), document["start"], frozenset(accepting))
