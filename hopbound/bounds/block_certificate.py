"""The certificate that one layer of block attention is wrong on some prompt of 2-Sum (`sparse_two_sum.py`).

A document holds the stack's text, the modulus, the prompt length and the three sizes of the layer. Every number is
recomputed by `block_checker.check_blocks`, and compared with the stack's own text by `blocks_match_schedule`.
"""

from dataclasses import asdict
from typing import Any

from hopbound.architecture import Architecture, Precisions, parse_schedule
from hopbound.bounds.block_checker import SCHEMA, check_blocks
from hopbound.bounds.sparse_two_sum import block_sizes, code_bits_needed, shortest_prompt
from hopbound.errors import InputError, RejectedError


def block_certificate(architecture: Architecture, modulus: int) -> dict[str, Any] | None:
    """The document for the shortest prompt of which the bound speaks; None where it rules nothing out.

    Args:
        architecture: the stack.
        modulus: M of 2-Sum.

    Raises:
        InputError: fewer than two values.
    """
    sizes = block_sizes(architecture)
    if sizes is None or sizes.code_bits >= code_bits_needed(modulus, sizes.block):
        return None
    return {
        "schema": SCHEMA,
        "stack": {"schedule": str(architecture), "precisions": asdict(architecture.precisions)},
        "claim": {
            "task": "two_sum",
            "modulus": modulus,
            "prompt_length": shortest_prompt(sizes.block, sizes.selected),
        },
        "layer": asdict(sizes),
    }


def blocks_match_schedule(document: Any) -> None:
    """Compare the layer of a document with its own schedule's text and precisions.

    Raises:
        RejectedError: the checker refuses the document, the text is no schedule or not in canonical form, or the layer
            has other sizes.
    """
    result = check_blocks(document)
    if not result.accepted:
        raise RejectedError(result.reason)
    stack = document["stack"]
    try:
        architecture = parse_schedule(stack["schedule"], precisions=Precisions(**stack["precisions"]))
    except InputError as error:
        raise RejectedError(f"stack: {error}") from error
    if str(architecture) != stack["schedule"]:
        raise RejectedError(f"stack.schedule: expected its canonical text {str(architecture)!r}")
    sizes = block_sizes(architecture)
    if sizes is None or asdict(sizes) != document["layer"]:
        raise RejectedError("layer: not the sizes of the schedule with these precisions")
