"""The judge: every theorem accepted, ties decided right, altered and malformed files refused, nothing shared."""

import ast
import copy
import inspect
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from math import log2, prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbound.architecture import LayerBits, Precisions
from hopbound.bounds import Certificate, check, checker, matches_schedule, read_certificate
from hopbound.bounds.checker import binomial_bounds, holds, log2_enclosure
from hopbound.errors import RejectedError

from .recompute import confirms, deltas
from .stacks import CASES, certificates

MAX_SECONDS = 5  # of a file that is made to take long; an honest one takes milliseconds
SIZES = Precisions(activation=4, kv=4, state=4, summary=4)


def accepts(document: Any) -> bool:
    """Both judges: of the numbers, and of the schedule's text."""
    if not check(document).accepted:
        return False
    try:
        matches_schedule(document)
    except RejectedError:
        return False
    return True


def with_deltas(certificate: Certificate) -> Certificate:
    """The certificate with the losses that belong to its numbers."""
    if certificate.theorem == "counting":
        return certificate
    L = certificate.theorem_hops
    layers = [(layer.kind, layer.bits) for layer in certificate.layers]
    for index in sorted(certificate.inserted, reverse=True):
        layers.insert(index, ("full", 0))
    found = deltas(
        certificate.theorem,
        layers,
        list(certificate.domains[:L]),
        list(certificate.n[: L - 1]),
        list(certificate.x),
        certificate.cut,
    )
    return replace(certificate, deltas=tuple(found))


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda i: f"{CASES[i][0]} {CASES[i][4]} {CASES[i][5]}")
def test_every_theorem_is_accepted_and_confirmed(index: int) -> None:
    certificate = certificates()[index]
    document = json.loads(json.dumps(certificate.document()))
    result = check(document)
    assert result.accepted, result.reason
    assert accepts(document)
    assert confirms(document)
    assert read_certificate(document) == certificate


# Ties, by hand. One hybrid layer sequence: bounded σ_0, full b_1, bounded σ_1, with m = 2, x_1 = θ_1 and cut -1.


def hybrid(sigma: int, b: int, m: int, M: int, n: int, x: tuple[int, int], theta: int, form: Any = "first") -> Any:
    certificate = Certificate(
        schedule="by hand",
        precisions=SIZES,
        layers=(LayerBits("bounded", sigma), LayerBits("full", b), LayerBits("bounded", 0)),
        inserted=(),
        hops=2,
        sizes="free",
        domains=(m, n * M),
        values=(M, n * M),
        n=(n,),
        theorem="A",
        theorem_hops=2,
        form=form,
        x=x,
        theta=(theta,),
        cut=-1,
    )
    return with_deltas(certificate).document()


TIES = {
    "counting": lambda bits: Certificate(
        "by hand", SIZES, (LayerBits("bounded", bits),), (), 1, "free", (8,), (8,), (), "counting", 1
    ).document(),
    # 2 (log 4 − log 2) = 2, powers of two
    "A1 first": lambda bits: hybrid(bits - 22, 0, 2, 4, 4, (1, 3), 3),
    # 2 (log 6 − log 3) = 2, where no logarithm is exact
    "A1 first, no powers of two": lambda bits: hybrid(bits - 22, 0, 2, 6, 4, (1, 4), 4),
    # 4 (log(2/1) − σ/2) = 1 = log C(2, 1) needs σ = 3/2: with m = 4, x_0 x_1 = 4 it is σ = 3
    "A1 second": lambda bits: hybrid(bits - 21, 0, 4, 2, 16, (2, 2), 1, "second"),
    # 3 log 4 = 6 = σ + b with σ = 1
    "A3": lambda bits: hybrid(1, bits - 19, 2, 4, 1, (1, 3), 3),
}


