"""One full layer on two functions (average case): how often f(g(x)) comes out wrong.

Statement. The tables of `f, g : [n] → [n]` stand in the prompt, f's left of g's, then x. One full layer on raw tokens,
with a summary of b bits, answers f(g(x)). For every x, with f and g(x) uniform and independent, its error ε obeys

    n (log n - h(ε) - ε log(n - 1)) ≤ b     and     ε ≥ (1 - 2^-R) / n,     R = n log n - b,

and therefore, wherever R > 0, `ε ≥ R / (3 n log n)`: the constant of arXiv 2402.08164, Theorem 1.

Proof. What the query of the last token learns from f's tokens is a summary of b bits that depends on f and x, not on g.
The rest of what it sees depends on g and x. So for a fixed x the answer is read from b bits about f at a uniform
address g(x) that is independent of f. The first inequality is the recall ceiling (`hopbound.bounds.recall`) with n
pairs and n values. The second: for each address a keep one g with g(x) = a, the best. Each summary then stands for one
table of answers, so at most `2^b` tables f are answered rightly at all addresses; each of the other `n^n - 2^b` is
answered wrongly at one address of n or more, and `1 - 2^b / n^n = 1 - 2^-R`.

*The constant.* If `R ≤ 2 log n` the second inequality suffices: `3 log n (1 - 2^-R) - R` is concave in R, 0 at R = 0,
and at `R = 2 log n` it is `log n (1 - 3/n²) > 0`. If `R > 2 log n`, so that n ≥ 3, suppose `ε < e = R / (3 n log n)`;
then `2/(3n) < e ≤ 1/3`, and as `h(ε) + ε log(n - 1)` grows up to 1 - 1/n, the first inequality gives
`3 e log n = R/n < h(e) + e log(n - 1)`. Dividing by e and using `((1 - e)/e) log(1/(1 - e)) ≤ log₂(e₀) < 1.443`
(e₀ = 2.718…), `3 log n < log(1/e) + 1.443 + log(n - 1) < log n + 0.585 + 1.443 + log(n - 1)`, so
`log n + log(n/(n - 1)) < 2.028`; but this sum is 2.17 at n = 3, 2.41 at n = 4 and above log 5 > 2.3 from n = 5 on. ∎

Domain of validity: one full layer, no bounded layer with a state; any width, any position-wise maps. The paper counts
`b = H (d + 1) p`; with the running maximum that fused kernels carry it is `H (d_v + 2) p`.
"""

from math import log2

from hopbound.architecture import Architecture
from hopbound.bounds.ceiling import Ceiling, Question, Silence, whole_number
from hopbound.bounds.recall import accuracy_ceiling

NAME = "two_functions"


def error_floor(n: int, summary_bits: int) -> float:
    """The smallest error that the two inequalities leave open, rounded down by less than 10^-12.

    Args:
        n: size of both functions.
        summary_bits: b.

    Raises:
        InputError: fewer than two values, or a negative summary.
    """
    whole_number("values", n, 2)
    whole_number("summary_bits", summary_bits, 0)
    rest = n * log2(n) - summary_bits
    if rest <= 0:
        return 0.0
    fano = 1 - accuracy_ceiling(n, n, summary_bits)
    return max(0.0, fano - 1e-13, (1 - 2.0**-rest) / n * (1 - 1e-12))


def ceiling(architecture: Architecture, question: Question) -> Ceiling | Silence:
    """The error of a single full layer on two functions of `values` values."""
    if len(architecture.full_layers) != 1 or architecture.state_bits:
        return Silence(NAME, "the stack is not a single full layer and nothing else")
    if architecture.exclusions():
        return Silence(NAME, "; ".join(architecture.exclusions()))
    bits, n = architecture.layer_bits()[0][0].bits, question.values
    error = error_floor(n, bits)
    return Ceiling(
        NAME,
        {"error": error, "summary_bits": bits},
        "average",
        f"on two random functions of {n:,} values the answer f(g(x)) is wrong with probability at least {error:.4g}",
        "f's table left of g's, then x; f and g(x) uniform",
        "Fano's inequality and counting; compare arXiv 2402.08164, Theorem 1",
    )
