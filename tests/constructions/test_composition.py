"""C1, C2, C3: what is built answers every instance, and what cannot be built is refused with the reason."""

import itertools

import numpy as np
import pytest
import torch

from hopbound.claims import Move
from hopbound.constructions.verification import verify_model
from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition
from tests.constructions.examples import build, fraction_right

BOUNDED = ("linear", "delta", "gdn", "conv", "window")
# Sizes with at most 10^5 instances: all of them are asked.
TINY = {
    1: [FunctionComposition(1, 2), FunctionComposition(1, 3), FunctionComposition(1, 5)],
    2: [
        FunctionComposition(2, 2, (2,)),
        FunctionComposition(2, 3, (1,)),
        FunctionComposition(2, 2, (1,), values=(3,)),
        FunctionComposition(2, 4, (2,), values=(2,)),
    ],
    3: [
        FunctionComposition(3, 2, (1, 1)),
        FunctionComposition(3, 2, (2, 1), values=(2, 2)),
        FunctionComposition(3, 2, (1, 2), values=(2, 2)),
        FunctionComposition(3, 3, (1, 1), values=(2, 2)),
    ],
    4: [FunctionComposition(4, 2, (1, 1, 1)), FunctionComposition(4, 2, (1, 2, 1), values=(2, 2, 2))],
}
# Sizes that are no powers of two, free and the paper's; too many instances to ask all.
LARGER = {
    1: [FunctionComposition(1, 37)],
    2: [FunctionComposition(2, 5, (7,)), FunctionComposition(2, 9, (5,), values=(3,))],
    3: [FunctionComposition(3, 3, (2, 3)), FunctionComposition(3, 6, (3, 5), values=(5, 7))],
    4: [FunctionComposition(4, 3, (3, 1, 5), values=(2, 6, 3))],
}
# 2 in exact arithmetic; every digit of the answer may be off by twice the leak of 2^-10, or by rounding.
LEAST_MARGIN = {torch.float32: 1.99, torch.bfloat16: 1.9}

every_dtype = pytest.mark.parametrize("dtype", LEAST_MARGIN, ids=str)


def schedules(hops: int) -> list[tuple[str, str]]:
    """C1, and C2 with a bounded mixer before the first or the second full layer."""
    made = [(f"{hops + 1}*full", "C1")]
    if hops <= 3:
        for bounded in ("linear", "gdn", "window"):  # the others are asked in test_moves.py
            made.append((f"{bounded} {hops}*full", "C2"))
            made.append((f"full {bounded} {hops - 1}*full" if hops > 1 else f"full {bounded}", "C2"))
    return made


CASES = [(schedule, construction, hops) for hops in (1, 2, 3, 4) for schedule, construction in schedules(hops)]


@every_dtype
@pytest.mark.parametrize(("schedule", "construction", "hops"), CASES)
def test_exhaustively(schedule: str, construction: str, hops: int, dtype: torch.dtype) -> None:
    for task in (task for task in TINY[hops] if dtype is torch.float32 or task.instances < 5000):
        built = build(schedule, task, dtype)
        found = verify_model(built.decoder, task)
        assert built.construction == construction
        assert found.exhaustive
        assert found.instances == task.instances <= 10**5
        assert found.accuracy == 1.0
        assert found.smallest_margin > LEAST_MARGIN[dtype]


@every_dtype
@pytest.mark.parametrize(("schedule", "construction", "hops"), CASES)
def test_sizes_that_are_no_powers_of_two(schedule: str, construction: str, hops: int, dtype: torch.dtype) -> None:
    for task in LARGER[hops]:
        assert fraction_right(build(schedule, task, dtype).decoder, task, 64) == 1.0


@every_dtype
@pytest.mark.parametrize("bounded", ["linear", "delta", "gdn"])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_c3_up_to_its_capacity(bounded: str, m: int, dtype: torch.dtype) -> None:
    task = FunctionComposition(2, m, (3,), values=(5,))
    built = build(f"2*{bounded}[head_dim=6,value_dim=4] full", task, dtype)
    assert built.construction == "C3"
    assert fraction_right(built.decoder, task) == 1.0


