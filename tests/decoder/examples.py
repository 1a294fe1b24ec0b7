"""Decoders with random weights, dense or with many zeros, for the tests of this folder."""

import numpy as np
import torch
from torch import Tensor

from hopbound.architecture import Precisions, parse_schedule
from hopbound.decoder import (
    Decoder,
    DecoderConfig,
    DigitField,
    PositionCode,
    ReadoutCode,
    SegmentCode,
    TokenCode,
)

WIDTH = 9
VOCABULARY = 8
ANSWERS = 6
LENGTH = 40

MIXERS = (
    "full[heads=2,kv_heads=1,head_dim=3,value_dim=2]",
    "full[heads=2,kv_heads=2,head_dim=2,value_dim=3]",
    "window[heads=2,kv_heads=1,head_dim=3,value_dim=2,w=4]",
    "conv[channels=5,kernel=3]",
    "linear[heads=2,head_dim=3,value_dim=2]",
    "delta[heads=2,head_dim=3,value_dim=2]",
    "gdn[heads=2,head_dim=3,value_dim=2]",
)

# Mixers that choose, by scores that differ where the tokens do.
CHOOSING = (
    "compositional[heads=2,retrievals=3,head_dim=3,value_dim=2]",
    "topk[heads=2,kv_heads=1,head_dim=3,value_dim=2,k=5,index_heads=16]",
    "moba[heads=2,kv_heads=2,head_dim=3,value_dim=2,k=3,block=5]",
    "nsa[heads=2,kv_heads=1,head_dim=3,value_dim=2,k=4,block=3,w=6]",
    "h2o[heads=2,kv_heads=1,head_dim=3,value_dim=2,budget=6]",
    "adakv[heads=2,kv_heads=2,head_dim=3,value_dim=2,budget=6]",
)


def config(
    schedule: str,
    *,
    hidden: tuple[int, ...] | None = None,
    norm: str = "none",
    coded: bool = False,
    positions: bool = True,
) -> DecoderConfig:
    """A config for the sizes above; `coded` takes digits by rule in place of tables."""
    layers = len(parse_schedule(schedule).layers)
    codes = PositionCode(
        (
            SegmentCode("long", LENGTH - 3, (DigitField(1, 2, 16, 3), DigitField(0, 1, 2, 1)), ((4, 1.0),)),
            SegmentCode("short", 3, (), ((4, 1.0), (5, -1.0))),
        )
    )
    return DecoderConfig(
        schedule=schedule,
        precisions=Precisions(),
        vocabulary=VOCABULARY,
        answers=ANSWERS,
        width=WIDTH,
        hidden=(7,) * layers if hidden is None else hidden,
        activation="relu",
        norm="rms" if norm == "rms" else "none",
        scores="rsqrt",
        tokens=TokenCode((DigitField(6, 1, 8, 3),)) if coded else None,
        positions=None if not positions else codes if coded else LENGTH,
        readout=ReadoutCode(DigitField(2, 1, ANSWERS, 3)) if coded else None,
    )


def random_decoder(config: DecoderConfig, seed: int = 0, zeros: float = 0.0) -> Decoder:
    """Every parameter random, in float64; a fraction `zeros` of the rows and of the columns of each matrix is zero."""
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        decoder = Decoder(config).double()
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            value = rng.standard_normal(tuple(parameter.shape)) * (0.7 if parameter.dim() > 1 else 0.3)
            if parameter.dim() == 2 and "table" not in name:
                value[rng.random(value.shape[0]) < zeros] = 0.0
                value[:, rng.random(value.shape[1]) < zeros] = 0.0
            elif parameter.dim() == 1 and "norm" not in name:
                value[rng.random(value.shape) < zeros] = 0.0
            if name.endswith("rate_bias") and rng.random() < zeros:
                value[:] = -1000.0  # a decay of exactly 1
            parameter.copy_(torch.from_numpy(value))
    return decoder.eval().requires_grad_(False)


def random_tokens(batch: int = 3, time: int = LENGTH, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, VOCABULARY, (batch, time)))


def random_sparse_decoder(seed: int) -> Decoder:
    """A random stack, mixers in parallel included, with and without maps, codes and positions, three quarters zero."""
    rng = np.random.default_rng(seed)
    layers = ["|".join(rng.choice(MIXERS, rng.integers(1, 3))) for _ in range(rng.integers(1, 5))]
    hidden = tuple(int(size) for size in rng.choice([0, 5], len(layers)))
    made = config(" ".join(layers), hidden=hidden, coded=bool(rng.integers(2)), positions=bool(rng.integers(4)))
    return random_decoder(made, seed=seed, zeros=float(rng.choice([0.3, 0.5, 0.7])))
