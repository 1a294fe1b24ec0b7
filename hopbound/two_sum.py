"""Two more rows of the main job: 2-Sum by one dense layer, and by one layer that sees blocks through codes.

A cell passes through the three questions of `hierarchy.py`: C6 is built and run at the longest of a few prompts that it
fits; the bound on block attention is asked for a certificate at exactly these sizes; what failure looks like is shown
by the same weights, forced into the layer at the certified length.
"""

from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any

from hopbound.architecture import Architecture
from hopbound.bounds import block_certificate
from hopbound.bounds.ceiling import Ceiling, Question, Silence
from hopbound.bounds.sparse_two_sum import ceiling
from hopbound.constructions import BuildResult, build, constructions_for, write_weights
from hopbound.decoder.folder import save_model
from hopbound.falsify import SearchResult, break_model, model_subject
from hopbound.files import write_json
from hopbound.tasks import TwoSum

STACKS = ("full", "moba[k=2,block=64]")
LENGTHS = (1024, 512, 256, 128, 64, 32, 16, 8)  # of the prompts at which C6 is tried, the longest first
MOST_VALUES = 10**6


@dataclass(frozen=True)
class TwoSumCell:
    """One stack and what is known of it on 2-Sum.

    Attributes:
        stack: the row's schedule, as written in the table.
        modulus: M.
        built: weights that answer, if a construction fits.
        bound: what the bound on block attention says.
        broken: the search for an illustration, where it says impossible.
        witness: the files behind the cell, (kind, path below the results folder).
    """

    stack: str
    modulus: int
    built: BuildResult | None
    bound: Ceiling | Silence
    broken: SearchResult | None
    witness: tuple[tuple[str, str], ...]

    @property
    def impossible_from(self) -> int | None:
        """The length from which no weights answer all prompts; None if nothing is certified."""
        found = self.bound.numbers.get("impossible_from") if isinstance(self.bound, Ceiling) else None
        return None if found is None else int(found)

    @property
    def verdict(self) -> str:
        """`possible` at the built size, else `impossible` from the certified length on, else `no claim`."""
        return "possible" if self.built is not None else "impossible" if self.impossible_from else "no claim"

    def to_json(self) -> dict[str, Any]:
        """The cell in `hierarchy.json`: as those of hops, with a modulus in place of hops."""
        possible = impossible = None
        if self.built is not None:
            possible = {
                "prompt_length": self.built.task.prompt_length,
                "construction": self.built.built.construction,
                "moves": list(self.built.built.steps),
                **self.built.verification.to_json(),
            }
        length = self.impossible_from
        if length is not None and isinstance(self.bound, Ceiling):
            impossible = {
                "prompt_length": length,
                "log2_prompt_length": log2(length),
                "theorem": self.bound.name,
                "statement": self.bound.statement,
                "source": self.bound.source,
            }
        shown = possible or impossible
        return {
            "stack": self.stack,
            "task": TwoSum.name,
            "hops": None,
            "modulus": self.modulus,
            "verdict": self.verdict,
            "prompt_length": shown["prompt_length"] if shown else None,
            "possible": possible,
            "impossible": impossible,
            "reason": self.bound.reason if isinstance(self.bound, Silence) else self.bound.statement,
            "witness": [{"kind": kind, "path": path} for kind, path in self.witness],
        }


def modulus_for(head_dim: int) -> int:
    """A million, or as many values as codes of a head tell apart; at least 3."""
    return max(3, min(MOST_VALUES, 2**head_dim))


def fill_two_sum(
    out: Path, name: str, stack: str, architecture: Architecture, modulus: int, *, seed: int
) -> TwoSumCell:
    """One cell: build, prove, break; what is found is written below `out`, in files called `name`."""
    witness: list[tuple[str, str]] = []
    built = _build(out / "models" / name, architecture, modulus, seed)
    if built is not None:
        witness.append(("model", f"models/{name}"))
    bound, broken = ceiling(architecture, Question(modulus)), None
    certificate = block_certificate(architecture, modulus)
    if certificate is not None:
        write_json(out / "certificates" / f"{name}.json", certificate)
        witness.append(("certificate", f"certificates/{name}.json"))
        broken = _break(out, name, architecture, TwoSum(certificate["claim"]["prompt_length"], modulus), seed)
        if broken is not None and broken.pair is not None:
            witness.append(("pair", f"pairs/{name}.json"))
    return TwoSumCell(stack, modulus, built, bound, broken, tuple(witness))


def _build(folder: Path, architecture: Architecture, modulus: int, seed: int) -> BuildResult | None:
    """The construction at the longest prompt that fits it."""
    for task in (TwoSum(n, modulus) for n in LENGTHS):
        if any(one.refusal(architecture, task) is None for one in constructions_for(task)):
            result = build(architecture, task, out=folder, seed=seed)
            return result if result.verification.verified else None
    return None


def _break(out: Path, name: str, architecture: Architecture, task: TwoSum, seed: int) -> SearchResult | None:
    """A fooling pair for the construction, forced into the layer beyond what it sees."""
    if all(one.fatal_refusal(architecture, task) is not None for one in constructions_for(task)):
        return None
    folder = out / "models" / f"{name}-overfilled"
    forced = write_weights(architecture, task, overfill=True)
    notes = {"construction": forced.construction, "steps": forced.steps, "directions": forced.directions.to_json()}
    save_model(folder, forced.decoder, notes=notes, task=task.to_json())  # it fails: nothing is claimed
    return break_model(model_subject(folder), out=out / "pairs", name=name, seed=seed)
