"""What is said of a model: the parts against the definitions that they stand for, and where there is nothing to say."""

import json
from math import log2

import pytest

from hopbound.analysis import MAX_BATCH, MAX_CONTEXT, MOST_HOPS_SEARCHED, Analysis, analyze, document, total_bytes
from hopbound.architecture import Defaults
from hopbound.bounds import check, limits, matches_schedule, prove
from hopbound.bounds.reach import reach
from hopbound.catalog import Model, read_config, read_model
from hopbound.errors import InputError


def model(schedule: str, head_dim: int = 4) -> Model:
    """One head, four bits for everything."""
    return read_model(schedule, Defaults(heads=1, head_dim=head_dim)).with_bits(every=4)


def impossible_length(found: Analysis) -> float:
    assert found.impossible is not None
    return found.impossible.log2_prompt_length


# Hops


STACKS = [
    "linear",
    "2*linear",
    "full",
    "2*full",
    "3*full",
    "full linear",
    "linear full linear",
    "full linear full",
    "linear|full",
    "2*(window full)",
    "mlp",
]


@pytest.mark.parametrize("schedule", STACKS)
def test_what_is_possible_ends_before_what_is_impossible_begins(schedule: str) -> None:
    found = analyze(model(schedule), context=64)
    assert found.impossible is not None
    assert found.possible.hops < found.impossible.hops
    assert bool(found.possible.construction) == (found.possible.hops > 0)
    assert found.possible.conditions
    assert found.silence == ""
    assert found.limits == ()
    assert prove(found.model.architecture, found.impossible.hops).kind == "impossible"


@pytest.mark.parametrize("schedule", STACKS)
def test_the_search_is_never_longer_and_its_certificate_holds(schedule: str) -> None:
    one = model(schedule)
    closed, tight = analyze(one, context=4096), analyze(one, context=4096, tight=True)
    assert closed.impossible is not None
    assert tight.impossible is not None
    assert (closed.impossible.source, closed.impossible.hops) == ("closed form", tight.impossible.hops)
    assert tight.impossible.log2_prompt_length <= closed.impossible.log2_prompt_length
    verdict = prove(one.architecture, tight.impossible.hops)
    assert verdict.certificate is not None
    document = verdict.certificate.document()
    assert check(document).accepted
    matches_schedule(document)
    assert log2(verdict.certificate.prompt_length) == pytest.approx(tight.impossible.log2_prompt_length)
    if tight.impossible.source == "search":
        assert tight.impossible.theorem in ("A", "B")
    else:
        assert tight.impossible == closed.impossible
    assert tight.limits == limits(one.architecture, tight.impossible.hops, 4096)
    assert tight.possible == closed.possible


def test_the_search_makes_two_hops_much_shorter() -> None:
    """linear full linear, H = 1, d = 4, 4 bits: 322 tokens by search, 2 · 80 · (24 + 2) = 4,160 in closed form."""
    one = model("linear full linear")
    closed, tight = analyze(one), analyze(one, tight=True)
    assert impossible_length(closed) == pytest.approx(log2(4160))
    assert impossible_length(tight) <= log2(322)
    assert tight.impossible is not None
    assert (tight.impossible.theorem, tight.impossible.source) == ("A", "search")


@pytest.mark.parametrize(("context", "certified"), [(300, False), (322, True), (4159, True), (4161, True)])
def test_what_the_search_certifies_is_not_too_large(context: int, certified: bool) -> None:
    one = model("linear full linear")
    found = [document(analyze(one, context=context, tight=tight)) for tight in (False, True)]
    for each, expected in zip(found, (context > 4160, certified), strict=True):
        assert each["hops_impossible"]["certified_at_context"] is expected
        assert [knob["factor"] == 1 for knob in each["excess"]] == [expected] * 3


def test_what_is_too_deep_for_the_search_says_so() -> None:
    one = model(f"{MOST_HOPS_SEARCHED + 1}*full")
    found = analyze(one, tight=True)
    assert found.impossible == analyze(one).impossible
    assert found.limits == ()
    assert f"{MOST_HOPS_SEARCHED + 1} hops are too many for the search: the closed form stands" in found.notes


# Silence


@pytest.mark.parametrize("tight", [False, True])
def test_stacks_outside_the_theorems(tight: bool) -> None:
    one = model("full nsa[k=2,block=4,w=2]")
    found = analyze(one, tight=tight)
    assert found.impossible is None
    assert (found.excess, found.limits) == ((), ())
    (excluded,) = one.architecture.exclusions()
    assert found.silence == f"the theorems do not speak of this stack: {excluded}"
    assert prove(one.architecture, 3).reason == found.silence
    assert document(found)["hops_impossible"] == {"hops": None, "log2_prompt_length": None, "reason": found.silence}


@pytest.mark.parametrize("tight", [False, True])
def test_sizes_that_hold_for_short_prompts_only(tight: bool) -> None:
    """Five levels hold 5 · 4 · 4 = 80 bits up to 16 tokens; counting needs 21 tokens."""
    found = analyze(model("loglinear[levels=5]", head_dim=2), context=16, tight=tight)
    assert (found.impossible, found.excess, found.limits) == (None, (), ())
    assert "shorter prompts" in found.silence
    assert "the sizes hold up to 16 tokens: nothing is claimed beyond" in found.notes


