"""The packed memory: exact up to its capacity for every mixer that has one, in every type, and wrong beyond it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Defaults, Precisions, parse_schedule
from hopbound.constructions import build as build_and_verify
from hopbound.constructions.packing import Packing, Weights
from hopbound.constructions.verification import verify_model
from hopbound.errors import InputError
from hopbound.moves import RULES, Move
from hopbound.tasks import FunctionComposition
from tests.constructions.examples import build, fraction_right

# Two rows of one or two slots; 3 bits a value and up to 10 digits a row.
SHAPES: dict[str, tuple[str, ...]] = {
    name: (
        f"{name}[head_dim=2,value_dim=2{',levels=5' if name == 'loglinear' else ''}]",
        f"{name}[heads=2,head_dim=2,value_dim=1{',levels=3' if name == 'loglinear' else ''},conv=4]",
    )
    for name in RULES[Move.RECALL_PACKED]
    if name not in ("linear", "mamba2")
}
SHAPES["linear"] = ("linear[head_dim=2,value_dim=2]", "linear[heads=2,head_dim=2,value_dim=1]")
SHAPES["mamba2"] = ("mamba2[head_dim=2,state=2]", "mamba2[heads=2,head_dim=1,state=2,groups=2,conv=4]")
SHAPES["gdn"] += ("gdn[heads=2,key_heads=1,head_dim=2,value_dim=1,beta=2]",)
SHAPES["deltaproduct"] += ("deltaproduct[heads=2,key_heads=1,head_dim=2,value_dim=1,steps=3,beta=2]",)
MEMORIES = [shape for shapes in SHAPES.values() for shape in shapes]
LEAST_MARGIN = {torch.float32: 1.99, torch.bfloat16: 1.9}
every_dtype = pytest.mark.parametrize("dtype", LEAST_MARGIN, ids=str)


@every_dtype
@pytest.mark.parametrize("memory", MEMORIES)
def test_exhaustively(memory: str, dtype: torch.dtype) -> None:
    for schedule, task in (
        (f"conv {memory}", FunctionComposition(1, 4)),
        (f"conv {memory} full", FunctionComposition(2, 3, (1,), values=(5,))),
    ):
        built = build(schedule, task, dtype)
        assert (built.construction, built.plan.steps[1].move) == ("C3", Move.RECALL_PACKED)
        if task.instances > 10**5:
            assert fraction_right(built.decoder, task, 500) == 1.0
            continue
        found = verify_model(built.decoder, task)
        assert found.exhaustive
        assert found.accuracy == 1.0
        assert found.smallest_margin > LEAST_MARGIN[dtype]


@every_dtype
@pytest.mark.parametrize("name", SHAPES)
def test_up_to_its_capacity_and_no_further(name: str, dtype: torch.dtype) -> None:
    """Seven rows of 4 numbers of 5 digits hold 3 values of 6 bits each: 21 entries."""
    sizes = {"mamba2": "head_dim=4,state=7", "loglinear": "head_dim=7,value_dim=4,levels=9"}
    schedule = f"conv {name}[{sizes.get(name, 'head_dim=7,value_dim=4')}] full"
    task = FunctionComposition(2, 21, (2,), values=(40,))
    built = build(schedule, task, dtype)
    assert built.packing is not None
    assert built.packing.slots == 3
    assert fraction_right(built.decoder, task) == 1.0
    beyond = FunctionComposition(2, 22, (2,), values=(40,))
    with pytest.raises(InputError, match="z_1 takes 5 numbers a row, packed, the state has 7 rows of 4 numbers of 5"):
        build_and_verify(parse_schedule(schedule, Defaults(head_dim=24)), beyond)
    forced = build(schedule, beyond, dtype, overfill=True)
    assert forced.plan.steps[1].move is Move.RECALL_PACKED
    assert fraction_right(forced.decoder, beyond) < 0.99


def test_what_is_hurt_beyond_the_capacity() -> None:
    """Address 21 adds to the digits of address 0, with carries into those behind it in row 0; other rows are right."""
    task = FunctionComposition(2, 22, (1,), values=(40,))
    built = build("conv linear[head_dim=7,value_dim=4] full", task, overfill=True)
    batch = task.sample(0, "test", 0, 400)
    wrong = built.decoder.answer(batch.prompts) != batch.answers
    start = task.hops_path(batch.prompts).values[:, 0]
    assert {0, 21} <= set(start[wrong].tolist()) <= {0, 7, 14, 21}


@given(st.integers(2, 40), st.integers(1, 6), st.integers(1, 9), st.integers(1, 6), st.integers(1, 5))
def test_every_bit_has_a_place_of_its_own(entries: int, bits: int, rows: int, channels: int, digits: int) -> None:
    packing = Packing(entries=entries, bits=bits, rows=rows, channels=channels, digits=digits)
    if channels * digits < bits * -(-entries // rows):
        return
    places = [
        (address % rows, *packing.place(packing.slot(address), bit))
        for address in range(entries)
        for bit in range(bits)
    ]
    assert len(set(places)) == entries * bits
    assert all(channel < packing.used <= channels and digit < digits for _, channel, digit in places)
    assert sum(packing.writers) == entries


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5])
def test_every_number_is_unpacked(digits: int) -> None:
    """Against the binary digits of every pair of numbers, each off by a quarter either way."""
    packing = Packing(entries=2, bits=digits, rows=1, channels=2, digits=digits)
    numbers = np.stack(np.meshgrid(*2 * [np.arange(2**digits)]), axis=-1).reshape(-1, 2)
    width = packing.used + packing.slots + digits
    read, slot, target = range(2), range(2, 4), range(4, width)
    weights = Weights(
        torch.zeros(packing.read_units, width),
        torch.zeros(packing.read_units),
        torch.zeros(width, packing.read_units),
        torch.zeros(width),
    )
    packing.write_unpacking(0, weights, read=read, slot=slot, target=target)
    for wanted in range(2):
        for error in (-0.25, 0.0, 0.25):
            x = torch.zeros(len(numbers), width)
            x[:, :2] = torch.from_numpy(numbers) + error
            x[:, 2 + wanted] = 1.0
            hidden = torch.relu(x @ weights.rise.T + weights.rise_bias)
            found = (hidden @ weights.fall.T + weights.fall_bias)[:, target]
            expected = 2 * (numbers[:, wanted, None] >> np.arange(digits) & 1) - 1
            assert found.tolist() == expected.tolist()


def test_no_more_digits_than_the_state_has_bits() -> None:
    """A number of 2 bits holds 2 digits: 3 rows of 4 of them two values of 4 bits each."""
    architecture = parse_schedule(
        "2*linear[head_dim=3,value_dim=4] full[head_dim=24]", precisions=Precisions.uniform(2)
    )
    for m, fits in ((6, True), (7, False)):
        task = FunctionComposition(2, m, (2,), values=(16,))
        if fits:
            assert build_and_verify(architecture, task).verification.verified
        else:
            with pytest.raises(InputError, match="3 rows of 4 numbers of 2 digits"):
                build_and_verify(architecture, task)


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_weight_is_exact_in_bfloat16(memory: str) -> None:
    task = FunctionComposition(1, 4)
    for parameter in build(f"conv {memory}", task, torch.float64).decoder.parameters():
        assert torch.equal(parameter.bfloat16().double(), parameter)


@pytest.mark.parametrize("memory", MEMORIES)
def test_on_demand_as_in_the_whole_sequence(memory: str) -> None:
    task = FunctionComposition(2, 4, (3,), values=(7,))
    decoder = build(f"conv {memory} full", task, torch.float64).decoder
    prompts = torch.from_numpy(task.sample(0, "test", 0, 8).prompts)
    assert torch.allclose(decoder.final_logits(prompts), decoder(prompts)[0][:, -1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("memory", ["linear", "kda", "mlstm[conv=4]"])
def test_across_chunks(memory: str) -> None:
    """A row of 16 numbers of 5 digits takes 10 values of 8 bits; 160 tokens are several chunks."""
    architecture = parse_schedule(f"2*{memory}", Defaults(head_dim=16)) if "[" not in memory else None
    architecture = architecture or parse_schedule(f"conv[channels=8,kernel=2] {memory}", Defaults(head_dim=16))
    task = FunctionComposition(1, 160)
    decoder = build(str(architecture), task).decoder
    assert fraction_right(decoder, task, 100) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LEAST_MARGIN, ids=str)
@pytest.mark.parametrize("hops", [1, 2])
def test_the_documented_sizes(hops: int, dtype: torch.dtype) -> None:
    """160 entries at d = 16, on 10,000 random and 1,000 adversarial instances; 161 fail."""
    architecture = parse_schedule("2*linear full" if hops == 2 else "2*linear", Defaults(head_dim=16))
    task = FunctionComposition(hops, 160, (2,) * (hops - 1))
    found = build_and_verify(architecture, task, dtype=dtype).verification
    assert found.verified
    assert (found.instances, found.adversarial) == (11_000, 1_000)
    beyond = FunctionComposition(hops, 161, (2,) * (hops - 1))
    with pytest.raises(InputError, match="packed"):
        build_and_verify(architecture, beyond)
    assert not build_and_verify(architecture, beyond, dtype=dtype, overfill=True).verification.verified
