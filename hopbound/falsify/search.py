"""Search for a fooling pair: change one entry that the chain of hops visits, so that the right answer changes, and see
whether the model notices. A pair that is found is shrunk: smallest sizes, then simplest functions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hopbound.errors import InputError
from hopbound.falsify.pair import FoolingPair, fools
from hopbound.tasks import Answerer, Batch, FunctionComposition

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


def visited_changes(task: FunctionComposition, batch: Batch, hop: int, seed_row: int) -> np.ndarray:
    """Pairs from a batch: the entry of z_hop that each instance visits, given another value that changes the answer.

    The new value is the first one, in cyclic order from a start that depends on the row, whose answer differs; rows
    without any are left out.

    Args:
        task: the task.
        batch: N instances.
        hop: which function is changed, 1..L.
        seed_row: number of the batch's first instance, so that starts go on from batch to batch.

    Returns:
        int64 [at most N, 2, n].
    """
    values = task.values[hop - 1]
    path = task.hops_path(batch.prompts)
    positions = task.position(hop, 0) + path.addresses[:, hop - 1]
    rows = np.arange(len(batch))
    old = batch.prompts[rows, positions]
    changed = batch.prompts.copy()
    open_rows = rows
    for step in range(min(values - 1, 64)):
        shift = 1 + (seed_row + open_rows + step) % (values - 1)
        changed[open_rows, positions[open_rows]] = (old[open_rows] + shift) % values
        same = task.oracle(changed[open_rows]) == batch.answers[open_rows]
        open_rows = open_rows[same]
        if not len(open_rows):
            break
    keep = np.ones(len(batch), dtype=bool)
    keep[open_rows] = False
    return np.stack([batch.prompts, changed], axis=1)[keep]


def find_pair(
    answerer: Answerer,
    task: FunctionComposition,
    *,
    seed: int = 0,
    max_prompts: int = 100_000,
    progress: Callable[[int], None] = lambda tried: None,
) -> SearchResult:
    """Search and shrink at the task's own sizes.

    Args:
        answerer: the model.
        task: hard or easy order, any sizes.
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


def _candidates(task: FunctionComposition, seed: int) -> Iterator[np.ndarray]:
    """Pairs without end: structured instances first, then random ones, the entries of every hop in turn."""
    size = max(1, min(256, _BATCH_TOKENS // task.prompt_length))
    start = 0
    while True:
        for batch in (task.adversarial(seed, start, size), task.sample(seed, "falsify", start, size)):
            for hop in range(task.hops, 0, -1):
                pairs = visited_changes(task, batch, hop, start)
                if len(pairs):
                    yield pairs
        start += size


def find_smallest_pair(
    answerer: Answerer,
    task: FunctionComposition,
    *,
    seed: int = 0,
    max_prompts: int = 100_000,
    progress: Callable[[int], None] = lambda tried: None,
) -> SearchResult:
    """As `find_pair`, for a model that is not tied to the task's sizes: the smallest sizes at which there is a pair.

    Sizes are tried by prompt length, up to the task's own, with a share of the prompts each.
    """
    tried = 0
    smaller = list(_smaller_tasks(task))
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


def _smaller_tasks(task: FunctionComposition) -> Iterator[FunctionComposition]:
    """Tasks of the paper's sizes with fewer addresses than `task`, shortest first."""
    found: dict[int, FunctionComposition] = {}
    for m in range(2, min(task.m, 4) + 1):
        for parts in range(1, 3):
            n = tuple(min(parts, limit) for limit in task.n)
            try:
                candidate = FunctionComposition(hops=task.hops, m=m, n=n, order=task.order, query=task.query)
            except InputError:
                continue
            fits = candidate.vocabulary_size <= task.vocabulary_size and candidate.answers <= task.answers
            if fits and candidate.prompt_length < task.prompt_length:
                found.setdefault(candidate.prompt_length, candidate)
    yield from (found[length] for length in sorted(found))


def simplify(answerer: Answerer, task: FunctionComposition, prompts: np.ndarray) -> tuple[np.ndarray, int]:
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
