"""Evaluation on demand: the same logits as the whole sequence, from far less work where the weights allow it."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hopbound.architecture import Defaults, parse_schedule, spec_text
from hopbound.constructions.composition import build_composition
from hopbound.decoder import Decoder
from hopbound.decoder import demand as on_demand
from hopbound.tasks import FunctionComposition
from tests.decoder.examples import CHOOSING, MIXERS, config, random_decoder, random_sparse_decoder, random_tokens
from tests.mixers.examples import encoding_of, every_mixer, example_spec

# The same sums in another order; the logits of the random decoders are below 10^3.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-6}

DENSE = (
    *MIXERS,
    *CHOOSING,
    f"{MIXERS[4]} {' '.join(CHOOSING)} {MIXERS[0]}",
    f"2*{MIXERS[0]}",
    f"3*{MIXERS[1]}",
    f"{MIXERS[4]} {MIXERS[0]} {MIXERS[3]}",
    " ".join(MIXERS),
    "|".join(MIXERS),
)


def assert_same(decoder: Decoder, tokens: Tensor, tolerance: float) -> None:
    whole = decoder(tokens)[0][:, -1]
    scale = max(1.0, float(whole.abs().max()))
    torch.testing.assert_close(decoder.final_logits(tokens), whole, atol=tolerance * scale, rtol=0)


@pytest.mark.parametrize("schedule", DENSE)
@pytest.mark.parametrize("norm", ["none", "rms"])
@pytest.mark.parametrize("coded", [False, True], ids=["tables", "codes"])
def test_dense_decoders(schedule: str, norm: str, coded: bool) -> None:
    decoder = random_decoder(config(schedule, norm=norm, coded=coded))
    assert_same(decoder, random_tokens(), TOLERANCE[torch.float64])


@pytest.mark.parametrize("schedule", DENSE)
def test_dense_decoders_in_float32(schedule: str) -> None:
    decoder = random_decoder(config(schedule, norm="rms")).float()
    assert_same(decoder, random_tokens(), 4 * TOLERANCE[torch.float32])


@pytest.mark.parametrize("schedule", DENSE)
@pytest.mark.parametrize("time", [1, 2, 5])
def test_short_prompts(schedule: str, time: int) -> None:
    assert_same(random_decoder(config(schedule)), random_tokens(time=time), TOLERANCE[torch.float64])


@pytest.mark.parametrize("seed", range(150))
def test_sparse_decoders(seed: int) -> None:
    assert_same(random_sparse_decoder(seed), random_tokens(seed=seed), TOLERANCE[torch.float64])


@every_mixer
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_every_mixer(name: str, zeros: float) -> None:
    """Between others, dense and with many zeros."""
    made = config(f"{MIXERS[4]} {spec_text(example_spec(name))} {MIXERS[3]} {MIXERS[0]}")
    decoder = random_decoder(replace(made, encoding=encoding_of(name)), zeros=zeros)
    assert_same(decoder, random_tokens(), TOLERANCE[torch.float64])


@pytest.mark.parametrize("seed", range(0, 150, 6))
def test_small_chunks_give_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_demand, "CHUNK_ELEMENTS", 200)
    monkeypatch.setattr(on_demand, "TABLE_ELEMENTS", 1)
    assert_same(random_sparse_decoder(seed), random_tokens(seed=seed), TOLERANCE[torch.float64])


@pytest.mark.parametrize("seed", range(0, 150, 10))
def test_answers_do_not_depend_on_the_batch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, tokens = random_sparse_decoder(seed), random_tokens(batch=7, seed=seed)
    together = torch.cat(list(decoder.logits_of(tokens.numpy())))
    monkeypatch.setattr(on_demand, "HELD_ELEMENTS", 1)
    batches = list(decoder.logits_of(tokens.numpy()))
    assert [len(batch) for batch in batches] == [1] * 7
    torch.testing.assert_close(torch.cat(batches), together, atol=1e-10, rtol=1e-10)


BUILT = [
    (schedule, FunctionComposition(2, 5, (3,), values=(4,)))
    for schedule in (
        "3*full",
        "linear 2*full",
        "delta 2*full",
        "gdn 2*full",
        "conv 2*full",
        "window 2*full",
        "full linear full",
        "full delta full",
        "full gdn full",
        "full conv full",
        "full window full",
        "2*linear full",
        "2*delta full",
        "2*gdn full",
        "conv linear full",
        "window gdn full",
        "full|conv 2*full|gdn",
        "mlp full mlp 2*full",
    )
]


@pytest.mark.parametrize(("schedule", "task"), BUILT, ids=[schedule for schedule, _ in BUILT])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_built_models(schedule: str, task: FunctionComposition, dtype: torch.dtype) -> None:
    architecture = parse_schedule(schedule, Defaults(head_dim=16))
    decoder = build_composition(architecture, task, dtype=dtype).decoder
    tokens = torch.from_numpy(task.sample(0, "test", 0, 20).prompts)
    whole, demanded = decoder(tokens)[0][:, -1], decoder.final_logits(tokens)
    torch.testing.assert_close(demanded, whole, atol=4 * TOLERANCE[dtype], rtol=0)
    assert torch.equal(demanded.argmax(dim=1), whole.argmax(dim=1))


def positions_evaluated(decoder: Decoder, ask: Any) -> list[int]:
    """Most positions at which each layer's mixers or map ran, while `ask` was called."""
    most = [0] * len(decoder.blocks)
    handles = []
    for index, block in enumerate(decoder.each_block()):

        def note(_: Any, inputs: tuple[Tensor, ...], index: int = index) -> None:
            most[index] = max(most[index], inputs[0].shape[1])

        modules = [*block.each_mixer(), *([block.pointwise] if block.pointwise else [])]
        # Attention on demand calls the projections and not the mixer.
        modules += [mixer.get_submodule("out") for mixer in block.each_mixer()]
        handles += [module.register_forward_pre_hook(note) for module in modules]
    ask()
    for handle in handles:
        handle.remove()
    return most


