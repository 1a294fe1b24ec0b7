"""The conditions of Theorems A and B for the side that searches: one description, three kinds of numbers.

The bits that the proofs fix (`δ_2..δ_L`, Lemmas 2-4) are sums of products of the sizes, so one function computes them
for integers and for the logarithms with gradients of the continuous optimisation alike. The inequalities themselves
are decided in floating point here; the judge of a finished certificate is `checker`, which shares nothing with this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb, lgamma, log, log1p, log2, pi
from typing import Any, Literal

LN2 = log(2)
Theorem = Literal["A", "B"]


@dataclass(frozen=True)
class Problem:
    """A theorem, what the stack lets across, and the kind of sizes.

    Attributes:
        theorem: `A` (`F` full layers, `F + 1` hops) or `B` (`F` full layers, `F` hops, `σ_0 = σ_1 = 0`).
        states: `σ_0..σ_F` in bits.
        summaries: `b_1..b_F` in bits.
        paper: whether the sizes are the paper's (`M_l = D_l`).
        passing: number of further functions that only pass their argument on.
    """

    theorem: Theorem
    states: tuple[int, ...]
    summaries: tuple[int, ...]
    paper: bool
    passing: int = 0

    @property
    def shift(self) -> int:
        """How many full layers the first step has already behind it."""
        return 1 if self.theorem == "B" else 0

    @property
    def hops(self) -> int:
        """`L`."""
        return len(self.summaries) + 1 - self.shift

    @property
    def free_end(self) -> bool:
        """Whether `M_L` may be chosen: free sizes bind only the last function's values to its domain."""
        return self.passing > 0 and not self.paper

    def hidden(self, n: Sequence[Any]) -> Any:
        """Bits about `z_1` that (A1) gives away: `σ_0` (Lemma 2), or `σ̂_0 = b_1 n_1⋯n_{L-1}` in Theorem B."""
        return product(n) * self.summaries[0] if self.shift else self.states[0]


@dataclass(frozen=True)
class Point:
    """The numbers that are chosen; θ and δ follow from them.

    Attributes:
        m: `D_1`.
        n: `n_1..n_{L-1}`.
        x: `x_0..x_{L-1}`.
        M: `M_1..M_{L-1}` (with the paper's sizes they follow from `m` and `n`, and are left out).
        first: whether the first form of (A1) is meant (`x_0 = 1`, `θ_1 = x_1`).
    """

    m: int
    n: tuple[int, ...]
    x: tuple[int, ...]
    M: tuple[int, ...]
    first: bool


@dataclass(frozen=True)
class Instance:
    """A point with all that follows from it.

    Attributes:
        point: what was chosen.
        domains: `D_1..D_L`.
        values: `M_1..M_L`.
        theta: `θ_1..θ_{L-1}`, each the largest that (A1), (A2) allow.
        deltas: `δ_2..δ_L`.
        cut: the cheapest cut of the last step.
        slack: log2 of the ratio of the two sides of (A3); the sizes are certified when it is positive.
    """

    point: Point
    domains: tuple[int, ...]
    values: tuple[int, ...]
    theta: tuple[int, ...]
    deltas: tuple[int, ...]
    cut: int
    slack: float = field(default=0.0)


def product(factors: Sequence[Any]) -> Any:
    """The product, 1 if empty."""
    result: Any = 1
    for factor in factors:
        result = result * factor
    return result


def domains_of(m: Any, n: Sequence[Any], M: Sequence[Any] | None) -> list[Any]:
    """`D_1..D_L`: `D_{l+1} = n_l M_l`, with `M_l = D_l` where no values are given (the paper's sizes)."""
    D = [m]
    for i, fan in enumerate(n):
        D.append(fan * (D[-1] if M is None else M[i]))
    return D


