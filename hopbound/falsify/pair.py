"""The fooling pair: two prompts with different right answers on which a model cannot be right, or is not.

*Alike*: the model answers both alike; whatever it answers, it is wrong on at least one of them. *Both wrong*: it
answers them differently, and is wrong on both. The prompts differ in one token, or in a few where two pasts leave one
state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError, RejectedError
from hopbound.tasks import Answerer, Task, task_from_json

SCHEMA = "hopbound/pair/1"
MAX_MARKED_TOKENS = 4096  # prompts longer than this are not searched for the tokens that matter
OTHER_VALUES = 4  # that are tried in the place of a token to see whether it matters


class Fooled(IntEnum):
    """What a pair does to a model; the larger, the better as evidence."""

    NOT = 0
    BOTH_WRONG = 1
    ALIKE = 2


@dataclass(frozen=True)
class FoolingPair:
    """Two prompts and what a model makes of them.

    Attributes:
        task: the task of both prompts.
        prompts: int64 [2, n].
        model_answers: the model's answer to each.
    """

    task: Task
    prompts: NDArray[np.int64]
    model_answers: tuple[int, int]

    @property
    def model_answer(self) -> int | None:
        """The model's one answer to both; None if it answers them differently, and is wrong on both."""
        first, second = self.model_answers
        return first if first == second else None

    @property
    def positions(self) -> list[int]:
        """Where the prompts differ."""
        return np.flatnonzero(self.prompts[0] != self.prompts[1]).tolist()

    @property
    def right_answers(self) -> tuple[int, int]:
        """The right answer to each prompt."""
        first, second = self.task.oracle(self.prompts)
        return int(first), int(second)

    @property
    def fooled(self) -> Fooled:
        """What the pair does to the model."""
        right = self.right_answers
        if right[0] == right[1]:
            return Fooled.NOT
        if self.model_answer is not None:
            return Fooled.ALIKE
        wrong = all(answer != one for answer, one in zip(self.model_answers, right, strict=True))
        return Fooled.BOTH_WRONG if wrong else Fooled.NOT

    def to_json(self) -> dict[str, Any]:
        """The pair as it is stored: all of it can be recomputed from the prompts and the weights."""
        changed, *further = [self._change(position) for position in self.positions]
        return {
            "task": self.task.to_json(),
            "prompts": self.prompts.tolist(),
            "changed": changed,
            "further": further,
            "matters": [tokens_that_matter(self.task, prompt) for prompt in self.prompts],
            "hops": self.task.path(self.prompts),
            "right_answers": list(self.right_answers),
            "model_answer": self.model_answer,
            "model_answers": list(self.model_answers),
            "model_did": self.diagnosis(),
        }

    def _change(self, position: int) -> dict[str, Any]:
        part, number = self.task.place(position)
        values = self.prompts[:, position].tolist()
        return {"position": position, "function": part, "address": number, "values": values}

    def diagnosis(self) -> list[str]:
        """For each prompt, what the model's answer is: right, or the value of a shortcut, or another one."""
        said = []
        for prompt, right, answer in zip(self.prompts[:, None], self.right_answers, self.model_answers, strict=True):
            if answer == right:
                said.append("right")
                continue
            shortcuts = [name for name, f in self.task.baselines().items() if int(f(prompt)[0]) == answer]
            elsewhere = bool((prompt == answer).any())
            said.append(
                shortcuts[-1] if shortcuts else "another value of the prompt" if elsewhere else "not in the prompt"
            )
        return said


def tokens_that_matter(task: Task, prompt: NDArray[np.int64]) -> list[int]:
    """Positions at which one of the next few values, in place of the token, gives another right answer.

    For function composition these are the entries that the hops visit, the start and the query, as far as they tell
    answers apart. Prompts of more than `MAX_MARKED_TOKENS` tokens are not searched: the list is empty.
    """
    length = len(prompt)
    if length > MAX_MARKED_TOKENS:
        return []
    right = task.oracle(prompt[None])[0]
    marked: set[int] = set()
    for step in range(1, min(OTHER_VALUES, task.vocabulary_size - 1) + 1):
        for low in range(0, length, 512):  # as a square of the length all at once would be too much
            places = np.arange(low, min(low + 512, length))
            others = np.repeat(prompt[None], len(places), axis=0)
            rows = np.arange(len(places))
            others[rows, places] = (others[rows, places] + step) % task.vocabulary_size
            valid = prompts_of(task, others)
            differs = task.oracle(others[valid]) != right
            marked.update(places[valid][differs].tolist())
    return sorted(marked)


def prompts_of(task: Task, prompts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are prompts of the task; they are asked one by one only where some are none."""
    if not len(prompts):
        return np.zeros(0, dtype=np.bool_)
    try:
        task.oracle(prompts)
    except InputError:
        return task.valid(prompts)
    return np.ones(len(prompts), dtype=np.bool_)


def judge(task: Task, answerer: Answerer, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each of the pairs [N, 2, n] does to the answerer: `Fooled`, int64 [N].

    Pairs that hold no prompts of the task, and pairs with equal right answers, are not put to the answerer.
    """
    verdicts = np.full(len(pairs), Fooled.NOT, dtype=np.int64)
    valid = prompts_of(task, pairs.reshape(-1, pairs.shape[-1])).reshape(-1, 2).all(axis=1)
    asked = np.flatnonzero(valid)
    right = task.oracle(pairs[asked].reshape(-1, pairs.shape[-1])).reshape(-1, 2)
    different = right[:, 0] != right[:, 1]
    asked, right = asked[different], right[different]
    if len(asked):
        answers = answerer.answer(pairs[asked].reshape(-1, pairs.shape[-1])).reshape(-1, 2)
        verdicts[asked[(answers != right).all(axis=1)]] = Fooled.BOTH_WRONG
        verdicts[asked[answers[:, 0] == answers[:, 1]]] = Fooled.ALIKE
    return verdicts


def fools(task: Task, answerer: Answerer, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the pairs [N, 2, n] fool the answerer, in either way: bool [N]."""
    return judge(task, answerer, pairs) > Fooled.NOT


def replay(document: Mapping[str, Any], answerer: Answerer) -> None:
    """Check everything that a stored pair says, with the model at hand.

    Raises:
        RejectedError: the prompts are not a fooling pair of this model, or a stored number is not what they give.
    """
    try:
        task = task_from_json(document["task"])
        prompts = np.array(document["prompts"], dtype=np.int64)
        if prompts.shape != (2, task.prompt_length):
            raise RejectedError(f"prompts: shape {prompts.shape}, expected two prompts of the task's length")
        task.oracle(prompts)  # refuses what are no prompts of this task before a model reads them
        first, second = answerer.answer(prompts).tolist()
        pair = FoolingPair(task, prompts, (first, second))
        if pair.fooled is Fooled.NOT:
            raise RejectedError("the prompts do not fool the model: replayed, they are not a fooling pair")
        expected = pair.to_json()
    except RejectedError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RejectedError(f"pair: {error}") from error
    for key, value in expected.items():
        if document.get(key) != value:
            raise RejectedError(f"{key}: the file says {document.get(key)!r}, replayed it is {value!r}")
