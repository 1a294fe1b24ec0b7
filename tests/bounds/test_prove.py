"""What the search finds: reference values, every way a stack may be asked, the fallbacks, and its own words."""

import json
from dataclasses import replace
from math import inf, log2
from pathlib import Path

import pytest

from hopbound.architecture import Architecture, Defaults, LayerBits, Precisions, parse_schedule
from hopbound.bounds import Sizes, check, closed_forms, continuous, counting, matches_schedule, prove, search
from hopbound.bounds.conditions import Problem
from hopbound.bounds.prove import Candidate, certificate_of
from hopbound.errors import InputError, RejectedError

from .recompute import confirms
from .stacks import architecture, certificates

# For H = 1, d = 4, p = 4: b = 24 and σ = 80 for each linear layer.
LENGTHS: list[tuple[str, int, Sizes, int]] = [
    ("linear", 1, "free", 21),
    ("linear", 1, "paper", 21),
    ("full", 1, "free", 11),
    ("linear full linear", 2, "free", 322),
    ("linear full linear", 2, "paper", 557),
    ("2*full", 2, "free", 28_659),
    ("2*full", 2, "paper", 161_281),
    ("linear full linear full linear", 3, "free", 107_600_000),
    ("linear full linear full linear", 3, "paper", 19_600_000_000),
]


@pytest.mark.parametrize(("schedule", "hops", "sizes", "length"), LENGTHS)
def test_lengths_at_small_sizes(schedule: str, hops: int, sizes: Sizes, length: int) -> None:
    verdict = prove(architecture(schedule), hops, sizes=sizes)
    assert verdict.kind == "impossible"
    assert verdict.prompt_length is not None
    assert verdict.prompt_length <= length
    assert verdict.certificate is not None
    assert verdict.certificate.sizes == sizes
    document = verdict.certificate.document()
    assert check(document).accepted
    matches_schedule(document)
    assert confirms(document)
    if hops == 1:
        assert verdict.prompt_length == length


# log2 of the lengths of an earlier search, the paper's sizes | free sizes, b = H(d+2)p, σ_s = a H (d² + d) p (0 for B).
EARLIER = {
    (1, 4, 4, 1): ((9.16, 8.44), (34.64, 26.72), (109.4, 55.6), (17.58, 14.90), (57.77, 42.44), (149.9, 82.9)),
    (1, 8, 8, 1): ((13.40, 11.70), (49.51, 36.77), (149.5, 72.5), (24.32, 20.35), (77.51, 54.79), (200.9, 103.8)),
    (1, 16, 16, 1): ((17.15, 15.33), (66.43, 47.76), (195.9, 90.7), (31.97, 26.53), (99.99, 68.28), (259.7, 126.4)),
    (4, 16, 16, 3): ((21.78, 19.86), (85.51, 60.33), (249.1, 111.1), (40.59, 33.50), (125.5, 83.14), (327.5, 151.1)),
    (16, 128, 16, 3): ((32.98, 30.92), (133.7, 90.74), (386.1, 160.6), (62.37, 51.07), (190.6, 119.8), (502.4, 211.7)),
}


def stack(theorem: str, H: int, d: int, p: int, a: int, L: int) -> Architecture:
    """`a` linear layers in each run and `L - 1` full layers, or `L` full layers alone."""
    gap = f"{a}*linear"
    schedule = f"{L}*full" if theorem == "B" else " ".join([gap, *(f"full {gap}" for _ in range(L - 1))])
    return architecture(schedule, H, d, p)


@pytest.mark.slow
@pytest.mark.parametrize("row", EARLIER, ids=str)
def test_no_longer_than_the_earlier_search(row: tuple[int, int, int, int]) -> None:
    for place, (theorem, L) in enumerate((t, L) for t in "AB" for L in (2, 3, 4)):
        for sizes, earlier in zip(("paper", "free"), EARLIER[row][place], strict=True):
            verdict = prove(stack(theorem, *row, L), L, sizes=sizes)  # pyright: ignore[reportArgumentType]
            assert verdict.theorem == theorem
            assert verdict.source == "search"
            assert verdict.log2_prompt_length is not None
            assert verdict.log2_prompt_length < earlier + 0.01
            assert verdict.certificate is not None
            assert confirms(verdict.certificate.document())