@pytest.mark.parametrize("name", TIES)
def test_strict_conditions_refuse_equality(name: str) -> None:
    assert check(TIES[name](23)).accepted
    assert confirms(TIES[name](23))
    refused = check(TIES[name](24))
    assert not refused.accepted
    assert name.split()[0] in refused.reason.replace("(", "").replace(")", "").replace("m log M_1", "counting")
    assert not confirms(TIES[name](24))


@pytest.mark.parametrize(("n_1", "accepted"), [(81, False), (82, True), (83, True)])
def test_a2_accepts_equality(n_1: int, accepted: bool) -> None:
    """`P log(2/1) − log C(2, 1) = n_1 − 1` against `x_2 δ_2 + 1 = 80 + 1`."""
    layers = (LayerBits("bounded", 80), LayerBits("full", 0), LayerBits("full", 0))
    n_2 = 10_000
    certificate = Certificate(
        schedule="by hand",
        precisions=SIZES,
        layers=layers,
        inserted=(),
        hops=3,
        sizes="free",
        domains=(2, 2 * n_1, 2 * n_2),
        values=(2, 2, 2 * n_2),
        n=(n_1, n_2),
        theorem="A",
        theorem_hops=3,
        form="first",
        x=(1, 1, 1),
        theta=(1, 1),
        cut=-1,
    )
    document = with_deltas(certificate).document()
    assert check(document).accepted is accepted
    assert confirms(document) is accepted
    assert accepted or "(A2)" in check(document).reason


# Altered files.


def integers(value: Any) -> Iterator[dict[str, str]]:
    """All integers of a document, as the objects that hold them."""
    if isinstance(value, dict):
        if "hex" in value:
            yield value
        else:
            for part in value.values():
                yield from integers(part)
    elif isinstance(value, list):
        for part in value:
            yield from integers(part)


