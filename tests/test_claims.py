"""What a stack is known to do: the plan against a search over all sequences of moves, and the reasons of a refusal."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Architecture, Defaults, parse_schedule
from hopbound.claims import Move, Plan, TaskSizes, best_plan, obstacle, plan_or_refuse
from hopbound.errors import InputError

NAMES = ("full", "linear", "delta", "gdn", "conv", "window", "mamba2", "topk[k=2]", "mlp")
# Keys of 16: addresses and functions fit everywhere below, tables of z_l up to 16 addresses.
DEFAULTS = Defaults(head_dim=16)

layers = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map("|".join)
stacks = st.lists(layers, min_size=1, max_size=5).map(" ".join)


def stack(schedule: str) -> Architecture:
    return parse_schedule(schedule, DEFAULTS)


def options(layer: str, holds_z_1: bool) -> list[str]:
    """What the mixers of a layer can do, as words; a recall where a state can hold z_1."""
    names = {name.split("[")[0] for name in layer.split("|")}
    words = ["nothing"]
    if "full" in names:
        words += ["fetch", "look up", "look ahead"]
    if names & {"linear", "delta", "gdn", "conv", "window"}:
        words += ["carry"]
    if names & {"linear", "delta", "gdn"} and holds_z_1:
        words += ["recall"]
    return words


def hops_made(words: tuple[str, ...], hops: int) -> int:
    """Play one sequence of moves: what the last token knows (-1: nothing) and what the token of z_0 knows."""
    last, start = -1, 0
    for word in words:
        if word in ("fetch", "carry"):
            last = max(last, start)
        elif word == "look up" and last >= 0:
            last = min(last + 1, hops)
        elif word == "look ahead":
            start = max(start, min(1, hops))
        elif word == "recall" and last == 0:
            last = 1
    return max(last, 0)


def search(schedule: str, hops: int, holds_z_1: bool) -> int:
    """The best of all sequences; a recall stands before the first full layer (topk is one as well)."""
    names = schedule.split()
    first_full = next((i for i, name in enumerate(names) if "full" in name or "topk" in name), len(names))
    choices = [options(name, holds_z_1 and i < first_full) for i, name in enumerate(names)]
    return max(hops_made(words, hops) for words in itertools.product(*choices))


@given(stacks, st.integers(1, 4))
def test_best_plan_without_sizes_is_the_best_of_all_sequences(schedule: str, hops: int) -> None:
    assert best_plan(stack(schedule), hops).hops == search(schedule, hops, False)


@given(stacks, st.lists(st.sampled_from([4, 16, 17, 40]), min_size=1, max_size=3))
def test_best_plan_with_sizes_may_recall_what_a_state_can_hold(schedule: str, domains: list[int]) -> None:
    hops = len(domains)
    sizes = TaskSizes(tuple(domains), (2,) * (hops - 1) + (domains[-1],), tuple(d // 2 for d in domains[1:]))
    assert best_plan(stack(schedule), hops, sizes).hops == search(schedule, hops, domains[0] <= 16)


def replayed(plan: Plan, schedule: str) -> int:
    """The hops of a plan, its steps played one by one; each must be a move of its layer's mixer."""
    words = ["nothing"] * len(stack(schedule).layers)
    for step in plan.steps:
        mixer = stack(schedule).layers[step.layer].mixers[step.mixer].name
        assert step.move.value in options(mixer, holds_z_1=True)
        assert words[step.layer] == "nothing"
        words[step.layer] = step.move.value
    return hops_made(tuple(words), plan.hops)


@given(stacks, st.integers(1, 3))
def test_the_steps_of_a_plan_make_its_hops(schedule: str, hops: int) -> None:
    for sizes in (None, TaskSizes((8,) * hops, (8,) * hops, (1,) * (hops - 1))):
        plan = best_plan(stack(schedule), hops, sizes)
        assert replayed(plan, schedule) == plan.hops
        assert plan.steps or plan.hops == 0


@given(stacks, st.integers(1, 6))
def test_without_sizes_no_more_hops_than_full_layers(schedule: str, hops: int) -> None:
    assert best_plan(stack(schedule), hops).hops <= min(hops, len(stack(schedule).full_layers))


