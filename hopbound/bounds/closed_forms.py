"""Corollaries A', B' (free sizes) and A'', B'' (the paper's sizes): parameters that certify every `L`, in closed form.

With `b` at least every summary, the choices below meet (A1)-(A3) exactly; each step's loss `δ_{l+1}` stays below
three quarters of `N_l = n_l θ_l`, and `θ_l = P_l / 2` reachable values out of `M_l ≥ 8 θ_l` make (A2) hold. The
lengths are `σ (40 L b)^((L-1)(L+2)/2)`, `(40 L b)^((L²+3L-2)/2)` and, with Fibonacci numbers `F`, about
`(2^(L+2) (L-1) b)^(F_{2L+1} - 2)`, `(2^(L+3) L b)^(2 F_{2L} - 1)`. They are where the search starts, the answer
where there is no search, and their logarithms the answer where the integers themselves would be too long.
"""

from math import log2

from hopbound.bounds.conditions import Instance, Point, Problem, domains_of, losses, product

MAX_LENGTH_BITS = 60_000  # of the longest integer that is still written out


def fibonacci(k: int) -> int:
    """`F_k` with `F_1 = F_2 = 1`."""
    a, b = 0, 1
    for _ in range(k):
        a, b = b, a + b
    return a


def name(problem: Problem) -> str:
    """Name of the corollary: `A'`, `B'`, `A''` or `B''`."""
    return problem.theorem + ("''" if problem.paper else "'")


def _smallest_base(least: int, exponent: int, factor: int, target: int) -> int:
    """The smallest integer `b ≥ least` with `factor · b^exponent ≥ target`."""

    def reaches(b: int) -> bool:
        return (b > 1 and exponent >= target.bit_length()) or factor * b**exponent >= target

    if reaches(least):
        return least
    low, high = least, 2 * least
    while not reaches(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def constants(problem: Problem) -> tuple[int, int]:
    """The smallest `b` and `σ` for which the corollary covers the problem's summaries and states."""
    L, b = problem.hops, max(1, *problem.summaries)
    first, later = problem.states[0], max(problem.states[1:])
    if problem.theorem == "B":
        exponent, factor = (fibonacci(2 * L) + 1, 1) if problem.paper else (L + 1, 8)
        return _smallest_base(b, exponent, factor, later), 0
    if L == 2:
        return b, max(2, first, later)
    if problem.paper:
        b = _smallest_base(b, fibonacci(2 * L - 1) - 1, 1, first)
        return _smallest_base(b, fibonacci(2 * L - 1), 1, later), 0
    return b, max(2, first, -(-later // (32 * b**L)))


def log2_length(problem: Problem) -> float:
    """log2 of the length at which the corollary certifies, rounded up a little."""
    L, (b, sigma) = problem.hops, constants(problem)
    if problem.theorem == "A":
        if L == 2:
            length = (sigma + 1) * max(sigma, 2 * b + 2) + 2 if problem.paper else 2 * sigma * (b + 2)
            bits = log2(length)
        elif problem.paper:
            bits = (fibonacci(2 * L + 1) - 2) * (L + 2 + log2((L - 1) * b))
        else:
            bits = log2(sigma) + (L - 1) * (L + 2) / 2 * log2(40 * L * b)
    elif problem.paper:
        bits = (2 * fibonacci(2 * L) - 1) * (L + 3 + log2(L * b))
    else:
        bits = (L * L + 3 * L - 2) / 2 * log2(40 * L * b)
    return (bits + log2(problem.passing + 1)) * (1 + 1e-12)


def instance(problem: Problem) -> Instance | None:
    """The corollary's own sizes and parameters; None where its integers are too long to be written out."""
    if log2_length(problem) > MAX_LENGTH_BITS:
        return None
    L, (b, sigma) = problem.hops, constants(problem)
    first = problem.theorem == "A"
    lift = 2 if first else 3
    n, x = [0] * (L - 1), [1] * L
    if first and L == 2:
        x[1] = b + 1
        n[0] = sigma
        m = max(sigma, 2 * b + 2) if problem.paper else sigma
    else:
        for step in range(L - 1, 0, -1):
            x[step] = 2 ** (step + lift) * b * product(n[step:])
            if problem.paper:
                n[step - 1] = 2 ** (step + lift + 1) * (step + (not first)) * b * product(x[step:])
            elif step == 1:
                n[0] = 2 * b * sigma if first else 16 * b
            else:
                n[step - 1] = 32 * (step + (not first)) * b
        if first:
            m = 8 * product(x[1:]) if problem.paper else sigma
        elif problem.paper:
            eightfold = 8 * product(x[1:])
            x[0] = -(-2 * b * product(n) // eightfold)
            m = x[0] * eightfold
        else:
            m = x[0] = 2 * b * product(n)

    theta, M = [], []
    for step in range(1, L):
        if step == 1 and first:
            theta.append(x[1])
            M.append(2 * x[1])
            continue
        P = x[0] * x[1] if step == 1 else x[step] * n[step - 2] * theta[-1]
        theta.append(P // 2)
        M.append(4 * P)
    D = domains_of(m, n, None if problem.paper else M)
    values = D if problem.paper else [*M, D[-1]]
    deltas, cut = losses(problem, D, n, x, None)
    point = Point(m, tuple(n), tuple(x), () if problem.paper else tuple(M), first)
    return Instance(point, tuple(D), tuple(values), tuple(theta), tuple(deltas), cut)