def altered(number: int, rng: random.Random) -> int:
    bits = max(1, number.bit_length())
    return rng.choice(
        [
            number + 1,
            number - 1,
            number ^ (1 << rng.randrange(bits)),
            number * 2,
            number // 2,
            -number,
            0,
            1,
            number + rng.randrange(1, 100),
            number - max(1, number // 1000),
            number + max(1, number // 1000),
            rng.getrandbits(bits),
        ]
    )


def many(few: int, many: int) -> list[Any]:
    """Seeds: a few with a small number of cases each, and many slow ones with a large number."""
    slow = [pytest.param(seed, many, marks=pytest.mark.slow) for seed in range(few, few + 20)]
    return [(seed, 200) for seed in range(few)] + slow


@pytest.mark.parametrize(("seed", "count"), many(6, 5_000))
def test_altered_numbers_are_refused_or_still_true(seed: int, count: int) -> None:
    """Files with one number changed, in hex, in dec, or in both: 1,200, and slowly 100,000 more."""
    rng = random.Random(seed)
    for _ in range(count):
        document = copy.deepcopy(rng.choice(certificates()).document())
        place = rng.choice(list(integers(document)))
        before = dict(place)
        number = altered(int(place["hex"], 16), rng)
        which = rng.choice(["both", "both", "both", "hex", "dec"])
        if which != "dec":
            place["hex"] = hex(number)
        if which != "hex" and abs(number) < 10**64:
            place["dec"] = str(number)
        elif which != "hex":
            place.pop("dec", None)
        if place != before and accepts(document):
            assert confirms(document), (seed, before, place)


@pytest.mark.parametrize(("seed", "count"), many(3, 1_000))
def test_altered_sizes_with_their_own_losses_are_refused_or_true(seed: int, count: int) -> None:
    """Certificates with one number changed and everything that follows from it recomputed: 600, and 20,000 more."""
    rng = random.Random(1000 + seed)
    accepted = refused = 0
    for _ in range(count):
        certificate = rng.choice(certificates())
        field = rng.choice(["x", "theta", "n", "values", "m", "bits", "cut"])
        L, hops = certificate.theorem_hops, certificate.hops

        def change(numbers: tuple[int, ...]) -> tuple[int, ...]:
            index = rng.randrange(len(numbers))
            return (*numbers[:index], max(1, altered(numbers[index], rng)), *numbers[index + 1 :])

        if field == "bits":
            index = rng.randrange(len(certificate.layers))
            layer = certificate.layers[index]
            layers = list(certificate.layers)
            layers[index] = LayerBits(layer.kind, max(0, altered(layer.bits, rng)))
            certificate = replace(certificate, layers=tuple(layers))
        elif field == "m":
            m = max(2, altered(certificate.domains[0], rng))
            certificate = resized(certificate, (m, *certificate.values[: hops - 1]), certificate.n)
        elif field == "values":
            values = change(certificate.values)
            certificate = resized(certificate, (certificate.domains[0], *values[: hops - 1]), certificate.n)
        elif field == "n" and hops > 1:
            certificate = resized(
                certificate, (certificate.domains[0], *certificate.values[: hops - 1]), change(certificate.n)
            )
        elif field == "cut" and L > 1:
            certificate = replace(certificate, cut=rng.randrange(-1, L - 1))
        elif L > 1:
            name = "x" if field == "x" else "theta"
            certificate = replace(certificate, **{name: change(getattr(certificate, name))})
        document = replace(with_deltas(certificate), schedule="by hand").document()
        result = check(document).accepted
        assert result == confirms(document)
        accepted, refused = accepted + result, refused + (not result)
    assert accepted > 10
    assert refused > 10


def resized(certificate: Certificate, sizes: tuple[int, ...], n: tuple[int, ...]) -> Certificate:
    """The certificate with other `m, M_1..` and `n`, the rest of the sizes as they follow."""
    m, *M = sizes
    domains = [m]
    for i, fan in enumerate(n):
        domains.append(fan * (domains[-1] if certificate.sizes == "paper" else M[i]))
    values = domains if certificate.sizes == "paper" else [*M, domains[-1]]
    return replace(certificate, domains=tuple(domains), values=tuple(values), n=n)


@pytest.mark.parametrize("seed", range(4))
def test_accepted_for_every_smaller_stack(seed: int) -> None:
    """Monotonicity: fewer bits, the losses recomputed."""
    rng = random.Random(seed)
    for certificate in certificates():
        layers = tuple(LayerBits(layer.kind, rng.randrange(layer.bits + 1)) for layer in certificate.layers)
        smaller = with_deltas(replace(certificate, layers=layers))
        result = check(smaller.document())
        assert result.accepted, (smaller.schedule, layers, result.reason)


# Malformed files.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from places(value[index], (*path, index))


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return document


@settings(deadline=None)
@given(JSON)
def test_any_json_is_refused(value: Any) -> None:
    result = check(value)
    assert not result.accepted
    assert result.reason


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_part_replaced_or_dropped(data: st.DataObject) -> None:
    certificate = data.draw(st.sampled_from(certificates()))
    document = certificate.document()
    path = data.draw(st.sampled_from(list(places(document))))
    kind = data.draw(st.sampled_from(["replace", "drop", "add"]))
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    if kind == "drop" and path:
        del holder[path[-1]]
    elif kind == "add" and isinstance(holder, dict):
        holder["more"] = data.draw(JSON)
    else:
        document = put(document, path, data.draw(JSON))
    result = check(document)
    assert result.reason
    if result.accepted and document != certificate.document():
        # Another schedule, or another stack that the numbers hold for as well: the other judge compares the two.
        with pytest.raises(RejectedError):
            matches_schedule(document)


def spoiled(path: tuple[Any, ...], value: Any) -> Any:
    return put(certificates()[6].document(), path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "hopbound/certificate/2"),
        (("claim", "task"), "two-sum"),
        (("claim", "hops"), 2),
        (("claim", "hops"), 2.0),
        (("claim", "hops"), {"hex": 2}),
        (("claim", "hops"), {"hex": "0x2"}),
        (("claim", "hops"), {"hex": "0x2", "dec": "3"}),
        (("claim", "hops"), {"hex": "0x2", "dec": 2}),
        (("claim", "hops"), {"hex": "0x02", "dec": "2"}),
        (("claim", "hops"), {"hex": "0x2.0", "dec": "2"}),
        (("claim", "hops"), {"hex": "0x2\n", "dec": "2"}),
        (("claim", "hops"), {"hex": hex(10**9), "dec": str(10**9)}),
        (("claim", "hops"), {"hex": "0x0", "dec": "0"}),
        (("theorem_hops",), {"hex": "-0x2", "dec": "-2"}),
        (("parameters", "cut"), {"hex": "-0x2", "dec": "-2"}),
        (("parameters", "cut"), {"hex": "0x1", "dec": "1"}),
        (("parameters", "x"), []),
        (("parameters", "form"), "third"),
        (("parameters", "form"), ["first"]),
        (("theorem",), "A'"),
        (("theorem",), {}),
        (("stack", "layers"), {}),
        (("stack", "layers"), [{"kind": "full", "bits": {"hex": "0x0", "dec": "0"}}] * 5000),
        (("stack", "inserted"), [{"hex": "0x9", "dec": "9"}]),
        (("claim", "sizes", "domains", 0), {"hex": "0x" + "f" * (2**20)}),
        (("deltas", 0), {"hex": "0x" + "f" * 2**14}),
        (("claim", "sizes", "kind"), "paper"),
    ],
)
def test_malformed_documents_are_refused_with_a_reason(path: tuple[Any, ...], value: Any) -> None:
    begin = time.process_time()
    result = check(spoiled(path, value))
    assert not result.accepted
    assert result.reason
    assert len(result.reason) < 300
    assert "\n" not in result.reason
    assert time.process_time() - begin < MAX_SECONDS