@pytest.mark.parametrize("full", [1, 2, 3, 4, 5])
def test_full_layers_alone_make_one_hop_less(full: int) -> None:
    plan = best_plan(stack(f"{full}*full"), 9)
    assert (plan.hops, plan.construction) == (full - 1, "C1")


@pytest.mark.parametrize("full", [1, 2, 3, 4])
@pytest.mark.parametrize("bounded", ["linear", "delta", "gdn", "conv", "window"])
def test_one_bounded_layer_before_the_second_full_one_is_worth_a_hop(full: int, bounded: str) -> None:
    first = [f"{bounded} {full}*full"] + ([f"full {bounded} {full - 1}*full"] if full > 1 else [f"full {bounded}"])
    for schedule in first:
        plan = best_plan(stack(schedule), 9)
        assert (plan.hops, plan.construction) == (full, "C2")
    assert best_plan(stack(f"9*{bounded} {full}*full"), 9).hops == full


@pytest.mark.parametrize("full", [2, 3, 4])
def test_after_the_second_full_layer_it_is_worth_nothing(full: int) -> None:
    assert best_plan(stack(f"2*full linear {full - 1}*full"), 9).hops == full
    assert best_plan(stack(f"{full}*full 3*linear"), 9).hops == full - 1


@pytest.mark.parametrize("full", [1, 2, 3, 4])
def test_bounded_mixers_in_parallel_only_bring_no_hop(full: int) -> None:
    assert best_plan(stack(f"{full}*full|gdn"), 9).hops == full - 1


@pytest.mark.parametrize("bounded", ["linear", "mamba2", "conv"])
def test_bounded_layers_alone_make_none_of_any_size(bounded: str) -> None:
    assert best_plan(stack(f"7*{bounded}"), 3) == Plan(0, ())


@pytest.mark.parametrize(
    ("schedule", "construction"),
    [("3*full", "C1"), ("linear 2*full", "C2"), ("linear 3*full", "C1"), ("2*linear full", "C3")],
)
def test_the_simplest_construction_is_taken(schedule: str, construction: str) -> None:
    plan = best_plan(stack(schedule), 2, TaskSizes((8, 8), (8, 8), (1,)))
    assert (plan.hops, plan.construction) == (2, construction)


@pytest.mark.parametrize(
    ("schedule", "hops"),
    [("2*linear", 1), ("2*linear full", 2), ("2*linear 2*full", 3), ("linear full linear full", 2), ("5*gdn full", 2)],
)
def test_a_recall_brings_z_1_alone_and_only_before_the_first_full_layer(schedule: str, hops: int) -> None:
    assert best_plan(stack(schedule), 3, TaskSizes((8, 8, 8), (8, 8, 8), (1, 1))).hops == hops


@pytest.mark.parametrize(
    ("bits", "hop", "expected"),
    [
        ("tag", 0, 2),
        ("value", 0, 3),  # the start in [5]
        ("value", 1, 2),  # i_1 in [4]
        ("value", 2, 4),  # i_2 in [12]
        ("query", 1, 0),
        ("query", 2, 2),  # w_1 in [3]
        ("address", 1, 2 + 0 + 3),
        ("address", 2, 2 + 2 + 2),
    ],
)
def test_bits_of_codes(bits: str, hop: int, expected: int) -> None:
    sizes = TaskSizes((5, 12), (4, 12), (3,))
    found = sizes.tag_bits if bits == "tag" else getattr(sizes, f"{bits}_bits")(hop)
    assert found == expected


SIZES = TaskSizes((5, 12), (4, 12), (3,))


