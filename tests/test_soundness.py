"""The soundness of the whole: at no size does a construction make what a theorem says is impossible.

The claims (what can be built) and the checker (what is proved) know nothing of each other. Here both are asked about
the same stacks and sizes: the checker by going through the parameters of every theorem, without the search.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, product
from math import log2

import pytest

from hopbound.architecture import Architecture, Defaults, LayerBits, Precisions, parse_schedule
from hopbound.bounds import Certificate, check, matches_schedule, prove
from hopbound.bounds.checker import losses
from hopbound.claims import TaskSizes, best_plan
from hopbound.frontier import frontier

# (schedule, heads, head dimension, bits): 0 to 3 full layers among all mixers that are built, and some that are not;
# few bits and narrow heads make the states small, so that possible and impossible sizes come close to each other.
SETTINGS = [
    (
        "linear; 2*linear; conv delta; window gdn; 2*delta; 3*gdn; window[w=2] linear; gdn|conv delta",
        [(1, 8, 1), (1, 5, 4), (2, 3, 2)],
    ),
    (
        "2*kda; rglru mamba2; shift hgrn2; rwkv4 rwkv7; 2*mlstm; retnet lightning; mamba2[conv=2] gla[conv=2]; "
        "mamba[channels=24] mamba[channels=24]; 2*window[w=9]; adakv[budget=8,recent=6] h2o[budget=6,recent=6]",
        [(1, 8, 1)],
    ),
    (
        "full; linear full; 2*linear full; conv[channels=4,kernel=2] delta[value_dim=4] full; window gdn full; "
        "full linear; full conv; linear full linear; full|linear; 2*delta full conv; mlp 2*linear mlp full mlp; "
        "conv linear topk[k=1]; 2*linear mla[latent=4,rope_dim=2,value_dim=4]",
        [(1, 8, 1), (1, 12, 2), (2, 7, 1)],
    ),
    (
        "mla; kda mla; 2*mamba2 topk[k=1]; topk[k=2,index_dim=16]; rwkv6 deltaproduct full; rglru full rglru; "
        "2*window[w=10] full",
        [(1, 8, 1)],
    ),
    (
        "2*full; linear 2*full; 2*linear 2*full; full delta full; 2*full gdn; 2*full|conv; "
        "conv 2*delta full linear full; full|window full; full full|gdn; window|linear full gdn full",
        [(1, 8, 1), (1, 14, 4)],
    ),
    ("kda 2*mla; mla mamba2 mla; 2*topk[k=1]; 2*mla[rope_dim=0]; full mla; shift rwkv7 2*topk[k=3]", [(1, 14, 4)]),
    (
        "3*full; linear 3*full; 2*linear 3*full; full window 2*full; 2*full linear full; 3*full conv; kda 3*mla",
        [(1, 9, 1), (2, 14, 3)],
    ),
]
GRID: tuple[tuple[str, int, int, int], ...] = tuple(
    (schedule, heads, head_dim, bits)
    for schedules, settings in SETTINGS
    for schedule in schedules.split("; ")
    for heads, head_dim, bits in settings
)


@cache
def stack(schedule: str, heads: int, head_dim: int, bits: int) -> Architecture:
    defaults = Defaults(heads=heads, head_dim=head_dim, window=3, kernel=3)
    return parse_schedule(schedule, defaults, Precisions.uniform(bits))


def small_sizes(hops: int, head_dim: int) -> Iterator[TaskSizes]:
    """The paper's sizes and free ones; m up to and just over the capacity of a state of `head_dim` keys."""
    for m in sorted({2, 3, 4, 5, 8, head_dim - 1, head_dim, head_dim + 1} - {1}):
        for fan in (1, 2, 5) if hops > 1 else (1,):
            for free in (None, 2, 3, 8, 16) if hops > 1 else (None,):
                domains, values = [m], [m if free is None else free]
                for _ in range(hops - 1):
                    domains.append(fan * values[-1])
                    values.append(domains[-1] if free is None else free)
                values[-1] = domains[-1]
                yield TaskSizes(tuple(domains), tuple(values), (fan,) * (hops - 1))


def kind_of(sizes: TaskSizes) -> str:
    return "paper" if sizes.values == sizes.domains else "free"


@dataclass(frozen=True)
class Reading:
    """A stack as one theorem reads it: σ_0..σ_F and b_1..b_F with unused full layers put in."""

    layers: tuple[LayerBits, ...]
    inserted: tuple[int, ...]
    theorem: str
    L: int
    sigma: tuple[int, ...]
    b: tuple[int, ...]


