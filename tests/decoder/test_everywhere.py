"""Attention at all positions: the softmax by its definition, in memory that grows with the prompt's length alone."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from hopbound.architecture import parse_schedule
from hopbound.constructions import write_weights
from hopbound.constructions.construction import Mode
from hopbound.decoder import Decoder
from hopbound.decoder.demand import scores_needed
from hopbound.decoder.everywhere import attend_everywhere
from hopbound.mixers import SoftmaxAttention
from hopbound.tasks import FunctionComposition
from tests.decoder.examples import WIDTH, config, random_decoder, random_tokens
from tests.decoder.test_demand import LargestTensor

FULL = (
    "full[heads=1,head_dim=3,value_dim=3]",
    "full[heads=4,kv_heads=2,head_dim=5,value_dim=2]",
    "full[heads=2,kv_heads=1,head_dim=2,value_dim=6,gate=1]",
)


def encoder_or_not(schedule: str, *, causal: bool) -> Decoder:
    return random_decoder(replace(config(schedule), causal=causal))


def the_mixer(decoder: Decoder) -> SoftmaxAttention:
    (mixer,) = decoder.each_block()[0].each_mixer()
    assert isinstance(mixer, SoftmaxAttention)
    return mixer


def by_definition(mixer: SoftmaxAttention, x: Tensor) -> Tensor:
    """Head by head, token by token."""
    spec, heads = mixer.spec, []
    for head in range(spec.heads):
        shared = head * spec.kv_heads // spec.heads
        keyed = slice(head * spec.head_dim, (head + 1) * spec.head_dim)
        stored = slice(shared * spec.head_dim, (shared + 1) * spec.head_dim)
        valued = slice(shared * spec.value_dim, (shared + 1) * spec.value_dim)
        queries = x @ mixer.query.weight[keyed].T
        keys, values = x @ mixer.key.weight[stored].T, x @ mixer.value.weight[valued].T
        read = []
        for t in range(x.shape[1]):
            seen = t + 1 if mixer.causal else x.shape[1]
            weights = torch.softmax(mixer.scale * (keys[:, :seen] * queries[:, t : t + 1]).sum(dim=2), dim=1)
            read.append((weights[..., None] * values[:, :seen]).sum(dim=1))
        heads.append(torch.stack(read, dim=1))
    outputs = torch.cat(heads, dim=2)
    if mixer.gate is not None:
        outputs = outputs * torch.sigmoid(x @ mixer.gate.weight.T)
    return outputs @ mixer.out.weight.T


@pytest.mark.parametrize("schedule", FULL)
@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "causal"])
@pytest.mark.parametrize("time", [1, 7, 40, 700])
@torch.no_grad()
def test_softmax_by_its_definition(schedule: str, causal: bool, time: int) -> None:
    mixer = the_mixer(encoder_or_not(schedule, causal=causal))
    x = torch.randn(2, time, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(time))
    torch.testing.assert_close(attend_everywhere(mixer, x), by_definition(mixer, x), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "causal"])
@pytest.mark.parametrize("layers", [2, 3])
def test_a_random_stack_on_demand_is_the_whole_forward(layers: int, causal: bool) -> None:
    decoder = encoder_or_not(" ".join(FULL[:layers]), causal=causal)
    tokens = random_tokens()
    torch.testing.assert_close(decoder.final_logits(tokens), decoder(tokens)[0][:, -1], atol=1e-8, rtol=1e-10)


@pytest.mark.parametrize("schedule", FULL)
@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "causal"])
@torch.no_grad()
def test_no_tensor_holds_all_scores(schedule: str, causal: bool) -> None:
    mixer, time = the_mixer(encoder_or_not(schedule, causal=causal)).float(), 4000
    x = torch.randn(1, time, WIDTH, generator=torch.Generator().manual_seed(0))
    with LargestTensor() as largest:
        attend_everywhere(mixer, x)
    assert 0 < largest.elements <= time * mixer.spec.heads * max(mixer.spec.head_dim, mixer.spec.value_dim, WIDTH)


def test_how_many_scores_a_prompt_needs() -> None:
    """Counted by hand from what the layers do."""
    hard = FunctionComposition(3, 4, (2, 2))
    easy = FunctionComposition(2, 4, (2,), order="easy")
    few = FunctionComposition(2, 4, (2,))
    n, k, f = hard.prompt_length, easy.prompt_length, few.prompt_length
    encoder = write_weights(parse_schedule("3*full[heads=1,head_dim=24]"), hard, mode=Mode.BIDIRECTIONAL).decoder
    pointers = write_weights(parse_schedule("3*full[heads=1,head_dim=24]"), easy).decoder
    looked_up = write_weights(parse_schedule("3*full[heads=2,head_dim=24]"), few).decoder
    for decoder, task, scores in (
        (encoder, hard, 2 * n * n + n),  # all tokens in two layers, the last one in the third
        (pointers, easy, k * (k + 1) // 2 + 2 * k),  # w to all tokens; with two hops none is lent
        (looked_up, few, 2 * 3 * f),  # the last token alone, with two heads, in each
    ):
        example = torch.from_numpy(task.sample(0, "test", 0, 1).prompts)
        assert scores_needed(decoder, example) == scores