@pytest.mark.parametrize("bounded", ["linear", "delta", "gdn"])
def test_c3_beyond_its_capacity(bounded: str) -> None:
    """One more than the keys of a plain table, which a packed one holds; and a plain one that is forced to."""
    task = FunctionComposition(2, 7, (3,), values=(5,))
    schedule = f"2*{bounded}[head_dim=6,value_dim=4] full"
    packed = build(schedule, task)
    assert packed.plan.steps[1].move is Move.RECALL_PACKED
    assert fraction_right(packed.decoder, task) == 1.0
    forced = build(schedule, task, overfill=True)
    assert forced.plan.steps[1].move is Move.RECALL
    assert fraction_right(forced.decoder, task) < 0.99


@every_dtype
@pytest.mark.parametrize("carrier", BOUNDED)
@pytest.mark.parametrize("memory", ["linear", "delta", "gdn"])
def test_c3_with_any_carrier(carrier: str, memory: str, dtype: torch.dtype) -> None:
    for hops, task in ((1, TINY[1][2]), (2, LARGER[2][1]), (3, LARGER[3][1])):
        schedule = f"{carrier} {memory} {hops - 1}*full" if hops > 1 else f"{carrier} {memory}"
        built = build(schedule, task, dtype)
        assert [step.move for step in built.plan.steps[:2]] == [Move.CARRY, Move.RECALL]
        assert fraction_right(built.decoder, task, 64) == 1.0


def test_c3_exhaustively() -> None:
    task = FunctionComposition(2, 4, (2,), values=(2,))
    found = verify_model(build("2*linear[head_dim=4] full", task).decoder, task)
    assert found.exhaustive
    assert found.verified


@every_dtype
@pytest.mark.parametrize(
    "schedule",
    [
        "3*full[heads=3,value_dim=2]",
        "3*full[heads=6,kv_heads=3,value_dim=2]",
        "linear[heads=5,head_dim=1] 2*full[heads=4,kv_heads=2,value_dim=3]",
        "gdn[heads=3,head_dim=2] 2*full",
        "delta[heads=2,head_dim=5,value_dim=3] 2*full",
        "window[heads=4,kv_heads=2,head_dim=4,value_dim=3,w=2] 2*full",
        "conv[channels=5,kernel=2] 2*full",
        "conv[channels=40,kernel=9] 2*full",
        "2*linear[heads=2,head_dim=9,value_dim=3] full",
        "2*gdn[heads=5,head_dim=9,value_dim=1] full",
        "full|full full|conv full|gdn",
        "window|linear 2*full|full",
        "mlp linear mlp full mlp full mlp",
    ],
)
def test_heads_groups_and_parallel_mixers(schedule: str, dtype: torch.dtype) -> None:
    task = FunctionComposition(2, 9, (5,), values=(4,))
    assert fraction_right(build(schedule, task, dtype).decoder, task, 64) == 1.0


@pytest.mark.parametrize(
    "schedule", ["5*full linear", "linear 2*full conv", "gdn|full 3*full", "full|conv|linear 2*full"]
)
def test_mixers_without_a_step_are_idle(schedule: str) -> None:
    built = build(schedule, FunctionComposition(2, 3, (2,)))
    busy = {(step.layer, step.mixer) for step in built.plan.steps}
    idle = 0
    for layer, block in enumerate(built.decoder.each_block()):
        for index, mixer in enumerate(block.each_mixer()):
            used = any(parameter.any() for parameter in mixer.parameters())
            assert used == ((layer, index) in busy)
            idle += not used
    assert idle > 0


@pytest.mark.parametrize(
    ("schedule", "task"),
    [
        ("5*full", TINY[4][1]),
        ("linear 3*full", LARGER[3][1]),
        ("full window full", LARGER[2][0]),
        ("2*linear full", LARGER[2][0]),
        ("2*gdn full", LARGER[2][0]),
    ],
)
def test_every_weight_is_exact_in_bfloat16(schedule: str, task: FunctionComposition) -> None:
    for parameter in build(schedule, task, torch.float64).decoder.parameters():
        assert torch.equal(parameter.bfloat16().double(), parameter)


def test_every_coordinate_has_a_name() -> None:
    built = build("linear 3*full", LARGER[3][0])
    columns = [column for span in built.directions.spans.values() for column in span]
    assert sorted(columns) == list(range(built.decoder.config.width))


