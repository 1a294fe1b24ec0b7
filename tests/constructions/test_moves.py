"""Every move of every mixer that has a rule for it, in several shapes: the weights are built, run and verified."""

from pathlib import Path

import numpy as np
import pytest
import torch

from hopbound.architecture import Defaults, parse_schedule
from hopbound.constructions import BuildResult
from hopbound.constructions import build as build_and_verify
from hopbound.constructions.memory import MEMORIES
from hopbound.errors import InputError
from hopbound.moves import RULES, Move
from hopbound.tasks import FunctionComposition
from hopbound.witness import verify_files
from tests.constructions.examples import build, fraction_right

# Sizes that are just large enough for the tasks below: addresses of z_1 up to 9, value codes up to 4 bits.
MATRIX = ("{}[heads=4,head_dim=9,value_dim=1]", "{}[heads=3,head_dim=11,value_dim=2,conv=4]")
ONE_HEAD = ("{}[head_dim=9,value_dim=4]",)
DELTA = (
    "{}[heads=6,key_heads=2,head_dim=9,value_dim=1,beta=2,conv=3]",
    "{}[heads=4,key_heads=1,head_dim=9,value_dim=1]",
)
HEADS = ("{}[heads=4,kv_heads=2,head_dim=2,value_dim=2,w=2,gate=1]", "{}[w=3,value_dim=4]")
CACHE = (
    "{}[heads=4,kv_heads=2,head_dim=2,value_dim=2,budget=2,recent=1]",
    "{}[head_dim=2,value_dim=4,budget=1,recent=1]",
)
SHAPES: dict[str, tuple[str, ...]] = {
    "linear": ("{}[heads=4,head_dim=9,value_dim=1]", *ONE_HEAD),
    **dict.fromkeys(("delta", "gdn", "kda"), (*MATRIX, *DELTA)),
    "deltaproduct": (*MATRIX, "{}[heads=4,key_heads=2,head_dim=9,value_dim=2,steps=3,beta=2,conv=2]"),
    **dict.fromkeys(("gla", "hgrn2", "rwkv6", "rwkv7", "mlstm", "retnet"), (*MATRIX, *ONE_HEAD)),
    "loglinear": ("{}[heads=4,head_dim=9,value_dim=1,levels=9]", "{}[heads=3,head_dim=9,value_dim=2,levels=2,conv=4]"),
    "lightning": (MATRIX[1], "{}[heads=5,head_dim=9,value_dim=1]"),
    "mamba2": (
        "{}[heads=4,head_dim=1,state=9]",
        "{}[heads=4,head_dim=2,state=9,groups=2,conv=4]",
        "{}[heads=1,head_dim=4,state=11]",
    ),
    "mamba": ("{}[channels=22,state=9]", "{}[channels=23,state=10,conv=4]"),
    "rglru": ("{}[channels=5]", "{}[channels=9,conv=4]"),
    "rwkv4": ("{}[channels=4]", "{}[channels=7]"),
    "conv": ("{}[channels=4,kernel=2]", "{}[channels=6,kernel=5]"),
    "shift": ("{}[channels=4]", "{}[channels=7]"),
    **dict.fromkeys(("window", "longformer"), HEADS),
    **dict.fromkeys(("h2o", "adakv"), CACHE),
}
LOOK_UPS: dict[str, tuple[str, ...]] = {
    "full": ("{}[head_dim=7,value_dim=5]", "{}[heads=4,kv_heads=2,head_dim=8,value_dim=3,gate=1]"),
    "mla": (
        "{}[rope_dim=0,latent=12,value_dim=7]",
        "{}[heads=3,rope_dim=5,latent=7,value_dim=2]",
        "{}[heads=2,rope_dim=8,latent=5,value_dim=3]",
    ),
    "topk": (
        "{}[k=1,head_dim=1,value_dim=5,index_dim=7]",
        "{}[k=5,heads=4,kv_heads=2,head_dim=9,value_dim=3,index_heads=3]",
        "{}[k=100,head_dim=7,value_dim=5]",
    ),
}
NEAR = {
    **dict.fromkeys(
        ("window", "longformer"), ("{}[w=11,head_dim=6,value_dim=2]", "{}[heads=4,kv_heads=2,w=11,gate=1]")
    ),
    **dict.fromkeys(
        ("h2o", "adakv"),
        ("{}[budget=10,recent=10,head_dim=6,value_dim=2]", "{}[heads=4,kv_heads=2,budget=12,recent=10]"),
    ),
}
CARRIERS = [shape.format(name) for name, shapes in SHAPES.items() for shape in shapes]
MEMORY_SHAPES = [shape.format(name) for name in MEMORIES for shape in SHAPES[name]]
MEMORY_SHAPES += [shape.format(name) for name, shapes in NEAR.items() for shape in shapes]
FULL = "full[head_dim=7,value_dim=5]"
ALL_OF = {1: FunctionComposition(1, 3), 2: FunctionComposition(2, 2, (1,), values=(3,))}  # 81 and 486 instances
NINE = FunctionComposition(2, 9, (5,), values=(4,))
# 2 in exact arithmetic. A fixed decay or 1/√d_k is made up for by a number of bfloat16, off by 2^-9 in each move.
LEAST_MARGIN = {torch.float32: 1.97, torch.bfloat16: 1.9}