def readings(architecture: Architecture, hops: int) -> Iterator[Reading]:
    """Every theorem with every number of hops up to `hops` that it could speak of."""
    if architecture.exclusions():
        return
    for layers in architecture.layer_bits():
        for unused in range(hops + 1):
            for inserted in combinations_with_replacement(range(len(layers) + 1), unused):
                stacked = list(layers)
                for index in reversed(inserted):
                    stacked.insert(index, LayerBits("full", 0))
                sigma, b = [0], []
                for layer in stacked:
                    if layer.kind == "full":
                        b.append(layer.bits)
                        sigma.append(0)
                    else:
                        sigma[-1] += layer.bits
                F = len(b)
                if F == 0 or (F == 1 and sigma == [0, 0]):
                    yield Reading(layers, inserted, "counting", 1, tuple(sigma), tuple(b))
                if 2 <= F + 1 <= hops:
                    yield Reading(layers, inserted, "A", F + 1, tuple(sigma), tuple(b))
                if 2 <= F <= hops and sigma[0] == sigma[1] == 0:
                    yield Reading(layers, inserted, "B", F, tuple(sigma), tuple(b))


XS = {2: (1, 2, 3, 5, 9), 3: (1, 2, 4)}


def certified(architecture: Architecture, sizes: TaskSizes) -> Certificate | None:
    """A certificate for exactly these sizes, by going through the parameters; None if there is none among them."""
    for reading in readings(architecture, sizes.hops):
        L = reading.L
        if any(fan != 1 for fan in sizes.n[L - 1 :]) or len(set(sizes.values[L - 1 :])) > 1:
            continue
        for x, theta, form, cut, deltas in parameters(reading, sizes):
            certificate = Certificate(
                schedule=str(architecture),
                precisions=architecture.precisions,
                layers=reading.layers,
                inserted=reading.inserted,
                hops=sizes.hops,
                sizes="paper" if kind_of(sizes) == "paper" else "free",
                domains=sizes.domains,
                values=sizes.values,
                n=sizes.n,
                theorem=reading.theorem,  # pyright: ignore[reportArgumentType]
                theorem_hops=L,
                form=form,  # pyright: ignore[reportArgumentType]
                x=x,
                theta=theta,
                cut=cut,
                deltas=deltas,
            )
            if check(certificate.document()).accepted:
                return certificate
    return None


Parameters = tuple[tuple[int, ...], tuple[int, ...], str, int, tuple[int, ...]]


