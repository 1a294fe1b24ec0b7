"""The judge of a certificate: integers only, the standard library only, nothing shared with the search.

The claim: no weights whatever make a stack of layers answer `L`-hop function composition of some size. Every number of
the file is recomputed and the conditions of its theorem are decided: counting (one hop), Theorem A (`F` full layers,
`F + 1` hops; Lemmas 2-4) or B (`F` full layers, nothing bounded before the second, `F` hops); the asymptotic forms are
in arXiv 2602.01763 and 2412.02975. A condition compares `Σ c·log2(a)`, integers `c` and `a ≥ 1`, with an integer: by
enclosures in fixed point, exact at powers of two, then by integer products where these are small; else it is refused.
"""

import re
from collections.abc import Iterator
from math import comb, prod
from operator import eq
from typing import Any, NamedTuple

SCHEMA = "hopbound/certificate/1"
MAX_BITS, MAX_TOTAL_BITS = 2**17, 2**21  # of one integer of a file, and of all of them: no product is longer
MAX_HOPS, MAX_LAYERS, MAX_PRODUCT_BITS, MAX_BINOMIAL_BITS = 64, 2**15, 2**20, 2**14  # products decide comparisons
PRECISIONS = (64, 128, 256, 512)  # bits after the point
Form = list[tuple[int, int]]  # Σ c·log2(a), as the pairs (c, a)
Ints = list[int]


class CheckResult(NamedTuple):
    """The judgement, with the reason in one line."""

    accepted: bool
    reason: str


class _RefusedError(Exception): ...


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _RefusedError(reason)


class _Reader:
    """Reads parts of a document: refuses missing and unknown keys, other types, too long numbers."""

    bits_left = MAX_TOTAL_BITS

    def fields(self, value: Any, where: str, keys: str) -> list[Any]:
        """The values of an object with exactly these keys."""
        _require(isinstance(value, dict) and set(value) == set(keys.split()), f"{where}: expected the keys {keys}")
        return [value[key] for key in keys.split()]

    def integer(self, value: Any, where: str, low: int = 0) -> int:
        """An integer written `{"hex": …, "dec": …}`, with `dec` exactly for numbers of at most 64 digits."""
        text = value.get("hex") if isinstance(value, dict) else None
        if not isinstance(text, str) or len(text) > MAX_BITS // 4 or not re.fullmatch("-?0x[0-9a-f]+", text):
            raise _RefusedError(f"{where}: expected an integer in hexadecimal of at most {MAX_BITS} bits")
        number = int(text, 16)
        self.bits_left -= number.bit_length()
        _require(self.bits_left >= 0, f"the integers have more than {MAX_TOTAL_BITS} bits together")
        expected = {"hex": hex(number)} | ({"dec": str(number)} if abs(number) < 10**64 else {})
        _require(value == expected, f"{where}: hex and dec disagree, or are not in their shortest form")
        _require(number >= low, f"{where}: less than {low}")
        return number

    def integers(self, value: Any, where: str, length: int, low: int = 0) -> list[int]:
        """A list of integers."""
        _require(isinstance(value, list) and len(value) == length, f"{where}: expected a list of {length}")
        return [self.integer(entry, f"{where}[{i}]", low) for i, entry in enumerate(value)]


def log2_enclosure(a: int, precision: int) -> tuple[int, int]:
    """Integers `low ≤ 2^precision · log2(a) ≤ high`, equal when `a` is a power of two."""
    exponent, width = a.bit_length() - 1, precision + 8
    if a == 1 << exponent:
        return exponent << precision, exponent << precision
    # The leading bits y ∈ [1, 2] of a are squared again and again; whenever the square passes 2 the next digit of the
    # logarithm is 1 and y is halved. Rounding y down can only lower the result, rounding it up only raise it.
    cut, ends = max(0, exponent - width), []
    for y, up in ((a >> cut, 0), ((a >> cut) + (cut > 0), 1)):
        y, digits = y << (width - exponent + cut), 0
        for _ in range(precision):
            y = (y * y + up * ((1 << width) - 1)) >> width
            digit = int(y >> (width + 1) > 0)
            y, digits = (y + digit * up) >> digit, 2 * digits + digit
        ends.append((exponent << precision) + digits + up)  # what is left over, log2(y), is at most one last unit
    return ends[0], ends[1]


