"""The first impossible number of hops in closed form: it is the first, `prove` confirms it, its scales are the edge."""

from dataclasses import dataclass
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Architecture, LayerBits, Precisions, parse_schedule
from hopbound.bounds import check, prove
from hopbound.bounds.first import FirstImpossible, first_hops, first_impossible, scaled, scales

from .stacks import architecture

Reading = tuple[LayerBits, ...]
EPSILON = 1e-9

SCHEDULES = [
    "mlp",
    "linear",
    "3*linear",
    "window[w=5]",
    "full",
    "full mlp",
    "mla[latent=6,rope_dim=2]",
    "topk[k=2]",
    "linear full",
    "full linear",
    "conv full conv",
    "linear full linear",
    "gdn|full",
    "2*full",
    "2*full linear",
    "full linear full",
    "linear 2*full",
    "full window full",
    "3*full",
    "2*full linear full",
    "full mlp full window full",
    "2*(linear|full)",
]
SIZES = [(1, 4, 4), (2, 8, 16), (1, 2, 1)]  # heads, head dimension, bits


@dataclass(frozen=True)
class Read(Architecture):
    """A stack that says of itself which bits its layers let across a cut."""

    readings: tuple[Reading, ...] = ()

    def layer_bits(self) -> tuple[Reading, ...]:
        return self.readings


def of_bits(*readings: Reading) -> Read:
    return Read(parse_schedule("mlp").layers, Precisions(), readings)


def of(one: Architecture) -> FirstImpossible:
    found = first_impossible(one)
    assert found is not None
    return found


@pytest.mark.parametrize(("heads", "head_dim", "bits"), SIZES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_is_the_first_and_prove_certifies_it(schedule: str, heads: int, head_dim: int, bits: int) -> None:
    stack = architecture(schedule, heads, head_dim, bits)
    first = of(stack)
    for fewer in range(1, first.hops):
        assert prove(stack, fewer).kind == "no claim"
    verdict = prove(stack, first.hops)
    assert verdict.kind == "impossible"
    assert verdict.log2_prompt_length is not None
    assert verdict.log2_prompt_length <= first.log2_length + EPSILON
    assert verdict.certificate is not None
    assert check(verdict.certificate.document()).accepted
    assert first_hops(stack) == first.hops
    for more in (1, 2):  # what is impossible stays so with a hop more
        assert prove(stack, first.hops + more).kind == "impossible"


@pytest.mark.parametrize(
    ("schedule", "hops", "theorem"),
    [
        ("mlp", 1, "counting"),
        ("3*linear", 1, "counting"),
        ("full", 1, "counting"),  # its one query has not seen the start
        ("full linear", 2, "A'"),
        ("linear full", 2, "A'"),
        ("2*full", 2, "B'"),
        ("2*full linear", 2, "B'"),
        ("full linear full", 3, "A'"),  # a bounded layer before the second full one
        ("linear 2*full", 3, "A'"),
        ("2*full linear full", 3, "B'"),
    ],
)
def test_which_theorem_speaks(schedule: str, hops: int, theorem: str) -> None:
    first = of(architecture(schedule))
    assert (first.hops, first.theorem) == (hops, theorem)


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 79, 80, 81, 1000])
def test_counting_by_hand(bits: int) -> None:
    """One hop: the least m with m^m > 2^bits, and two tokens more; a full layer alone is counted by its summary."""
    m = next(m for m in range(2, 999) if m**m > 2 ** max(bits, 1))
    for kind in ("bounded", "full"):
        if bits or kind == "bounded":
            one = LayerBits(kind, bits)
            assert of(of_bits((one,))) == FirstImpossible(1, "counting", log2(m + 2))


@pytest.mark.parametrize(("before", "b", "after"), [(80, 24, 80), (1, 24, 80), (640, 3, 2), (1, 1, 1)])
def test_one_full_layer_by_hand(before: int, b: int, after: int) -> None:
    """Corollary A' at L = 2: 2 σ (b + 2), with σ the larger run and at least 2."""
    first = of(of_bits((LayerBits("bounded", before), LayerBits("full", b), LayerBits("bounded", after))))
    assert first.hops == 2
    assert first.log2_length == pytest.approx(log2(2 * max(2, before, after) * (b + 2)), rel=1e-11)


