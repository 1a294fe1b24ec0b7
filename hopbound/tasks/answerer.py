"""Anything that can be asked: a built model, a trained one, a pretrained one, a shortcut, the oracle itself."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks.task import AnswerFunction, Batch


class Answerer(Protocol):
    """Something that gives one answer to each prompt."""

    def answer(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answers [N] to prompts [N, n]."""
        ...


@dataclass(frozen=True)
class FunctionAnswerer:
    """An `Answerer` made of a function, such as a baseline or an oracle."""

    function: AnswerFunction

    def answer(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answers [N] to prompts [N, n]."""
        return self.function(prompts)


def accuracy(answerer: Answerer, batch: Batch) -> float:
    """The fraction of the batch that is answered right.

    Raises:
        InputError: the batch is empty, or the answers are not one a prompt.
    """
    if len(batch) == 0:
        raise InputError("batch", "no examples", "at least one example")
    given = answerer.answer(batch.prompts)
    if given.shape != batch.answers.shape:
        raise InputError("answers given", given.shape, f"shape {batch.answers.shape}, one answer a prompt")
    return float(np.mean(given == batch.answers))
