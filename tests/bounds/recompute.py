"""The theorems once more, written from their statements alone: plain recursions, mpmath, nothing from the package.

`confirms(document)` says whether the claim of a certificate document follows from the conditions.
"""

import re
from functools import cache
from typing import Any

import mpmath


class Refuted(Exception):  # noqa: N818
    """The claim does not follow."""


def insist(condition: bool) -> None:
    if not condition:
        raise Refuted


def number(value: Any) -> int:
    insist(isinstance(value, dict) and set(value) <= {"hex", "dec"})
    result = int(value["hex"], 16)
    insist("dec" not in value or value["dec"] == str(result))
    insist(("dec" in value) == (len(str(abs(result))) <= 64 if result.bit_length() < 400 else False))
    return result


def numbers(values: Any) -> list[int]:
    return [number(value) for value in values]


def bits_of(schedule: str, precisions: dict[str, int]) -> list[tuple[str, int]] | None:
    """The layers of a schedule of `linear` and `full` with one size; None for any other."""
    layers: list[tuple[str, int]] = []
    for part in schedule.split():
        match = re.fullmatch(r"(?:(\d+)\*)?(linear|full)\[heads=(\d+),head_dim=(\d+)\]", part)
        if not match:
            return None
        count, name, h, d = int(match[1] or 1), match[2], int(match[3]), int(match[4])
        if name == "linear":
            layers += [("bounded", h * (d * d + d) * precisions["state"])] * count
        else:
            layers += [("full", h * (d + 2) * precisions["summary"])] * count
    return layers


def runs(layers: list[tuple[str, int]]) -> tuple[list[int], list[int]]:
    sigma, b = [0], [0]  # b[f] is b_f
    for kind, bits in layers:
        if kind == "full":
            b.append(bits)
            sigma.append(0)
        else:
            sigma[-1] += bits
    return sigma, b


def deltas(
    theorem: str, layers: list[tuple[str, int]], D: list[int], n: list[int], x: list[int], cut: int
) -> list[int]:
    """`δ_2..δ_L` as the two theorems write them out, each term in its place."""
    sigma, b = runs(layers)
    L, F = len(D), len(b) - 1
    x_minus = 1
    for fan in n:
        x_minus *= fan

    def xs(i: int) -> int:
        return x_minus if i == -1 else x[i]

    def tokens(i: int) -> int:
        return 1 if i <= 0 else D[i - 1]

    def Q(step: int, i: int) -> int:
        if theorem == "B" and step == 1 and i == 0:
            return x[0] * x[1]
        result = tokens(i)
        for k in range(i, step):
            result *= xs(k)
        return result

    def price(step: int) -> int:
        result = sigma[F]
        for k in range(cut + 1, step + 1):
            result *= x[k]
        return result + b[F] * sum(Q(step, i) for i in range(0, cut + 1))

    @cache
    def delta(k: int) -> int:
        step = k - 1
        if theorem == "A":
            if k == 2 == L:
                return sigma[0] + b[1] * Q(1, -1) + price(1)
            if k == 2:
                return sigma[0] + sigma[1] + x[1] * tokens(1) * b[1] + b[1] * (Q(1, 0) + Q(1, -1))
            carried = x[step] * delta(step) + 1
            if k == L:
                intake = x[step] * tokens(step) * sum(b[1:F])
                return carried + sum(sigma[:F]) + intake + b[F] * Q(step, -1) + price(step)
            heard = sum(Q(step, i) for i in range(-1, step))
            return carried + sum(sigma[: step + 1]) + x[step] * tokens(step) * sum(b[1 : step + 1]) + b[step] * heard
        start = x_minus * b[1] + x[0] * b[1]
        if k == 2 == L:
            return start + x[1] * tokens(1) * b[1] + b[2] * x_minus * x[0] + price(1)
        if k == 2:
            intake = x[1] * tokens(1) * (b[1] + b[2])
            return start + sigma[2] + intake + b[2] * (x[0] * x[1] + x_minus * x[0])
        carried = x[step] * delta(step) + 1
        if k == L:
            intake = x[step] * tokens(step) * sum(b[1:F])
            return carried + sum(sigma[2:F]) + intake + b[F] * Q(step, -1) + price(step)
        heard = sum(Q(step, i) for i in range(-1, step))
        intake = x[step] * tokens(step) * sum(b[1 : step + 2])
        return carried + sum(sigma[2 : step + 2]) + intake + b[step + 1] * heard

    return [delta(k) for k in range(2, L + 1)]


def log2(a: int) -> Any:
    return mpmath.log(a, 2)


def log2_binomial(M: int, t: int) -> Any:
    if min(t, M - t) <= 2000:
        return log2(mpmath.binomial(M, t))
    return (mpmath.loggamma(M + 1) - mpmath.loggamma(t + 1) - mpmath.loggamma(M - t + 1)) / mpmath.log(2)