@pytest.mark.parametrize("L", [2, 3, 5, 40, 500])
def test_many_full_layers_by_hand(L: int) -> None:
    """B': (40 L b)^((L² + 3 L - 2)/2) for L full layers; A': σ (40 L b)^((L - 1)(L + 2)/2) with a state before them."""
    full = (LayerBits("full", 7),) * L
    first = of(of_bits(full))
    assert (first.hops, first.theorem) == (L, "B'")
    assert first.log2_length == pytest.approx((L * L + 3 * L - 2) / 2 * log2(40 * L * 7), rel=1e-11)
    first = of(of_bits((LayerBits("bounded", 1000), *full)))
    assert (first.hops, first.theorem) == (L + 1, "A'")
    assert first.log2_length == pytest.approx(log2(1000) + L * (L + 3) / 2 * log2(40 * (L + 1) * 7), rel=1e-11)


def test_fewer_hops_come_before_shorter_prompts() -> None:
    """After two full layers a state of 2^200 bits: B' takes its 4/3rd power, A' for a hop more the first."""
    reading = (LayerBits("full", 2**8), LayerBits("full", 2**8), LayerBits("bounded", 2**200))
    first = of(of_bits(reading))
    assert (first.hops, first.theorem) == (2, "B'")
    later = of(of_bits((LayerBits("bounded", 1), *reading)))
    assert (later.hops, later.theorem) == (3, "A'")
    assert later.log2_length < first.log2_length


def test_of_two_readings_the_shorter_prompt_counts() -> None:
    """In parallel a bounded mixer stands before or after the full one: before the only one Theorem A, hop for hop."""
    small, large = LayerBits("bounded", 10), LayerBits("bounded", 1000)
    full = LayerBits("full", 5)
    either = of_bits((full, large), (small, full))
    assert of(either) == of(of_bits((small, full)))
    assert of(either).log2_length < of(of_bits((full, large))).log2_length


layers = st.lists(
    st.builds(
        LayerBits,
        st.sampled_from(["full", "bounded"]),
        st.one_of(st.integers(1, 60), st.integers(1, 2**30)),
    ),
    min_size=1,
    max_size=7,
).map(tuple)


def order(reading: Reading) -> tuple[int, float]:
    first = of(of_bits(reading))
    return first.hops, first.log2_length * (1 + EPSILON)


@given(layers, st.data())
def test_more_bits_or_a_bounded_layer_more_never_make_it_sooner(reading: Reading, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(reading) - 1))
    more = LayerBits(reading[at].kind, reading[at].bits + data.draw(st.integers(1, 1000)))
    hops, length = order(reading)
    assert (hops, length / (1 + EPSILON)) <= order((*reading[:at], more, *reading[at + 1 :]))
    grown = order((*reading[:at], LayerBits("bounded", data.draw(st.integers(1, 1000))), *reading[at:]))
    assert (hops, length / (1 + EPSILON)) <= grown
    assert order((*reading, LayerBits("full", 1)))[0] >= hops


# By what factors a stack is too large


def turned_by(kind: str) -> tuple[str, ...]:
    return {"state": ("bounded",), "width": ("full",), "both": ("bounded", "full")}[kind]


def certified(reading: Reading, hops: int) -> float:
    length = prove(of_bits(reading), hops).log2_prompt_length
    assert length is not None
    return length


@pytest.mark.parametrize("tokens", [5, 40, 3000, 10**5, 10**9, 2**40])
@pytest.mark.parametrize(
    "schedule", ["linear", "full", "linear full linear", "2*full", "full linear full", "2*(gdn|full)"]
)
def test_a_scale_is_the_edge(schedule: str, tokens: int) -> None:
    """Divided by the factor the stack is certified, by a little less it is not; one bit a layer is the least."""
    stack = architecture(schedule, head_dim=24, bits=16)
    readings, first = stack.layer_bits(), of(stack)
    for scale in scales(stack, first, tokens):
        turned = turned_by(scale.knob)

        def at(factor: float, turned: tuple[str, ...] = turned) -> tuple[Reading, ...]:
            return tuple(scaled(reading, turned, factor) for reading in readings)

        if scale.factor is None:
            least = at(float(2**60))
            assert {one.bits for reading in least for one in reading if one.kind in turned} == {1}
            assert of(of_bits(*least)).log2_length > log2(tokens)
            continue
        assert min(certified(reading, first.hops) for reading in at(scale.factor)) <= log2(tokens) + EPSILON
        assert of(of_bits(*at(scale.factor))).log2_length <= log2(tokens)
        if scale.factor == 1:
            assert first.log2_length <= log2(tokens)
        else:
            assert scale.factor > 1
            assert first.log2_length > log2(tokens)
            below = scale.factor / (1 + 2 * EPSILON)
            assert of(of_bits(*at(below))).log2_length > log2(tokens)


