"""Running a built model: exhaustively where there are few instances, else on seeded random and adversarial ones.

Where every token of a long prompt must look something up, one prompt takes O(n²) scores of attention. How many of the
24 instances that are asked above 10^5 tokens then remain follows from the scores that one needs, counted from the
weights (`decoder.demand.scores_needed`); one random and one adversarial instance always do.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.decoder import Decoder
from hopbound.decoder.demand import scores_needed
from hopbound.decoder.folder import dtype_name
from hopbound.tasks import Batch, Task

EXHAUSTIVE_UP_TO = 10**5
RANDOM_INSTANCES = 10_000
ADVERSARIAL_INSTANCES = 1_000
LONG_PROMPT = 10**5
LONG_RANDOM_INSTANCES = 20
LONG_ADVERSARIAL_INSTANCES = 4
LONG_SCORES = 2**36  # of attention, for all prompts above 10^5 tokens together: some minutes of one core
NOT_A_MARGIN = -1e30  # of an instance whose logits are not numbers
_TOKENS_DRAWN_AT_ONCE = 2**23


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What happened when the weights ran.

    Attributes:
        instances: how many were asked.
        adversarial: how many of them were adversarial, as the task makes them.
        exhaustive: whether these were all instances there are.
        accuracy: fraction answered right.
        smallest_margin: least difference, over the instances, between the right answer's logit and the next one's.
        dtype: of weights and stream.
        seed: of the random instances.
    """

    instances: int
    adversarial: int
    exhaustive: bool
    accuracy: float
    smallest_margin: float
    dtype: str
    seed: int

    @property
    def verified(self) -> bool:
        """Every instance right, by a margin."""
        return self.accuracy == 1.0 and self.smallest_margin > 0

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def long_instances(scores: int) -> tuple[int, int]:
    """How many random and adversarial prompts above 10^5 tokens are asked, where each needs so many scores."""
    most = LONG_RANDOM_INSTANCES + LONG_ADVERSARIAL_INSTANCES
    count = min(most, max(2, LONG_SCORES // max(scores, 1)))
    adversarial = max(1, count * LONG_ADVERSARIAL_INSTANCES // most)
    return count - adversarial, adversarial


def verification_batches(task: Task, seed: int, scores: int = 0) -> tuple[bool, int, int, Iterator[Batch]]:
    """Which instances are asked: whether all, how many random or enumerated, how many adversarial, and the batches.

    Args:
        task: what is asked.
        seed: of the random instances.
        scores: how many scores of attention one prompt needs; matters above 10^5 tokens alone.
    """
    size = max(1, _TOKENS_DRAWN_AT_ONCE // task.prompt_length)
    if task.log2_instances <= math.log2(EXHAUSTIVE_UP_TO) + 1e-9:
        count = task.instances
        return True, count, 0, (task.enumerate(i, min(size, count - i)) for i in range(0, count, size))
    random, adversarial = RANDOM_INSTANCES, ADVERSARIAL_INSTANCES
    if task.prompt_length > LONG_PROMPT:
        random, adversarial = long_instances(scores)

    def draw() -> Iterator[Batch]:
        for i in range(0, random, size):
            yield task.sample(seed, "verification", i, min(size, random - i))
        for i in range(0, adversarial, size):
            yield task.adversarial(seed, i, min(size, adversarial - i))

    return False, random, adversarial, draw()


def margins(decoder: Decoder, batch: Batch) -> Iterator[Float[Tensor, " some"]]:
    """For each instance the right answer's logit less the next one's, in batches of a size that fits into memory."""
    done = 0
    for logits in decoder.logits_of(batch.prompts):
        answers = torch.from_numpy(batch.answers[done : done + len(logits)])
        done += len(logits)
        wanted = logits.gather(1, answers[:, None])
        best_other = logits.scatter(1, answers[:, None], -torch.inf).amax(dim=1, keepdim=True)
        yield (wanted - best_other)[:, 0].nan_to_num(nan=NOT_A_MARGIN)


def verify_model(decoder: Decoder, task: Task, seed: int = 0) -> Verification:
    """Ask the model, as the evidence rules say: all instances if there are at most 10^5, else 10^4 random ones (20 at
    prompts above 10^5 tokens, or fewer by their cost) and adversarial ones.
    """
    scores = 0
    if task.prompt_length > LONG_PROMPT:
        scores = scores_needed(decoder, torch.from_numpy(task.sample(seed, "verification", 0, 1).prompts))
    exhaustive, ordinary, adversarial, batches = verification_batches(task, seed, scores)
    right, smallest = 0, math.inf
    for batch in batches:
        for margin in margins(decoder, batch):
            right += int((margin > 0).sum())
            smallest = min(smallest, float(margin.min()))
    count = ordinary + adversarial
    return Verification(
        instances=count,
        adversarial=adversarial,
        exhaustive=exhaustive,
        accuracy=right / count,
        smallest_margin=smallest,
        dtype=dtype_name(decoder.dtype),
        seed=seed,
    )