def above(left: Any, right: Any, strict: bool) -> bool:
    """Compare; numbers that agree to all but the last digits are equal."""
    scale = max(1, abs(left), abs(right))
    if abs(left - right) < scale * mpmath.mpf(2) ** (40 - mpmath.mp.prec):
        return not strict
    return left > right


def _confirm(document: Any) -> None:
    insist(document["schema"] == "hopbound/certificate/1" and document["claim"]["task"] == "composition")
    stack, claim, theorem = document["stack"], document["claim"], document["theorem"]
    layers = [(layer["kind"], number(layer["bits"])) for layer in stack["layers"]]
    insist(all(kind in ("full", "bounded") and bits >= 0 for kind, bits in layers))
    stated = bits_of(stack["schedule"], {name: number(bits) for name, bits in stack["precisions"].items()})
    insist(stated is None or stated == layers)
    for index in sorted(numbers(stack["inserted"]), reverse=True):
        insist(0 <= index <= len(layers))
        layers.insert(index, ("full", 0))
    sigma, b = runs(layers)
    F = len(b) - 1

    hops, L = number(claim["hops"]), number(document["theorem_hops"])
    sizes = claim["sizes"]
    D, M, n = numbers(sizes["domains"]), numbers(sizes["values"]), numbers(sizes["n"])
    insist(1 <= L <= hops == len(D) == len(M) == len(n) + 1)
    insist(min(D + M + n) >= 1 and D[0] >= 2)
    insist(all(D[i + 1] == n[i] * M[i] for i in range(hops - 1)))
    insist(M == D if sizes["kind"] == "paper" else sizes["kind"] == "free" and M[-1] == D[-1])
    insist(number(claim["prompt_length"]) == sum(D) + 2)
    insist(all(n[i] == 1 and M[i + 1] == M[i] for i in range(L - 1, hops - 1)))
    D, M, n = D[:L], M[:L], n[: L - 1]
    if theorem == "counting":
        insist(L == 1 and document["deltas"] == [] and document["parameters"] == {})
        if F == 0:
            insist(M[0] ** D[0] > 2 ** sigma[0])
        else:
            insist(F == 1 and sigma == [0, 0] and M[0] ** D[0] > 2 ** b[1])
        return
    insist(theorem in ("A", "B") and L >= 2)
    insist((L - 1 if theorem == "A" else L) == F)
    insist(theorem == "A" or sigma[0] == sigma[1] == 0)
    parameters = document["parameters"]
    x, theta, cut = numbers(parameters["x"]), numbers(parameters["theta"]), number(parameters["cut"])
    insist(len(x) == L and len(theta) == L - 1 and min(x + theta) >= 1 and -1 <= cut <= L - 2)
    delta = deltas(theorem, layers, D, n, x, cut)
    insist(numbers(document["deltas"]) == delta)
    m = D[0]
    if theorem == "A" and parameters["form"] == "first":
        insist(x[0] == 1 and theta[0] == x[1] <= M[0])
        insist(x[1] == 1 or above(m * (log2(M[0]) - log2(x[1] - 1)), sigma[0], True))
    else:
        insist(parameters["form"] == "second" and x[0] <= m and theta[0] < M[0])
        hidden = sigma[0]
        if theorem == "B":
            hidden = b[1]
            for fan in n:
                hidden *= fan
        margin = log2(M[0]) - log2(theta[0]) - mpmath.mpf(hidden) / m
        insist(above(x[0] * x[1] * margin, log2_binomial(M[0], theta[0]), True))
    for step in range(2, L):
        M_l, t = M[step - 1], theta[step - 1]
        insist(t < M_l)
        P = x[step] * n[step - 2] * theta[step - 2]
        insist(above(P * (log2(M_l) - log2(t)) - log2_binomial(M_l, t), x[step] * delta[step - 2] + 1, False))
    insist(above(n[-1] * theta[-1] * log2(M[-1]), delta[-1], True))


def confirms(document: Any) -> bool:
    """Whether the claim follows from the conditions as stated; never decides a tie by rounding."""
    longest = max((number_bits for number_bits in _bit_lengths(document)), default=1)
    with mpmath.workprec(4 * longest + 300):
        try:
            _confirm(document)
        except (Refuted, KeyError, ValueError, TypeError, AttributeError, IndexError):
            return False
    return True


def _bit_lengths(value: Any) -> list[int]:
    if isinstance(value, dict):
        if isinstance(value.get("hex"), str):
            return [4 * len(value["hex"])]
        return [bits for part in value.values() for bits in _bit_lengths(part)]
    if isinstance(value, list):
        return [bits for part in value for bits in _bit_lengths(part)]
    return []
