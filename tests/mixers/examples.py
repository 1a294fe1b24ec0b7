"""Every registered mixer with unequal dimensions and random weights, for the tests of this folder."""

from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hopbound.architecture import ROWS, MixerSpec, mixer_spec
from hopbound.mixers import REGISTRY, Alibi, Encoding, Mixer, Rotary, make_mixer
from hopbound.mixers.rfa import RandomFeatureAttention

WIDTH = 6
SIZES = {
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 3,
    "value_dim": 5,
    "w": 7,
    "channels": 5,
    "kernel": 4,
    "state": 3,
    "latent": 7,
    "global_tokens": 2,
    "random": 2,
    "rope_dim": 2,
    "groups": 2,
    "k": 2,
    "block": 4,
    "levels": 9,
    "budget": 5,
    "recent": 2,
    "retrievals": 3,
    "select_dim": 2,
    "index_heads": 3,
    "index_dim": 2,
}

# Mixers of which a token can leave the state as it is, to the bit: those without a decay that never is 1.
IDLE = ("linear", "delta", "gdn")

# Parameters that only have a part in a choice: no gradient reaches them from the output.
CHOOSE = {"topk": ("index_query.weight", "index_key.weight", "index_weight.weight")}

# Each mixer, and those with options of their sizes that change what is computed.
VARIANTS: dict[str, tuple[str, dict[str, int]]] = {
    **{name: (name, {}) for name in REGISTRY},
    "moba many": ("moba", {"k": 4, "block": 3, "kv_heads": 4}),
    "nsa many": ("nsa", {"k": 5, "block": 3}),
    "full gate": ("full", {"gate": 1}),
    "full rotary": ("full", {}),
    "full alibi": ("full", {}),
    "window rotary": ("window", {"gate": 1}),
    "window alibi": ("window", {}),
    "chunk rotary": ("chunk", {}),
    "mla rotary": ("mla", {}),
    "longformer rotary": ("longformer", {"w": 5, "global_tokens": 3, "gate": 1}),
    "bigbird rotary": ("bigbird", {"w": 2, "block": 3}),
    "tglobal gate": ("tglobal", {"w": 3, "block": 6, "gate": 1}),
    "linear conv": ("linear", {"conv": 3}),
    "gdn conv": ("gdn", {"conv": 4, "beta": 2}),
    "delta beta 2": ("delta", {"beta": 2}),
    "gdn shared keys": ("gdn", {"conv": 3, "heads": 4, "key_heads": 2}),
    "kda shared keys": ("kda", {"heads": 4, "key_heads": 2}),
    "deltaproduct shared keys": ("deltaproduct", {"heads": 4, "key_heads": 2}),
    "deltaproduct conv": ("deltaproduct", {"conv": 3, "steps": 3, "beta": 2}),
    "mamba2 conv": ("mamba2", {"conv": 4}),
    "mamba conv": ("mamba", {"conv": 3}),
    "mlstm conv": ("mlstm", {"conv": 3}),
    "rglru conv": ("rglru", {"conv": 3}),
    "loglinear few": ("loglinear", {"levels": 4}),  # the last one holds all that is older
}
every_mixer = pytest.mark.parametrize("name", VARIANTS)


def encoding_of(name: str) -> Encoding:
    """What the variant's name says of positions."""
    return Rotary(base=100.0) if "rotary" in name else Alibi() if "alibi" in name else None


def example_spec(name: str, **sizes: int) -> MixerSpec:
    name, options = VARIANTS[name]
    sizes = options | sizes
    keys = ROWS[name].keys
    return mixer_spec(name, {key: value for key, value in (SIZES | sizes).items() if key in keys})


def example(name: str, dtype: torch.dtype = torch.float64, seed: int = 0, **sizes: int) -> Mixer[Any, Any]:
    """A mixer whose every parameter, biases and gates included, is random."""
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        mixer = make_mixer(example_spec(name, **sizes), WIDTH, encoding=encoding_of(name))
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.copy_(torch.from_numpy(0.6 * rng.standard_normal(tuple(parameter.shape))))
        if isinstance(mixer, RandomFeatureAttention):
            mixer.directions.mul_(0.3)  # so few random features are close to a kernel only where its argument is small
    return mixer.to(dtype)


def random_input(time: int, batch: int = 2, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((batch, time, WIDTH))).to(dtype)


def in_pieces(mixer: Mixer[Any, Any], x: Tensor, sizes: list[int], state: Any = None) -> tuple[Tensor, Any]:
    """Outputs and last state when `x` comes in pieces, the state carried on."""
    outputs = []
    for piece in x.split(sizes, dim=1):
        output, state = mixer(piece, state)
        outputs.append(output)
    return torch.cat(outputs, dim=1), state


def detached(state: Any) -> Any:
    """A state of its own, with gradients."""
    if isinstance(state, Tensor):
        return state.detach().requires_grad_() if state.is_floating_point() else state
    if not is_dataclass(state) or isinstance(state, type):
        return state
    return replace(state, **{key: detached(value) for key, value in vars(state).items()})


def tensors(state: Any) -> list[Tensor]:
    """The tensors of numbers that a state holds; counts of tokens are none."""
    if isinstance(state, Tensor):
        return [state] if state.is_floating_point() else []
    return [tensor for value in vars(state).values() for tensor in tensors(value)] if is_dataclass(state) else []
