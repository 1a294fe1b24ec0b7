"""The judge of a certificate on block attention and 2-Sum: the standard library only, nothing shared with its maker.

The claim: no weights whatever make one layer answer 2-Sum modulo M on all prompts of n tokens, if it sees a block of B
tokens through a code of c bits unless the block is among k that it selects. The conditions (`sparse_two_sum.py` has the
proof): B ≤ ⌈M/2⌉; at least 2k + 1 complete blocks before the last token's own; 2^c < C(⌈M/2⌉, B). The binomial is
multiplied out, as `Π (⌈M/2⌉ - i)` against `2^c B!`.
"""

from math import factorial, prod
from typing import Any

from hopbound.bounds.checker import CheckResult

SCHEMA = "hopbound/blocks/1"
MAX_PRODUCT_BITS = 2**22  # of a product that is compared
_KEYS = {
    "document": "schema stack claim layer",
    "stack": "schedule precisions",
    "precisions": "activation kv state summary",
    "claim": "task modulus prompt_length",
    "layer": "block code_bits selected",
}


def check_blocks(document: Any) -> CheckResult:
    """Judge a document: never an exception, bounded work."""
    problem = _shape(document) or _conditions(**document["layer"], **document["claim"])
    if problem:
        return CheckResult(False, problem)
    claim, layer = document["claim"], document["layer"]
    return CheckResult(
        True,
        f"2-Sum modulo {claim['modulus']} is impossible from {claim['prompt_length']} tokens on, with blocks of "
        f"{layer['block']} and codes of {layer['code_bits']} bits",
    )


def _shape(document: Any) -> str:
    """What is missing, unknown or of another type; nothing if all is well."""
    parts = {"document": document}
    for name, keys in _KEYS.items():
        part = parts.get(name)
        if not isinstance(part, dict) or set(part) != set(keys.split()):
            return f"{name}: expected the keys {keys}"
        parts.update(part)
    if (document["schema"], document["claim"]["task"]) != (SCHEMA, "two_sum"):
        return "schema or task: unknown"
    if not isinstance(document["stack"]["schedule"], str):
        return "stack.schedule: expected a text"
    least = {"modulus": 3, "prompt_length": 2, "block": 1, "code_bits": 0, "selected": 0}
    least |= dict.fromkeys(document["stack"]["precisions"], 1)
    for name, low in least.items():
        if type(parts[name]) is not int or not low <= parts[name] < 2**62:
            return f"{name}: expected a whole number from {low}, below 2^62"
    return ""


def _conditions(*, block: int, code_bits: int, selected: int, modulus: int, prompt_length: int, task: str) -> str:
    """The first condition that does not hold; nothing if all do."""
    half = (modulus + 1) // 2
    if block > half:
        return "block: longer than half of the modulus, of which the bound does not speak"
    if (prompt_length - 1) // block < 2 * selected + 1:
        return "prompt_length: fewer than 2 selected + 1 complete blocks before the last token's own"
    if max(block * half.bit_length(), code_bits + block * block.bit_length()) > MAX_PRODUCT_BITS:
        return f"layer: products of more than {MAX_PRODUCT_BITS} bits are not compared"
    if prod(range(half - block + 1, half + 1)) <= factorial(block) << code_bits:
        return "code_bits: 2^c is not below the number of block contents that must be told apart"
    return ""
