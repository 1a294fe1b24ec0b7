"""How positions talk: one file a mixer, the registry from names to classes."""

from typing import Any

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.errors import InputError
from hopbound.mixers.adakv import AdaptiveBudgetAttention
from hopbound.mixers.attention import SoftmaxAttention
from hopbound.mixers.bigbird import BlockSparse
from hopbound.mixers.chunk import ChunkAttention
from hopbound.mixers.compositional import CompositionalAttention
from hopbound.mixers.conv import CausalConvolution
from hopbound.mixers.delta import DeltaNet
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.mixers.gdn import GatedDeltaNet
from hopbound.mixers.gla import GatedLinearAttention
from hopbound.mixers.h2o import HeavyHitterAttention
from hopbound.mixers.hgrn2 import Hgrn2
from hopbound.mixers.kda import KimiDeltaAttention
from hopbound.mixers.lightning import LightningAttention
from hopbound.mixers.linear import LinearAttention
from hopbound.mixers.loglinear import LogLinearAttention
from hopbound.mixers.longformer import GlobalWindow
from hopbound.mixers.mamba import Mamba
from hopbound.mixers.mamba2 import Mamba2
from hopbound.mixers.mixer import Mixer, Reads, Sight
from hopbound.mixers.mla import MultiHeadLatentAttention
from hopbound.mixers.mlstm import MLstm
from hopbound.mixers.moba import MixtureOfBlockAttention
from hopbound.mixers.nsa import GatedSparseAttention
from hopbound.mixers.poly import PolynomialAttention
from hopbound.mixers.positions import Alibi, Encoding, Rotary
from hopbound.mixers.retnet import Retention
from hopbound.mixers.rfa import RandomFeatureAttention
from hopbound.mixers.rglru import RgLru
from hopbound.mixers.rwkv4 import Rwkv4
from hopbound.mixers.rwkv6 import Rwkv6
from hopbound.mixers.rwkv7 import Rwkv7
from hopbound.mixers.shift import TokenShift
from hopbound.mixers.softmax import SoftmaxMixer, TokenAttention
from hopbound.mixers.tglobal import TransientGlobal
from hopbound.mixers.topk import TopkAttention

REGISTRY: dict[str, type[Mixer[Any, Any]]] = {
    "full": SoftmaxAttention,
    "window": SoftmaxAttention,
    "compositional": CompositionalAttention,
    "topk": TopkAttention,
    "moba": MixtureOfBlockAttention,
    "nsa": GatedSparseAttention,
    "mla": MultiHeadLatentAttention,
    "chunk": ChunkAttention,
    "block": ChunkAttention,
    "longformer": GlobalWindow,
    "bigbird": BlockSparse,
    "tglobal": TransientGlobal,
    "h2o": HeavyHitterAttention,
    "adakv": AdaptiveBudgetAttention,
    "linear": LinearAttention,
    "rfa": RandomFeatureAttention,
    "poly": PolynomialAttention,
    "retnet": Retention,
    "gla": GatedLinearAttention,
    "hgrn2": Hgrn2,
    "delta": DeltaNet,
    "deltaproduct": DeltaProduct,
    "gdn": GatedDeltaNet,
    "kda": KimiDeltaAttention,
    "rwkv4": Rwkv4,
    "rwkv6": Rwkv6,
    "rwkv7": Rwkv7,
    "mamba": Mamba,
    "mamba2": Mamba2,
    "rglru": RgLru,
    "mlstm": MLstm,
    "loglinear": LogLinearAttention,
    "lightning": LightningAttention,
    "conv": CausalConvolution,
    "shift": TokenShift,
}


def make_mixer(
    spec: MixerSpec, width: int, attention_scale: float | None = None, encoding: Encoding = None
) -> Mixer[Any, Any]:
    """The mixer of a spec on a residual stream of `width`.

    Args:
        spec: name and sizes.
        width: of the residual stream.
        attention_scale: factor on the scores of softmax attention; None: 1/√d_k.
        encoding: of positions in softmax attention; other mixers have none.

    Raises:
        InputError: the mixer has sizes but cannot be run, or not with these sizes.
    """
    if spec.name not in REGISTRY:
        raise InputError("mixer", spec.name, f"one that can be run: {' '.join(REGISTRY)}")
    made = REGISTRY[spec.name]
    if issubclass(made, TokenAttention):
        return made(spec, width, attention_scale, encoding)
    return made(spec, width)


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
    "Alibi",
    "CausalConvolution",
    "DeltaNet",
    "Encoding",
    "GatedDeltaNet",
    "LinearAttention",
    "Mixer",
    "Reads",
    "Rotary",
    "Sight",
    "SoftmaxAttention",
    "SoftmaxMixer",
    "check_runnable",
    "make_mixer",
]
