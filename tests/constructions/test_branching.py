"""U3: two hops in one full layer are exact while there is a head for each value, and wrong beyond it."""

from typing import Any

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.claims import best_plan
from hopbound.constructions import build as build_and_verify
from hopbound.constructions.composition import task_sizes
from hopbound.constructions.composition_examples import EXAMPLES
from hopbound.constructions.verification import verify_model
from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition, parse_task
from tests.constructions.examples import build, fraction_right

LEAST_MARGIN = {torch.float32: 1.99, torch.bfloat16: 1.9}
every_dtype = pytest.mark.parametrize("dtype", LEAST_MARGIN, ids=str)

# All instances are asked: branches to i_1, i_2 and i_3, at the end and before look-ups, one after the other.
TINY = [
    ("full[heads=4]", FunctionComposition(1, 3), ("layer 1 branch i_1",)),
    (
        "linear full[heads=3]",
        FunctionComposition(2, 2, (2,), values=(2,)),
        ("layer 1 carry i_0", "layer 2 branch i_2"),
    ),
    ("2*full[heads=3]", FunctionComposition(2, 2, (2,)), ("layer 1 fetch i_0", "layer 2 branch i_2")),
    (
        "conv full full[heads=3]",
        FunctionComposition(3, 2, (2, 1), values=(2, 2)),
        ("layer 1 carry i_0", "layer 2 look up i_1", "layer 3 branch i_3"),
    ),
    (
        "gdn full[heads=3] full",
        FunctionComposition(3, 2, (1, 2), values=(2, 2)),
        ("layer 1 carry i_0", "layer 2 branch i_2", "layer 3 look up i_3"),
    ),
    (
        "2*linear full[heads=3]",
        FunctionComposition(3, 2, (2, 1), values=(2, 2)),
        ("layer 1 carry i_0", "layer 2 recall i_1", "layer 3 branch i_3"),
    ),
    ("2*full[heads=3]", FunctionComposition(3, 2, (1, 1)), ("layer 1 branch i_1", "layer 2 branch i_3")),
]
# Key-value heads that are shared, values spread over several of them, gates, sizes that are no powers of two.
LARGER = [
    ("full linear full[heads=6]", FunctionComposition(3, 9, (3, 2), values=(7, 5))),
    ("linear 2*full[heads=5]", FunctionComposition(4, 3, (2, 2, 1), values=(4, 6, 4))),
    ("3*full[heads=10]", FunctionComposition(5, 9, (2, 1, 5, 1), values=(6, 3, 9, 7))),
    ("conv full[heads=9,kv_heads=3] full", FunctionComposition(3, 20, (5, 7), values=(8, 10))),
    ("conv full[heads=6,kv_heads=1]", FunctionComposition(2, 20, (7,), values=(5,))),
    ("window full[heads=12,kv_heads=4,value_dim=2,gate=1]", FunctionComposition(2, 9, (3,), values=(5,))),
    ("delta full[heads=10,kv_heads=5,value_dim=2,head_dim=9]", FunctionComposition(2, 10, (5,), values=(3,))),
]


@every_dtype
@pytest.mark.parametrize(("schedule", "task", "steps"), TINY, ids=str)
def test_exhaustively(schedule: str, task: FunctionComposition, steps: tuple[str, ...], dtype: torch.dtype) -> None:
    built = build(schedule, task, dtype)
    found = verify_model(built.decoder, task)
    assert (built.construction, built.steps) == ("U3", steps)
    assert found.exhaustive
    assert found.accuracy == 1.0
    assert found.smallest_margin > LEAST_MARGIN[dtype]


@every_dtype
@pytest.mark.parametrize(("schedule", "task"), LARGER, ids=str)
def test_larger_sizes(schedule: str, task: FunctionComposition, dtype: torch.dtype) -> None:
    built = build(schedule, task, dtype)
    assert built.construction == "U3"
    assert fraction_right(built.decoder, task) == 1.0


@pytest.mark.parametrize(("schedule", "task"), LARGER, ids=str)
def test_only_by_a_branch(schedule: str, task: FunctionComposition) -> None:
    """Look-ups, carries and recalls alone make fewer hops with this stack, packed recalls too."""
    architecture = build(schedule, task).decoder.config.architecture
    assert best_plan(architecture, task.hops, task_sizes(task), packed=True).hops < task.hops