def test_hostile_sizes_take_little_time() -> None:
    """The longest numbers that are read, close to a tie at every step."""
    hops, m = 40, 2
    M = 3 << 3000
    sizes = tuple(M + i for i in range(hops - 1))
    certificate = Certificate(
        schedule="by hand",
        precisions=SIZES,
        layers=(LayerBits("full", 1),) * (hops - 1),
        inserted=(),
        hops=hops,
        sizes="free",
        domains=(m, *(3 * v for v in sizes)),
        values=(*sizes, 3 * sizes[-1]),
        n=(3,) * (hops - 1),
        theorem="A",
        theorem_hops=hops,
        form="first",
        x=(1,) + (1,) * (hops - 1),
        theta=(1, *tuple(v - 1 for v in sizes[1:])),
        cut=-1,
    )
    document = with_deltas(certificate).document()
    begin = time.process_time()
    assert not check(document).accepted
    assert time.process_time() - begin < MAX_SECONDS


def test_long_factors_take_little_time() -> None:
    """Numbers that are short by themselves and multiply to long ones: refused at the first loss that is not right."""
    hops, long = 64, (1 << 15_000) - 1
    certificate = Certificate(
        schedule="by hand",
        precisions=SIZES,
        layers=(LayerBits("full", (1 << 1000) - 1),) * (hops - 1),
        inserted=(),
        hops=hops,
        sizes="free",
        domains=(4,) * hops,
        values=(4,) * hops,
        n=(1,) * (hops - 1),
        theorem="A",
        theorem_hops=hops,
        form="first",
        x=(1, *(long,) * (hops - 1)),
        theta=(2,) * (hops - 1),
        cut=-1,
        deltas=(0,) * (hops - 1),
    )
    begin = time.process_time()
    assert not check(certificate.document()).accepted
    assert time.process_time() - begin < MAX_SECONDS


@pytest.mark.parametrize("full", [True, False])
def test_many_layers_take_little_time(full: bool) -> None:
    document = certificates()[0].document()
    one = {"kind": "full" if full else "bounded", "bits": {"hex": "0x0", "dec": "0"}}
    document["stack"]["layers"] = [*document["stack"]["layers"], *([one] * (2**15 - 10))]
    begin = time.process_time()
    check(document)
    assert time.process_time() - begin < MAX_SECONDS
    document["stack"]["inserted"] = [{"hex": "0x0", "dec": "0"}] * 65
    assert "at most 64" in check(document).reason