every_dtype = pytest.mark.parametrize("dtype", LEAST_MARGIN, ids=str)


def verified(schedule: str, hops: int, dtype: torch.dtype) -> BuildResult:
    result = build_and_verify(parse_schedule(schedule), ALL_OF[hops], dtype=dtype)
    assert result.verdict == "possible", schedule
    assert result.verification.exhaustive
    assert result.verification.smallest_margin > LEAST_MARGIN[dtype], schedule
    return result


def test_no_mixer_is_left_out() -> None:
    assert set(SHAPES) == set(RULES[Move.CARRY])
    assert set(MEMORIES) | set(NEAR) == set(RULES[Move.RECALL])
    assert not set(MEMORIES) & set(NEAR)
    assert set(LOOK_UPS) == set(RULES[Move.LOOK_UP])


@every_dtype
@pytest.mark.parametrize("carrier", CARRIERS)
def test_carry(carrier: str, dtype: torch.dtype) -> None:
    """Before the first and between the first two full layers, of z_0 and of what was looked up ahead."""
    assert verified(f"full {carrier}", 1, dtype).built.construction == "C2"
    if dtype is torch.float32:
        assert verified(f"{carrier} 2*{FULL}", 2, dtype).built.construction == "C2"
    assert fraction_right(build(f"{FULL} {carrier} {FULL}", NINE, dtype).decoder, NINE, 16) == 1.0


@every_dtype
@pytest.mark.parametrize("memory", MEMORY_SHAPES)
def test_recall(memory: str, dtype: torch.dtype) -> None:
    """As the last move, and before a look-up, with as many addresses as fit."""
    assert verified(f"{memory} {memory}", 1, dtype).built.construction == "C3"
    built = build(f"shift[channels=4] {memory} {FULL}", NINE, dtype)
    assert built.construction == "C3"
    assert fraction_right(built.decoder, NINE, 32) == 1.0


@pytest.mark.parametrize("name", [*MEMORIES, *NEAR])
def test_recall_beyond_its_capacity(name: str) -> None:
    task = FunctionComposition(2, 10, (3,), values=(4,))
    sizes = {
        "mamba": "channels=30,state=9",
        "mamba2": "head_dim=4,state=9",
        "loglinear": "head_dim=9,value_dim=4,levels=9",
        **dict.fromkeys(("window", "longformer"), "w=11"),
        **dict.fromkeys(("h2o", "adakv"), "budget=10,recent=10"),
    }.get(name, "head_dim=9,value_dim=5")
    schedule = f"conv {name}[{sizes}] full"
    if name in RULES[Move.RECALL_PACKED]:
        assert build(schedule, task).plan.steps[1].move is Move.RECALL_PACKED
    else:
        with pytest.raises(InputError, match="z_1 has m = 10 addresses, the state holds 9"):
            build(schedule, task)
    assert fraction_right(build(schedule, task, overfill=True).decoder, task) < 0.99


@every_dtype
@pytest.mark.parametrize("mixer", [shape.format(name) for name, shapes in LOOK_UPS.items() for shape in shapes])
def test_fetch_and_look_up(mixer: str, dtype: torch.dtype) -> None:
    verified(f"2*{mixer}", 1, dtype)
    assert verified(f"3*{mixer}", 2, dtype).built.construction == "C1"
    assert verified(f"{mixer} conv 2*{mixer}", 2, dtype).built.construction == "C1"
    for schedule in (f"3*{mixer}", f"{mixer} conv {mixer}"):  # the second looks ahead
        assert fraction_right(build(schedule, NINE, dtype).decoder, NINE, 16) == 1.0


