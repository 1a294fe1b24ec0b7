r"""Exact reflections: what delta rules with strengths up to 2 need to track a state at any length.

A step of the delta rule with a unit key k and strength 2, S ← S - 2 k (kᵀ S - v), is a reflection if there is no v:
eigenvalue -1 along k, 1 across (arXiv 2411.12537). Swapping two coordinates is the reflection with k = (e_i - e_j)/√2;
but √2 is no floating-point number, 2 k kᵀ has entries that are off by 2^-24, and a long word of such steps drifts.

*Doubled points.* Let point i be two coordinates, f_i = e_{2i} + e_{2i+1}. The reflection with k = (f_i - f_j)/2 swaps
f_i and f_j and leaves the other points. Its key, before it is normalised, has four entries ±1 and the length √4 = 2
exactly: k has entries ±1/2, and 2 k kᵀ entries ±1/2. All states that occur are sums of f's with small whole
coefficients, all products and sums on the way to them are multiples of 1/4 far below 2^24: nothing is ever rounded.

*In chunks* the same holds. The triangular matrix of a chunk has entries 2 k_i·k_j ∈ {0, ±1, ±2}; the entries of its
inverse are -2 k_iᵀ (product of the reflections between) k_j. A product of these reflections permutes points, so that
it takes each of these keys to one of them, and they are in {0, ±1, ±2} again.

*A state that starts at zero* would stay there. So the state is measured from a matrix X: with values v_t = Xᵀ k_t,
which are linear in the keys, S_t - X = R_t (S_{t-1} - X). As S_0 = 0, always

    S_t = X - R_t R_{t-1} .. R_1 X ,      S_tᵀ q = Xᵀ q - Xᵀ (R_1 .. R_t q)

(reflections are symmetric). The last token knows Xᵀ q, since it knows what it asks for: it stands in the embedding,
and the layer's output is taken away from it.
"""

from typing import Any

from torch import Tensor

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import MatrixState
from hopbound.constructions.memory import HELD, SURE
from hopbound.mixers import GatedDeltaNet, Mixer
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.mixers.kda import KimiDeltaAttention

DELTA_RULES = ("delta", "deltaproduct", "gdn", "kda")
DOUBLED = 2  # coordinates a point


def find_delta_rule(architecture: Architecture, *, before: int | None = None) -> tuple[int, int, MatrixState] | None:
    """The first layer with a delta rule: its index, the mixer's index in it, its sizes; None: there is none.

    Args:
        architecture: the stack.
        before: look at layers below this one only.
    """
    for index, layer in enumerate(architecture.layers[:before]):
        for place, spec in enumerate(layer.mixers):
            if is_delta_rule(spec):
                assert isinstance(spec, MatrixState)
                return index, place, spec
    return None


def is_delta_rule(spec: MixerSpec) -> bool:
    """Whether a mixer writes by the delta rule."""
    return spec.name in DELTA_RULES


def no_negative_eigenvalue(spec: MatrixState) -> str | None:
    """Why a delta rule cannot reflect: its strengths stay below 2."""
    if spec.beta == 2:
        return None
    return f"{spec.name}[beta={spec.beta}] has no eigenvalue -1: beta=2"


def too_few_values(spec: MatrixState, needed: int) -> str | None:
    """Why the digits of a value do not fit."""
    held = spec.heads * spec.value_dim
    return None if held >= needed else f"{needed} value digits, {spec.name} has {held} value channels"


def write_strength(mixer: DeltaRecurrence | DeltaProduct, column: int) -> None:
    """Let a zeroed delta rule write with its largest strength, beta, where a column is 1; decays are exactly 1.

    beta · sigmoid(512) is exactly beta; where the column is 0 the strength is beta / 2.
    """
    mixer.strength.weight[:, column] = SURE
    if isinstance(mixer, GatedDeltaNet | KimiDeltaAttention):
        mixer.rate_bias.fill_(HELD)


def key_rows(mixer: Mixer[Any, Any], step: int = 0) -> list[int]:
    """For each head with keys, the row of the key projection at which those of a step begin."""
    spec = mixer.spec
    return [(head * spec.steps + step) * spec.head_dim for head in range(spec.key_heads)]


def value_rows(mixer: Mixer[Any, Any], step: int = 0) -> list[int]:
    """Rows of the value projection for a step, in the order in which the output projection reads the channels."""
    spec = mixer.spec
    return [
        (head * spec.steps + step) * spec.value_dim + place
        for head in range(spec.heads)
        for place in range(spec.value_dim)
    ]


def write_doubled(weight: Tensor, rows: list[int], columns: range, dim: int) -> None:
    """Let both coordinates of point i read column i, in every head.

    With fewer than two coordinates a point, points share coordinates (`overfill`, for demonstration).

    Args:
        weight: the key projection.
        rows: where each head's keys begin.
        columns: a column for each point.
        dim: coordinates of a key.
    """
    for row in rows:
        for point, column in enumerate(columns):
            for copy in range(DOUBLED):
                weight[row + (DOUBLED * point + copy) % dim, column] = 1.0
