"""Positions at which a map is shut whatever attention writes: found by bounds, and the answers stay the same."""

from itertools import product

import pytest
import torch

from hopbound.decoder import Decoder
from hopbound.decoder import demand as on_demand
from hopbound.decoder.model import PointwiseMap
from hopbound.decoder.shut import embedding_bounds, write_bounds
from hopbound.mixers import SoftmaxAttention
from hopbound.tasks import FunctionComposition
from tests.constructions.examples import build

STACKS = [
    ("2*full[heads=3,gate=1]", FunctionComposition(2, 5, (3,), values=(4,)), 0),
    ("linear 2*full[heads=4,kv_heads=2]", FunctionComposition(3, 5, (2, 3), values=(4, 6)), 1),
    ("3*full", FunctionComposition(4, 3, (1, 1, 1), values=(4, 3, 5)), 0),
]


def gathered(schedule: str, task: FunctionComposition) -> tuple[Decoder, torch.Tensor]:
    return build(schedule, task, torch.float64).decoder, torch.from_numpy(task.sample(0, "test", 0, 6).prompts)


@pytest.mark.parametrize(("schedule", "task", "layer"), STACKS, ids=str)
def test_rows_are_computed_where_they_are_gathered_alone(schedule: str, task: FunctionComposition, layer: int) -> None:
    """A layer whose output every later position is asked for is computed at the tokens that gather, and the last."""
    decoder, tokens = gathered(schedule, task)
    assert on_demand.is_local(decoder, tokens[:1])
    built = build(schedule, task)
    assert built.gathering is not None
    assert built.gathering.layer == layer
    gathering = sum(task.domains[row.hop - 2] for row in built.gathering.rows)
    scores = on_demand.scores_needed(decoder, tokens[:1])
    mixers = (mixer for block in decoder.each_block() for mixer in block.each_mixer())
    full = [mixer for mixer in mixers if isinstance(mixer, SoftmaxAttention)]
    assert scores <= full[0].spec.heads * task.prompt_length * (gathering + 1 + len(full))


@pytest.mark.parametrize("shift", [-9.0, -4.0, -1.5, -1.0, -0.5, 0.5, 3.0])
@pytest.mark.parametrize(("schedule", "task", "layer"), STACKS, ids=str)
def test_the_logits_are_those_of_the_whole_sequence(
    schedule: str, task: FunctionComposition, layer: int, shift: float
) -> None:
    """Also where the map is shut at fewer positions, or nowhere: its biases are shifted."""
    decoder, tokens = gathered(schedule, task)
    pointwise = decoder.each_block()[layer].pointwise
    assert isinstance(pointwise, PointwiseMap)
    with torch.no_grad():
        pointwise.rise.bias.add_(shift)
    whole = decoder(tokens)[0][:, -1]
    torch.testing.assert_close(decoder.final_logits(tokens), whole, atol=1e-9, rtol=0)
    assert on_demand.is_local(decoder, tokens[:1]) == (shift < 1)


@pytest.mark.parametrize(("schedule", "task", "layer"), STACKS, ids=str)
def test_attention_keeps_within_its_bounds(schedule: str, task: FunctionComposition, layer: int) -> None:
    """What the layer really adds, at every position, with queries and keys that are random."""
    decoder, tokens = gathered(schedule, task)
    block, width = decoder.each_block()[layer], decoder.config.width
    written = torch.zeros(width, dtype=torch.bool)
    for other in decoder.each_block()[:layer]:
        for mixer in other.each_mixer():
            written |= mixer.writes()
        assert other.pointwise is not None
        written |= on_demand.map_writes(other.pointwise, width)
    bounds = write_bounds(block, ~written, embedding_bounds(decoder))
    x = decoder.embed_tokens(tokens) + decoder.embed_positions(torch.arange(tokens.shape[1]))
    assert (x.abs().amax(dim=(0, 1)) <= embedding_bounds(decoder)).all()
    generator = torch.Generator().manual_seed(0)
    reached = torch.zeros(width, dtype=torch.float64)
    for scale, mixer in product((0.0, 1.0, 30.0), block.each_mixer()):
        assert isinstance(mixer, SoftmaxAttention)
        with torch.no_grad():
            for part in (mixer.query, mixer.key):
                part.weight.copy_(scale * torch.randn(part.weight.shape, generator=generator, dtype=torch.float64))
        reached = torch.maximum(reached, mixer(x, None)[0].abs().amax(dim=(0, 1)))
    assert (reached <= bounds * (1 + 1e-12)).all()
    raw = torch.tensor([name.startswith("raw row") for name in _names(build(schedule, task).directions.spans, width)])
    assert (reached[raw] > 0.5 * bounds[raw]).all()  # and they say something
    assert bounds[raw].isfinite().all()


def _names(spans: dict[str, range], width: int) -> list[str]:
    """The name of each column."""
    names = [""] * width
    for name, span in spans.items():
        for column in span:
            names[column] = name
    return names
