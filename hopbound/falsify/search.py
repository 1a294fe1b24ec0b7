"""The search for a fooling pair: families of candidates in turn, each with its share of the prompts, then shrinking.

A search stops at the first pair that is answered alike. A pair on which the model is wrong twice is kept, and is the
result if the next `PATIENCE` prompts bring none that is answered alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError, RejectedError
from hopbound.falsify.families import Family, plain_families
from hopbound.falsify.pair import Fooled, FoolingPair, judge
from hopbound.falsify.shrink import simplify
from hopbound.files import read_json, write_json
from hopbound.tasks import Answerer, Task

STATE_SCHEMA = "hopbound/search/1"
PATIENCE = 2048
IDLE_ROUNDS = 64  # rounds without a candidate after which a family has none

Families = Callable[[Task], Sequence[Family]]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        pair: the shrunk pair; None if there was none among the prompts tried.
        prompts_tried: how many prompts the search asked, shrinking included.
        tried: how many of them belong to each family, `shrinking` among them.
    """

    pair: FoolingPair | None
    prompts_tried: int
    tried: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass
class SearchState:
    """Where a search stands, before a round; everything that a search that goes on needs.

    Attributes:
        stage: number of the task that is asked.
        family: number of the family within it.
        round: its next round.
        idle: rounds without a candidate so far, in a row.
        spent_in_stage: prompts.
        spent_in_family: prompts.
        kept: a pair on which the model is wrong twice.
        kept_at: prompts of the stage when it was found.
        tried: prompts by family.
    """

    stage: int = 0
    family: int = 0
    round: int = 0
    idle: int = 0
    spent_in_stage: int = 0
    spent_in_family: int = 0
    kept: list[list[int]] | None = None
    kept_at: int = 0
    tried: dict[str, int] = field(default_factory=dict)

    @property
    def prompts_tried(self) -> int:
        """All prompts so far."""
        return sum(self.tried.values())

    def spend(self, family: str, prompts: int) -> None:
        """Count prompts."""
        self.spent_in_stage += prompts
        self.spent_in_family += prompts
        self.tried[family] = self.tried.get(family, 0) + prompts

    def next_family(self) -> None:
        """The family has had its share."""
        self.family, self.round, self.idle, self.spent_in_family = self.family + 1, 0, 0, 0

    def next_stage(self) -> None:
        """The task has had its share."""
        self.stage, self.family, self.round, self.idle = self.stage + 1, 0, 0, 0
        self.spent_in_stage = self.spent_in_family = self.kept_at = 0
        self.kept = None


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the state of a search, written whole or not at all.

    Attributes:
        path: of the file.
        search: what the search is for (model, task, seed, prompts); one for anything else is refused.
    """

    path: Path
    search: Mapping[str, Any]

    def load(self) -> SearchState:
        """The state in the file; a new one if there is no file.

        Raises:
            InputError: the file belongs to another search.
            RejectedError: it is no such file.
        """
        if not self.path.exists():
            return SearchState()
        document = read_json(self.path)
        if document.get("schema") != STATE_SCHEMA:
            raise RejectedError(f"{self.path.name}: schema {document.get('schema')!r}, expected {STATE_SCHEMA!r}")
        stored = document.get("search")
        if stored != self.search:
            keys = stored if isinstance(stored, dict) else {}
            differ = [key for key, value in self.search.items() if keys.get(key) != value]
            raise InputError("resume", str(self.path), f"a file of the same search (other {', '.join(differ)})")
        state = document.get("state")
        names = {one.name for one in fields(SearchState)}
        if not isinstance(state, dict) or set(state) != names:
            raise RejectedError(f"{self.path.name}: no state of a search")
        counts = [value for key, value in state.items() if key not in ("kept", "tried")]
        if not isinstance(state["tried"], dict) or any(type(n) is not int for n in (*counts, *state["tried"].values())):
            raise RejectedError(f"{self.path.name}: counts that are no whole numbers")
        return SearchState(**state)

    def save(self, state: SearchState) -> None:
        """Write the state in place of the one before."""
        write_json(self.path, {"schema": STATE_SCHEMA, "search": dict(self.search), "state": asdict(state)})


def find_pair(
    answerer: Answerer,
    task: Task,
    *,
    seed: int = 0,
    max_prompts: int = 100_000,
    families: Families | None = None,
    progress: Progress = lambda tried: None,
    checkpoint: Checkpoint | None = None,
) -> SearchResult:
    """Search and shrink at the task's own sizes.

    Args:
        answerer: the model.
        task: what it is asked.
        seed: of the instances.
        max_prompts: give up after so many.
        families: what is tried, in order; None: `plain_families`.
        progress: called with the number of prompts tried so far.
        checkpoint: where the state of the search is read from and kept; None: nowhere.
    """
    stages = [(task, max_prompts)]
    return _Search(answerer, stages, families or _plain(seed), progress, checkpoint).run()


def find_smallest_pair(
    answerer: Answerer,
    task: Task,
    *,
    seed: int = 0,
    max_prompts: int = 100_000,
    families: Families | None = None,
    progress: Progress = lambda tried: None,
    checkpoint: Checkpoint | None = None,
) -> SearchResult:
    """As `find_pair`, for a model that is not tied to the task's sizes: the smallest sizes at which there is a pair.

    Sizes are tried by prompt length, up to the task's own, with a share of the prompts each.
    """
    smaller = list(task.smaller())
    share = max(64, max_prompts // (4 * len(smaller))) if smaller else 0
    stages, left = [], max_prompts
    for candidate in smaller:
        stages.append((candidate, min(share, left)))
        left -= stages[-1][1]
    return _Search(answerer, [*stages, (task, left)], families or _plain(seed), progress, checkpoint).run()


def _plain(seed: int) -> Families:
    return lambda task: plain_families(task, seed)


class _Search:
    """One search over tasks with their prompts, from the state in the checkpoint on."""

    def __init__(
        self,
        answerer: Answerer,
        stages: Sequence[tuple[Task, int]],
        families: Families,
        progress: Progress,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.answerer = answerer
        self.stages = stages
        self.families = families
        self.progress = progress
        self.checkpoint = checkpoint
        self.state = checkpoint.load() if checkpoint is not None else SearchState()

    def run(self) -> SearchResult:
        """All tasks in turn."""
        while self.state.stage < len(self.stages):
            task, budget = self.stages[self.state.stage]
            found = self._search_task(task, budget)
            if found is not None:
                return self._shrunk(task, found)
            self.state.next_stage()
        return SearchResult(None, self.state.prompts_tried, dict(self.state.tried))

    def _search_task(self, task: Task, budget: int) -> NDArray[np.int64] | None:
        """Families in turn, until one has a pair or the prompts of the task are used up."""
        families, state = self.families(task), self.state
        while state.family < len(families) and budget - state.spent_in_stage >= 2:
            family = families[state.family]
            last = state.family == len(families) - 1
            share = budget if last else int(family.share * budget)
            least = max(2, family.cost)
            made = state.idle < IDLE_ROUNDS and state.spent_in_family < share
            made = made and budget - state.spent_in_stage >= least
            candidates = family.round(state.round) if made else None
            if candidates is None:
                state.next_family()
                continue
            before = state.spent_in_family
            for one in candidates:
                if one.asked:
                    state.spend(family.name, one.asked)
                found = self._ask(task, family.name, one.pairs, budget)
                if found is not None:
                    return found
                if budget - state.spent_in_stage < least or share - state.spent_in_family < 2:
                    break
            state.round += 1
            state.idle = 0 if state.spent_in_family > before else state.idle + 1
            if self.checkpoint is not None:
                self.checkpoint.save(state)
        return None if state.kept is None else np.array(state.kept, dtype=np.int64)

    def _ask(self, task: Task, family: str, pairs: NDArray[np.int64], budget: int) -> NDArray[np.int64] | None:
        """The pair to end with, if the time has come."""
        state = self.state
        pairs = pairs[: max(0, (budget - state.spent_in_stage) // 2)]
        if len(pairs):
            verdicts = judge(task, self.answerer, pairs)
            state.spend(family, 2 * len(pairs))
            self.progress(state.prompts_tried)
            alike = np.flatnonzero(verdicts == Fooled.ALIKE)
            if len(alike):
                return pairs[alike[0]]
            both_wrong = np.flatnonzero(verdicts == Fooled.BOTH_WRONG)
            if len(both_wrong) and state.kept is None:
                state.kept, state.kept_at = pairs[both_wrong[0]].tolist(), state.spent_in_stage
        if state.kept is not None and state.spent_in_stage - state.kept_at >= PATIENCE:
            return np.array(state.kept, dtype=np.int64)
        return None

    def _shrunk(self, task: Task, found: NDArray[np.int64]) -> SearchResult:
        """The pair in its simplest form; the state of the search stays as before it was found."""
        prompts, trials = simplify(self.answerer, task, found)
        first, second = self.answerer.answer(prompts).tolist()
        tried = {**self.state.tried, "shrinking": 2 * trials}
        return SearchResult(FoolingPair(task, prompts, (first, second)), sum(tried.values()), tried)
