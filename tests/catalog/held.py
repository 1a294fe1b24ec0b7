"""What a layer is expected to hold, written down by hand, and how the catalogue's layer is compared with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hopbound.catalog import Model, ModelLayer, read_config


@dataclass(frozen=True, kw_only=True)
class Held:
    """The expectation for one layer, in elements a sequence.

    Attributes:
        kinds: words of `hopbound.catalog.KINDS`.
        kv: keys and values that each token adds for ever.
        window: tokens in sight, the token itself included; None without a window.
        window_kv: keys and values of one of them.
        state: recurrent state.
        conv: columns of convolutions that are needed.
        allocated: columns that the engine allocates.
        shared_from: the layer whose keys and values it reads.
    """

    kinds: tuple[str, ...]
    kv: int = 0
    window: int | None = None
    window_kv: int = 0
    state: int = 0
    conv: int = 0
    allocated: int = 0
    shared_from: int | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file and its layers.

    Attributes:
        name: model type and what is special, `gla:convolutions`.
        config: the config.json without its model type.
        layers: what each layer holds.
        state_bits: bits an element of the recurrent state, for a model in bfloat16.
    """

    name: str
    config: Mapping[str, Any]
    layers: tuple[Held, ...]
    state_bits: int = 32

    @property
    def model_type(self) -> str:
        """The part of the name before the colon."""
        return self.name.split(":")[0]

    @property
    def raw(self) -> dict[str, Any]:
        """The whole file."""
        return {"model_type": self.model_type, **self.config}


def recurrent(state: int, channels: int = 0, kernel: int = 1) -> Held:
    """A recurrence with convolutions over `channels` in all, of which k - 1 columns are needed and k are allocated."""
    return Held(kinds=("recurrent",), state=state, conv=(kernel - 1) * channels, allocated=kernel * channels)


def full(kv: int) -> Held:
    """Attention over the whole past."""
    return Held(kinds=("full",), kv=kv)


def window(kv: int, tokens: int) -> Held:
    """Attention over a window."""
    return Held(kinds=("window",), window=tokens, window_kv=kv)


def held(layer: ModelLayer) -> Held:
    """What the catalogue says of a layer."""
    growing = layer.kv_elements_for_ever
    assert growing.denominator == 1
    assert layer.kv_elements.denominator == 1
    return Held(
        kinds=layer.kinds,
        kv=int(growing),
        window=layer.window,
        window_kv=int(layer.kv_elements - growing),
        state=layer.state_elements,
        conv=layer.conv_elements,
        allocated=layer.conv_allocated,
        shared_from=layer.kv_shared_from,
    )


def check(case: Case, **more: Any) -> Model:
    """Reads a case's file, with further fields, and compares every layer."""
    model = read_config({**case.raw, **more})
    assert tuple(map(held, model.layers)) == case.layers
    assert model.precisions.state == case.state_bits
    return model