@pytest.mark.parametrize("example", [one for one in EXAMPLES["U3"] if one.fits], ids=str)
def test_examples(example: Any) -> None:
    result = build_and_verify(parse_schedule(example.schedule), parse_task(example.task))
    assert result.built.construction == "U3"
    assert result.verification.verified
    assert result.verification.smallest_margin > 1.99


@pytest.mark.parametrize("example", [one for one in EXAMPLES["U3"] if not one.fits], ids=str)
def test_one_head_fewer(example: Any) -> None:
    architecture, task = parse_schedule(example.schedule), parse_task(example.task)
    with pytest.raises(InputError, match=r"layer 2, branch: a look-up for each value and one more take 3 heads"):
        build_and_verify(architecture, task)
    assert build_and_verify(architecture, task, overfill=True).verification.accuracy < 1.0


@pytest.mark.parametrize(
    ("full", "reason"),
    [
        ("full[heads=7]", "layer 2, branch: a look-up for each value and one more take 8 heads, there are 7"),
        ("full[heads=16,value_dim=2]", "layer 2, branch: a look-up for each value and one more take 24 heads"),
        ("full[heads=8,head_dim=8]", "layer 2, branch: a code of 9 bits for addresses of two functions is wider than"),
        ("full[heads=2]", "layer 2, branch: a look-up for each value and one more take 8 heads, there are 2"),
        ("full", "at most 1 for 'linear full': C2, 1 full layer"),
    ],
)
def test_refusals(full: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        build(f"linear {full}", FunctionComposition(2, 10, (5,), values=(7,)))
    assert reason in str(caught.value)


def test_refused_with_the_most_that_any_sizes_allow() -> None:
    with pytest.raises(InputError, match=r"at most 3 for 'linear 2\*full': U3, heads look up for all values"):
        build("linear full full[heads=3]", FunctionComposition(5, 2, (1, 1, 1, 1)))


@every_dtype
@pytest.mark.parametrize(
    ("schedule", "told_apart"),
    [
        ("linear full[heads=5]", 4),
        ("linear full[heads=5,kv_heads=1]", 4),
        ("linear full[heads=10,kv_heads=5,value_dim=3]", 3),
    ],
)
def test_what_is_wrong_beyond(schedule: str, told_apart: int, dtype: torch.dtype) -> None:
    """Exactly where i_1 is one of the values without a head: then all digits are -1, whatever stands there."""
    task = FunctionComposition(2, 6, (3,), values=(told_apart + 1,))
    decoder = build(schedule, task, dtype, overfill=True).decoder
    batch = task.sample(0, "test", 0, 400)
    right = decoder.answer(batch.prompts) == batch.answers
    known = task.hops_path(batch.prompts).values[:, 1] < told_apart
    assert right[known].all()
    assert (decoder.answer(batch.prompts)[~known] == 0).all()
    assert np.mean(right[~known]) < 0.5


@pytest.mark.parametrize(("schedule", "task"), LARGER, ids=str)
def test_every_weight_is_exact_in_bfloat16(schedule: str, task: FunctionComposition) -> None:
    for parameter in build(schedule, task, torch.float64).decoder.parameters():
        assert torch.equal(parameter.bfloat16().double(), parameter)


@pytest.mark.parametrize(("schedule", "task"), LARGER, ids=str)
def test_on_demand_as_in_the_whole_sequence(schedule: str, task: FunctionComposition) -> None:
    decoder = build(schedule, task, torch.float64).decoder
    prompts = torch.from_numpy(task.sample(0, "test", 0, 8).prompts)
    assert torch.allclose(decoder.final_logits(prompts), decoder(prompts)[0][:, -1], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "construction"), [("3*full", "C1"), ("linear 2*full", "C2"), ("2*gdn full", "C3")]
)
def test_where_another_construction_does_it_is_taken(schedule: str, construction: str) -> None:
    many_heads = schedule.replace("full", "full[heads=8]")
    assert build(many_heads, FunctionComposition(2, 5, (2,), values=(3,))).construction == construction