@pytest.mark.parametrize("schedule", ["full", "linear full linear", "2*full", "3*full", "linear 2*full"])
@pytest.mark.parametrize(("heads", "head_dim", "bits"), [(1, 4, 4), (32, 4, 1), (32, 64, 16)])
def test_functions_that_pass_on_cost_little(schedule: str, heads: int, head_dim: int, bits: int) -> None:
    stack = parse_schedule(schedule, Defaults(heads=heads, head_dim=head_dim), Precisions.uniform(bits))
    least = next(hops for hops in range(1, 6) if prove(stack, hops).kind == "impossible")
    lengths = [prove(stack, least + more).log2_prompt_length for more in range(4)]
    assert None not in lengths
    assert max(lengths) <= min(lengths) + 1.5, lengths  # pyright: ignore


def test_the_same_answer_twice() -> None:
    stack_ = architecture("linear full linear full")
    assert prove(stack_, 3) == prove(stack_, 3)


@pytest.mark.parametrize("full", range(5))
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_which_cells_are_impossible(full: int, hops: int) -> None:
    """With a linear layer in front, from `F + 1` hops on; full layers alone, from `F` hops on."""
    sizes = {"heads": 1, "head_dim": 24, "bits": 32}
    hybrid = prove(architecture(f"linear {full}*full" if full else "linear", **sizes), hops)
    assert (hybrid.kind == "impossible") == (hops >= full + 1)
    assert bool(hybrid.reason) == (hybrid.kind == "no claim")
    if full:
        alone = prove(architecture(f"{full}*full", **sizes), hops)
        assert (alone.kind == "impossible") == (hops >= full)
        if alone.certificate is not None and hybrid.prompt_length is not None:
            assert alone.certificate.prompt_length <= hybrid.prompt_length


def test_no_claim_names_the_reason() -> None:
    verdict = prove(architecture("full linear full"), 2)
    assert verdict.kind == "no claim"
    assert "3 hops or more" in verdict.reason
    assert "bounded layer before the second full layer" in verdict.reason
    assert verdict.certificate is None
    excluded = prove(architecture("nsa[k=2,block=4] full"), 5)
    assert excluded.kind == "no claim"
    assert "nsa" in excluded.reason
    assert "3 hops or more" in prove(architecture("3*full"), 2).reason


def test_sizes_that_hold_up_to_a_length() -> None:
    """Log-linear attention is bounded for prompts up to a length: no claim beyond it."""
    limited = prove(architecture("loglinear[levels=20]"), 1)
    assert limited.kind == "impossible"
    assert limited.length_limit == 2**19
    assert "up to 524,288" in limited.statement
    assert prove(architecture("linear"), 1).length_limit is None
    short = prove(architecture("loglinear[levels=2]"), 1)
    assert short.kind == "no claim"
    assert "up to" in short.reason


def test_parallel_mixers_take_the_better_reading() -> None:
    verdict = prove(architecture("linear|full"), 2)
    before, after = (prove(architecture(schedule), 2) for schedule in ("linear full", "full linear"))
    assert verdict.log2_prompt_length == min(
        length for length in (before.log2_prompt_length, after.log2_prompt_length) if length is not None
    )


@pytest.mark.parametrize("hops", [0, -1, 65, True, 2.0])
def test_hops_out_of_range(hops: int) -> None:
    with pytest.raises(InputError, match="hops"):
        prove(architecture("linear"), hops)


def test_unknown_sizes() -> None:
    with pytest.raises(InputError, match="sizes"):
        prove(architecture("linear"), 1, sizes="other")  # pyright: ignore[reportArgumentType]


def test_thresholds_of_the_literature() -> None:
    assert prove(architecture("linear full"), 2).paper_log2_prompt_length == 2**10 * log2(16)
    assert prove(architecture("2*full"), 2).paper_log2_prompt_length == 2**8 * log2(16)
    assert "2412.02975" in prove(architecture("2*full"), 2).paper_source
    assert "2602.01763" in prove(architecture("linear"), 1).paper_source


