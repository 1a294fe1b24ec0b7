"""Where a search looks for fooling pairs: families of candidates, each made in rounds that its number fixes.

A round depends on the family, its number and the seed alone, so that a search that was stopped goes on with the same
candidates. Some families put prompts to the model to make candidates; they say how many.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hopbound.bounds.reach import reach
from hopbound.decoder import Decoder
from hopbound.falsify.collisions import MAX_EDITS, birthday, edited, swapped
from hopbound.falsify.gradient import FLIPS, Differentiable, DifferentiableDecoder, climbed
from hopbound.falsify.pair import prompts_of
from hopbound.falsify.states import has_bounded_layers
from hopbound.tasks import Answerer, Batch, Task

BATCH = 256
BATCH_TOKENS = 2**20
LONG_PROMPT = 4096  # tokens above which families are left out that run every layer at every position


@dataclass(frozen=True)
class Candidates:
    """Pairs [N, 2, n], and how many prompts the model was asked since the ones before to make them."""

    pairs: NDArray[np.int64]
    asked: int = 0


class Family(ABC):
    """Candidates of one kind for one task, in rounds that are numbered from 0.

    Attributes:
        share: of the prompts of a search, at most, before the next family has its turn.
        cost: prompts that may be put to the model to make the next candidates; with fewer left none are made.
    """

    name: ClassVar[str]
    share: ClassVar[float]
    cost: ClassVar[int] = 0

    @abstractmethod
    def round(self, number: int) -> Iterator[Candidates] | None:
        """The candidates of one round; None if there are no further rounds."""


def batch_size(task: Task) -> int:
    """Instances of a round: fewer where every token of each is changed in turn."""
    if type(task).changes is Task.changes:
        return max(4, min(BATCH, BATCH_TOKENS // BATCH // task.prompt_length))
    return max(1, min(BATCH, BATCH_TOKENS // task.prompt_length))


class AdversarialChanges(Family):
    """The task's adversarial examples, changed at the places that the task names."""

    name = "adversarial examples"
    share = 0.3

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed, self.size = task, seed, batch_size(task)

    def round(self, number: int) -> Iterator[Candidates]:
        """The next examples."""
        start = number * self.size
        batch = self.task.adversarial(self.seed, start, self.size)
        return (Candidates(pairs) for pairs in self.task.changes(batch, start))


class RandomChanges(Family):
    """Random examples, changed at the places that the task names."""

    name = "random examples"
    share = 0.3

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed, self.size = task, seed, batch_size(task)

    def round(self, number: int) -> Iterator[Candidates]:
        """The next examples."""
        start = number * self.size
        batch = self.task.sample(self.seed, "falsify", start, self.size)
        return (Candidates(pairs) for pairs in self.task.changes(batch, start))


class BeyondReach(Family):
    """One token that the last one does not see, the nearest such first: the model cannot tell these pairs apart.

    Args:
        task: what is asked.
        seed: of the examples.
        seen: how many tokens before the last one its output can depend on (`bounds.reach`).
    """

    name = "beyond the reach"
    share = 0.1
    places = 16  # a round
    examples = 64

    def __init__(self, task: Task, seed: int, seen: int) -> None:
        self.task, self.seed = task, seed
        self.unseen = range(task.prompt_length - 2 - seen, -1, -1)

    def round(self, number: int) -> Iterator[Candidates] | None:
        """The next tokens to the left, each changed in random and in adversarial examples."""
        places = self.unseen[number * self.places : (number + 1) * self.places]
        return self._changed(places) if places else None

    def _changed(self, places: Sequence[int]) -> Iterator[Candidates]:
        batches = (
            self.task.adversarial(self.seed, 0, self.examples),
            self.task.sample(self.seed, "falsify", 0, self.examples),
        )
        for place in places:
            for batch in batches:
                for step in range(1, min(4, self.task.vocabulary_size)):
                    pairs = token_changes(self.task, batch, place, step)
                    if len(pairs):
                        yield Candidates(pairs)


def token_changes(task: Task, batch: Batch, place: int, step: int) -> NDArray[np.int64]:
    """Pairs in which one token of each instance is `step` values further, where that changes the right answer."""
    changed = batch.prompts.copy()
    changed[:, place] = (changed[:, place] + step) % task.vocabulary_size
    rows = np.flatnonzero(prompts_of(task, changed))
    rows = rows[task.oracle(changed[rows]) != batch.answers[rows]]
    return np.stack([batch.prompts[rows], changed[rows]], axis=1)