def holds(form: Form, bound: int, strict: bool) -> bool:
    """Whether `Σ c·log2(a) > bound` (strict) or `≥ bound`; False also where neither can be shown."""
    for precision in PRECISIONS:
        low = high = -bound << precision
        for c, a in form:
            ends = log2_enclosure(a, precision)
            low, high = low + c * ends[c < 0], high + c * ends[c > 0]
        if low > 0 or (low == 0 and not strict):
            return True
        if high < 0 or (high == 0 and strict):
            return False
    if sum(abs(c) * a.bit_length() for c, a in form) + abs(bound) > MAX_PRODUCT_BITS:
        return False
    left, right = (prod(a ** (s * c) for c, a in form if s * c > 0) << max(0, -s * bound) for s in (1, -1))
    return left > right or (left == right and not strict)


def binomial_bounds(M: int, t: int) -> Iterator[tuple[int, Form]]:
    """Pairs `(s, form)` with `s · log2 C(M, t) ≤ form`, for `0 < t < M`."""
    few = min(t, M - t)
    if few * (M.bit_length() - few.bit_length() + 3) <= MAX_BINOMIAL_BITS:  # C(M, few) ≤ (eM/few)^few
        yield 1, [(1, comb(M, few))]
    # Stirling: C(M, t) ≤ M^M / (t^t (M-t)^(M-t)) / sqrt(2π t (M-t) / M), as 1/(12M) < 1/(12t + 1); and 2π > 157/25.
    yield 2, [(2 * M + 1, M), (-2 * t - 1, t), (-2 * (M - t) - 1, M - t), (-1, 157), (1, 25)]
    # C(M, t) ≤ M^t / t! and t! > sqrt(2πt) (t/e)^t, with e < 2.71828182845904523537: nothing cancels when M ≫ t.
    yield 2, [(2 * t, M), (-2 * t - 1, t), (2 * t, 271828182845904523537), (-2 * t, 10**20), (-1, 157), (1, 25)]


def spreads(P: int, M: int, t: int, bound: int, strict: bool, weight: int = 1) -> bool:
    """Whether `weight · (P log(M/t) − log C(M, t))` is above (at least) the bound: (A2), second form of (A1)."""
    forms = ((s, [(s * P, M), (-s * P, t), *((-c, a) for c, a in form)]) for s, form in binomial_bounds(M, t))
    return any(holds([(weight * c, a) for c, a in form], s * bound, strict) for s, form in forms)


def losses(shift: int, sigma: Ints, b: Ints, D: Ints, n: Ints, x: Ints, cut: int) -> Iterator[int]:
    """`δ_2..δ_L` one by one, the bits that Lemmas 2-4 fix; `shift` is 0 for Theorem A and 1 for Theorem B."""
    L, Q, delta = len(D), [prod(n) * x[0], x[0]], shift * (prod(n) + x[0]) * b[0]  # Q_l(i) for i = -1, 0, …, l-1
    for step in range(1, L):
        full, last = step + shift, step == L - 1  # the full layer that this step passes
        if step > 1:
            Q, delta = [q * x[step - 1] for q in Q] + [D[step - 2] * x[step - 1]], x[step] * delta + 1
        heard = [Q[0], x[0] * x[1]] if shift and step == 1 else Q  # in Theorem B z_0's query has seen z_1
        delta += sum(sigma[: full + (not last)]) + x[step] * D[step - 1] * sum(b[: full - last])
        delta += b[full - 1] * sum(heard[: cut + 2 if last else None]) + last * sigma[full] * prod(x[cut + 1 :])
        yield delta


def check(document: Any) -> CheckResult:
    """Judge a certificate document: never an exception, bounded work."""
    try:
        return CheckResult(True, _judge(document, _Reader()))
    except _RefusedError as refusal:
        return CheckResult(False, str(refusal))