# One hop, counted.


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 7, 24, 80, 255, 1000])
def test_one_hop_is_counted_exactly(bits: int) -> None:
    m, M = counting.smallest_sizes(bits, 0, paper=False)
    assert m == M == next(m for m in range(2, 2000) if m**m > 2**bits)


@pytest.mark.parametrize("bits", [1, 5, 24, 80, 200])
@pytest.mark.parametrize("passing", [1, 2, 5])
def test_one_hop_and_identities_are_the_shortest(bits: int, passing: int) -> None:
    m, M = counting.smallest_sizes(bits, passing, paper=False)
    every = (m + passing * M for M in range(2, 100) for m in range(2, 210) if M**m > 2**bits)
    assert m + passing * M == min(every)


@pytest.mark.parametrize("bits", range(6))
@pytest.mark.parametrize("m", range(2, 5))
def test_one_hop_against_all_encoders(bits: int, m: int) -> None:
    """A state of `bits` bits can tell all functions apart exactly if there are at least as many states."""
    states, functions = 2**bits, m**m
    certificate = replace(
        certificates()[0],
        layers=(LayerBits("bounded", bits),),
        domains=(m,),
        values=(m,),
    )
    assert check(certificate.document()).accepted is (functions > states)


# Closed forms, and what happens without scipy.


def problem(theorem: str, L: int, b: int, sigma: int, paper: bool) -> Problem:
    if theorem == "A":
        return Problem("A", (sigma,) * L, (b,) * (L - 1), paper)
    return Problem("B", (0,) * (L + 1), (b,) * L, paper)


@pytest.mark.parametrize("b", [1, 24, 1000])
@pytest.mark.parametrize(("paper", "deepest"), [(False, 12), (True, 8)])
@pytest.mark.parametrize("theorem", ["A", "B"])
def test_closed_forms_are_accepted(theorem: str, paper: bool, deepest: int, b: int) -> None:
    any_stack = architecture("linear")
    for L in range(2, deepest + 1):
        for sigma in (0, b, b * b):
            case = problem(theorem, L, b, sigma, paper)
            instance = closed_forms.instance(case)
            assert instance is not None
            layers: list[LayerBits] = []
            for s, state in enumerate(case.states):
                layers.append(LayerBits("bounded", state))
                if s < len(case.summaries):
                    layers.append(LayerBits("full", case.summaries[s]))
            candidate = Candidate(tuple(layers), case, 0)
            certificate = certificate_of(any_stack, candidate, instance, L, "paper" if paper else "free")
            result = check(certificate.document())
            assert result.accepted, (theorem, L, b, sigma, result.reason)
            assert log2(certificate.prompt_length) <= closed_forms.log2_length(case)


@pytest.mark.parametrize(("schedule", "hops"), [("linear full linear", 2), ("2*full", 2), ("3*full", 3), ("linear", 2)])
@pytest.mark.parametrize("sizes", ["free", "paper"])
def test_without_scipy_the_closed_form_answers(
    schedule: str, hops: int, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous, "available", lambda: False)
    verdict = prove(architecture(schedule), hops, sizes=sizes)
    assert verdict.kind == "impossible"
    assert verdict.certificate is not None
    assert verdict.source == f"closed form {verdict.theorem}" or verdict.theorem == "counting"
    assert confirms(verdict.certificate.document())


@pytest.mark.parametrize("sizes", ["free", "paper"])
def test_deep_stacks_answer_by_logarithm(sizes: Sizes) -> None:
    deep = prove(architecture(" ".join(["linear full"] * 30)), 31, sizes=sizes)
    assert deep.kind == "impossible"
    assert deep.log2_prompt_length is not None
    assert 1000 < deep.log2_prompt_length < inf
    assert (deep.certificate is None) == (sizes == "paper")
    assert deep.theorem == ("A''" if sizes == "paper" else "A'")
    assert deep.source == f"closed form {deep.theorem}"


