"""What a stack holds for one sequence of N tokens: caches that grow, windows and states that do not."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hopbound.architecture import Layer, MixerSpec, Precisions
from hopbound.architecture.sizes.softmax import GroupedHeads


@dataclass(frozen=True, order=True)
class Held:
    """Bits that are held after N tokens.

    Attributes:
        kv_bits: of cached keys and values, those of windows included, as far as the tokens fill them.
        state_bits: of recurrent states and the columns of convolutions.
    """

    kv_bits: Fraction
    state_bits: int

    @property
    def kv_bytes(self) -> int:
        """Bytes of cached keys and values."""
        return ceil(self.kv_bits / 8)

    @property
    def state_bytes(self) -> int:
        """Bytes of states."""
        return ceil(Fraction(self.state_bits, 8))

    @property
    def bytes(self) -> int:
        """Both."""
        return self.kv_bytes + self.state_bytes


def held(layers: Iterable[Layer], precisions: Precisions, context: int) -> Held:
    """What these layers hold after `context` tokens."""
    mixers = [mixer for layer in layers for mixer in layer.mixers]
    return Held(
        sum((_kv_bits(mixer, precisions, context) for mixer in mixers), Fraction(0)),
        sum(_state_bits(mixer, precisions) for mixer in mixers),
    )


def _kv_bits(mixer: MixerSpec, precisions: Precisions, context: int) -> Fraction:
    window = mixer.elements.window
    if isinstance(mixer, GroupedHeads):
        window = min(window, mixer.one_token * context)
    return mixer.kv_bits_per_token(precisions) * context + window * precisions.kv


def _state_bits(mixer: MixerSpec, precisions: Precisions) -> int:
    elements = mixer.elements
    return elements.state * precisions.state + elements.conv * precisions.activation