def _judge(document: Any, read: _Reader) -> str:
    top = read.fields(document, "document", "schema stack claim theorem theorem_hops parameters deltas")
    schema, stack, claim, theorem, theorem_hops, parameters, stored = top
    schedule, precisions, layers, inserted = read.fields(stack, "stack", "schedule precisions layers inserted")
    task, asked, length, sizes = read.fields(claim, "claim", "task hops prompt_length sizes")
    kind, domains, values, fans = read.fields(sizes, "claim.sizes", "kind domains values n")
    _require((schema, task, type(schedule)) == (SCHEMA, "composition", str), "schema, task or schedule: unknown")
    for bits in read.fields(precisions, "stack.precisions", "activation kv state summary"):
        read.integer(bits, "stack.precisions", 1)
    for listed, most in ((layers, MAX_LAYERS), (inserted, MAX_HOPS)):
        _require(isinstance(listed, list) and len(listed) <= most, f"stack: expected lists, this of at most {most}")
    crossing = [read.fields(layer, "stack.layers", "kind bits") for layer in layers]
    for index in reversed(unused := read.integers(inserted, "stack.inserted", len(inserted))):
        _require(index <= len(layers) and unused == sorted(unused), "stack.inserted: expected rising places")
        crossing.insert(index, ["full", {"hex": "0x0", "dec": "0"}])  # an unused full layer before this layer
    sigma, b = [0], []  # σ_0..σ_F and b_1..b_F
    for what, size in crossing:
        _require(what in ("full", "bounded"), "stack.layers: expected kinds full or bounded")
        bits, full = read.integer(size, "stack.layers"), what == "full"
        sigma[-1] += 0 if full else bits
        b += [bits] * full
        sigma += [0] * full

    hops, L = read.integer(asked, "claim.hops", 1), read.integer(theorem_hops, "theorem_hops", 1)
    _require(L <= hops <= MAX_HOPS, f"claim.hops: expected theorem_hops or more, at most {MAX_HOPS}")
    D, M = (read.integers(numbers, "claim.sizes", hops, 2) for numbers in (domains, values))
    n = read.integers(fans, "claim.sizes.n", hops - 1, 1)
    _require(D[1:] == [n[i] * M[i] for i in range(hops - 1)], "claim.sizes: D_{l+1} is not n_l M_l")
    _require(M == D if kind == "paper" else kind == "free" and M[-1] == D[-1], "claim.sizes: not of their kind")
    _require(read.integer(length, "claim.prompt_length") == sum(D) + 2, "claim.prompt_length: not sum of domains + 2")
    _require(n[L - 1 :] == [1] * (hops - L) and M[L:] == [M[L - 1]] * (hops - L), "claim.sizes: beyond theorem_hops")
    D, M, n, proved = D[:L], M[:L], n[: L - 1], f"{hops} hops are impossible by {theorem}"
    if theorem == "counting":
        read.fields(parameters, "parameters", "")
        _require(L == 1 and (not b or (len(b) == 1 and not any(sigma))), "counting does not speak of this stack")
        _require(stored == [] and holds([(D[0], M[0])], (b or sigma)[0], True), "m log M_1 is not above what crosses")
        return proved
    shift = int(theorem == "B")
    spoken_of = theorem in ("A", "B") and L >= 2 and len(b) == L - 1 + shift and not (shift and any(sigma[:2]))
    _require(spoken_of, "no theorem speaks of these layers and hops")
    form, x_list, theta_list, cut_number = read.fields(parameters, "parameters", "form x theta cut")
    x, theta = read.integers(x_list, "parameters.x", L, 1), read.integers(theta_list, "parameters.theta", L - 1, 1)
    cut = read.integer(cut_number, "parameters.cut", -1)
    _require(cut <= L - 2, "parameters.cut: expected a player from -1 to L - 2")
    deltas, own = read.integers(stored, "deltas", L - 1), losses(shift, sigma, b, D, n, x, cut)
    _require(all(map(eq, deltas, own)), "deltas: not those of the layers, sizes and parameters")  # ends at the first
    m, P, hidden = D[0], x[0] * x[1], prod(n) * b[0] if shift else sigma[0]
    if form == "first":
        met = not shift and x[0] == 1 and theta[0] == x[1] <= M[0]
        met = met and (x[1] == 1 or holds([(m, M[0]), (-m, x[1] - 1)], hidden, True))
    else:
        met = form == "second" and x[0] <= m and theta[0] < M[0] and spreads(P, M[0], theta[0], P * hidden, True, m)
    _require(met, "(A1) is not met in the form named")
    for i in range(1, L - 1):
        P = x[i + 1] * n[i - 1] * theta[i - 1]
        met = theta[i] < M[i] and spreads(P, M[i], theta[i], x[i + 1] * deltas[i - 1] + 1, False)
        _require(met, f"(A2) is not met for l = {i + 1}")
    _require(holds([(n[-1] * theta[-1], M[-1])], deltas[-1], True), "(A3) is not met")
    return proved