def test_a_search_may_find_what_the_closed_form_cannot_within_the_length() -> None:
    one = model("loglinear[levels=10] full", head_dim=2)
    assert one.architecture.length_limit == 512
    assert analyze(one).impossible is None
    found = analyze(one, tight=True)
    verdict = prove(one.architecture, 2)
    assert found.impossible is not None
    assert (found.impossible.hops, found.impossible.source) == (2, "search")
    assert verdict.prompt_length is not None
    assert verdict.prompt_length <= 512
    assert found.impossible.log2_prompt_length == pytest.approx(log2(verdict.prompt_length))
    assert found.silence == ""


@pytest.mark.parametrize(("context", "certified"), [(20, False), (150, True), (256, True), (257, False), (4096, False)])
def test_beyond_the_length_for_which_the_sizes_hold_nothing_is_certified(context: int, certified: bool) -> None:
    """Nine levels hold 9 · 4 · 4 = 144 bits up to 256 tokens: one hop by counting from 33 tokens on."""
    found = analyze(model("loglinear[levels=9]", head_dim=2), context=context)
    assert impossible_length(found) == log2(next(m for m in range(2, 99) if m**m > 2**144) + 2)
    assert document(found)["hops_impossible"]["certified_at_context"] is certified
    assert bool(found.excess) == (context <= 256)


# Recall and reach


@pytest.mark.parametrize("values", [2, 3, 5, 8, 10, 1000, 8192, 131_072])
@pytest.mark.parametrize("schedule", ["linear", "3*gdn", "linear full conv", "window[w=9]", "delta|full mlp"])
def test_pairs_are_counted_exactly(schedule: str, values: int) -> None:
    """With D pairs there are V^D tables, which so many bits tell apart exactly if V^D <= 2^bits."""
    one = model(schedule, head_dim=16)
    found = analyze(one, values=values).recall
    assert found is not None
    assert found.values == values
    assert found.state_bits == one.architecture.state_bits
    assert values**found.pairs <= 2**found.state_bits < values ** (found.pairs + 1)


@pytest.mark.parametrize("schedule", ["full", "3*full mlp", "mlp", "window[w=1]"])
def test_what_holds_nothing_recalls_nothing(schedule: str) -> None:
    assert analyze(model(schedule)).recall is None


@pytest.mark.parametrize(
    ("schedule", "seen"),
    [
        ("window[w=5]", 4),
        ("3*window[w=5] 2*chunk[w=3]", 16),
        ("conv[kernel=4] mlp window[w=2]", 4),
        ("window[w=1]", 0),
        ("window[w=5]|conv[kernel=9]", 8),
        ("2*(shift window[w=3])", 6),
        ("mlp", None),
        ("full", None),
        ("linear", None),
        ("window[w=5] full 2*(linear|conv[kernel=4])", 4),
        ("full|window[w=5] conv[kernel=3]", 2),
    ],
)
def test_how_far_the_layers_of_limited_sight_see(schedule: str, seen: int | None) -> None:
    one = model(schedule)
    found = analyze(one).window_reach
    assert found == seen
    if not one.of_kind("full") and not one.of_kind("recurrent") and schedule != "mlp":
        assert found == reach(one.architecture)


# Bytes, the curve, the document


def test_bytes_of_a_batch_and_the_curve() -> None:
    """Keys and values: 2 · 4 numbers of 4 bits a token; window: at most 6 earlier ones; state 16, columns 3 · 4."""
    one = model("full window[w=7] gdn conv[kernel=4]")
    for context, batch in ((1, 1), (3, 2), (6, 1), (7, 5), (4096, 3)):
        expected = batch * (8 * context + 8 * min(context, 6) + 16 + 12) * 4 / 8
        assert total_bytes(one, context, batch) == expected
    curve = document(analyze(one, batch=2), curve=True)["curve"]
    assert curve[0] == [256, 2 * (8 * 256 + 8 * 6 + 28) / 2]
    assert [context for context, _ in curve] == [2**k for k in range(8, 25)]
    assert all(held == total_bytes(one, context, 2) for context, held in curve)
    assert "curve" not in document(analyze(one))


@pytest.mark.parametrize("schedule", [*STACKS, "nsa[k=2,block=4,w=2]", "loglinear[levels=5]", "compressed[block=4]"])
def test_the_document_is_json(schedule: str) -> None:
    found = document(analyze(model(schedule), tight=True), curve=True)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_notes_are_those_of_the_reading() -> None:
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    one = read_config(config)
    assert one.notes
    assert analyze(one).notes == one.notes


# Wrong input


@pytest.mark.parametrize(
    ("field", "value", "most"),
    [
        *(("context", value, MAX_CONTEXT) for value in (0, -1, MAX_CONTEXT + 1, True, 1.5, "8", None)),
        *(("batch", value, MAX_BATCH) for value in (0, -3, MAX_BATCH + 1, False, 2.0)),
        *(("values", value, MAX_CONTEXT) for value in (1, 0, MAX_CONTEXT + 1, True, "x")),
    ],
)
def test_numbers_out_of_range(field: str, value: object, most: int) -> None:
    with pytest.raises(InputError) as caught:
        analyze(model("full"), **{field: value})  # pyright: ignore[reportArgumentType] - that is the point
    least = 2 if field == "values" else 1
    assert str(caught.value) == f"{field}: got {value!r}, expected a whole number from {least} to {most}"


def test_the_largest_numbers_are_taken() -> None:
    found = document(analyze(model("full linear"), context=MAX_CONTEXT, batch=MAX_BATCH, values=MAX_CONTEXT))
    assert found["kv_bytes"] == MAX_BATCH * MAX_CONTEXT * 4
