"""What is possible: explicit weights, with the proof beside them, run and verified."""

from hopbound.constructions.build import BuildResult, build, claim_document
from hopbound.constructions.composition import build_composition, task_sizes
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.registry import CONSTRUCTIONS, EXAMPLES, constructions_for, write_weights
from hopbound.constructions.verification import Verification, verify_model

__all__ = [
    "CONSTRUCTIONS",
    "EXAMPLES",
    "BuildResult",
    "Built",
    "Construction",
    "Example",
    "Verification",
    "build",
    "build_composition",
    "claim_document",
    "constructions_for",
    "task_sizes",
    "verify_model",
    "write_weights",
]
