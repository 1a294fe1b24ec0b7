"""The proof of Theorem A for two hops, carried out: the two inputs that it says exist are found and told apart.

A random protocol stands for a hybrid with one full layer: bounded layers of σ_0 bits, the full layer of b bits,
bounded layers of σ_1 bits, every message a random function of exactly what it may depend on (the model class). At sizes
that are certified, Z_0 and Z_1 are chosen as in Lemma 2; among random z_2 two are found by birthday that look alike to
all of them and differ at a reachable address; the protocol then gives them the same answer there.
"""

import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from math import ceil, log2

import pytest

from hopbound.architecture import LayerBits, Precisions
from hopbound.bounds import Certificate, check
from hopbound.bounds.checker import losses

MAX_SAMPLES = 20_000
Table = tuple[int, ...]


@dataclass(frozen=True)
class Protocol:
    """A random member of the model class; `bits` of σ_0, b and σ_1."""

    seed: int
    sigma_0: int
    b: int
    sigma_1: int
    answers: int

    def random_function(self, name: str, bits: int, *arguments: Hashable) -> int:
        text = repr((self.seed, name, arguments)).encode()
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") % (1 << bits)

    def entering(self, z_1: Table, z_2: Table) -> tuple[int, int]:
        """States that enter players 1 and 0 before the full layer."""
        one = self.random_function("state into 1", self.sigma_0, z_2)
        return one, self.random_function("state into 0", self.sigma_0, one, z_1)

    def messages(self, w: int, z_0: int, z_1: Table, z_2: Table) -> "Messages":
        """What each player hears of those left of it, in the order of the layers."""
        call, b, sigma_1 = self.random_function, self.b, self.sigma_1
        one, zero = self.entering(z_1, z_2)
        last = call("state into -1", self.sigma_0, zero, z_0)
        by_1 = tuple(call("1 hears", b, token, z_1[: token + 1], one, z_2) for token in range(len(z_1)))
        zero_of_2 = call("0 hears of 2", b, z_0, zero, z_2)
        by_0 = call("0 hears", b, z_0, zero, zero_of_2, z_1, one)
        of_2 = call("-1 hears of 2", b, w, last, z_2)
        by_last = call("-1 hears", b, w, last, of_2, z_1, one, z_0, zero)
        after_1 = call("later state into 1", sigma_1, z_2)
        after_0 = call("later state into 0", sigma_1, after_1, z_1, one, by_1)
        after_last = call("later state into -1", sigma_1, after_0, z_0, zero, by_0)
        return Messages(of_2, zero_of_2, after_0, after_last, (w, last, by_last, after_last))

    def answer(self, view: Hashable) -> int:
        """The output at the last token."""
        return self.random_function("answer", 32, view) % self.answers


@dataclass(frozen=True)
class Messages:
    """The messages that Lemma 4 fixes, and the final view of player -1."""

    last_of_2: int
    zero_of_2: int
    into_0: int
    into_last: int
    view: Hashable

    def fixed(self, cut: int) -> Hashable:
        """What is fixed for the cut just left of player -1 or of player 0."""
        return (self.last_of_2, self.into_last) if cut == -1 else (self.last_of_2, self.zero_of_2, self.into_0)


def certificates_of(
    sigma_0: int, b: int, sigma_1: int, m: int, M_1: int, n_1: int
) -> Iterator[tuple[Certificate, bool]]:
    """Certificates at these sizes in the first form of (A1), over all x_1 and cuts, with the judgement."""
    D, M = [m, n_1 * M_1], [M_1, n_1 * M_1]
    for x_1, cut in product(range(1, min(M_1, 24) + 1), (-1, 0)):
        certificate = Certificate(
            schedule="by hand",
            precisions=Precisions(),
            layers=(LayerBits("bounded", sigma_0), LayerBits("full", b), LayerBits("bounded", sigma_1)),
            inserted=(),
            hops=2,
            sizes="free",
            domains=tuple(D),
            values=tuple(M),
            n=(n_1,),
            theorem="A",
            theorem_hops=2,
            form="first",
            x=(1, x_1),
            theta=(x_1,),
            cut=cut,
            deltas=tuple(losses(0, [sigma_0, sigma_1], [b], D, [n_1], [1, x_1], cut)),
        )
        yield certificate, check(certificate.document()).accepted