class StateCollisions(Family):
    """Two pasts that leave (nearly) one state in the bounded layers, and a continuation that tells them apart."""

    name = "state collisions"
    share = 0.1
    examples = 256  # from which values of tokens, and continuations, are taken
    continuations = 64
    pasts = 512  # of a birthday search
    most_rounds = 48
    cost = max(pasts, MAX_EDITS + 1)

    def __init__(self, decoder: Decoder, task: Task, seed: int) -> None:
        self.decoder, self.task, self.seed = decoder, task, seed

    def round(self, number: int) -> Iterator[Candidates] | None:
        """A past of the task's: one or two tokens changed or in each other's place; now and then a birthday search."""
        return self._collisions(number) if number < self.most_rounds else None

    def _collisions(self, number: int) -> Iterator[Candidates]:
        length = self.task.prompt_length
        after = min(length - 1, (2, 1, 3, length // 2)[number % 4])  # tokens of the continuation
        known = self.task.sample(self.seed, "falsify", 0, self.examples).prompts
        known = np.concatenate([self.task.adversarial(self.seed, 0, self.examples).prompts, known])
        endings = np.unique(known[:, length - after :], axis=0)[: self.continuations]
        if number % 6 == 5:
            drawn = self.task.sample(self.seed, "falsify", number * self.pasts, self.pasts).prompts
            asked, found = len(drawn), birthday(self.decoder, drawn[:, : length - after])
        else:
            past = known[number * 37 % len(known), : length - after]
            values = [np.unique(column) for column in known[:, : length - after].T]
            edits = sum(len(allowed) - 1 for allowed in values)
            asked, found = min(edits, MAX_EDITS) + 1, edited(self.decoder, past, values, self.seed + number)
            if number % 6 == 0:
                asked, found = 0, swapped(past)
        for pair in found:
            whole = np.concatenate(
                [
                    np.repeat(pair[None], len(endings), axis=0),
                    np.repeat(endings[:, None], 2, axis=1),
                ],
                axis=2,
            )
            yield Candidates(told_apart(self.task, whole), asked)
            asked = 0


def told_apart(task: Task, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the pairs [N, 2, n] that are two prompts of the task with different right answers."""
    valid = prompts_of(task, pairs.reshape(-1, pairs.shape[-1])).reshape(-1, 2).all(axis=1)
    pairs = pairs[valid]
    right = task.oracle(pairs.reshape(-1, pairs.shape[-1])).reshape(-1, 2)
    return pairs[right[:, 0] != right[:, 1]]


class GradientGuided(Family):
    """Examples made harder by the gradient of the margin, then changed at the places that the task names."""

    name = "gradient-guided"
    share = 1.0
    examples = 16
    steps = 3
    cost = examples * (2 + FLIPS)

    def __init__(self, model: Differentiable, answerer: Answerer, task: Task, seed: int) -> None:
        self.model, self.answerer, self.task, self.seed = model, answerer, task, seed

    def round(self, number: int) -> Iterator[Candidates]:
        """The next random examples, a token changed at each step."""
        start = number * self.examples
        batch = self.task.sample(self.seed, "falsify by gradient", start, self.examples)
        for step in range(self.steps):
            batch, flips, asked = climbed(self.model, self.task, batch)
            yield Candidates(flips, asked)
            for pairs in self.task.changes(batch, start + step):
                yield Candidates(pairs)


def decoder_families(decoder: Decoder, task: Task, seed: int) -> list[Family]:
    """What is tried against a decoder, in this order: structured families, random examples, gradients."""
    families: list[Family] = []
    seen = reach(decoder.config.architecture)
    if seen is not None and seen < task.prompt_length - 1:
        families.append(BeyondReach(task, seed, seen))
    families.append(AdversarialChanges(task, seed))
    short = task.prompt_length <= LONG_PROMPT
    if short and task.prompt_length > 1 and has_bounded_layers(decoder):
        families.append(StateCollisions(decoder, task, seed))
    families.append(RandomChanges(task, seed))
    model = DifferentiableDecoder(decoder)
    if short and model.fits(task):
        families.append(GradientGuided(model, decoder, task, seed))
    return families


def plain_families(task: Task, seed: int) -> list[Family]:
    """What is tried against anything that can be asked."""
    return [AdversarialChanges(task, seed), RandomChanges(task, seed)]