# The parts.


@pytest.mark.parametrize("precision", [8, 64, 256])
def test_logarithms_are_enclosed(precision: int) -> None:
    import mpmath

    rng = random.Random(precision)
    numbers = [1, 2, 3, 5, 7, 2**64 - 1, 2**64 + 1, 3 << 500, 10**400 + 1] + [
        rng.getrandbits(200) + 1 for _ in range(50)
    ]
    with mpmath.workprec(4000):
        for a in numbers:
            low, high = log2_enclosure(a, precision)
            exact = mpmath.log(a, 2) * 2**precision
            assert low <= exact <= high
            assert high - low <= 2
    assert log2_enclosure(2**70, precision) == (70 << precision, 70 << precision)


def test_forms_are_decided_at_ties_and_one_off_them() -> None:
    assert holds([(1, 6), (-1, 3)], 1, strict=False)
    assert not holds([(1, 6), (-1, 3)], 1, strict=True)
    assert holds([(1, 3**500 + 1), (-500, 3)], 0, strict=True)
    assert not holds([(1, 3**500 - 1), (-500, 3)], 0, strict=False)
    assert not holds([(1, 3**500 + 1), (-500, 3)], 1, strict=False)


def test_binomial_bounds_are_above_the_binomial() -> None:
    from math import comb

    for M in [*range(2, 40), 100, 1000, 10**6]:
        for t in {1, 2, M // 3, M // 2, M - 1} - {0, M}:
            if 0 < t < M and min(t, M - t) < 2000:
                for scale, form in binomial_bounds(M, t):
                    bound = sum(c * log2(a) for c, a in form)
                    assert bound >= scale * log2(comb(M, t)) - 1e-6


def test_the_checker_is_short_and_shares_nothing() -> None:
    path = Path(inspect.getfile(checker))
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 200
    tree = ast.parse(source)
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"re", "collections.abc", "math", "operator", "typing"}
    names = {
        n.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "math"
        for n in node.names
    }
    assert names <= {"comb", "prod"}
    assert not any(isinstance(node, ast.Constant) and isinstance(node.value, float) for node in ast.walk(tree))
    assert not any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) for node in ast.walk(tree))


def test_losses_of_both_sides_agree() -> None:
    """The judge's and the search's recursions, and the one written from the statement, on random numbers."""
    from hopbound.bounds.conditions import Problem, losses

    rng = random.Random(5)
    for _ in range(300):
        L, theorem = rng.randrange(2, 7), rng.choice(["A", "B"])
        F = L - 1 if theorem == "A" else L
        sigma = [rng.randrange(50) for _ in range(F + 1)]
        if theorem == "B":
            sigma[:2] = [0, 0]
        b = [rng.randrange(20) for _ in range(F)]
        n, x = [rng.randrange(1, 9) for _ in range(L - 1)], [rng.randrange(1, 9) for _ in range(L)]
        D = [rng.randrange(2, 99) for _ in range(L)]
        cut = rng.randrange(-1, L - 1)
        layers = [("bounded", sigma[0])]
        for f in range(F):
            layers += [("full", b[f]), ("bounded", sigma[f + 1])]
        written = deltas(theorem, layers, D, n, x, cut)
        assert list(checker.losses(int(theorem == "B"), sigma, b, D, n, x, cut)) == written
        problem = Problem(theorem, tuple(sigma), tuple(b), False)  # pyright: ignore[reportArgumentType]
        assert losses(problem, D, n, x, cut) == (written, cut)
        best, _ = losses(problem, D, n, x, None)
        assert best[-1] == min(deltas(theorem, layers, D, n, x, j)[-1] for j in range(-1, L - 1))
        assert prod(x) > 0
