"""Candidates are prompts of the task with different right answers, each family of its own kind, the same each time."""

import numpy as np
import pytest
import torch

from hopbound.architecture import Defaults, parse_schedule
from hopbound.falsify import fools, random_subject
from hopbound.falsify.families import BeyondReach, Family, GradientGuided, StateCollisions, decoder_families
from hopbound.falsify.gradient import DifferentiableDecoder, climbed
from hopbound.tasks import FunctionComposition, Recall, Task, TwoSum

from .plain import random_decoder

COMPOSITION = FunctionComposition(hops=2, m=3, n=(2,))
TASKS: list[Task] = [COMPOSITION, Recall(pairs=3, keys=4, values=3), TwoSum(n=6, modulus=12)]


def families(schedule: str, task: Task) -> list[Family]:
    return decoder_families(random_subject(parse_schedule(schedule, Defaults(head_dim=4)), task, 0).decoder, task, 0)


def candidates(family: Family, rounds: int) -> list[np.ndarray]:
    made = []
    for number in range(rounds):
        for one in family.round(number) or ():
            assert one.asked >= 0
            made.append(one.pairs)
    return made


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_candidates_are_pairs_of_the_task(task: Task) -> None:
    for family in families("linear window[w=2]", task) + families("conv[channels=4,kernel=2]", task):
        made, again = candidates(family, 3), candidates(family, 3)
        assert [pairs.tolist() for pairs in made] == [pairs.tolist() for pairs in again]
        for pairs in made:
            if len(pairs):
                right = task.oracle(pairs.reshape(-1, task.prompt_length)).reshape(-1, 2)
                assert (right[:, 0] != right[:, 1]).all()


def test_which_families_a_stack_has() -> None:
    def names(schedule: str) -> list[str]:
        return [family.name for family in families(schedule, COMPOSITION)]

    plain = ["adversarial examples", "random examples", "gradient-guided"]
    assert names("2*full") == plain
    assert names("linear full") == [plain[0], "state collisions", *plain[1:]]
    assert names("window[w=3]") == ["beyond the reach", plain[0], "state collisions", *plain[1:]]
    assert names("window[w=30]") == [plain[0], "state collisions", *plain[1:]]


def test_beyond_the_reach_the_nearest_token_comes_first_and_always_fools() -> None:
    task = FunctionComposition(hops=1, m=6)
    decoder = random_decoder("2*window[w=3]", task)
    family = BeyondReach(task, 0, 4)
    made = candidates(family, 2)
    places = [int(np.flatnonzero(pairs[0, 0] != pairs[0, 1])[0]) for pairs in made]
    assert places == sorted(places, reverse=True)
    assert places[0] == task.prompt_length - 1 - 5
    assert all(fools(task, decoder, pairs).all() for pairs in made)
    assert family.round(5) is None


def test_collisions_end_with_one_continuation() -> None:
    decoder = random_decoder("linear", COMPOSITION)
    made = [pairs for pairs in candidates(StateCollisions(decoder, COMPOSITION, 0), 6) if len(pairs)]
    assert made
    for pairs in made:
        assert (pairs[:, 0, -1] == pairs[:, 1, -1]).all()


@pytest.mark.parametrize("schedule", ["linear", "full", "gdn window[w=3]"])
def test_the_gradient_predicts_small_changes(schedule: str) -> None:
    """Against differences of the margin along the line between two embeddings, in double precision."""
    decoder = random_decoder(schedule, COMPOSITION).double()
    batch = COMPOSITION.sample(0, "test", 0, 6)
    predicted = DifferentiableDecoder(decoder).predicted(batch, COMPOSITION.vocabulary_size)
    table = decoder.embed_tokens(torch.arange(COMPOSITION.vocabulary_size)[None])[0]
    for row, place, value in ((0, 0, 1), (2, 5, 0), (4, 9, 3), (5, 10, 1)):
        tokens = torch.from_numpy(batch.prompts[row : row + 1]).repeat(2, 1)
        x = decoder.embed_tokens(tokens) + decoder.embed_positions(torch.arange(tokens.shape[1]))
        step = torch.tensor([1e-5, -1e-5], dtype=torch.float64)
        x[:, place] += step[:, None] * (table[value] - table[batch.prompts[row, place]])
        for block in decoder.each_block():
            x, _ = block(x, None)
        logits = decoder.read_out(x)[:, -1]
        right = int(batch.answers[row])
        others = [i for i in range(COMPOSITION.answers) if i != right]
        margins = logits[:, right] - logits[:, others].amax(dim=1)
        slope = float(margins[0] - margins[1]) / 2e-5
        assert predicted[row, place, value] == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_climbing_never_raises_a_margin() -> None:
    decoder = random_decoder("linear full", COMPOSITION)
    model = DifferentiableDecoder(decoder)
    batch = COMPOSITION.sample(0, "test", 0, 12)
    before = model.margins(batch)
    harder, pairs, asked = climbed(model, COMPOSITION, batch)
    after = model.margins(harder)
    assert (after <= before + 1e-5).all()
    assert (after < before - 1e-3).any()
    assert harder.answers.tolist() == COMPOSITION.oracle(harder.prompts).tolist()
    assert ((harder.prompts != batch.prompts).sum(axis=1) <= 1).all()
    assert ((pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1).all()
    assert asked <= GradientGuided.cost / GradientGuided.examples * len(batch)