def losses(
    problem: Problem, D: Sequence[Any], n: Sequence[Any], x: Sequence[Any], cut: int | None
) -> tuple[list[Any], int]:
    """`δ_2..δ_L` of Lemmas 2-4 and the cut used: the given one, or for integers the cheapest if None."""
    sigma, b, shift, L = problem.states, problem.summaries, problem.shift, problem.hops
    queries = product(n)
    deltas: list[Any] = []
    for step in range(1, L):
        full = step + shift
        heard = [queries * product(x[:step]), product(x[:step])]
        heard += [D[i - 1] * product(x[i:step]) for i in range(1, step)]
        if step > 1:
            total = x[step] * deltas[-1] + 1
        elif shift:
            heard[1] = x[0] * x[1]  # player 0's query in layer 2 has seen z_1
            total = (queries + x[0]) * b[0]
        else:
            total = 0
        taken_in = x[step] * D[step - 1]
        if step < L - 1:
            total = total + sum(sigma[: full + 1]) + taken_in * sum(b[:full])
            for heard_by in heard:
                total = total + heard_by * b[full - 1]
        else:
            total = total + sum(sigma[:full]) + taken_in * sum(b[: full - 1]) + heard[0] * b[full - 1]
            options = range(-1, step) if cut is None else (cut,)
            priced = []
            for j in options:
                price = product(x[j + 1 :]) * sigma[full]
                for heard_by in heard[1 : j + 2]:
                    price = price + heard_by * b[full - 1]
                priced.append((price, j))
            price, cut = min(priced) if len(priced) > 1 else priced[0]
            total = total + price
        deltas.append(total)
    assert cut is not None
    return deltas, cut


def log2_binomial(M: int, t: int) -> float:
    """log2 C(M, t) for `0 < t < M`, or an upper bound that is closer than one part in 10^9."""
    if M <= 1000:
        return log2(comb(M, t))
    if M <= 10**6:
        return (lgamma(M + 1) - lgamma(t + 1) - lgamma(M - t + 1)) / LN2
    part = t / M
    entropy = t * -log2(part) - (M - t) * log1p(-part) / LN2
    return entropy - 0.5 * log2(2 * pi * t * (1 - part))


def spread_slack(P: int, M: int, t: int) -> float:
    """`P log(M/t) − log C(M, t)`: bits by which P random values avoid reaching at most t of M (Lemmas 2 and 3)."""
    return P * (log2(M) - log2(t)) - log2_binomial(M, t)


def largest_theta(P: int, M: int, bits: float, tolerance: float) -> int:
    """The largest θ below M with `P log(M/θ) − log C(M, θ) ≥ bits`, or 0; off by a factor 1 + 10^-12 at most.

    The left side falls and is convex in θ, so Newton's method from the left meets the root from the left.
    """

    def enough(t: int) -> bool:
        margin = tolerance * P * log2(M)
        return spread_slack(P, M, t) >= bits + margin

    if M < 2 or P < 1 or not enough(1):
        return 0
    u = log2(min(P / 4 + 1, M / 4 + 0.5))
    for _ in range(40):
        t = 2.0**u
        log_binomial_slope = log2(max(M - t, 0.5)) - u
        binomial = log2_binomial(M, t) if M > 10**6 else _log2_binomial_real(M, t)
        value = P * (log2(M) - u) - binomial - bits
        slope = -P - log_binomial_slope * t * LN2
        if slope >= 0:
            break
        change = max(-8.0, min(2.0, -value / slope))
        u = max(0.0, min(u + change, log2(M) - 1e-9))
        if abs(change) < 1e-13 * max(1.0, u):
            break
    theta = min(max(1, int(2.0**u)), M - 1)
    step = 1
    while not enough(theta):
        theta -= min(step, theta - 1)
        step *= 2
    while theta < min(M - 1, 2**40) and enough(theta + 1):
        theta += 1
    return theta


def _log2_binomial_real(M: int, t: float) -> float:
    return (lgamma(M + 1) - lgamma(t + 1) - lgamma(M - t + 1)) / LN2
