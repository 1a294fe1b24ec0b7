"""The certificate: the numbers that make the conditions of a theorem true, as a value and as a JSON document.

Every integer of the document is `{"hex": "0x142", "dec": "322"}`, `dec` exactly for those of at most 64 digits.
Nothing is stored that `check` (the numbers) or `matches_schedule` (the schedule's text) does not compare.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hopbound.architecture import LayerBits, Precisions, parse_schedule
from hopbound.bounds.checker import SCHEMA, check
from hopbound.errors import InputError, RejectedError

Sizes = Literal["free", "paper"]


@dataclass(frozen=True)
class Certificate:
    """One proof that a stack cannot make `hops` hops on prompts of one size.

    Attributes:
        schedule: canonical text of the stack.
        precisions: bits an element.
        layers: what each layer lets across a cut, in bits.
        inserted: before which layers an unused full layer (0 bits) stands, by index.
        hops: the hops asked for.
        sizes: `free`, or `paper` (`M_l = D_l`).
        domains: `D_1..D_hops`.
        values: `M_1..M_hops`.
        n: `n_1..n_{hops-1}`, with `D_{l+1} = n_l M_l`.
        theorem: which theorem proves it.
        theorem_hops: the hops `L` it speaks of; the functions beyond pass their argument on.
        form: which form of (A1) is used; empty for counting.
        x: `x_0..x_{L-1}`, the numbers of functions kept apart.
        theta: `θ_1..θ_{L-1}`, the numbers of reachable values.
        cut: the player just left of which the states after the last full layer are fixed.
        deltas: `δ_2..δ_L` in bits.
    """

    schedule: str
    precisions: Precisions
    layers: tuple[LayerBits, ...]
    inserted: tuple[int, ...]
    hops: int
    sizes: Sizes
    domains: tuple[int, ...]
    values: tuple[int, ...]
    n: tuple[int, ...]
    theorem: Literal["counting", "A", "B"]
    theorem_hops: int
    form: Literal["", "first", "second"] = ""
    x: tuple[int, ...] = ()
    theta: tuple[int, ...] = ()
    cut: int = -1
    deltas: tuple[int, ...] = ()

    @property
    def prompt_length(self) -> int:
        """Tokens: one for each entry of each function, one for the start, one for the query."""
        return sum(self.domains) + 2

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        precisions = {name: encode(getattr(self.precisions, name)) for name in PRECISION_NAMES}
        parameters = {
            "form": self.form,
            "x": encode_all(self.x),
            "theta": encode_all(self.theta),
            "cut": encode(self.cut),
        }
        return {
            "schema": SCHEMA,
            "stack": {
                "schedule": self.schedule,
                "precisions": precisions,
                "layers": [{"kind": layer.kind, "bits": encode(layer.bits)} for layer in self.layers],
                "inserted": encode_all(self.inserted),
            },
            "claim": {
                "task": "composition",
                "hops": encode(self.hops),
                "prompt_length": encode(self.prompt_length),
                "sizes": {
                    "kind": self.sizes,
                    "domains": encode_all(self.domains),
                    "values": encode_all(self.values),
                    "n": encode_all(self.n),
                },
            },
            "theorem": self.theorem,
            "theorem_hops": encode(self.theorem_hops),
            "parameters": {} if self.theorem == "counting" else parameters,
            "deltas": encode_all(self.deltas),
        }


PRECISION_NAMES = ("activation", "kv", "state", "summary")


def encode(number: int) -> dict[str, str]:
    """Write an integer for the document."""
    return {"hex": hex(number)} | ({"dec": str(number)} if abs(number) < 10**64 else {})


def encode_all(numbers: Sequence[int]) -> list[dict[str, str]]:
    """Write integers for the document."""
    return [encode(number) for number in numbers]


def decode(value: dict[str, str]) -> int:
    """Read an integer of a checked document."""
    return int(value["hex"], 16)


def read_certificate(document: object) -> Certificate:
    """The certificate of a document that the checker accepts.

    Raises:
        RejectedError: the checker does not accept it, or a precision is none that an architecture has.
    """
    result = check(document)
    if not result.accepted:
        raise RejectedError(result.reason)
    assert isinstance(document, dict)
    stack, claim, parameters = document["stack"], document["claim"], document["parameters"]

    def numbers(values: list[dict[str, str]]) -> tuple[int, ...]:
        return tuple(decode(value) for value in values)

    proved: dict[str, Any] = {}
    if parameters:
        proved = {
            "form": parameters["form"],
            "x": numbers(parameters["x"]),
            "theta": numbers(parameters["theta"]),
            "cut": decode(parameters["cut"]),
        }
    try:
        precisions = Precisions(**{name: decode(value) for name, value in stack["precisions"].items()})
    except InputError as error:
        raise RejectedError(f"stack.precisions: {error}") from error
    return Certificate(
        schedule=stack["schedule"],
        precisions=precisions,
        layers=tuple(LayerBits(layer["kind"], decode(layer["bits"])) for layer in stack["layers"]),
        inserted=numbers(stack["inserted"]),
        hops=decode(claim["hops"]),
        sizes=claim["sizes"]["kind"],
        domains=numbers(claim["sizes"]["domains"]),
        values=numbers(claim["sizes"]["values"]),
        n=numbers(claim["sizes"]["n"]),
        theorem=document["theorem"],
        theorem_hops=decode(document["theorem_hops"]),
        deltas=numbers(document["deltas"]),
        **proved,
    )


def matches_schedule(document: object) -> None:
    """Compare the layers of a document that the checker accepts with its own schedule's text and precisions.

    Raises:
        RejectedError: the checker refuses the document, the text is no schedule or not in canonical form, the
            theorems do not speak of such a stack, or its layers let other numbers of bits across.
    """
    certificate = read_certificate(document)
    try:
        architecture = parse_schedule(certificate.schedule, precisions=certificate.precisions)
    except InputError as error:
        raise RejectedError(f"stack.schedule: {error}") from error
    if str(architecture) != certificate.schedule:
        raise RejectedError(f"stack.schedule: expected its canonical text {str(architecture)!r}")
    if architecture.exclusions():
        raise RejectedError(f"stack.schedule: {'; '.join(architecture.exclusions())}")
    if certificate.layers not in architecture.layer_bits():
        raise RejectedError("stack.layers: not the bits of the schedule with these precisions")
    limit = architecture.length_limit
    if limit is not None and certificate.prompt_length > limit:
        raise RejectedError(f"claim.prompt_length: the sizes of this stack hold up to {limit} tokens only")
