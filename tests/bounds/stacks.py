"""Stacks and certificates that several tests use."""

from functools import cache

from hopbound.architecture import Architecture, Defaults, Precisions, parse_schedule
from hopbound.bounds import Certificate, Sizes, prove

# (schedule, heads, head dimension, bits, hops, sizes): every theorem, both kinds of sizes, unused layers, passing on
CASES: tuple[tuple[str, int, int, int, int, Sizes], ...] = (
    ("linear", 1, 4, 4, 1, "free"),
    ("full", 1, 4, 4, 1, "paper"),
    ("full", 1, 4, 4, 3, "paper"),
    ("linear", 1, 4, 4, 2, "free"),
    ("linear", 1, 4, 4, 3, "paper"),
    ("full", 1, 4, 4, 2, "free"),
    ("linear full linear", 1, 4, 4, 2, "free"),
    ("linear full linear", 1, 4, 4, 2, "paper"),
    ("2*linear full 3*linear", 4, 16, 16, 2, "paper"),
    ("linear full linear", 1, 4, 4, 3, "free"),
    ("2*full", 1, 4, 4, 2, "free"),
    ("2*full", 1, 4, 4, 2, "paper"),
    ("2*full", 1, 4, 4, 4, "free"),
    ("linear 2*full", 1, 24, 32, 3, "free"),
    ("linear full linear full linear", 1, 4, 4, 3, "paper"),
    ("3*full", 1, 24, 32, 3, "free"),
    ("2*full linear full", 1, 4, 4, 3, "paper"),
    ("linear 3*full linear", 1, 4, 4, 4, "free"),
    ("4*full", 1, 4, 4, 4, "free"),
)


def architecture(schedule: str, heads: int = 1, head_dim: int = 4, bits: int = 4) -> Architecture:
    precisions = Precisions(activation=bits, kv=bits, state=bits, summary=bits)
    return parse_schedule(schedule, Defaults(heads=heads, head_dim=head_dim), precisions)


@cache
def certificates() -> tuple[Certificate, ...]:
    found = []
    for schedule, heads, head_dim, bits, hops, sizes in CASES:
        certificate = prove(architecture(schedule, heads, head_dim, bits), hops, sizes=sizes).certificate
        assert certificate is not None
        found.append(certificate)
    return tuple(found)
