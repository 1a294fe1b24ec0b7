"""U2: a row that was gathered makes two hops of one look-up, while there is a head for each entry; wrong beyond it."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from hopbound.architecture import Architecture, parse_schedule
from hopbound.claims import best_plan
from hopbound.constructions import build as build_and_verify
from hopbound.constructions.composition import build_composition, task_sizes
from hopbound.constructions.composition_examples import EXAMPLES
from hopbound.constructions.verification import EXHAUSTIVE_UP_TO, verify_model
from hopbound.errors import InputError
from hopbound.moves import Move
from hopbound.tasks import FunctionComposition, parse_task
from tests.constructions.examples import build, fraction_right

LEAST_MARGIN = {torch.float32: 1.99, torch.bfloat16: 1.9}
every_dtype = pytest.mark.parametrize("dtype", LEAST_MARGIN, ids=str)

# All instances are asked: rows of every function, beside a fetch, a look-up and a look-ahead, read last and before.
TINY = [
    (
        "2*full[heads=2]",
        FunctionComposition(2, 2, (2,), values=(2,)),
        ("layer 1 gather i_2", "layer 1 fetch i_0", "layer 2 look up row i_2"),
    ),
    (
        "linear 2*full[heads=2]",
        FunctionComposition(3, 2, (1, 2), values=(2, 2)),
        ("layer 1 carry i_0", "layer 2 gather i_3", "layer 2 look up i_1", "layer 3 look up row i_3"),
    ),
    (
        "full[heads=2] linear full",
        FunctionComposition(3, 2, (2, 1), values=(2, 2)),
        ("layer 1 gather i_3", "layer 1 look ahead i_1", "layer 2 carry i_1", "layer 3 look up row i_3"),
    ),
    (
        "full linear full[heads=2] full",
        FunctionComposition(4, 2, (1, 1, 1), values=(2, 2, 2)),
        (
            "layer 1 gather i_4",
            "layer 1 look ahead i_1",
            "layer 2 carry i_1",
            "layer 3 look up i_2",
            "layer 4 look up row i_4",
        ),
    ),
    (
        "3*full",
        FunctionComposition(3, 2, (1, 2), values=(2, 2)),
        ("layer 1 gather i_2", "layer 1 fetch i_0", "layer 2 look up row i_2", "layer 3 look up i_3"),
    ),
    (
        "3*full",
        FunctionComposition(4, 2, (1, 1, 1), values=(2, 2, 2)),
        (
            "layer 1 gather i_2",
            "layer 1 gather i_4",
            "layer 1 fetch i_0",
            "layer 2 look up row i_2",
            "layer 3 look up row i_4",
        ),
    ),
    (
        "mla full mla",
        FunctionComposition(3, 2, (2, 1), values=(2, 2)),
        ("layer 1 fetch i_0", "layer 2 gather i_3", "layer 2 look up i_1", "layer 3 look up row i_3"),
    ),
    (
        "2*linear 2*full[head_dim=24]",
        FunctionComposition(4, 2, (1, 1, 1), values=(2, 2, 2)),
        (
            "layer 1 carry i_0",
            "layer 2 recall i_1",
            "layer 3 gather i_4",
            "layer 3 look up i_2",
            "layer 4 look up row i_4",
        ),
    ),
]
# Key-value heads that are shared, values spread over several of them, gates, sizes that are no powers of two, branches
# before and behind, rows that are looked up by other mixers, a mixer that gathers beside another one.
LARGER = [
    ("2*full[heads=6]", FunctionComposition(2, 20, (6,), values=(9,))),
    ("conv full[heads=6,kv_heads=3] full[kv_heads=3,heads=3]", FunctionComposition(3, 20, (7, 5), values=(9, 11))),
    (
        "window full[heads=8,kv_heads=4,value_dim=4,gate=1] full[heads=2,value_dim=9,gate=1]",
        FunctionComposition(3, 6, (5, 3), values=(9, 10)),
    ),
    ("gdn full[heads=3] topk[k=3,index_heads=2]", FunctionComposition(3, 9, (4, 3), values=(5, 7))),
    ("linear full[heads=5] mla[latent=40,rope_dim=3,heads=2]", FunctionComposition(3, 9, (4, 5), values=(5, 7))),
    ("conv full[heads=3]|linear full", FunctionComposition(3, 9, (4, 3), values=(5, 7))),
    ("conv mla|full[heads=3] full", FunctionComposition(3, 9, (4, 3), values=(5, 7))),
    ("full[heads=3] mlp conv mlp full", FunctionComposition(3, 9, (4, 3), values=(5, 7))),
    ("linear full[heads=7] full[heads=3] full", FunctionComposition(5, 9, (4, 5, 4, 3), values=(6, 7, 9, 5))),
    ("linear full[heads=3] full full[heads=6]", FunctionComposition(5, 9, (5, 3, 4, 9), values=(11, 5, 7, 5))),
    ("4*full[heads=4]", FunctionComposition(6, 5, (4, 7, 3, 2, 4), values=(7, 6, 9, 3, 4))),
]


@every_dtype
@pytest.mark.parametrize(("schedule", "task", "steps"), TINY, ids=str)
def test_exhaustively(schedule: str, task: FunctionComposition, steps: tuple[str, ...], dtype: torch.dtype) -> None:
    built = build(schedule, task, dtype)
    found = verify_model(built.decoder, task)
    assert (built.construction, built.steps) == ("U2", steps)
    assert found.exhaustive
    assert found.accuracy == 1.0
    assert found.smallest_margin > LEAST_MARGIN[dtype]


@every_dtype
@pytest.mark.parametrize(("schedule", "task"), LARGER, ids=str)
def test_larger_sizes(schedule: str, task: FunctionComposition, dtype: torch.dtype) -> None:
    built = build(schedule, task, dtype)
    assert any(step.move is Move.LOOK_UP_ROW for step in built.plan.steps)
    assert fraction_right(built.decoder, task) == 1.0


@pytest.mark.parametrize(("schedule", "task"), LARGER, ids=str)
def test_only_by_a_row(schedule: str, task: FunctionComposition) -> None:
    """Look-ups, carries and recalls alone make fewer hops with this stack, packed recalls too."""
    architecture = build(schedule, task).decoder.config.architecture
    assert best_plan(architecture, task.hops, task_sizes(task), packed=True).hops < task.hops


def drawn(generator: random.Random) -> tuple[Architecture, FunctionComposition]:
    """A stack of full layers of any shape, most of them, and sizes."""

    def layer() -> str:
        kv_heads, value_dim = generator.randint(1, 4), generator.randint(1, 6)
        full = f"full[heads={kv_heads * generator.randint(1, 3)},kv_heads={kv_heads},value_dim={value_dim}"
        full += f",head_dim={generator.randint(6, 12)}{generator.choice(['', ',gate=1'])}]"
        others = (
            "linear[head_dim=4] rwkv4[channels=8] conv[channels=8,kernel=2] retnet[head_dim=6] window[w=5,head_dim=9]"
        )
        others += " mla[heads=2,rope_dim=6,latent=12,value_dim=6] topk[k=2,head_dim=9,value_dim=8,index_dim=9]"
        other = generator.choice(others.split())
        return generator.choice([full, full, full, other, f"{full}|{other}"])

    hops = generator.randint(2, 5)
    schedule = " ".join(layer() for _ in range(generator.randint(2, hops + 1)))
    n = tuple(generator.randint(1, 5) for _ in range(hops - 1))
    values = tuple(generator.randint(2, 6) for _ in range(hops - 1))
    return parse_schedule(schedule), FunctionComposition(hops, generator.randint(2, 7), n, values=values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_stacks_and_sizes(seed: int) -> None:
    """Whatever is planned with a row answers as the oracle does."""
    generator, with_rows = random.Random(seed), 0
    while with_rows < 60:
        architecture, task = drawn(generator)
        plan = best_plan(architecture, task.hops, task_sizes(task), packed=True, many_heads=True)
        if plan.hops < task.hops or not any(step.move is Move.LOOK_UP_ROW for step in plan.steps):
            continue
        dtype = generator.choice([torch.float32, torch.bfloat16])
        decoder = build_composition(architecture, task, dtype=dtype).decoder
        batch = task.sample(seed, "test", 0, 40)
        assert (decoder.answer(batch.prompts) == task.oracle(batch.prompts)).all(), (str(architecture), task.identity)
        with_rows += 1


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, id=one.task, marks=[pytest.mark.slow] * (parse_task(one.task).instances > EXHAUSTIVE_UP_TO))
        for one in EXAMPLES["U2"]
        if one.fits
    ],
)
def test_examples(example: Any) -> None:
    result = build_and_verify(parse_schedule(example.schedule), parse_task(example.task))
    assert result.built.construction == "U2"
    assert result.verification.verified
    assert result.verification.smallest_margin > 1.99


@pytest.mark.parametrize("example", [one for one in EXAMPLES["U2"] if not one.fits], ids=str)
def test_one_entry_more(example: Any) -> None:
    architecture, task = parse_schedule(example.schedule), parse_task(example.task)
    with pytest.raises(InputError, match=r"layer 2, gather: a look-up for each entry of a row takes 2 heads"):
        build_and_verify(architecture, task)
    forced = build_and_verify(architecture, task, overfill=True)
    assert forced.built.construction == "U2"
    assert forced.verification.accuracy < 1.0


@pytest.mark.parametrize(
    ("gathers", "looks_up", "reason"),
    [
        ("full[heads=6]", "full", "layer 2, gather: a look-up for each entry of a row takes 7 heads, there are 6"),
        ("full[heads=13,value_dim=3]", "full", "layer 2, gather: a look-up for each entry of a row takes 14 heads"),
        ("full[heads=7]", "full[head_dim=34]", "layer 3, look up row: a row of 35 bits is wider than the 34 value"),
        (
            "full[heads=7]",
            "mla[latent=36,rope_dim=8,value_dim=40]",
            "layer 3, look up row: a key's code and a row of 45 bits together are wider than latent + rope_dim 44",
        ),
    ],
)
def test_refusals(gathers: str, looks_up: str, reason: str) -> None:
    """Each limit is one step away; within it the same stack answers."""
    task = FunctionComposition(3, 20, (3, 7), values=(20, 4))
    with pytest.raises(InputError) as caught:
        build(f"linear {gathers} {looks_up}", task, head_dim=40)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("gathers", "looks_up"),
    [
        ("full[heads=7]", "full"),
        ("full[heads=14,value_dim=3]", "full"),
        ("full[heads=7,head_dim=11]", "full"),
        ("full[heads=7]", "full[head_dim=35]"),
        ("full[heads=7]", "mla[latent=37,rope_dim=8,value_dim=40]"),
    ],
)
def test_at_the_limits(gathers: str, looks_up: str) -> None:
    task = FunctionComposition(3, 20, (3, 7), values=(20, 4))
    assert fraction_right(build(f"linear {gathers} {looks_up}", task, head_dim=40).decoder, task) == 1.0


@every_dtype
@pytest.mark.parametrize(
    ("schedule", "gathered"),
    [
        ("linear full[heads=4] full", 4),
        ("linear full[heads=4,kv_heads=1] full", 4),
        ("linear full[heads=10,kv_heads=5,value_dim=3] full", 4),
        ("linear full[heads=6] full[value_dim=17]", 3),
    ],
)
def test_what_is_wrong_beyond(schedule: str, gathered: int, dtype: torch.dtype) -> None:
    """Exactly where w_2 is one of the entries that are not gathered: all digits are -1 then, whatever stands there."""
    task = FunctionComposition(3, 9, (3, 6), values=(20, 5))  # 30 values of i_3, of 5 bits
    forced = build(schedule, task, dtype, overfill=True)
    assert forced.construction == "U2"
    decoder = forced.decoder
    batch = task.sample(0, "test", 0, 400)
    right = decoder.answer(batch.prompts) == batch.answers
    known = batch.prompts[:, -1] // task.n[0] < gathered
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
    ("schedule", "construction"), [("4*full", "C1"), ("linear 3*full", "C2"), ("2*gdn 2*full", "C3")]
)
def test_where_another_construction_does_it_is_taken(schedule: str, construction: str) -> None:
    many_heads = schedule.replace("full", "full[heads=8]")
    assert build(many_heads, FunctionComposition(3, 5, (2, 2), values=(3, 3))).construction == construction
