"""Making a pair simple: as few changed tokens as will do, then as many zeros, then the smallest values."""

import numpy as np
from numpy.typing import NDArray

from hopbound.falsify.pair import judge
from hopbound.tasks import Answerer, Task

SHRINK_TRIALS = 4_000
SMALL_VALUES = 8  # a token that cannot be 0 takes the smallest of so many values, if one will do


class _Trials:
    """Pairs put to the model one at a time, up to a limit; one that fools it as well replaces the one before."""

    def __init__(self, task: Task, answerer: Answerer, prompts: NDArray[np.int64]) -> None:
        self.task = task
        self.answerer = answerer
        self.prompts = prompts.copy()
        self.least = judge(task, answerer, prompts[None])[0]
        self.done = 0

    @property
    def left(self) -> bool:
        return self.done < SHRINK_TRIALS

    def accept(self, candidate: NDArray[np.int64]) -> bool:
        """Whether the candidate fools the model at least as well; it is kept if it does."""
        self.done += 1
        if judge(self.task, self.answerer, candidate[None])[0] < self.least:
            return False
        self.prompts = candidate
        return True


def simplify(answerer: Answerer, task: Task, prompts: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Simplify a pair while it fools the model as before; a pair that is answered alike stays one.

    1. Where the prompts differ in several tokens, one after the other is made equal.
    2. Tokens that are equal in both are set to 0, large blocks first, until no single one can be set any more.
    3. The changed tokens, and those that could not be set to 0, take the smallest values that will do.

    The search is cut short after `SHRINK_TRIALS` pairs.

    Returns:
        The simplified prompts [2, n] and the number of pairs tried.
    """
    trials = _Trials(task, answerer, prompts)
    _equalise(trials)
    _set_to_zero(trials)
    if _lower(trials):
        _set_to_zero(trials)
    return trials.prompts, trials.done


def _equalise(trials: _Trials) -> None:
    """One changed token after the other is made equal, while more than one is changed."""
    positions = np.flatnonzero(trials.prompts[0] != trials.prompts[1])
    left = len(positions)
    for position in positions:
        for row in (0, 1):
            if left == 1 or not trials.left:
                return
            candidate = trials.prompts.copy()
            candidate[:, position] = trials.prompts[row, position]
            if trials.accept(candidate):
                left -= 1
                break


def _set_to_zero(trials: _Trials) -> None:
    """Blocks of tokens, then single ones."""
    length = trials.task.prompt_length
    block = length
    while block >= 1 and trials.left:
        before = trials.prompts
        for start in range(0, length, block):
            part = slice(start, start + block)
            prompts = trials.prompts
            same = prompts[0, part] == prompts[1, part]
            if not (same & (prompts[0, part] != 0)).any():
                continue
            candidate = prompts.copy()
            candidate[:, part] = np.where(same, 0, prompts[:, part])
            trials.accept(candidate)
            if not trials.left:
                break
        if block > 1 or trials.prompts is before:  # single tokens are tried again until none of them gives way
            block //= 2


def _lower(trials: _Trials) -> bool:
    """Smallest values where there is no 0; whether anything could be lowered."""
    lowered = False
    for position in np.flatnonzero((trials.prompts != 0).any(axis=0)):
        first, second = trials.prompts[:, position].tolist()
        if first == second:
            smaller = [(value, value) for value in range(1, min(first, SMALL_VALUES))]
        else:
            smaller = [(low, high) for low, high in ((0, 1), (1, 0)) if low + high < first + second]
        for values in smaller:
            if not trials.left:
                return lowered
            candidate = trials.prompts.copy()
            candidate[:, position] = values
            if trials.accept(candidate):
                lowered = True
                break
    return lowered
