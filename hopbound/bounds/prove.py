"""From an architecture and a number of hops to a verdict: every theorem that applies, the shortest certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2

from hopbound.architecture import Architecture, LayerBits, Runs, runs
from hopbound.bounds import closed_forms, counting, search, theorem_a, theorem_b
from hopbound.bounds.certificate import Certificate, Sizes
from hopbound.bounds.checker import MAX_HOPS, check
from hopbound.bounds.conditions import Instance, Problem
from hopbound.bounds.thresholds import paper_threshold
from hopbound.bounds.verdict import Verdict
from hopbound.errors import InputError

MAX_SHOWN = 10**15  # the longest prompt that is written out in a sentence
WORTH_REFINING = 0.5  # log2 of how much longer the continuous optimum of a candidate may be than the shortest


@dataclass(frozen=True)
class Candidate:
    """One way to prove it: a reading of the stack, a theorem with its sizes, unused full layers in front."""

    layers: tuple[LayerBits, ...]
    problem: Problem
    unused: int


@dataclass(frozen=True)
class Found:
    """What a candidate gives: its prompt length in bits, its certificate if that can be written, where it is from."""

    log2_length: float
    certificate: Certificate | None
    theorem: str
    source: str


def prove(architecture: Architecture, hops: int, *, sizes: Sizes = "free") -> Verdict:
    """Find the shortest prompts on which no weights make this many hops, as far as the theorems reach.

    Args:
        architecture: the stack.
        hops: how many functions are composed.
        sizes: `paper` for value sizes equal to the domain sizes, `free` for any with `M_L = D_L`.

    Raises:
        InputError: `hops` is not between 1 and 64, or `sizes` is neither.
    """
    if isinstance(hops, bool) or not isinstance(hops, int) or not 1 <= hops <= MAX_HOPS:
        raise InputError("hops", hops, f"an integer from 1 to {MAX_HOPS}")
    if sizes not in ("free", "paper"):
        raise InputError("sizes", sizes, "free or paper")
    readings = architecture.layer_bits()
    threshold, threshold_source = paper_threshold(readings[0], hops, architecture.hdp)

    def no_claim(reason: str) -> Verdict:
        return Verdict("no claim", hops, threshold, threshold_source, reason=reason)

    excluded = architecture.exclusions()
    if excluded:
        return no_claim(f"the theorems do not speak of this stack: {'; '.join(excluded)}")
    best = _best(architecture, readings, hops, sizes)
    if best is None:
        return no_claim(_refusal(runs(readings[0]), hops))
    limit = architecture.length_limit
    length = None if best.certificate is None else best.certificate.prompt_length
    if limit is not None and (length > limit if length is not None else best.log2_length > log2(limit)):
        return no_claim(
            f"the sizes of this stack hold up to {limit} tokens, the bound from 2^{best.log2_length:.2f} on"
        )
    longer = "every larger length" if limit is None else f"every larger length up to {limit:,}"
    shown = f"2^{best.log2_length:.2f}" if length is None or length > MAX_SHOWN else f"{length:,}"
    return Verdict(
        "impossible",
        hops,
        threshold,
        threshold_source,
        theorem=best.theorem,
        certificate=best.certificate,
        prompt_length=length,
        log2_prompt_length=best.log2_length,
        statement=f"whatever the weights, some instance of {hops}-hop composition of the stated sizes, a prompt of "
        f"{shown} tokens, is answered wrongly; at {longer} too, behind a constant prefix",
        length_limit=limit,
        source=best.source,
    )


def _refusal(stack: Runs, hops: int) -> str:
    """Why no theorem speaks of this number of hops."""
    F = len(stack.summaries)
    return (
        f"{hops} hop{'s' if hops > 1 else ''}: Theorem A speaks of {F + 1} hops or more for {F} full "
        f"layer{'s' if F > 1 else ''}; {theorem_b.refusal(stack, hops)}"
    )


def _best(
    architecture: Architecture, readings: Sequence[tuple[LayerBits, ...]], hops: int, sizes: Sizes
) -> Found | None:
    """The shortest certified prompt over all readings of the stack and all theorems; None if none applies."""
    found = [
        _counted(architecture, layers, bits, hops, sizes)
        for layers in readings
        if (bits := crossing(layers)) is not None
    ]
    candidates = ways(readings, hops, sizes)
    relaxed = [(search.relax(candidate.problem), candidate) for candidate in candidates]
    promising = [(rough, candidate) for rough, candidate in relaxed if rough is not None]
    worth = inf  # until the shortest promise that is kept says how much longer another may be
    for rough, candidate in sorted(promising, key=lambda pair: pair[0].length):
        if rough.length <= worth:
            refined = _searched(architecture, candidate, rough, hops, sizes)
            if refined is not None:
                worth = min(worth, rough.length + WORTH_REFINING)
                found.append(refined)
    found += [_closed(architecture, candidate, hops, sizes) for rough, candidate in relaxed if rough is None]
    if candidates and not found:
        found = [_closed(architecture, candidate, hops, sizes) for candidate in candidates]
    return min(found, key=lambda one: one.log2_length, default=None)


def crossing(layers: Sequence[LayerBits]) -> int | None:
    """Bits that must determine `z_1` by counting; None where counting does not speak of the stack."""
    stack = runs(layers)
    return counting.crossing_bits(stack.states, stack.summaries)


def ways(readings: Sequence[tuple[LayerBits, ...]], hops: int, sizes: Sizes) -> list[Candidate]:
    """Every way in which Theorems A and B speak of a stack and a number of hops."""
    return [
        Candidate(layers, *way)
        for layers in readings
        for theorem in (theorem_a, theorem_b)
        for way in theorem.problems(runs(layers), hops, sizes == "paper")
    ]


def _counted(architecture: Architecture, layers: tuple[LayerBits, ...], bits: int, hops: int, sizes: Sizes) -> Found:
    m, M = counting.smallest_sizes(bits, hops - 1, sizes == "paper")
    certificate = counted_certificate(architecture, layers, m, M, hops, sizes)
    assert check(certificate.document()).accepted
    return Found(log2(certificate.prompt_length), certificate, "counting", "search")


def counted_certificate(
    architecture: Architecture, layers: tuple[LayerBits, ...], m: int, M: int, hops: int, sizes: Sizes
) -> Certificate:
    """The certificate of a count: `z_1` from m to M values, the functions beyond pass their argument on."""
    return Certificate(
        schedule=str(architecture),
        precisions=architecture.precisions,
        layers=layers,
        inserted=(),
        hops=hops,
        sizes=sizes,
        domains=(m,) + (M,) * (hops - 1),
        values=(M,) * hops,
        n=(1,) * (hops - 1),
        theorem="counting",
        theorem_hops=1,
    )


def _searched(
    architecture: Architecture, candidate: Candidate, rough: search.Relaxed, hops: int, sizes: Sizes
) -> Found | None:
    """The first instance near the continuous optimum that the checker accepts; None if it accepts none."""
    for instance in search.refine(candidate.problem, rough):
        certificate = certificate_of(architecture, candidate, instance, hops, sizes)
        if check(certificate.document()).accepted:
            return Found(log2(certificate.prompt_length), certificate, candidate.problem.theorem, "search")
    return None


def _closed(architecture: Architecture, candidate: Candidate, hops: int, sizes: Sizes) -> Found:
    """The closed form: its certificate, or its logarithm alone where its integers are too long."""
    problem = candidate.problem
    name = closed_forms.name(problem)
    instance = closed_forms.instance(problem)
    if instance is not None:
        certificate = certificate_of(architecture, candidate, instance, hops, sizes)
        if check(certificate.document()).accepted:
            return Found(log2(certificate.prompt_length), certificate, name, f"closed form {name}")
    return Found(closed_forms.log2_length(problem), None, name, f"closed form {name}")


def certificate_of(
    architecture: Architecture, candidate: Candidate, instance: Instance, hops: int, sizes: Sizes
) -> Certificate:
    """The certificate of an instance; the functions beyond the theorem's pass their argument on."""
    problem, point = candidate.problem, instance.point
    end = (instance.values[-1],) * problem.passing
    return Certificate(
        schedule=str(architecture),
        precisions=architecture.precisions,
        layers=candidate.layers,
        inserted=(0,) * candidate.unused,
        hops=hops,
        sizes=sizes,
        domains=instance.domains + end,
        values=instance.values + end,
        n=point.n + (1,) * problem.passing,
        theorem=problem.theorem,
        theorem_hops=problem.hops,
        form="first" if point.first else "second",
        x=point.x,
        theta=instance.theta,
        cut=instance.cut,
        deltas=instance.deltas,
    )