def test_search_is_never_longer_than_the_closed_form() -> None:
    for theorem in "AB":
        for L in (2, 3):
            for paper in (True, False):
                case = problem(theorem, L, 3, 7, paper)
                rough = search.relax(case)
                closed = closed_forms.instance(case)
                assert rough is not None
                assert closed is not None
                assert search.total(case, next(search.refine(case, rough))) < search.total(case, closed)


# The document.


def test_documents_follow_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = Path(__file__).parents[2] / "docs" / "certificate.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))
    for certificate in certificates():
        validator.validate(certificate.document())
    assert not validator.is_valid({**certificates()[6].document(), "more": 1})
    assert not validator.is_valid({**certificates()[6].document(), "parameters": {}})


def test_the_schedule_is_compared_with_the_layers() -> None:
    good = certificates()[6]
    matches_schedule(good.document())
    larger = Precisions(activation=4, kv=4, state=8, summary=4)
    for bad in (
        replace(good, schedule="linear"),
        replace(good, schedule="no such mixer"),
        replace(good, schedule=good.schedule.replace(" ", ", ", 1)),
        replace(good, schedule=good.schedule.replace("head_dim=4", "head_dim=3")),
        replace(good, precisions=larger),
        replace(good, schedule="a=" * 2_000_000),
        replace(good, schedule="10000*(10000*full)"),
        replace(good, schedule="loglinear[heads=1,head_dim=4,value_dim=4,conv=0,levels=1000000000000]"),
    ):
        with pytest.raises(RejectedError, match="stack"):
            matches_schedule(bad.document())
    with pytest.raises(RejectedError):
        matches_schedule({})


def test_precisions_that_no_architecture_has_are_refused() -> None:
    document = certificates()[6].document()
    document["stack"]["precisions"]["kv"] = {"hex": hex(5000), "dec": "5000"}
    assert check(document).accepted
    with pytest.raises(RejectedError, match="precisions"):
        matches_schedule(document)


@pytest.mark.parametrize(
    "schedule", ["1025*linear", "3000*(linear|conv)", "1500*linear full", "1200*(linear|conv) full"]
)
def test_stacks_of_more_than_a_thousand_layers_have_certificates(schedule: str) -> None:
    stack = architecture(schedule)
    verdict = prove(stack, len(stack.full_layers) + 1)
    assert verdict.certificate is not None
    matches_schedule(verdict.certificate.document())


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_stacks_without_mixers_hear_nothing(hops: int) -> None:
    verdict = prove(architecture("2*mlp"), hops)
    assert verdict.kind == "impossible"
    assert verdict.prompt_length == 2 + 2 * hops  # two entries of each function already


PROPERTY_STACKS = ["linear", "full", "linear full linear", "2*full", "gdn 2*full conv", "3*full", "full|linear full"]


@pytest.mark.parametrize("schedule", PROPERTY_STACKS)
@pytest.mark.parametrize("nothing", ["conv[kernel=1]", "window[w=1]", "mlp"])
def test_layers_that_hold_nothing_change_nothing(schedule: str, nothing: str) -> None:
    hops = len(architecture(schedule).full_layers) + 1
    around = f"{nothing} {schedule} {nothing}"
    inside = schedule.replace(" ", f" {nothing} ")
    lengths = {prove(architecture(text), hops).prompt_length for text in (schedule, around, inside)}
    assert len(lengths) == 1


@pytest.mark.parametrize("schedule", PROPERTY_STACKS)
def test_larger_stacks_have_no_shorter_lengths(schedule: str) -> None:
    """Up to what the search leaves open: 0.26 in log2."""
    hops = len(architecture(schedule).full_layers) + 1
    for small, large in (((1, 4, 4), (1, 4, 5)), ((1, 8, 8), (2, 8, 8)), ((2, 8, 16), (2, 9, 16)), ((4, 16, 16),) * 2):
        lengths = [
            prove(
                parse_schedule(schedule, Defaults(heads=h, head_dim=d), Precisions.uniform(p)), hops
            ).log2_prompt_length
            for h, d, p in (small, large)
        ]
        assert None not in lengths
        assert (lengths[0] or 0) <= (lengths[1] or 0) + 0.26, (small, large, lengths)