def smallest_certified(sigma_0: int, b: int, sigma_1: int) -> Certificate:
    """The shortest of the small sizes that is certified."""
    found = [
        certificate
        for m, M_1, n_1 in product(range(2, 6), range(2, 7), range(1, 7))
        for certificate, accepted in certificates_of(sigma_0, b, sigma_1, m, M_1, n_1)
        if accepted
    ]
    return min(found, key=lambda certificate: (certificate.deltas[-1], certificate.prompt_length))


@pytest.mark.parametrize("bits", [(1, 1, 1), (1, 1, 0), (2, 1, 1), (0, 1, 1), (0, 1, 0), (0, 2, 0), (1, 2, 2)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_two_inputs_that_look_alike_are_found(bits: tuple[int, int, int], seed: int) -> None:
    certificate = smallest_certified(*bits)
    (m, D_2), (M_1, M_2), (n_1,) = certificate.domains, certificate.values, certificate.n
    x_1 = certificate.x[1]
    protocol = Protocol(seed, *bits, answers=M_2)
    rng = random.Random(f"{bits} {seed}")
    functions = list(product(range(M_1), repeat=m))

    def draw() -> Table:
        return tuple(rng.randrange(M_2) for _ in range(D_2))

    # Lemma 2: the most common state into player 1; with it the largest class of z_1 with one state into player 0; an
    # address at which that class takes at least x_1 values.
    states = [protocol.entering(functions[0], draw())[0] for _ in range(64)]
    common = max(set(states), key=states.count)
    classes: dict[int, list[Table]] = {}
    for z_1 in functions:
        classes.setdefault(protocol.random_function("state into 0", bits[0], common, z_1), []).append(z_1)
    alike = max(classes.values(), key=len)
    z_0 = max(range(m), key=lambda a: len({z_1[a] for z_1 in alike}))
    chosen = list({z_1[z_0]: z_1 for z_1 in alike}.values())[:x_1]
    assert len(chosen) == x_1

    # Birthday: the transcript of z_2 is what Lemma 4 fixes, for all choices together.
    seen: dict[Hashable, Table] = {}
    for _ in range(MAX_SAMPLES):
        z_2 = draw()
        if protocol.entering(functions[0], z_2)[0] != common:
            continue
        transcript = tuple(
            protocol.messages(w, z_0, z_1, z_2).fixed(certificate.cut) for z_1 in chosen for w in range(n_1)
        )
        other = seen.setdefault(transcript, z_2)
        places = [
            (w, z_1) for w in range(n_1) for z_1 in chosen if other[w * M_1 + z_1[z_0]] != z_2[w * M_1 + z_1[z_0]]
        ]
        if places:
            break
    else:
        pytest.fail("no two inputs that look alike were found")
    for w, z_1 in places:
        views = [protocol.messages(w, z_0, z_1, z_2).view for z_2 in (z_2, other)]
        assert views[0] == views[1]
        right = [z_2[w * M_1 + z_1[z_0]] for z_2 in (z_2, other)]
        assert right[0] != right[1]
        assert protocol.answer(views[0]) in range(M_2)  # one answer to both: it is wrong on one of them


def bits_of(count: int) -> int:
    return ceil(log2(count)) if count > 1 else 0


def test_sizes_with_a_protocol_are_never_certified() -> None:
    """Two protocols by hand: the state holds all of z_1; or player -1 hears a whole row of z_2 and i_1 is carried."""
    asked = solved = certified = 0
    for m, M_1, n_1, b, sigma in product((2, 3, 5), (2, 3, 4, 6), (1, 2, 4), (1, 2, 3, 6, 12, 24), (0, 1, 2, 5, 10)):
        M_2 = n_1 * M_1
        for sigma_0, sigma_1 in ((sigma, 0), (sigma, sigma)):
            holds_all = sigma_0 >= bits_of(M_1**m) and b >= bits_of(M_2)
            hears_row = b >= M_1 * bits_of(M_2) and sigma_1 >= bits_of(M_1)
            accepted = any(ok for _, ok in certificates_of(sigma_0, b, sigma_1, m, M_1, n_1))
            assert not (accepted and (holds_all or hears_row)), (m, M_1, n_1, b, sigma_0, sigma_1)
            asked, solved, certified = asked + 1, solved + (holds_all or hears_row), certified + accepted
    assert asked >= 2_000
    assert solved > 300
    assert certified > 30
