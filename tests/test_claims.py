"""What a stack is known to do: the plan against a search over all sequences of moves, and the reasons of a refusal."""

import doctest
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbound import claims
from hopbound.architecture import ROWS, Architecture, Defaults, MixerSpec, parse_schedule
from hopbound.claims import Move, Plan, TaskSizes, best_plan, conditions, obstacle, plan_or_refuse
from hopbound.errors import InputError
from hopbound.mixers import REGISTRY
from hopbound.moves import RULES, WITHOUT

NAMES = (
    "full",
    "mla",
    "topk[k=2]",
    "moba[k=2,block=4]",
    "linear",
    "kda",
    "mamba2",
    "conv",
    "window[w=18]",
    "chunk",
    "mlp",
)
LOOKING_UP = {"full", "mla", "topk"}
CARRYING = {"linear", "delta", "gdn", "kda", "mamba2", "conv", "rglru", "window"}
RECALLING = {"linear", "delta", "gdn", "kda", "mamba2", "window"}
# Keys of 16: addresses and functions fit everywhere below, tables of z_l up to 16 addresses.
DEFAULTS = Defaults(head_dim=16)

layers = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map("|".join)
stacks = st.lists(layers, min_size=1, max_size=5).map(" ".join)


def stack(schedule: str) -> Architecture:
    return parse_schedule(schedule, DEFAULTS)


def options(layer: str, holds_z_1: bool, branching: bool = False, rows: bool = False) -> list[str]:
    """What the mixers of a layer can do, as words; a recall where a state can hold z_1, a branch if there are heads."""
    names = {name.split("[")[0] for name in layer.split("|")}
    words = ["nothing"]
    if names & LOOKING_UP:
        words += ["fetch", "look up", "look ahead", *(["look up row"] if rows else [])]
    if names & CARRYING:
        words += ["carry"]
    if branching and "full" in names:
        words += ["branch"]
    if names & RECALLING and holds_z_1:
        words += ["recall"]
    return words


def hops_made(words: tuple[str, ...], hops: int, gathering: int | None = None) -> int:
    """Play one sequence of moves: what the last token knows (-1: nothing) and what the token of z_0 knows.

    One layer may gather rows besides: it makes no branch, and fetches no more than a token.
    """
    last, start = -1, 0
    for number, word in enumerate(words):
        if number == gathering and (word == "branch" or (word == "fetch" and start == 1)):
            continue
        if word == "look up row":
            if gathering is not None and number > gathering and last >= 0 and last + 2 <= hops:
                last += 2
        elif word in ("fetch", "carry"):
            last = max(last, start)
        elif word == "look up" and last >= 0:
            last = min(last + 1, hops)
        elif word == "look ahead":
            start = max(start, min(1, hops))
        elif word == "recall" and last == 0:
            last = 1
        elif word == "branch" and last + 2 <= hops and (last >= 0 or start == 0):
            last += 2
    return max(last, 0)


def search(schedule: str, hops: int, holds_z_1: bool, branching: bool = False, rows: bool = False) -> int:
    """The best of all sequences; a recall stands before the first full layer."""
    names = schedule.split()
    seeing_all = ("full", "mla", "topk", "moba")
    first_full = next((i for i, name in enumerate(names) if any(word in name for word in seeing_all)), len(names))
    choices = [options(name, holds_z_1 and i < first_full, branching, rows) for i, name in enumerate(names)]
    full = [i for i, name in enumerate(names) if rows and "full" in name.split("|")]
    return max(
        hops_made(words, hops, gathering) for words in itertools.product(*choices) for gathering in (None, *full)
    )


@given(stacks, st.integers(1, 4))
def test_best_plan_without_sizes_is_the_best_of_all_sequences(schedule: str, hops: int) -> None:
    assert best_plan(stack(schedule), hops).hops == search(schedule, hops, False)


