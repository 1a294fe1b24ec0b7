"""A stack of layers: what is full, what is bounded, and how many bits cross a cut.

*Runs* (arXiv 2602.01763, Section 2): with F full layers, `σ_0` is the state of the bounded layers before the first
full layer, `σ_s` of those between full layers s and s+1, `σ_F` of those after the last, all in bits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hopbound.architecture.mixer import Kind, MixerSpec, Precisions
from hopbound.architecture.specs import ROWS
from hopbound.errors import InputError


@dataclass(frozen=True)
class LayerBits:
    """What one layer lets across a cut: a state of `bits` (bounded), or a summary of `bits` for each query (full)."""

    kind: Literal["full", "bounded"]
    bits: int


@dataclass(frozen=True)
class Layer:
    """One layer: mixers in parallel that read the same input and add to the same residual stream."""

    mixers: tuple[MixerSpec, ...]

    def __post_init__(self) -> None:
        if not self.mixers:
            raise InputError("layer", self.mixers, "at least one mixer")

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of its mixers, each once, in order."""
        return tuple(dict.fromkeys(mixer.kind for mixer in self.mixers))

    def bits(self, precisions: Precisions) -> tuple[LayerBits | None, LayerBits | None]:
        """Its full part (summaries of parallel full mixers add up) and its bounded part, None where it has none."""
        full = [m.summary_bits(precisions) for m in self.mixers if m.kind is Kind.FULL]
        state = [m.state_bits(precisions) for m in self.mixers if m.kind is Kind.BOUNDED]
        return LayerBits("full", sum(full)) if full else None, LayerBits("bounded", sum(state)) if state else None


@dataclass(frozen=True)
class Runs:
    """The numbers that the theorems take from a stack, in bits.

    Attributes:
        summaries: `b_1..b_F`, one a full layer.
        states: `σ_0..σ_F`, the bounded layers before, between and after the full ones.
    """

    summaries: tuple[int, ...]
    states: tuple[int, ...]


def runs(layers: Iterable[LayerBits]) -> Runs:
    """Collect the states of the bounded layers between the full ones."""
    summaries: list[int] = []
    states = [0]
    for layer in layers:
        if layer.kind == "full":
            summaries.append(layer.bits)
            states.append(0)
        else:
            states[-1] += layer.bits
    return Runs(tuple(summaries), tuple(states))


@dataclass(frozen=True)
class Architecture:
    """A schedule of layers with the precisions in which they keep things.

    Attributes:
        layers: from the input to the output.
        precisions: bits an element.
    """

    layers: tuple[Layer, ...]
    precisions: Precisions

    def __post_init__(self) -> None:
        if not self.layers:
            raise InputError("schedule", "", "at least one layer")

    def __str__(self) -> str:
        from hopbound.architecture.schedule import format_schedule

        return format_schedule(self.layers)

    @property
    def label(self) -> str:
        """The schedule by names only, for tables."""
        from hopbound.architecture.schedule import format_names

        return format_names(self.layers)

    @property
    def full_layers(self) -> tuple[int, ...]:
        """Indices, from 0, of the layers that hold a full mixer."""
        return tuple(i for i, layer in enumerate(self.layers) if Kind.FULL in layer.kinds)

    @property
    def bounded_layers(self) -> tuple[int, ...]:
        """Indices, from 0, of the layers that hold a bounded mixer."""
        return tuple(i for i, layer in enumerate(self.layers) if Kind.BOUNDED in layer.kinds)

    @property
    def hdp(self) -> int:
        """The largest heads · head dimension · bits of a mixer: `Hdp` of the papers' thresholds."""
        bits = {Kind.FULL: self.precisions.summary, Kind.BOUNDED: self.precisions.state, Kind.POINTWISE: 0}
        return max(mixer.width * bits[mixer.kind] for layer in self.layers for mixer in layer.mixers)

    @property
    def state_bits(self) -> int:
        """Bits of all states of one sequence, keys and values of full layers not counted."""
        return sum(mixer.state_bits(self.precisions) for layer in self.layers for mixer in layer.mixers)

    @property
    def kv_bits_per_token(self) -> Fraction:
        """Bits that each token adds to the caches for ever."""
        parts = (mixer.kv_bits_per_token(self.precisions) for layer in self.layers for mixer in layer.mixers)
        return sum(parts, Fraction(0))

    def layer_bits(self) -> tuple[tuple[LayerBits, ...], ...]:
        """The stack as layers in sequence: what each lets across a cut.

        A layer with full and bounded mixers in parallel is covered by a bounded layer next to a full one, in either
        order (a longer stack can do all that it does); where there is such a layer both readings are returned, the
        bounded parts after the full ones first. Position-wise layers let nothing across and are left out.
        """
        parts = [layer.bits(self.precisions) for layer in self.layers]
        after = tuple(part for full, bounded in parts for part in (full, bounded) if part is not None)
        before = tuple(part for full, bounded in parts for part in (bounded, full) if part is not None)
        return (after,) if after == before else (after, before)

    @property
    def length_limit(self) -> int | None:
        """The longest prompt for which the stated sizes hold; None for every length."""
        limits = [m.elements.length_limit for layer in self.layers for m in layer.mixers]
        return min((limit for limit in limits if limit is not None), default=None)

    def exclusions(self) -> tuple[str, ...]:
        """Why the theorems do not speak of this stack, one line a mixer; empty if they do."""
        names = dict.fromkeys(mixer.name for layer in self.layers for mixer in layer.mixers)
        return tuple(f"{name} {ROWS[name].excluded}" for name in names if ROWS[name].excluded)