def test_scales_by_hand() -> None:
    """σ = 1000, b = 98: 2 σ (b + 2) = 200,000 tokens. At 20,000: σ to 100, b to 8, or both at once.

    Lengths are rounded up by one part in 10^12 of their logarithm, hence a token more.
    """
    stack = of_bits((LayerBits("bounded", 1000), LayerBits("full", 98)))
    state, width, both = scales(stack, of(stack), 20_001)
    assert (state.knob, width.knob, both.knob) == ("state", "width", "both")
    assert state.factor == pytest.approx(1000 / 100, rel=2 * EPSILON)
    assert width.factor == pytest.approx(98 / 8, rel=2 * EPSILON)
    fits = [f for f in (1 + i / 1000 for i in range(20_000)) if 2 * ceil(1000 / f) * (ceil(98 / f) + 2) <= 20_000]
    assert fits[0] - 0.001 < (both.factor or 0) <= fits[0] + EPSILON
    assert [one.factor for one in scales(stack, of(stack), 200_001)] == [1.0, 1.0, 1.0]
    assert [one.factor for one in scales(stack, of(stack), 11)] == [None, None, None]  # 2 · 2 · (1 + 2) = 12
    assert [one.factor for one in scales(stack, of(stack), 13)] == [None, None, pytest.approx(500, rel=2 * EPSILON)]


def test_a_larger_context_never_raises_a_scale() -> None:
    stack = architecture("linear full linear", head_dim=24, bits=16)
    found = [scales(stack, of(stack), 2**k) for k in range(2, 40)]
    for knob in zip(*found, strict=True):
        factors = [float("inf") if one.factor is None else one.factor for one in knob]
        assert factors == sorted(factors, reverse=True)
        assert factors[-1] == 1.0


@pytest.mark.parametrize(("schedule", "knobs"), [("linear", ["state"]), ("2*full", ["width"]), ("mlp", [])])
def test_only_what_a_stack_has_is_scaled(schedule: str, knobs: list[str]) -> None:
    stack = architecture(schedule)
    assert [one.knob for one in scales(stack, of(stack), 8)] == knobs


def test_layers_of_no_bits_stay_so() -> None:
    reading = (LayerBits("full", 0), LayerBits("bounded", 9), LayerBits("full", 4))
    assert scaled(reading, ("full",), 3.0) == (LayerBits("full", 0), LayerBits("bounded", 9), LayerBits("full", 2))
    assert scaled(reading, ("bounded", "full"), 1e9) == (*reading[:1], LayerBits("bounded", 1), LayerBits("full", 1))


# Where there is nothing to say


def test_stacks_outside_the_theorems() -> None:
    stack = architecture("full nsa[k=2,block=4,w=2] full")
    assert stack.exclusions()
    assert first_impossible(stack) is None
    assert first_hops(stack) is None


@pytest.mark.parametrize("levels", [2, 5, 6, 9, 20])
def test_sizes_that_hold_up_to_a_length_only(levels: int) -> None:
    """Log-linear attention with so many levels is what it says up to 2^(levels - 1) tokens."""
    stack = architecture(f"loglinear[levels={levels}]", head_dim=2)
    held = levels * 4 * 4
    m = next(m for m in range(2, 999) if m**m > 2**held)
    assert first_hops(stack) == 1
    first = first_impossible(stack)
    limit = 2 ** (levels - 1)
    assert (first is not None) == (m + 2 <= limit) == (prove(stack, 1).kind == "impossible")
    if first is not None:
        assert scales(stack, first, limit)
        assert scales(stack, first, limit + 1) == ()
