"""Search for a fooling pair: change one token that matters, so that the right answer changes, and see whether the model
notices. A pair that is found is shrunk: smallest sizes, then simplest functions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hopbound.falsify.pair import FoolingPair, fools
from hopbound.tasks import Answerer, Task

_BATCH_TOKENS = 2**20
_SHRINK_TRIALS = 4_000


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        pair: the shrunk pair; None if there was none among the prompts tried.
        prompts_tried: how many prompts the search asked, shrinking included.
    """

    pair: FoolingPair | None
    prompts_tried: int


def find_pair(
    answerer: Answerer,
    task: Task,
    *,
    seed: int = 0,
    max_prompts: int = 100_000,
    progress: Callable[[int], None] = lambda tried: None,
) -> SearchResult:
    """Search and shrink at the task's own sizes.

    Args:
        answerer: the model.
        task: what it is asked.
        seed: of the instances.
        max_prompts: give up after so many.
        progress: called with the number of prompts tried so far.
    """
    tried = 0
    for pairs in _candidates(task, seed):
        if tried >= max_prompts:
            break
        pairs = pairs[: max(1, (max_prompts - tried) // 2)]
        fooled = fools(task, answerer, pairs).nonzero()[0]
        tried += 2 * len(pairs)
        progress(tried)
        if len(fooled):
            prompts, trials = simplify(answerer, task, pairs[fooled[0]])
            answer = int(answerer.answer(prompts[:1])[0])
            return SearchResult(FoolingPair(task, prompts, answer), tried + 2 * trials)
    return SearchResult(None, tried)


def _candidates(task: Task, seed: int) -> Iterator[np.ndarray]:
    """Pairs without end: structured instances first, then random ones, changed at the places that the task names."""
    size = max(1, min(256, _BATCH_TOKENS // task.prompt_length))
    start = 0
    while True:
        for batch in (task.adversarial(seed, start, size), task.sample(seed, "falsify", start, size)):
            yield from task.changes(batch, start)
        start += size


def find_smallest_pair(
    answerer: Answerer,
    task: Task,
    *,
    seed: int = 0,
    max_prompts: int = 100_000,
    progress: Callable[[int], None] = lambda tried: None,
) -> SearchResult:
    """As `find_pair`, for a model that is not tied to the task's sizes: the smallest sizes at which there is a pair.

    Sizes are tried by prompt length, up to the task's own, with a share of the prompts each.
    """
    tried = 0
    smaller = list(task.smaller())
    for candidate in smaller:
        result = find_pair(answerer, candidate, seed=seed, max_prompts=max(64, max_prompts // (4 * len(smaller))))
        tried += result.prompts_tried
        progress(tried)
        if result.pair is not None:
            return SearchResult(result.pair, tried)
    before = tried
    rest = max(0, max_prompts - tried)
    result = find_pair(answerer, task, seed=seed, max_prompts=rest, progress=lambda more: progress(before + more))
    return SearchResult(result.pair, tried + result.prompts_tried)


def simplify(answerer: Answerer, task: Task, prompts: np.ndarray) -> tuple[np.ndarray, int]:
    """Set tokens to 0, in both prompts, until no single one can be set and the pair still fools; large blocks first.

    The search is cut short after `_SHRINK_TRIALS` pairs.

    Returns:
        The simplified prompts [2, n] and the number of pairs tried.
    """
    prompts = prompts.copy()
    trials = 0
    block = task.prompt_length
    while block >= 1 and trials < _SHRINK_TRIALS:
        before = prompts
        for start in range(0, task.prompt_length, block):
            part = slice(start, start + block)
            same = prompts[0, part] == prompts[1, part]
            if not (same & (prompts[0, part] != 0)).any():
                continue
            candidate = prompts.copy()
            candidate[:, part] = np.where(same, 0, prompts[:, part])
            trials += 1
            if fools(task, answerer, candidate[None])[0]:
                prompts = candidate
            if trials >= _SHRINK_TRIALS:
                break
        if block > 1 or prompts is before:  # single tokens are tried again until none of them gives way
            block //= 2
    return prompts, trials