@every_dtype
@pytest.mark.parametrize(
    ("model", "schedule", "hops"),
    [
        ("Kimi-Linear", "3*kda[heads=2,conv=4] mla[heads=2,rope_dim=0] 3*kda[heads=2,conv=4] mla[heads=2]", 2),
        ("Qwen3-Next", "2*(3*gdn[heads=4,key_heads=2,head_dim=12,conv=4] full[heads=4,kv_heads=2,gate=1])", 2),
        ("Jamba", "2*mamba[conv=4,state=16] full[heads=4,kv_heads=1] 3*mamba[conv=4,state=16] full", 2),
        ("Bamba", "2*mamba2[heads=4,head_dim=8,state=16,conv=4] full mamba2[heads=4] full", 2),
        ("MiniMax", "2*(2*lightning[heads=2] full)", 2),
        ("xLSTM", "2*mlstm[heads=2,conv=4]", 1),
        ("RecurrentGemma", "2*rglru[conv=4] window[w=8]", 1),
        ("Gemma", "5*window[w=8,heads=4,kv_heads=2] full", 2),
        ("RWKV-7", "2*(shift rwkv7[heads=2])", 1),
        ("sparse", "linear topk[k=4] delta topk[k=4]", 2),
    ],
)
def test_stacks_of_real_models(model: str, schedule: str, hops: int, dtype: torch.dtype) -> None:
    verified(schedule, hops, dtype)


@pytest.mark.parametrize("name", SHAPES)
def test_a_carry_across_chunks(name: str) -> None:
    """The last token and that of z_0 stand in one chunk of the evaluation (of 32 or 64 tokens), or in two."""
    sizes = {"loglinear": "[levels=4]", "h2o": "[budget=9]", "adakv": "[budget=9]"}.get(name, "")
    for m in (30, 31, 62, 63):
        task = FunctionComposition(1, m)
        assert fraction_right(build(f"{name}{sizes} full", task).decoder, task, 4) == 1.0


@pytest.mark.parametrize("memory", [*MEMORIES, *NEAR])
def test_a_recall_across_chunks(memory: str) -> None:
    task = FunctionComposition(1, 66)
    sizes = {
        "mamba": "channels=150,state=66",
        "mamba2": "head_dim=9,state=66",
        "loglinear": "head_dim=66,value_dim=9,levels=4",
        **dict.fromkeys(("window", "longformer"), "w=68"),
        **dict.fromkeys(("h2o", "adakv"), "budget=70,recent=67"),
    }.get(memory, "head_dim=66,value_dim=9")
    built = build(f"conv {memory}[{sizes}]", task)
    assert built.construction == "C3"
    assert fraction_right(built.decoder, task, 8) == 1.0


@pytest.mark.parametrize("mixer", ["mla", "topk[k=3]", "full[gate=1]"])
def test_a_look_up_among_many(mixer: str) -> None:
    task = FunctionComposition(2, 40, (11,), values=(20,))
    assert fraction_right(build(f"kda {mixer} full {mixer}", task).decoder, task, 8) == 1.0


@pytest.mark.parametrize("mixer", ["mla[rope_dim=3]", "mla[rope_dim=0]", "topk[k=2]", *CARRIERS])
def test_on_demand_as_in_the_whole_sequence(mixer: str) -> None:
    name = mixer.split("[")[0]
    schedule = f"3*{mixer}" if name in LOOK_UPS else f"{mixer} 2*full"
    decoder = build(schedule, NINE, torch.float64).decoder
    prompts = torch.from_numpy(NINE.sample(0, "test", 0, 8).prompts)
    whole = decoder(prompts)[0][:, -1]
    assert torch.allclose(decoder.final_logits(prompts), whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("mixer", ["mla[rope_dim=3]", "topk[k=2]", "topk[k=1]", *CARRIERS])
def test_every_weight_is_exact_in_bfloat16(mixer: str) -> None:
    schedule = f"3*{mixer}" if mixer.split("[")[0] in LOOK_UPS else f"{mixer} {mixer} {FULL} full"
    for parameter in build(schedule, NINE, torch.float64).decoder.parameters():
        assert torch.equal(parameter.bfloat16().double(), parameter)


def test_a_model_with_an_empty_projection_is_written_and_verified(tmp_path: Path) -> None:
    architecture = parse_schedule("kda[conv=4] 2*mla[rope_dim=0]", Defaults(head_dim=12))
    result = build_and_verify(architecture, ALL_OF[2], out=tmp_path / "model")
    assert result.path is not None
    assert [report.accepted for report in verify_files([result.path])] == [True]


def test_what_other_tokens_hold_is_not_carried() -> None:
    """The same answer whatever stands in the functions that the hop does not read."""
    task = FunctionComposition(1, 9)
    prompts = np.zeros((2, task.prompt_length), dtype=np.int64)
    prompts[1, :8] = 8
    prompts[:, 8:] = [7, 8, 0]  # z_1(8) = 7, the start 8, the query 0
    for carrier in CARRIERS:
        assert build(f"{carrier} full", task).decoder.answer(prompts).tolist() == [7, 7]
