"""Theorem B: `F` full layers, none of them after a bounded layer except from the third on, cannot make `F` hops.

The finite-size form of Theorem 1.1 of arXiv 2412.02975, with bounded layers allowed after the second full layer. The
first full layer sees the raw tokens, so all that player -1 learns there of `z_1` is a function of `z_1` and the query:
over all queries `σ̂_0 = n_1⋯n_{L-1} b_1` bits, which play the part of the state before the first full layer. With
`L = F ≥ 2` and `σ_0 = σ_1 = 0` the conditions are those of Theorem A (second form of (A1)) with

- `σ̂_0` for `σ_0` in (A1), and `(n_1⋯n_{L-1} + x_0) b_1` in place of `σ_0` in `δ_2`;
- full layer `l + 1` and `σ_{l+1}` in place of full layer `l` and `σ_l` at step `l`;
- `x_0 x_1` in place of `x_0` for what the start hears at the first step: there its query has seen `z_1`.
"""

from collections.abc import Iterator

from hopbound.architecture import Runs
from hopbound.bounds.conditions import Problem


def problems(stack: Runs, hops: int, paper: bool) -> Iterator[tuple[Problem, int]]:
    """The way in which Theorem B speaks of `hops` hops, if it does; no unused layers are needed."""
    F = len(stack.summaries)
    if 2 <= F <= hops and not any(stack.states[:2]):
        yield Problem("B", stack.states, stack.summaries, paper, hops - F), 0


def refusal(stack: Runs, hops: int) -> str:
    """Why Theorem B does not speak of `hops` hops."""
    F = len(stack.summaries)
    if F < 2:
        return "Theorem B speaks of two full layers or more"
    if any(stack.states[:2]):
        return "Theorem B does not speak of stacks with a bounded layer before the second full layer"
    return f"Theorem B speaks of {F} hops or more"
