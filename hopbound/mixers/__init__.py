"""How positions talk: one file a mixer, the registry from names to classes."""

from typing import Any

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import Attention, WindowAttention
from hopbound.errors import InputError
from hopbound.mixers.attention import SoftmaxAttention
from hopbound.mixers.conv import CausalConvolution
from hopbound.mixers.delta import DeltaNet
from hopbound.mixers.gdn import GatedDeltaNet
from hopbound.mixers.linear import LinearAttention
from hopbound.mixers.mixer import Mixer, Reads, Sight

REGISTRY: dict[str, type[Mixer[Any, Any]]] = {
    "full": SoftmaxAttention,
    "window": SoftmaxAttention,
    "linear": LinearAttention,
    "delta": DeltaNet,
    "gdn": GatedDeltaNet,
    "conv": CausalConvolution,
}


def make_mixer(spec: MixerSpec, width: int, attention_scale: float | None = None) -> Mixer[Any, Any]:
    """The mixer of a spec on a residual stream of `width`.

    Args:
        spec: name and sizes.
        width: of the residual stream.
        attention_scale: factor on the scores of softmax attention; None: 1/√d_k.

    Raises:
        InputError: the mixer has sizes but cannot be run, or not with these sizes.
    """
    if spec.name not in REGISTRY:
        raise InputError("mixer", spec.name, f"one that can be run: {' '.join(REGISTRY)}")
    if getattr(spec, "conv", 0):
        raise InputError(f"{spec.name} conv", getattr(spec, "conv", 0), "0: the short convolution is not run inside it")
    if isinstance(spec, Attention | WindowAttention):
        return SoftmaxAttention(spec, width, attention_scale)
    return REGISTRY[spec.name](spec, width)


def check_runnable(architecture: Architecture) -> None:
    """Refuse a stack that has sizes but no weights here, before anything is done with it.

    Raises:
        InputError: as `make_mixer`.
    """
    with torch.device("meta"):
        for spec in (spec for layer in architecture.layers for spec in layer.mixers if spec.name != "mlp"):
            make_mixer(spec, 1)


__all__ = [
    "REGISTRY",
    "CausalConvolution",
    "DeltaNet",
    "GatedDeltaNet",
    "LinearAttention",
    "Mixer",
    "Reads",
    "Sight",
    "SoftmaxAttention",
    "check_runnable",
    "make_mixer",
]
