"""Theorem A (hybrids): `F` full layers cannot make `F + 1` hops.

The finite-size form of the main theorem of arXiv 2602.01763, for any sizes of the functions. With
`σ_s` bits of state in the bounded layers between full layers `s` and `s + 1`, `b_f` bits of summary in full layer `f`
and `L = F + 1`, no weights solve `L`-hop composition at sizes for which integers `x_0..x_{L-1}`, `θ_1..θ_{L-1}` meet

- (A1), Lemma 2: `x_1` functions `z_1` with the same state reach `θ_1` values on `x_0` starts: either `x_0 = 1`,
  `θ_1 = x_1 ≤ M_1` and `m (log M_1 − log(x_1 − 1)) > σ_0` (nothing to show for `x_1 = 1`),
  or `x_0 ≤ m`, `θ_1 < M_1` and `x_0 x_1 (log(M_1/θ_1) − σ_0/m) > log C(M_1, θ_1)`;
- (A2), Lemma 3, for `l = 2..L-1`: `x_l` functions `z_l` reach `θ_l` values:
  `P_l log(M_l/θ_l) − log C(M_l, θ_l) ≥ x_l δ_l + 1` with `P_l = x_l n_{l-1} θ_{l-1}` and `θ_l < M_l`;
- (A3), Lemma 4: `n_{L-1} θ_{L-1} log M_L > δ_L`, so that not all functions `z_L` that look alike can have the same
  answers;

where `δ_l` counts the bits that are fixed to make what players left of `l` see independent of the rest.
Layers that are smaller, or not used at all, are covered: a full layer of 0 bits may be put anywhere.
"""

from collections.abc import Iterator

from hopbound.architecture import Runs
from hopbound.bounds.conditions import Problem

MAX_UNUSED = 2


def problems(stack: Runs, hops: int, paper: bool) -> Iterator[tuple[Problem, int]]:
    """The ways in which Theorem A speaks of `hops` hops, each with the number of unused full layers in front.

    With full layers the first functions are the hard ones and those beyond `F + 1` only pass their argument on: an
    unused layer in front would make every later query count for the first function too. Without full layers nothing
    hears, and it is shorter to let unused layers take the first functions and to make the last one hard.
    """
    F = len(stack.summaries)
    for unused in (0,) if F else range(1, min(hops - 1, MAX_UNUSED) + 1):
        if 1 <= F + unused < hops:
            states, summaries = (0,) * unused + stack.states, (0,) * unused + stack.summaries
            yield Problem("A", states, summaries, paper, hops - F - unused - 1), unused