@given(stacks, st.lists(st.sampled_from([4, 16, 17, 40]), min_size=1, max_size=3))
def test_best_plan_with_sizes_may_recall_what_a_state_can_hold(schedule: str, domains: list[int]) -> None:
    hops = len(domains)
    sizes = TaskSizes(tuple(domains), (2,) * (hops - 1) + (domains[-1],), tuple(d // 2 for d in domains[1:]))
    assert best_plan(stack(schedule), hops, sizes).hops == search(schedule, hops, domains[0] <= 16)


@settings(deadline=None)
@given(stacks, st.integers(1, 6), st.booleans(), st.booleans())
def test_best_plan_with_many_heads_is_the_best_of_all_sequences(
    schedule: str, hops: int, branching: bool, rows: bool
) -> None:
    """Values of two kinds, that three heads tell apart, and rows of one entry or of four, more than there are heads."""
    fan = 1 if rows else 4
    domains = (2, *(2 * fan,) * (hops - 1))
    sizes = TaskSizes(domains, (*(2,) * (hops - 1), domains[-1]), (fan,) * (hops - 1))
    for heads in (3,) if branching else (1, 2):
        architecture = parse_schedule(schedule, Defaults(heads=heads, head_dim=16))
        found = best_plan(architecture, hops, sizes, many_heads=True)
        assert found.hops == search(schedule, hops, True, branching, rows)
        without = best_plan(architecture, hops, sizes)
        assert found == without if without.hops == hops else found.hops >= without.hops


@pytest.mark.parametrize("full", [1, 2, 3])
def test_a_branch_saves_a_full_layer(full: int) -> None:
    """F full layers and a carry make F + 1 hops while one of the values is told apart by the heads; else F."""
    architecture = parse_schedule(f"linear {full}*full", Defaults(heads=6, head_dim=16))
    for few in (5, 6):
        values = (7,) * (full - 1) + (few, 9)
        sizes = TaskSizes((9, *(7 * value for value in values[:-1])), (*values[:-1], 63), (7,) * full)
        found = best_plan(architecture, full + 1, sizes, many_heads=True)
        assert (found.hops, found.construction) == ((full + 1, "U3") if few == 5 else (full, "C2"))
        assert best_plan(architecture, full + 1, sizes).hops == full


@pytest.mark.parametrize(("schedule", "full"), [("linear {}*full", 2), ("linear {}*full", 3), ("{}*full", 3)])
def test_rows_save_a_full_layer(schedule: str, full: int) -> None:
    """F full layers make F + 1 hops, F without a carry, while one of the rows is as short as there are heads."""
    architecture = parse_schedule(schedule.format(full), Defaults(heads=3, head_dim=16))
    hops = full + schedule.startswith("linear")
    for short in (3, 4):
        fans = (*(4,) * (hops - 2), short)  # of z_{L-1}: the last row
        sizes = TaskSizes((9, *(5 * fan for fan in fans)), (*(5,) * (hops - 1), 5 * fans[-1]), fans)
        found = best_plan(architecture, hops, sizes, many_heads=True)
        assert (found.hops, found.construction == "U2") == ((hops, True) if short == 3 else (hops - 1, False))
        assert best_plan(architecture, hops, sizes).hops == hops - 1


@pytest.mark.parametrize(("full", "hops"), [(2, 2), (3, 4), (4, 6)])
def test_full_layers_alone_look_up_a_row_in_each_layer_but_the_first(full: int, hops: int) -> None:
    architecture = parse_schedule(f"{full}*full", Defaults(heads=2, head_dim=16))
    sizes = TaskSizes((7, *(10,) * (hops - 1)), (*(5,) * (hops - 1), 10), (2,) * (hops - 1))
    found = best_plan(architecture, hops, sizes, many_heads=True)
    assert (found.hops, found.construction) == (hops, "U2")
    gathers = [step for step in found.steps if step.move is Move.GATHER]
    assert [(step.layer, step.hop) for step in gathers] == [(0, hop) for hop in range(2, hops + 1, 2)]


def test_a_row_is_gathered_before_the_one_full_layer_of_a_hybrid_only_if_there_is_one() -> None:
    """With one full layer nothing is gathered before it: rows do not help, however short."""
    sizes = TaskSizes((20, 20), (20, 20), (1,))
    for schedule in ("linear full", "full linear", "linear full linear", "conv mlp full"):
        stacked = parse_schedule(schedule, Defaults(heads=4, head_dim=16))
        assert best_plan(stacked, 2, sizes, many_heads=True).hops == 1


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
@pytest.mark.parametrize("bounded", ["linear", "delta", "gdn", "conv", "window", "mamba[channels=40]"])
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
        ("full[head_dim=5]", Move.LOOK_UP, 2, "an address code of 6 bits is wider than head_dim 5"),
        ("full[head_dim=5,value_dim=4]", Move.LOOK_UP, 1, None),
        ("full[head_dim=8,value_dim=3]", Move.LOOK_UP, 2, "a value code of 4 bits is wider than the 3 value channels"),
        ("full[heads=4,kv_heads=2,head_dim=8,value_dim=2]", Move.LOOK_UP, 2, None),
        ("full[head_dim=2,value_dim=3]", Move.FETCH, 0, None),
        (
            "full[head_dim=1,value_dim=3]",
            Move.FETCH,
            0,
            "a function code of 2 bits is wider than head_dim 1",
        ),
        (
            "full[head_dim=4,value_dim=4]",
            Move.LOOK_AHEAD,
            1,
            "an address code of 5 bits is wider than head_dim 4",
        ),
        ("linear", Move.LOOK_UP, 1, "linear makes no exact look-up here"),
        ("topk[k=1,head_dim=1,value_dim=4,index_dim=6]", Move.LOOK_UP, 2, None),
        (
            "topk[k=1,index_dim=5]",
            Move.LOOK_UP,
            2,
            "an address code of 6 bits is wider than index_dim 5",
        ),
        ("topk[k=2,head_dim=5,value_dim=4]", Move.LOOK_UP, 2, "an address code of 6 bits is wider than index_dim 5"),
        (
            "topk[k=2,head_dim=5,value_dim=4,index_dim=9]",
            Move.LOOK_UP,
            2,
            "an address code of 6 bits is wider than head_dim 5",
        ),
        ("mla[rope_dim=2,latent=8,value_dim=4]", Move.LOOK_UP, 2, None),
        ("mla[rope_dim=6,latent=4,value_dim=4]", Move.LOOK_UP, 2, None),
        (
            "mla[rope_dim=1,latent=8,value_dim=4]",
            Move.LOOK_UP,
            2,
            "an address code of 6 bits is wider than rope_dim + value_dim 5",
        ),
        (
            "mla[rope_dim=2,latent=7,value_dim=4]",
            Move.LOOK_UP,
            2,
            "a key's code and a value code of 10 bits together are wider than latent + rope_dim 9",
        ),
        (
            "mla[rope_dim=0,latent=4,value_dim=4]",
            Move.FETCH,
            0,
            "a key's code and a value code of 5 bits together are wider than latent + rope_dim 4",
        ),
        ("mla[rope_dim=8,latent=3,value_dim=4]", Move.LOOK_UP, 2, "a value code of 4 bits is wider than the 3 value"),
        ("moba[k=1,block=4]", Move.LOOK_UP, 1, "moba makes no exact look-up here: it chooses blocks"),
        ("fox", Move.LOOK_UP, 1, "fox makes no exact look-up here: it has sizes but no weights"),
        ("mamba2[heads=3,head_dim=1,state=1]", Move.CARRY, 0, None),
        ("mamba2[heads=3,head_dim=1,conv=4]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value"),
        ("mamba[channels=5]", Move.CARRY, 0, None),
        ("mamba[channels=5,conv=4]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("rglru[channels=4,conv=4]", Move.CARRY, 0, None),
        ("rglru[channels=3]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("rwkv4[channels=2]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("lightning[head_dim=3]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("lightning[head_dim=1]", Move.CARRY, 0, "a value code of 1 bits is wider than the 0 value channels"),
        ("linear[conv=4]", Move.CARRY, 0, "linear behind a convolution: no feature of an activated key"),
        ("h2o[budget=4,recent=0]", Move.CARRY, 0, "where no token is safe for being recent"),
        ("chunk", Move.CARRY, 0, "chunk has no built carry: whether the last token shares a chunk"),
        ("poly", Move.CARRY, 0, "poly has no built carry: its features are never exactly zero"),
        ("rglru", Move.RECALL, 1, "rglru holds no table: it reads its state without a query"),
        ("mamba2[head_dim=2,state=5]", Move.RECALL, 1, None),
        (
            "mamba2[head_dim=2,state=4]",
            Move.RECALL,
            1,
            "z_1 has m = 5 addresses, the state holds 4 of them (its state dimension)",
        ),
        ("window[w=7]", Move.RECALL, 1, None),
        ("window[w=6]", Move.RECALL, 1, "z_1 has m = 5 addresses, the state holds 4 of them (its window less 2)"),
        ("window[w=7,head_dim=4]", Move.RECALL, 1, "an address code of 5 bits is wider than head_dim 4"),
        ("h2o[budget=9,recent=6]", Move.RECALL, 1, None),
        (
            "adakv[budget=9,recent=5]",
            Move.RECALL,
            1,
            "z_1 has m = 5 addresses, the state holds 4 of them (its recent tokens less 1)",
        ),
        ("block", Move.RECALL, 1, "block holds no table: whether the last token shares a chunk with z_1 depends"),
        ("mamba[channels=12,state=5]", Move.RECALL, 1, None),
        ("mamba[channels=12,state=5,conv=4]", Move.RECALL, 1, "keys, queries and values of z_1 take 12 channels of 11"),
        ("full[heads=5]", Move.BRANCH, 2, None),
        ("full[heads=4]", Move.BRANCH, 2, "a look-up for each value and one more take 5 heads, there are 4"),
        ("full[heads=6,kv_heads=2]", Move.BRANCH, 2, None),
        ("full[heads=4,kv_heads=2]", Move.BRANCH, 2, "a look-up for each value and one more take 6 heads, there are 4"),
        ("full[heads=10,kv_heads=2,value_dim=2]", Move.BRANCH, 2, None),
        (
            "full[heads=8,kv_heads=2,value_dim=2]",
            Move.BRANCH,
            2,
            "a look-up for each value and one more take 16 heads, there are 8",
        ),
        ("full[heads=5,head_dim=7]", Move.BRANCH, 2, None),
        (
            "full[heads=5,head_dim=6]",
            Move.BRANCH,
            2,
            "a code of 7 bits for addresses of two functions is wider than head_dim 6",
        ),
        ("full[heads=6]", Move.BRANCH, 1, None),
        ("full[heads=5]", Move.BRANCH, 1, "a look-up for each value and one more take 6 heads, there are 5"),
        ("mla", Move.BRANCH, 2, "mla makes no look-ups at once here: heads that ask for different addresses"),
        ("full[heads=3]", Move.GATHER, 2, None),
        ("full[heads=2]", Move.GATHER, 2, "a look-up for each entry of a row takes 3 heads, there are 2"),
        ("full[heads=4,kv_heads=2]", Move.GATHER, 2, None),
        ("full[heads=6,kv_heads=2,value_dim=3]", Move.GATHER, 2, None),
        ("full[heads=4,kv_heads=2,value_dim=3]", Move.GATHER, 2, "a look-up for each entry of a row takes 8 heads"),
        ("full[heads=4,head_dim=7]", Move.GATHER, 2, None),
        (
            "full[heads=4,head_dim=6]",
            Move.GATHER,
            2,
            "a code of 7 bits for addresses of all functions is wider than head_dim 6",
        ),
        ("topk[k=2]", Move.GATHER, 2, "topk makes no look-ups at once here: heads that ask for different addresses"),
        ("full[value_dim=12]", Move.LOOK_UP_ROW, 2, None),
        ("full[value_dim=11]", Move.LOOK_UP_ROW, 2, "a row of 12 bits is wider than the 11 value channels"),
        ("full[head_dim=5,value_dim=16]", Move.LOOK_UP_ROW, 2, None),
        ("full[head_dim=4,value_dim=16]", Move.LOOK_UP_ROW, 2, "an address code of 5 bits is wider than head_dim 4"),
        ("mla[latent=15,rope_dim=2,value_dim=12]", Move.LOOK_UP_ROW, 2, None),
        (
            "mla[latent=14,rope_dim=2,value_dim=12]",
            Move.LOOK_UP_ROW,
            2,
            "a key's code and a row of 17 bits together are wider than latent + rope_dim 16",
        ),
        ("moba[k=2,block=4]", Move.LOOK_UP_ROW, 2, "moba makes no exact look-up here: it chooses blocks by the mean"),
        ("full", Move.CARRY, 0, "full has no built carry"),
        ("conv[channels=3,kernel=2]", Move.CARRY, 0, None),
        ("conv[channels=2,kernel=2]", Move.CARRY, 0, "a value code of 3 bits is wider than the 2 value channels"),
        ("conv[kernel=1]", Move.CARRY, 0, "a convolution of width 1 carries nothing"),
        ("window[w=1]", Move.CARRY, 0, "a window of one token carries nothing"),
        (
            "window[head_dim=1,value_dim=9]",
            Move.CARRY,
            0,
            "a function code of 2 bits is wider than head_dim 1",
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
    found = obstacle(spec, move, hop, SIZES)
    assert (found is None) == (reason is None)
    assert reason is None or (found or "").startswith(reason)


@pytest.mark.parametrize(("heads", "held"), [(1, 10239), (8, 79), (64, 42)])
def test_a_fixed_decay_limits_a_recall(heads: int, held: int) -> None:
    """m + 1 tokens of the fastest head's decay, 2^(-8 / heads) a token, are e^-40 at most."""
    ((spec,),) = [layer.mixers for layer in stack(f"lightning[heads={heads},head_dim=20000]").layers]
    assert obstacle(spec, Move.RECALL, 1, TaskSizes((held,), (held,), ())) is None
    assert "its decay" in (obstacle(spec, Move.RECALL, 1, TaskSizes((held + 1,), (held + 1,), ())) or "")


def of_name(name: str) -> MixerSpec:
    """A mixer of the table, with what must be given."""
    given = {key: 8 for key, rule in ROWS[name].keys.items() if rule is None}
    if name == "full":
        given["heads"] = 3  # a branch takes one for each of two values, and one more; a row one for each of two entries
    text = ",".join(f"{key}={value}" for key, value in given.items())
    ((spec,),) = [layer.mixers for layer in stack(f"{name}[{text}]" if text else name).layers]
    return spec


@pytest.mark.parametrize("move", Move)
@pytest.mark.parametrize("name", ROWS)
def test_every_mixer_makes_each_move_or_a_reason_is_given(name: str, move: Move) -> None:
    tiny = TaskSizes((2, 4), (2, 4), (2,))
    found = obstacle(of_name(name), move, 1 if move is not Move.LOOK_UP_ROW else 2, tiny)
    assert (found is None) == (name in RULES[move])
    assert found is None or (name in found and "\n" not in found)


@pytest.mark.parametrize("move", Move)
def test_the_tables_name_mixers_that_there_are(move: Move) -> None:
    assert set(RULES[move]) <= set(REGISTRY)
    assert set(WITHOUT[move]) <= set(ROWS) - set(RULES[move])


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
        ("rfa full|rfa", TaskSizes((40,), (40,), ()), "none for 'rfa full|rfa'"),
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


def test_a_hundred_layers_are_planned_with_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Situations that another makes needless are left, so that the work grows with the layers alone."""
    asked = 0

    def counted(*given: object, **named: object) -> str | None:
        nonlocal asked
        asked += 1
        return obstacle(*given, **named)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(claims, "obstacle", counted)
    for schedule, hops in (("25*(3*kda mla)", 25), ("100*full", 99), ("50*(linear full)", 50)):
        asked = 0
        assert best_plan(stack(schedule), 100).hops == hops
        assert asked < 2000


# -- conditions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "hops", "expected"),
    [
        ("mlp", 1, []),
        (
            "2*full[head_dim=8,value_dim=7] full[head_dim=6,value_dim=9]",
            2,
            [
                "address codes of at most 6 bits (head_dim of layer 3)",
                "value codes of at most 7 bits (value channels of layer 1)",
            ],
        ),
        (
            "3*kda[heads=2,head_dim=6,conv=4] mla[latent=20,rope_dim=3,value_dim=12] 3*kda",
            1,
            [
                "address codes of at most 15 bits (rope_dim + value_dim of layer 4)",
                "value codes of at most 11 bits (value channels less 1 of layer 1)",
                "address and value codes of at most 23 bits together (latent + rope_dim of layer 4)",
            ],
        ),
        (
            "full[head_dim=1] full[head_dim=9]",
            1,
            [
                "function codes of at most 1 bits (head_dim of layer 1)",
                "address codes of at most 9 bits (head_dim of layer 2)",
                "value codes of at most 1 bits (value channels of layer 1)",
            ],
        ),
        (
            "2*full[head_dim=2,value_dim=5]",
            1,
            [
                "address codes of at most 2 bits (head_dim of layer 2)",
                "value codes of at most 5 bits (value channels of layer 1)",
            ],
        ),
    ],
)
def test_conditions(schedule: str, hops: int, expected: list[str]) -> None:
    assert conditions(best_plan(stack(schedule), hops), stack(schedule)) == tuple(expected)


def test_the_conditions_that_the_documentation_shows() -> None:
    page = Path(__file__).parent.parent / "docs" / "constructions.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 3


def test_conditions_of_a_recall() -> None:
    architecture = stack("mamba2[state=9] mamba[channels=30,state=20] full")
    plan = best_plan(architecture, 2, TaskSizes((8, 8), (8, 8), (1,)))
    assert plan.construction == "C3"
    assert conditions(plan, architecture) == (
        "address codes of at most 16 bits (head_dim of layer 3)",
        "value codes of at most 16 bits (value channels of layer 1)",
        "m at most 20 (state dimension of layer 2)",
        "2 m and the bits of a value code at most 30 together (channels of layer 2)",
    )


def measured(sizes: TaskSizes) -> dict[str, int]:
    """The largest codes of a task, computed from its sizes alone."""
    function = len(f"{sizes.hops + 1:b}")
    numbers = [sizes.domains[0], *sizes.values]
    value = max(len(f"{number - 1:b}") for number in numbers)
    parts = [1, *sizes.n]
    address = max(
        function + (len(f"{part - 1:b}") if part > 1 else 0) + len(f"{number - 1:b}")
        for part, number in zip(parts, numbers, strict=False)
    )
    return {"function codes": function, "address codes": address, "value codes": value}


def holds(condition: str, sizes: TaskSizes) -> bool:
    """Whether a condition, as it is worded, holds."""
    found = re.match(r"(?:(address|function) and )?(.*?) (?:of )?at most (\d+)", condition)
    assert found is not None
    other, what, most = found.groups()
    codes = measured(sizes)
    return codes[what] + (codes[f"{other} codes"] if other else 0) <= int(most)


narrow = st.sampled_from(
    [
        "full[head_dim=9,value_dim=5]",
        "full[head_dim=7,kv_heads=2,heads=4,value_dim=3]",
        "mla[latent=12,rope_dim=0,value_dim=8]",
        "mla[latent=9,rope_dim=4,value_dim=4]",
        "topk[k=1,head_dim=2,value_dim=6,index_dim=8]",
        "kda[head_dim=6,conv=4]",
        "mamba[channels=8,state=1]",
        "rglru[channels=5]",
        "window[w=2,head_dim=3,value_dim=5]",
    ]
)


@given(
    st.lists(narrow, min_size=1, max_size=5).map(" ".join),
    st.lists(st.tuples(st.integers(2, 70), st.integers(1, 9)), min_size=1, max_size=3),
)
def test_whatever_keeps_to_the_conditions_is_built(schedule: str, drawn: list[tuple[int, int]]) -> None:
    hops, architecture = len(drawn), stack(schedule)
    values, n = [value for value, _ in drawn], [part for _, part in drawn[1:]]
    domains = [values[0], *(part * value for part, value in zip(n, values, strict=False))]
    sizes = TaskSizes(tuple(domains), (*values[:-1], domains[-1]), tuple(n))
    plan = best_plan(architecture, hops)
    if plan.hops == hops and all(holds(condition, sizes) for condition in conditions(plan, architecture)):
        assert best_plan(architecture, hops, sizes).hops == hops
