"""What a stack's bounded layers hold after a past, as plain vectors, and how far two of them are apart."""

import numpy as np
import torch
from numpy.typing import NDArray

from hopbound.architecture import Kind
from hopbound.decoder import Decoder
from hopbound.mixers.mixer import state_tensors

ROUNDING = 2.0**-8
"""Half a unit in the last place of bfloat16, relative: states no further apart are the same after rounding to it."""

ELEMENTS_AT_ONCE = 2**22


def has_bounded_layers(decoder: Decoder) -> bool:
    """Whether some layer keeps a state of a fixed size."""
    return bool(decoder.config.architecture.bounded_layers)


def unbounded_mixers(decoder: Decoder) -> list[str]:
    """Names of the mixers whose memory grows with the past, so that two different pasts never leave the same."""
    layers = decoder.config.architecture.layers
    return sorted({mixer.name for layer in layers for mixer in layer.mixers if mixer.kind is Kind.FULL})


@torch.no_grad()
def bounded_states(decoder: Decoder, pasts: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """The states of the bounded mixers after each past: one array [N, elements] for each tensor they keep.

    Args:
        decoder: the model; its full layers take part in computing the states but their caches are left out.
        pasts: int64 [N, t], t at least 1.
    """
    layers = decoder.config.architecture.layers
    rows = max(1, ELEMENTS_AT_ONCE // (pasts.shape[1] * decoder.config.width))
    parts: list[list[NDArray[np.float64]]] = []
    for tokens in torch.from_numpy(pasts).split(rows):
        _, state = decoder(tokens)
        kept: list[NDArray[np.float64]] = []
        for layer, held in zip(layers, state.layers, strict=True):
            mixers = [mixer for mixer in layer.mixers if mixer.name != "mlp"]
            for mixer, mine in zip(mixers, held, strict=True):
                if mixer.kind is Kind.BOUNDED:
                    tensors = (tensor for tensor in state_tensors(mine) if tensor.is_floating_point())
                    kept += [tensor.flatten(1).double().numpy() for tensor in tensors]
        parts.append(kept)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def scaled(states: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All states side by side, [N, elements], each tensor divided by its largest element."""
    columns = [part / max(float(np.abs(part).max(initial=0.0)), 1e-30) for part in states if part.shape[1]]
    return np.concatenate(columns, axis=1) if columns else np.zeros((len(states[0]) if states else 0, 0))


def distance(states: list[NDArray[np.float64]], first: int, second: int) -> float:
    """The largest difference of two rows' states, tensor by tensor relative to the tensor's largest element."""
    worst = 0.0
    for part in states:
        size = float(np.abs(part[[first, second]]).max(initial=0.0))
        if size:
            worst = max(worst, float(np.abs(part[first] - part[second]).max()) / size)
    return worst