def parameters(reading: Reading, sizes: TaskSizes) -> Iterator[Parameters]:
    """Parameters that may meet the conditions: those left out fail (A3) even with the largest θ."""
    if reading.theorem == "counting":
        yield (), (), "", -1, ()
        return
    L, shift = reading.L, int(reading.theorem == "B")
    D, M, n = list(sizes.domains[:L]), list(sizes.values[:L]), list(sizes.n[: L - 1])
    for x in product(XS[L], repeat=L):
        for cut in range(-1, L - 1):
            deltas = tuple(losses(shift, list(reading.sigma), list(reading.b), D, n, list(x), cut))
            if n[-1] * M[L - 2] * log2(M[-1]) <= deltas[-1]:
                continue
            spread = [
                sorted({t for t in (1, 2, 3, *range(4, size, 1 + size // 8), size - 1) if t < size}) for size in M
            ]
            for theta in product(*spread[: L - 1]):
                yield x, theta, "second", cut, deltas
            if x[0] == 1:
                for rest in product(*spread[1 : L - 1]):
                    yield x, (x[1], *rest), "first", cut, deltas


def test_the_grid_is_wide() -> None:
    assert len(GRID) >= 120
    assert {len(stack(*entry).full_layers) for entry in GRID} == {0, 1, 2, 3}


@pytest.mark.parametrize(("hops", "at_least"), [(1, 700), (2, 4_800), (3, 1_300)])
def test_nothing_is_both_built_and_certified_impossible(hops: int, at_least: int) -> None:
    """Among 26,412 pairs of a stack and sizes the 6,960 that are built."""
    built = recalled = 0
    for entry in GRID:
        architecture = stack(*entry)
        for sizes in small_sizes(hops, entry[2]):
            plan = best_plan(architecture, hops, sizes, packed=True, many_heads=True)
            if plan.hops == hops:
                assert certified(architecture, sizes) is None, (entry, sizes)
                built += 1
                recalled += plan.construction == "C3"
    assert built > at_least
    assert recalled > 30  # where one stack has possible and impossible sizes


BRANCHING = [
    ("full", 1),
    ("conv[channels=4,kernel=2] full", 2),
    ("linear full", 2),
    ("2*full", 2),
    ("2*linear full", 3),
    ("window full linear full", 3),
    ("3*full", 3),
]


@pytest.mark.parametrize("heads", [3, 4, 9])
@pytest.mark.parametrize(("schedule", "hops"), BRANCHING)
def test_no_branch_is_certified_impossible(schedule: str, hops: int, heads: int) -> None:
    """One layer with many heads makes two hops, of narrow heads and few bits, at sizes that no theorem excludes."""
    branched = 0
    for bits in (1, 4):
        architecture = stack(schedule, heads, 10, bits)
        for sizes in small_sizes(hops, 10):
            plan = best_plan(architecture, hops, sizes, packed=True, many_heads=True)
            if plan.hops == hops and plan.construction == "U3":
                assert certified(architecture, sizes) is None, sizes
                branched += 1
        certificate = prove(architecture, hops).certificate
        if hops > 1:
            assert certificate is not None
            sizes = TaskSizes(certificate.domains, certificate.values, certificate.n)
            assert best_plan(architecture, hops, sizes, packed=True, many_heads=True).hops < hops
    assert branched > 0


ROWS = [
    ("2*full", 2),
    ("full linear full", 2),
    ("3*full", 3),
    ("2*full", 3),
    ("linear 2*full", 3),
    ("full conv[channels=4,kernel=2] full", 3),
    ("window full mla", 3),
]


@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize(("schedule", "hops"), ROWS)
def test_no_row_is_certified_impossible(schedule: str, hops: int, heads: int) -> None:
    """A layer gathers what makes two hops of a later look-up: wherever a plan needs it, no theorem excludes it."""
    with_rows = 0
    for bits in (1, 4):
        architecture = stack(schedule, heads, 10, bits)
        for sizes in small_sizes(hops, 10):
            plan = best_plan(architecture, hops, sizes, packed=True, many_heads=True)
            if plan.hops == hops and plan.construction == "U2":
                assert certified(architecture, sizes) is None, sizes
                with_rows += 1
        certificate = prove(architecture, hops).certificate
        if certificate is not None:
            sizes = TaskSizes(certificate.domains, certificate.values, certificate.n)
            assert best_plan(architecture, hops, sizes, packed=True, many_heads=True).hops < hops
    makes_them_anyway = schedule == "full linear full" and hops == 2
    two_rows = schedule == "2*full" and hops == 3
    assert (with_rows > 0) == (not makes_them_anyway and not two_rows)


@pytest.mark.parametrize(
    ("schedule", "sizes"),
    [
        ("linear", TaskSizes((21 - 2,), (21 - 2,), ())),
        ("full", TaskSizes((9,), (9,), ())),
        ("conv[channels=1,kernel=2]", TaskSizes((3, 2), (2, 2), (1,))),
        ("full[head_dim=1]", TaskSizes((40, 320), (8, 320), (40,))),
        ("conv[channels=1,kernel=2] full[head_dim=1]", TaskSizes((40, 320), (8, 320), (40,))),
        ("conv[channels=1,kernel=2] full[head_dim=1] conv[channels=1,kernel=2]", TaskSizes((400,), (400,), ())),
    ],
    ids=str,
)
def test_going_through_the_parameters_finds_certificates(schedule: str, sizes: TaskSizes) -> None:
    """The test above can fail: the same method certifies sizes that are impossible."""
    architecture = stack(schedule, 1, 4, 4 if "head_dim" not in schedule and "conv" not in schedule else 1)
    found = certified(architecture, sizes)
    if "full[head_dim=1] conv" in schedule:  # one hop with a full layer: possible, so never certified
        assert found is None
    else:
        assert found is not None
        matches_schedule(found.document())


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_certificates_are_found_wherever_the_theorems_speak_and_nothing_is_built_at_their_sizes(hops: int) -> None:
    certificates = 0
    for entry in (entry for entry in GRID if hops < 3 or entry[2] < 10):
        architecture = stack(*entry)
        verdict = prove(architecture, hops)
        assert (verdict.kind == "impossible") == a_theorem_speaks(architecture, hops), entry
        certificate = verdict.certificate
        if certificate is not None:
            sizes = TaskSizes(certificate.domains, certificate.values, certificate.n)
            assert best_plan(architecture, hops, sizes, packed=True, many_heads=True).hops < hops, entry
            certificates += 1
    assert certificates > 15


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_what_is_impossible_is_more_than_any_size_allows(hops: int) -> None:
    """Impossible from some length on, and possible at every size that the codes allow, exclude each other."""
    impossible = 0
    for entry in GRID:
        architecture = stack(*entry)
        if a_theorem_speaks(architecture, hops):
            assert best_plan(architecture, hops).hops < hops, entry
            impossible += 1
    assert impossible > 20


def a_theorem_speaks(architecture: Architecture, hops: int) -> bool:
    """Whether a theorem speaks of so many hops: then some length is certified."""
    return any(True for _ in readings(architecture, hops))


RECALLS = [
    ("2*linear", 1),
    ("conv delta", 1),
    ("window gdn", 1),
    ("conv[channels=4,kernel=2] gdn[value_dim=4]", 1),
    ("2*linear full", 2),
    ("conv delta full", 2),
    ("2*gdn full", 2),
    ("2*kda", 1),
    ("shift hgrn2", 1),
    ("rwkv4 rwkv7", 1),
    ("conv mamba2[head_dim=4,state=8]", 1),
    ("rglru[channels=7] retnet[value_dim=4]", 1),
    ("rglru[channels=7] mlstm[value_dim=4] full", 2),
    ("mamba[channels=7,state=1] mamba[channels=20,state=8] full", 2),
    ("2*gla[conv=2] mla", 2),
    ("2*window[w=10]", 1),
    ("rwkv4[channels=4] h2o[budget=10,recent=9,head_dim=6,value_dim=4] full", 2),
]


@pytest.mark.parametrize("bits", [1, 4, 32])
@pytest.mark.parametrize(("schedule", "hops"), RECALLS)
def test_a_table_that_is_built_fits_the_state_and_a_certified_one_does_not(schedule: str, hops: int, bits: int) -> None:
    head_dim = 8
    architecture = stack(schedule, 1, head_dim, bits)
    state = sum(mixer.state_bits(architecture.precisions) for layer in architecture.layers for mixer in layer.mixers)
    certificate = prove(architecture, hops).certificate
    assert certificate is not None
    built = [s for s in small_sizes(hops, head_dim) if best_plan(architecture, hops, s).hops == hops]
    assert max(sizes.domains[0] for sizes in built) == head_dim
    for sizes in built:
        assert sizes.domains[0] * log2(sizes.values[0]) <= state
        assert sum(sizes.domains) + 2 < certificate.prompt_length
    if hops == 1:
        assert certificate.domains[0] * log2(certificate.values[0]) > state


def test_counting_never_meets_a_full_table() -> None:
    """A state of d_k keys holds m = d_k addresses: their bits never exceed its own."""
    for head_dim in range(2, 200):
        for bits in (1, 2, 4, 16):
            architecture = stack("2*linear", 1, head_dim, bits)
            for m in (2, head_dim - 1, head_dim):
                sizes = TaskSizes((m,), (m,), ())
                if m >= 2 and best_plan(architecture, 1, sizes).hops == 1:
                    assert m * log2(m) <= architecture.state_bits
                    assert certified(architecture, sizes) is None


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 32])
@pytest.mark.parametrize("memory", ["linear", "delta", "mlstm", "mamba2[heads=2]"])
def test_a_full_packed_table_fits_the_bits_that_are_counted(memory: str, bits: int) -> None:
    """At the largest m that is built, with the paper's sizes; what is certified takes more than all states have."""
    for head_dim in (1, 2, 3, 7, 16, 40):
        architecture = stack(f"conv {memory}", 1, head_dim, bits)
        carried, held = (layer.mixers[0].state_bits(architecture.precisions) for layer in architecture.layers)
        found = frontier(architecture, 1).rows[0]
        assert found.built is not None
        for m in {2, found.built} - {0}:
            sizes = TaskSizes((m,), (m,), ())
            if best_plan(architecture, 1, sizes, packed=True).hops == 1:
                assert m * log2(m) <= held
                assert certified(architecture, sizes) is None
        assert found.impossible is not None
        assert found.built < found.impossible
        assert found.impossible * log2(found.impossible) > carried + held
