"""What is possible: explicit weights, with the proof beside them, run and verified."""

from hopbound.constructions.build import BuildResult, build, claim_document
from hopbound.constructions.composition import Built, build_composition, task_sizes
from hopbound.constructions.verification import Verification, verify_model

__all__ = [
    "BuildResult",
    "Built",
    "Verification",
    "build",
    "build_composition",
    "claim_document",
    "task_sizes",
    "verify_model",
]
