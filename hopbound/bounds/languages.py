"""Regular languages: what a DFA's transition monoid says about the mixers that can recognise it.

The transition monoid of the minimal DFA decides (Schützenberger 1965; Barrington and Thérien 1988):

- *star-free*: every group in it is trivial. Definable in first-order logic with order; in AC⁰.
- *solvable*: every group in it is solvable. In ACC⁰, so in TC⁰.
- *not solvable*: some group is not. Complete for NC¹ under AC⁰ reductions (Barrington 1989).

What follows for mixers is in `FACTS`. Statements that rest on TC⁰ ≠ NC¹ are conditional and marked so; the others are
theorems about exact arithmetic or about the stated precision, for inputs of every length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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
        for name, given in (("start", {self.start}), ("accepting", self.accepting)):
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
    """

    kind: Kind
    states: int
    elements: int
    largest_group: int


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
    return Classification(kind, states, len(monoid), largest)


@dataclass(frozen=True)
class Fact:
    """What is known of a family of mixers and languages.

    Attributes:
        families: the mixers.
        language: the languages that are excluded, or reached.
        excluded: whether the fact excludes them.
        conditional: what it rests on; empty if it is a theorem without conditions.
        source: where it is proved.
    """

    families: str
    language: str
    excluded: bool
    conditional: str
    source: str


FACTS = (
    Fact(
        "diagonal recurrences with decays in [0, 1] (Mamba, GLA), any fixed depth, finite precision",
        "parity",
        True,
        "",
        "Sarrof, Veitsman, Hahn, arXiv 2405.17394; Grazzi et al., arXiv 2411.12537",
    ),
    Fact(
        "DeltaNet with strengths in (0, 1), eigenvalues in [0, 1], finite precision",
        "parity",
        True,
        "",
        "Grazzi et al., arXiv 2411.12537",
    ),
    Fact(
        "DeltaNet with strengths in (0, 2), eigenvalues in [-1, 1]",
        "parity",
        False,
        "",
        "Grazzi et al., arXiv 2411.12537",
    ),
    Fact(
        "products of two Householder factors a token",
        "S_3 in one layer (each element is a product of at most two reflections)",
        False,
        "",
        "Grazzi et al., arXiv 2411.12537; Siems et al., arXiv 2502.10297",
    ),
    Fact(
        "softmax attention and diagonal or linear-input state spaces, fixed depth, logarithmic precision",
        "languages that are not solvable (S_5, A_5)",
        True,
        "TC⁰ ≠ NC¹",
        "Merrill, Sabharwal, arXiv 2207.00729; Merrill, Petty, Sabharwal, arXiv 2404.08819",
    ),
)