@pytest.mark.parametrize(
    ("mixer", "move", "hop", "reason"),
    [
        ("full[head_dim=6]", Move.LOOK_UP, 2, None),
        ("full[head_dim=5]", Move.LOOK_UP, 2, "an address code of 6 bits is wider than the head (head_dim 5)"),
        ("full[head_dim=5,value_dim=4]", Move.LOOK_UP, 1, None),
        ("full[head_dim=8,value_dim=3]", Move.LOOK_UP, 2, "a value code of 4 bits is wider than the 3 value channels"),
        ("full[heads=4,kv_heads=2,head_dim=8,value_dim=2]", Move.LOOK_UP, 2, None),
        ("full[head_dim=2,value_dim=3]", Move.FETCH, 0, None),
        (
            "full[head_dim=1,value_dim=3]",
            Move.FETCH,
            0,
            "an address code of 2 bits is wider than the head (head_dim 1)",
        ),
        (
            "full[head_dim=4,value_dim=4]",
            Move.LOOK_AHEAD,
            1,
            "an address code of 5 bits is wider than the head (head_dim 4)",
        ),
        ("linear", Move.LOOK_UP, 1, "linear makes no exact look-up here"),
        ("topk[k=1]", Move.FETCH, 0, "topk makes no exact look-up here"),
        ("mamba2", Move.CARRY, 0, "mamba2 has no built carry"),
        ("full", Move.CARRY, 0, "full has no built carry"),
        ("conv[channels=3,kernel=2]", Move.CARRY, 0, None),
        ("conv[channels=2,kernel=2]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("conv[kernel=1]", Move.CARRY, 0, "a convolution of width 1 carries nothing"),
        ("window[w=1]", Move.CARRY, 0, "a window of one token carries nothing"),
        (
            "window[head_dim=1,value_dim=9]",
            Move.CARRY,
            0,
            "a function code of 2 bits is wider than the head (head_dim 1)",
        ),
        ("delta[heads=3,head_dim=1]", Move.CARRY, 0, None),
        ("gdn[heads=2,head_dim=1]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("conv", Move.RECALL, 1, "conv holds no table"),
        ("linear[head_dim=5]", Move.RECALL, 1, None),
        (
            "linear[head_dim=4]",
            Move.RECALL,
            1,
            "z_1 has m = 5 addresses, the state holds 4 of them (its key dimension)",
        ),
        ("delta[head_dim=12,value_dim=1]", Move.RECALL, 1, "a value code of 2 bits is wider than the 1 value channels"),
    ],
)
def test_obstacles(mixer: str, move: Move, hop: int, reason: str | None) -> None:
    ((spec,),) = [layer.mixers for layer in stack(mixer).layers]
    assert obstacle(spec, move, hop, SIZES) == reason


def test_an_overfilled_recall_has_no_obstacle() -> None:
    ((spec,),) = [layer.mixers for layer in stack("linear[head_dim=4]").layers]
    assert obstacle(spec, Move.RECALL, 1, SIZES, overfill=True) is None
    assert obstacle(spec, Move.RECALL, 1, None) is not None


@pytest.mark.parametrize(
    ("schedule", "sizes", "reason"),
    [
        (
            "2*full",
            TaskSizes((40, 40), (40, 40), (1,)),
            "at most 1 for '2*full': C1, 2 full layers, one of them fetches z_0",
        ),
        (
            "full linear",
            TaskSizes((40, 40), (40, 40), (1,)),
            "at most 1 for 'full linear': C2, 1 full layer, a bounded",
        ),
        ("full", TaskSizes((40,), (40,), ()), "none for 'full': without a full layer"),
        ("mamba2 full|mamba2", TaskSizes((40,), (40,), ()), "none for 'mamba2 full|mamba2'"),
        (
            "3*full[head_dim=4]",
            TaskSizes((40, 40), (40, 40), (1,)),
            "smaller ones: layer 1, fetch: a value code of 6 bits",
        ),
        (
            "3*full[head_dim=7]",
            TaskSizes((40, 40), (40, 40), (1,)),
            "smaller ones: layer 2, look up: an address code of 8",
        ),
        ("2*linear full", TaskSizes((17, 17), (17, 17), (1,)), "smaller ones: layer 2, recall: z_1 has m = 17"),
    ],
)
def test_refusals_are_one_line_with_the_reason(schedule: str, sizes: TaskSizes, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_or_refuse(stack(schedule), sizes)
    assert "\n" not in str(caught.value)
    assert reason in str(caught.value)


@given(stacks, st.integers(1, 3))
def test_a_plan_is_given_exactly_when_the_hops_are_reached(schedule: str, hops: int) -> None:
    sizes = TaskSizes((40,) * hops, (40,) * hops, (1,) * (hops - 1))
    reached = best_plan(stack(schedule), hops, sizes).hops
    if reached == hops:
        assert plan_or_refuse(stack(schedule), sizes).hops == hops
    else:
        with pytest.raises(InputError, match=r"^(hops|sizes): got [^\n]*$"):
            plan_or_refuse(stack(schedule), sizes)
