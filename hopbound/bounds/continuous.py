"""The continuous optimum: sizes and parameters as real numbers, by sequential quadratic programming on logarithms.

With the ratios `log(M_l/θ_l)` fixed every condition bounds a sum of products by a product, so the problem is a
geometric program in the logarithms; here the ratios move too. Every quantity is a `LogNumber`, the logarithm with its
gradient, so that nothing overflows and the derivatives are exact.
"""

from dataclasses import dataclass
from math import expm1, inf, log, log1p, log2
from typing import Any

from hopbound.bounds.conditions import LN2, Instance, Problem, domains_of, losses

MIN_RATIO = 0.02  # of log(M_l/θ_l), to stay away from M_l = θ_l
MAX_LOG = 1000.0
CLIP = 1e6


def available() -> bool:
    """Whether scipy is installed."""
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        return False
    return True


@dataclass(frozen=True)
class LogNumber:
    """A positive number (or 0) as log2, with the gradient of the logarithm (a numpy array)."""

    log: float
    gradient: Any

    def __mul__(self, other: "LogNumber | int") -> "LogNumber":
        if isinstance(other, LogNumber):
            return LogNumber(self.log + other.log, self.gradient + other.gradient)
        return LogNumber(self.log + (log2(other) if other else -inf), self.gradient)

    def __truediv__(self, other: "LogNumber") -> "LogNumber":
        return LogNumber(self.log - other.log, self.gradient - other.gradient)

    def __add__(self, other: "LogNumber | int") -> "LogNumber":
        other_log = other.log if isinstance(other, LogNumber) else (log2(other) if other else -inf)
        if other_log == -inf:
            return self
        other_gradient = other.gradient if isinstance(other, LogNumber) else 0 * self.gradient
        if self.log == -inf:
            return LogNumber(other_log, other_gradient)
        above = self.log >= other_log
        ratio = 2.0 ** (other_log - self.log if above else self.log - other_log)
        small = ratio / (1 + ratio)
        mine = 1 - small if above else small
        value = max(self.log, other_log) + log1p(ratio) / LN2
        return LogNumber(value, mine * self.gradient + (1 - mine) * other_gradient)

    __radd__ = __add__
    __rmul__ = __mul__

    def log_of(self) -> "LogNumber":
        """The number `log2(self)`, where it is positive."""
        value = max(self.log, 1e-9)
        return LogNumber(log2(value), self.gradient / (value * LN2))


def _binomial_factor(ratio: LogNumber) -> LogNumber:
    """`log2 C(M, θ) / θ` to first order, for `ratio = M/θ = 2^r`: `r + (2^r − 1) log2(1 / (1 − 2^-r))`."""
    r = max(ratio.log, 1e-9)
    if r > 50:
        value, slope = r + 1 / LN2, 1.0
    else:
        rest = -log(-expm1(-r * LN2)) / LN2
        value, slope = r + (2.0**r - 1) * rest, 2.0**r * LN2 * rest
    return LogNumber(log2(value), ratio.gradient * (slope / (value * LN2)))


@dataclass(frozen=True)
class Layout:
    """Which coordinate of the vector of logarithms is which number.

    The order is m, n_1.., x_1.., [x_0], θ_l.., [M_1.., [M_L]]; θ_1 = x_1 in the first form of (A1).
    """

    problem: Problem
    first: bool

    def split(self, y: list[Any]) -> tuple[Any, list[Any], list[Any], list[Any], list[Any] | None, Any]:
        """`m, n, x_1.., x_0 (or 1), θ, M, M_L` from the coordinates."""
        L = self.problem.hops
        rest = list(y)

        def take(count: int) -> list[Any]:
            head = rest[:count]
            del rest[:count]
            return head

        (m,), n, x = take(1), take(L - 1), take(L - 1)
        x = [1 if self.first else take(1)[0], *x]
        theta = [x[1], *take(L - 2)] if self.first else take(L - 1)
        M = None if self.problem.paper else take(L - 1)
        end = take(1)[0] if self.problem.free_end else None
        return m, n, x, theta, M, end