@pytest.mark.parametrize(
    ("schedule", "most"),
    [
        ("3*full", [1, 1, 1]),
        ("linear 2*full", [2, 1, 1]),
        ("gdn 2*full", [2, 1, 1]),
        ("conv 2*full", [5, 1, 1]),
        ("full linear full", [2, 2, 1]),
    ],
)
def test_a_built_model_is_evaluated_at_few_positions(schedule: str, most: list[int]) -> None:
    task = FunctionComposition(2, 20, (30,), values=(4,))
    decoder = build_composition(parse_schedule(schedule, Defaults(head_dim=20)), task).decoder
    tokens = torch.from_numpy(task.sample(0, "test", 0, 3).prompts)
    found = positions_evaluated(decoder, lambda: decoder.final_logits(tokens))
    assert all(few <= bound for few, bound in zip(found, most, strict=True)), found
    assert positions_evaluated(decoder, lambda: decoder(tokens)) == [task.prompt_length] * len(most)


class LargestTensor(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.elements = max(self.elements, result.numel())
        return result


@pytest.mark.parametrize("schedule", ["3*full", "linear 2*full", "full gdn full", "window 2*full"])
def test_a_long_prompt_needs_memory_by_its_length_alone(schedule: str) -> None:
    task = FunctionComposition(2, 2, (10_000,))
    decoder = build_composition(parse_schedule(schedule, Defaults(head_dim=24)), task).decoder
    batch = task.sample(0, "test", 0, 1)
    with LargestTensor() as largest:
        logits = decoder.final_logits(torch.from_numpy(batch.prompts))
    assert logits.argmax(dim=1).tolist() == batch.answers.tolist()
    assert largest.elements <= batch.prompts.shape[1] * decoder.config.width
