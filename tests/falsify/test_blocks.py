"""The pigeonhole of block attention: for random codes, for a built decoder, and pairs for random block-sparse ones."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hopbound.architecture import Defaults, parse_schedule
from hopbound.bounds.sparse_two_sum import code_bits_needed, shortest_prompt
from hopbound.constructions import write_weights
from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.falsify import MeanKeys, block_pair, break_model, colliding_contents, random_subject
from hopbound.tasks import TwoSum
from hopbound.witness import verify_file


def right_answer(prompt: list[int], modulus: int) -> bool:
    return any((x + prompt[-1]) % modulus == 0 for x in prompt)


class RandomLayer:
    """Any layer that sees blocks through codes of some bits: random codes, and a random choice that looks at them."""

    def __init__(self, seed: int, modulus: int, block: int, bits: int, selected: int) -> None:
        self.seed, self.modulus, self.block, self.bits, self.selected = seed, modulus, block, bits, selected
        self.codes: dict[tuple[int, ...], int] = {}

    def compress(self, number: int, contents: NDArray[np.int64]) -> list[int]:
        return [random.Random(f"{self.seed} {number} {row}").randrange(2**self.bits) for row in contents.tolist()]

    def told(self, prompt: NDArray[np.int64]) -> list[int]:
        size, blocks = self.block, (len(prompt) - 1) // self.block
        return [self.compress(g, prompt[None, g * size : (g + 1) * size])[0] for g in range(blocks)]

    def select(self, prompt: NDArray[np.int64]) -> set[int]:
        told = self.told(prompt)
        return set(random.Random(f"{told} {prompt[-1]}").sample(range(len(told)), self.selected))

    def view(self, prompt: NDArray[np.int64]) -> tuple[Any, ...]:
        """All that the last token learns: whatever it answers is a function of this."""
        size, seen = self.block, sorted(self.select(prompt))
        own = prompt[(len(prompt) - 1) // size * size :]
        return self.told(prompt), [(g, prompt[g * size : (g + 1) * size].tolist()) for g in seen], own.tolist()


@pytest.mark.parametrize(
    ("modulus", "block", "bits", "selected"),
    [(6, 1, 1, 1), (7, 2, 2, 1), (8, 2, 2, 2), (10, 3, 3, 1), (9, 1, 2, 3), (64, 8, 10, 1), (101, 3, 14, 0)],
)
def test_what_sees_too_short_codes_is_given_two_prompts(modulus: int, block: int, bits: int, selected: int) -> None:
    assert bits < code_bits_needed(modulus, block)
    task = TwoSum(max(2, shortest_prompt(block, selected)), modulus)
    for seed in range(5):
        layer = RandomLayer(seed, modulus, block, bits, selected)
        found = block_pair(layer.compress, layer.select, task, block=block, selected=selected)
        assert found is not None
        one, other = found.prompts
        assert [right_answer(prompt, modulus) for prompt in found.prompts.tolist()] == [False, True]
        assert layer.view(one) == layer.view(other)
        places = np.flatnonzero(one != other) // block
        assert set(places.tolist()) == {found.hidden}
        assert (one[-1] + found.value) % modulus == 0


def test_codes_that_differ_from_block_to_block_are_met_in_half_of_them() -> None:
    """Block g tells whether a value is below a border of its own: no single collision serves all blocks."""

    def compress(number: int, contents: NDArray[np.int64]) -> list[bool]:
        return (contents[:, 0] < number + 1).tolist()

    task = TwoSum(6, 6)
    found = block_pair(compress, lambda prompt: {0, 4}, task, block=1, selected=2)
    assert found is not None
    assert found.hidden in (1, 2, 3)
    codes = [[compress(g, prompt[None, g : g + 1]) for g in range(5)] for prompt in found.prompts]
    assert codes[0] == codes[1]


def test_codes_that_tell_every_set_apart_give_none() -> None:
    def compress(number: int, contents: NDArray[np.int64]) -> list[tuple[int, ...]]:
        return [tuple(sorted(set(row))) for row in contents.tolist()]

    assert colliding_contents(compress, 0, range(8), 3) is None
    assert block_pair(compress, lambda prompt: {0}, TwoSum(10, 8), block=3, selected=1) is None


def test_the_budget_is_kept() -> None:
    tried: list[int] = []

    def compress(number: int, contents: NDArray[np.int64]) -> Sequence[bytes]:
        tried.append(len(contents))
        return [row.tobytes() for row in contents]

    assert colliding_contents(compress, 0, range(1000), 3, budget=1000) is None
    assert sum(tried) == 1000


def test_sizes_of_which_the_proof_does_not_speak() -> None:
    layer = RandomLayer(0, 8, 2, 1, 1)
    with pytest.raises(InputError, match="n: got 6, expected at least 7 tokens"):
        block_pair(layer.compress, layer.select, TwoSum(6, 8), block=2, selected=1)
    with pytest.raises(InputError, match="block: got 5, expected at most 4"):
        block_pair(layer.compress, layer.select, TwoSum(16, 8), block=5, selected=1)


# A real layer of block attention.


@pytest.mark.parametrize("heads", [1, 2])
def test_the_built_layer_in_blocks_answers_alike_to_the_bit(heads: int) -> None:
    """C6 in block attention: equal mean keys, the block not selected; nothing reaches the logits."""
    architecture = parse_schedule(f"moba[heads={heads},kv_heads=1,head_dim=6,k=2,block=8]")
    task = TwoSum(shortest_prompt(8, heads), 64)
    decoder = write_weights(architecture, task, overfill=True).decoder
    layer = MeanKeys(decoder)
    found = block_pair(layer.compress, layer.select, task, block=8, selected=heads)
    assert found is not None
    assert [right_answer(prompt, 64) for prompt in found.prompts.tolist()] == [False, True]
    # One by one: in a batch the second starts at another place in memory, and sums may be rounded in another order.
    first, second = (decoder(torch.from_numpy(prompt[None]))[0][0, -1] for prompt in found.prompts)
    assert torch.equal(first, second)
    assert layer.select(found.prompts[0]) == layer.select(found.prompts[1])


def test_the_choice_is_that_of_the_mixer() -> None:
    """A token's influence on the last token is nothing outside of the chosen blocks and its own."""
    decoder = Decoder.from_schedule("moba[k=2,block=4]", vocabulary=30, width=8, heads=2, head_dim=4, hidden=0, seed=3)
    layer, task = MeanKeys(decoder), TwoSum(22, 30)
    for prompt in task.sample(0, "test", 0, 10).prompts:
        seen = layer.select(prompt)
        x = layer._stream(torch.from_numpy(prompt)[None], 0).detach().requires_grad_(True)
        layer.mixer(x)[0][0, -1].sum().backward()
        assert x.grad is not None
        reached = {place // 4 for place in x.grad[0].abs().amax(dim=-1).nonzero()[:, 0].tolist()}
        assert reached == seen | {5}


def test_other_decoders_are_refused() -> None:
    decoder = Decoder.from_schedule("full", vocabulary=5, width=8, heads=1, head_dim=4)
    with pytest.raises(InputError, match="moba alone"):
        MeanKeys(decoder)


@pytest.mark.parametrize("schedule", ["moba[k=2,block=4]", "nsa[k=2,block=4,w=4]", "block[w=4]", "2*moba[k=2,block=4]"])
def test_random_block_sparse_decoders_are_fooled(schedule: str, tmp_path: Path) -> None:
    """A pair in which one token differs, replayed from its file by `verify`."""
    architecture = parse_schedule(schedule, Defaults(heads=2, head_dim=8))
    found = break_model(random_subject(architecture, TwoSum(25, 50), 0), out=tmp_path)
    assert found.pair is not None
    assert isinstance(found.pair.task, TwoSum)
    answers = [right_answer(prompt, 50) for prompt in found.pair.prompts.tolist()]
    assert sorted(answers) == [False, True]
    result = verify_file(tmp_path / "pair.json")
    assert (result.kind, result.accepted) == ("pair", True), result.reason