def coordinates(problem: Problem, start: Instance) -> list[float]:
    """The vector of logarithms of an instance."""
    point, first = start.point, start.point.first
    x = point.x[1:] if first else (*point.x[1:], point.x[0])
    M = () if problem.paper else start.values[:-1]
    end = start.values[-1:] if problem.free_end else ()
    return [log2(value) for value in (point.m, *point.n, *x, *start.theta[first:], *M, *end)]


def _functions(problem: Problem, layout: Layout, cut: int, y: Any) -> tuple[LogNumber, list[LogNumber]]:
    """The length, and for each condition the ratio of its two sides (it is met from 1 on)."""
    import numpy as np

    m, n, x, theta, M, end = layout.split([LogNumber(float(v), row) for v, row in zip(y, np.eye(len(y)), strict=True)])
    D = domains_of(m, n, M)
    values = D[:-1] if M is None else M
    deltas, _ = losses(problem, D, n, x, cut)
    last = D[-1] if end is None else end
    length = sum(D, 0) + last * problem.passing

    ratios = [M_l / t for M_l, t in zip(values, theta, strict=True)]
    met = [LogNumber(ratio.log - MIN_RATIO, ratio.gradient) for ratio in ratios]
    if layout.first:
        hidden = problem.states[0]
        if hidden:
            met.append(m * ratios[0].log_of() * (LogNumber(-log2(hidden), 0 * m.gradient)))
    else:
        P = x[0] * x[1]
        given = P * problem.hidden(n) / m
        met.append(P * ratios[0].log_of() / (given + theta[0] * _binomial_factor(ratios[0])))
        met.append(m / x[0])
    for i in range(1, len(theta)):
        P = x[i + 1] * n[i - 1] * theta[i - 1]
        needed = x[i + 1] * deltas[i - 1] + 1 + theta[i] * _binomial_factor(ratios[i])
        met.append(P * ratios[i].log_of() / needed)
    met.append(n[-1] * theta[-1] * last.log_of() / deltas[-1])
    if end is not None:
        met.append(D[-1] / end)
    return length, met


def log2_length(problem: Problem, first: bool, cut: int, y: list[float]) -> float:
    """log2 of the prompt length at a vector of logarithms."""
    return _functions(problem, Layout(problem, first), cut, y)[0].log


def optimum(problem: Problem, start: list[float], first: bool, cut: int, fixed: dict[int, float]) -> list[float] | None:
    """The coordinates of a local optimum near `start` with some of them fixed; None if the method fails."""
    import numpy as np
    from scipy.optimize import minimize

    layout = Layout(problem, first)
    known: dict[bytes, tuple[LogNumber, list[LogNumber]]] = {}

    def functions(y: Any) -> tuple[LogNumber, list[LogNumber]]:
        key = y.tobytes()
        if key not in known:
            known.clear()
            known[key] = _functions(problem, layout, cut, y)
        return known[key]

    bounds = [(fixed.get(i, lower), fixed.get(i, MAX_LOG)) for i, lower in enumerate(_lower_bounds(problem, first))]
    y0 = np.array([min(max(v, low), high) for v, (low, high) in zip(start, bounds, strict=True)])
    result = minimize(
        lambda y: functions(y)[0].log,
        y0,
        jac=lambda y: functions(y)[0].gradient,
        bounds=bounds,
        constraints={
            "type": "ineq",
            "fun": lambda y: np.clip([c.log for c in functions(y)[1]], -CLIP, CLIP),
            "jac": lambda y: np.array([c.gradient for c in functions(y)[1]]),
        },
        method="SLSQP",
        options={"maxiter": 80, "ftol": 1e-5},
    )
    y = np.array(result.x)
    if not np.all(np.isfinite(y)):
        return None
    if min(c.log for c in functions(y)[1]) < -0.05:
        return None
    return [float(v) for v in y]


def _lower_bounds(problem: Problem, first: bool) -> list[float]:
    """m and every M are at least 2, the others at least 1."""
    L = problem.hops
    count = 1 + 3 * (L - 1) - first + (not first)
    return [1.0] + [0.0] * (count - 1) + ([] if problem.paper else [1.0] * (L - 1 + problem.free_end))
