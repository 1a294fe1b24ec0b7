"""The fooling pair: two prompts that differ in one token, with different right answers, that a model
answers alike. Whatever the model answers, it is wrong on at least one of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopbound.errors import RejectedError
from hopbound.tasks import Answerer, Task, task_from_json

SCHEMA = "hopbound/pair/1"


@dataclass(frozen=True)
class FoolingPair:
    """Two prompts and what a model makes of them.

    Attributes:
        task: the task of both prompts.
        prompts: int64 [2, n].
        model_answer: the model's one answer.
    """

    task: Task
    prompts: np.ndarray
    model_answer: int

    @property
    def position(self) -> int:
        """Where the prompts differ."""
        return int((self.prompts[0] != self.prompts[1]).argmax())

    @property
    def right_answers(self) -> tuple[int, int]:
        """The right answer to each prompt."""
        first, second = self.task.oracle(self.prompts)
        return int(first), int(second)

    def to_json(self) -> dict[str, Any]:
        """The pair as it is stored: all of it can be recomputed from the prompts and the weights."""
        position = self.position
        part, number = self.task.place(position)
        return {
            "task": self.task.to_json(),
            "prompts": self.prompts.tolist(),
            "changed": {
                "position": position,
                "function": part,
                "address": number,
                "values": self.prompts[:, position].tolist(),
            },
            "hops": self.task.path(self.prompts),
            "right_answers": list(self.right_answers),
            "model_answer": self.model_answer,
            "model_did": self.diagnosis(),
        }

    def diagnosis(self) -> list[str]:
        """For each prompt, what the model's answer is: right, or the value of a shortcut, or another one."""
        said = []
        for row, right in enumerate(self.right_answers):
            prompt = self.prompts[row : row + 1]
            if self.model_answer == right:
                said.append("right")
                continue
            shortcuts = [name for name, f in self.task.baselines().items() if int(f(prompt)[0]) == self.model_answer]
            elsewhere = bool((prompt == self.model_answer).any())
            said.append(
                shortcuts[-1] if shortcuts else "another value of the prompt" if elsewhere else "not in the prompt"
            )
        return said


def fools(task: Task, answerer: Answerer, pairs: np.ndarray) -> np.ndarray:
    """Which of the pairs [N, 2, n] fool the answerer: bool [N]."""
    flat = pairs.reshape(-1, pairs.shape[-1])
    answers = answerer.answer(flat).reshape(-1, 2)
    right = task.oracle(flat).reshape(-1, 2)
    one_token = (pairs[:, 0] != pairs[:, 1]).sum(axis=1) == 1
    return one_token & (right[:, 0] != right[:, 1]) & (answers[:, 0] == answers[:, 1])


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
        if not fools(task, answerer, prompts[None])[0]:
            raise RejectedError("the prompts do not fool the model: replayed, they are not a fooling pair")
        expected = FoolingPair(task, prompts, int(answerer.answer(prompts[:1])[0])).to_json()
    except RejectedError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RejectedError(f"pair: {error}") from error
    for key, value in expected.items():
        if document.get(key) != value:
            raise RejectedError(f"{key}: the file says {document.get(key)!r}, replayed it is {value!r}")
