"""Stacks of layers: runs, parallel mixers, totals, and what the theorems do not cover."""

import pytest

from hopbound.architecture import Architecture, Kind, Layer, LayerBits, Precisions, Runs, parse_schedule, runs
from hopbound.architecture import specs as table
from hopbound.errors import InputError

ONE_BIT = Precisions.uniform(1)
LINEAR, DELTA, FULL = "linear[heads=1,head_dim=4]", "delta[heads=1,head_dim=3]", "full[heads=1,head_dim=4]"  # 20, 9, 6


def bits(schedule: str) -> list[list[tuple[str, int]]]:
    readings = parse_schedule(schedule, precisions=ONE_BIT).layer_bits()
    return [[(layer.kind, layer.bits) for layer in reading] for reading in readings]


@pytest.mark.parametrize(
    ("stack", "summaries", "states"),
    [
        ("", (), (0,)),
        ("5", (), (5,)),
        ("5 7", (), (12,)),
        ("F", (2,), (0, 0)),
        ("5 F 7", (2,), (5, 7)),
        ("5 7 F 11 F F 13 1", (2, 2, 2), (12, 11, 0, 14)),
        ("F 0 F", (2, 2), (0, 0, 0)),
    ],
)
def test_runs_collect_the_states_between_full_layers(
    stack: str, summaries: tuple[int, ...], states: tuple[int, ...]
) -> None:
    layers = [LayerBits("full", 2) if word == "F" else LayerBits("bounded", int(word)) for word in stack.split()]
    assert runs(layers) == Runs(summaries, states)


def test_a_stack_without_parallel_layers_has_one_reading() -> None:
    assert bits(f"{LINEAR} {FULL} {DELTA}") == [[("bounded", 20), ("full", 6), ("bounded", 9)]]


def test_parallel_full_and_bounded_mixers_give_both_orderings() -> None:
    assert bits(f"{LINEAR}|{FULL} {DELTA}") == [
        [("full", 6), ("bounded", 20), ("bounded", 9)],
        [("bounded", 20), ("full", 6), ("bounded", 9)],
    ]


def test_two_parallel_layers_still_have_two_readings() -> None:
    assert bits(f"2*{FULL}|{DELTA}") == [
        [("full", 6), ("bounded", 9), ("full", 6), ("bounded", 9)],
        [("bounded", 9), ("full", 6), ("bounded", 9), ("full", 6)],
    ]


def test_parallel_mixers_of_one_kind_add_up() -> None:
    assert bits(f"{LINEAR}|{DELTA} {FULL}|{FULL}") == [[("bounded", 29), ("full", 12)]]


def test_position_wise_layers_let_nothing_across() -> None:
    assert bits(f"mlp {FULL} mlp|{DELTA}") == [[("full", 6), ("bounded", 9)]]
    assert bits("mlp") == [[]]


def test_indices_of_full_and_bounded_layers() -> None:
    stack = parse_schedule("conv full mlp topk[k=2] gdn|full window")
    assert stack.full_layers == (1, 3, 4)
    assert stack.bounded_layers == (0, 4, 5)


def test_kinds_of_a_layer_stand_once_and_in_order() -> None:
    (layer,) = parse_schedule("conv|full|gdn|mlp").layers
    assert layer.kinds == (Kind.BOUNDED, Kind.FULL, Kind.POINTWISE)


def test_totals() -> None:
    precisions = Precisions(activation=2, kv=3, state=5, summary=7)
    stack = parse_schedule(f"2*{LINEAR} {FULL}|{DELTA} conv[channels=4,kernel=3]", precisions=precisions)
    assert stack.state_bits == (2 * 20 + 9) * 5 + 8 * 2
    assert stack.kv_bits_per_token == 8 * 3


@pytest.mark.parametrize(
    ("schedule", "hdp"),
    [
        ("full[heads=3,head_dim=4]", 3 * 4 * 7),
        ("full[heads=3,head_dim=4,value_dim=6]", 3 * 6 * 7),
        ("full[heads=1,head_dim=4] linear[heads=3,head_dim=4]", 3 * 4 * 5),
        ("full[heads=3,head_dim=4]|linear[heads=4,head_dim=4]", 3 * 4 * 7),
        ("mlp", 0),
    ],
)
def test_hdp_is_the_largest_of_a_mixer(schedule: str, hdp: int) -> None:
    precisions = Precisions(activation=2, kv=3, state=5, summary=7)
    assert parse_schedule(schedule, precisions=precisions).hdp == hdp


@pytest.mark.parametrize(
    ("schedule", "limit"),
    [
        ("full linear", None),
        ("loglinear[levels=5] full", 16),
        ("loglinear[levels=5] full|loglinear[levels=3]", 4),
    ],
)
def test_length_limit_is_the_smallest(schedule: str, limit: int | None) -> None:
    assert parse_schedule(schedule).length_limit == limit


def test_what_the_theorems_do_not_speak_of() -> None:
    required = {"k": 2, "block": 4, "levels": 3, "budget": 2, "state": 1}
    excluded = []
    for name, row in table.ROWS.items():
        given = {key: value for key, value in required.items() if key in row.keys}
        stack = Architecture((Layer((table.mixer_spec(name, given),)),), Precisions())
        if stack.exclusions():
            excluded.append(name)
    assert excluded == ["nsa", "path"]
    (line,) = parse_schedule("full nsa[k=2,block=4] nsa[k=3,block=4]").exclusions()
    assert line.startswith("nsa selects blocks")


def test_empty_layers_and_stacks_are_refused() -> None:
    with pytest.raises(InputError, match="at least one mixer"):
        Layer(())
    with pytest.raises(InputError, match="at least one layer"):
        Architecture((), Precisions())


def test_label_has_names_and_text_has_sizes() -> None:
    stack = parse_schedule("2*(gdn attn[heads=2]) swa")
    assert stack.label == "2*(gdn full) window"
    assert parse_schedule(str(stack)) == stack