def test_the_built_schedule_has_every_size_written_out() -> None:
    config = build("linear 2*full", TINY[2][0]).decoder.config
    assert str(config.architecture) == config.schedule
    assert config.architecture.layers[0].mixers[0].elements.state == 24 * 24 + 24


@pytest.mark.parametrize(
    ("schedule", "hops", "most"),
    [
        ("full", 1, "none for 'full'"),
        ("2*full", 3, "at most 2 for '2*full': U2, heads gather rows while these are short"),
        ("3*full", 5, "at most 4 for '3*full': U2, heads gather rows while these are short"),
        ("3*mla", 3, "at most 2 for '3*mla'"),
        ("4*topk[k=1]", 4, "at most 3 for '4*topk'"),
        ("linear full", 2, "at most 1 for 'linear full'"),
        ("linear 2*full", 4, "at most 3 for 'linear 2*full': U2, heads gather rows while these are short"),
        ("full conv full", 4, "at most 3 for 'full conv full': U2, heads gather rows while these are short"),
        ("linear full mla", 4, "at most 3 for 'linear full mla': U2, heads gather rows while these are short"),
        ("linear mla full", 3, "at most 2 for 'linear mla full': C2, 2 full layers, a bounded layer carries"),
        ("4*linear full", 3, "at most 2 for '4*linear full'"),
        ("2*full|gdn", 3, "at most 2 for '2*full|gdn': U2, heads gather rows while these are short"),
        ("2*rfa", 1, "none for '2*rfa'"),
    ],
)
def test_one_hop_more_than_the_stack_allows(schedule: str, hops: int, most: str) -> None:
    with pytest.raises(InputError, match=r"^hops: got [0-9], expected [^\n]*$") as caught:
        build(schedule, FunctionComposition(hops, 30, (1,) * (hops - 1)))
    assert most in str(caught.value)


@pytest.mark.parametrize(
    ("schedule", "task", "reason"),
    [
        ("3*full[head_dim=5]", FunctionComposition(2, 5, (7,)), "layer 3, look up: an address code of 8 bits is wider"),
        ("2*full[head_dim=3]", FunctionComposition(1, 9), "layer 1, fetch: a value code of 4 bits is wider than the 3"),
        ("linear[head_dim=3] full", FunctionComposition(1, 9), "layer 1, carry: a value code of 4 bits is wider"),
        ("2*hgrn2[head_dim=4] full", FunctionComposition(2, 5, (1,)), "layer 2, recall: z_1 has m = 5 addresses"),
    ],
)
def test_codes_wider_than_the_head(schedule: str, task: FunctionComposition, reason: str) -> None:
    with pytest.raises(InputError, match=r"^sizes: got [^\n]*$") as caught:
        build(schedule, task)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "task",
    [FunctionComposition(2, 2, (2,), order="easy"), FunctionComposition(2, 2, (2,), query="many")],
    ids=["easy order", "many query tokens"],
)
def test_other_layouts_are_refused(task: FunctionComposition) -> None:
    with pytest.raises(InputError, match=r"^task: got 'order=.*', expected order=hard query=one$"):
        build("3*full", task)


@pytest.mark.usefixtures("without_mamba")
def test_layers_that_cannot_be_run_are_refused() -> None:
    with pytest.raises(InputError, match=r"^mixer: got 'mamba', expected one that can be run"):
        build("3*full mamba", TINY[2][0])


def test_building_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    build("linear 2*full", TINY[2][0])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("schedule", ["3*full", "linear 2*full", "full gdn full", "2*linear full"])
def test_the_prompt_is_read_by_position_and_token_alone(schedule: str) -> None:
    # Against a program written out: every instance of the smallest sizes with both query parts, by plain python.
    task = FunctionComposition(2, 2, (2,), values=(2,))
    decoder = build(schedule, task).decoder
    prompts, answers = [], []
    for *z_2, a, b, start, w in itertools.product(range(4), range(4), range(4), range(4), *[range(2)] * 4):
        prompts.append([*z_2, a, b, start, w])
        answers.append(z_2[2 * w + (a, b)[start]])
    assert decoder.answer(np.array(prompts)).tolist() == answers
