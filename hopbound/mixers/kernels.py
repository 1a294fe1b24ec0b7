"""flash-linear-attention's kernels behind the engines: the same recurrences, on a CUDA device, in half precision.

The extra `gpu` brings them. An engine asks `usable`; where the device, the package or the precision is missing, it
computes with torch. The kernels round queries, keys and values to the model's own type and keep states in float32.
Several of them refuse float32, so that models in float32 are always computed with torch, as exactly as on a CPU.

Layouts differ: theirs is [batch, time, heads, dim], ours [batch, heads, time, dim]. They scale queries unless told not
to.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.mixers.chunks import Decays

Result = tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]
HALF = (torch.bfloat16, torch.float16)
LARGEST_DIM = 256  # of a head, in the kernels

_allowed: ContextVar[bool] = ContextVar("kernels_allowed", default=True)


@contextmanager
def without_kernels() -> Iterator[None]:
    """Compute with torch, whatever is there."""
    token = _allowed.set(False)
    try:
        yield
    finally:
        _allowed.reset(token)


@cache
def find(module: str, function: str) -> Callable[..., Any] | None:
    """A function of the package; None: it is not installed, or cannot be loaded here."""
    try:
        return getattr(import_module(f"fla.ops.{module}"), function)
    except ImportError:
        return None


def usable(queries: Tensor, dtype: torch.dtype) -> bool:
    """Whether a model in `dtype` is computed by kernels where its tensors are."""
    if not queries.is_cuda or dtype not in HALF or not _allowed.get():
        return False
    return queries.shape[-1] <= LARGEST_DIM and find("simple_gla", "chunk_simple_gla") is not None


def _turned(dtype: torch.dtype, *parts: Tensor) -> list[Tensor]:
    """Time before heads, rounded."""
    return [part.transpose(1, 2).to(dtype).contiguous() for part in parts]


def _called(module: str, function: str, given: list[Tensor], matrix: Tensor) -> Result:
    """The kernel's outputs and last state in our layout, in float32."""
    kernel = find(module, function)
    assert kernel is not None
    output, last = kernel(*given, scale=1.0, initial_state=matrix.float(), output_final_state=True)
    return output.transpose(1, 2).float(), last


def decayed_attention(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    log_decay: Decays,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    bonus: Float[Tensor, "heads key_dim"] | None,
    dtype: torch.dtype,
) -> Result:
    """As `hopbound.mixers.decayed.decayed_attention`, in chunks."""
    given = _turned(dtype, queries, keys, values)
    if log_decay is None:
        log_decay = queries.new_zeros(queries.shape[:3])
    given += _turned(torch.float32, log_decay.expand(queries.shape[0], *log_decay.shape[1:]))
    if bonus is not None:
        return _called("rwkv6", "chunk_rwkv6", [*given, bonus], matrix)
    if log_decay.dim() == 3:
        return _called("simple_gla", "chunk_simple_gla", given, matrix)
    return _called("gla", "chunk_gla", given, matrix)


def delta_rule(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    strength: Float[Tensor, "batch heads time"],
    log_decay: Decays,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    dtype: torch.dtype,
) -> Result:
    """As `hopbound.mixers.delta_rule.delta_rule`, in chunks."""
    given = _turned(dtype, queries, keys, values)
    (beta,) = _turned(dtype, strength)
    if log_decay is None:
        return _called("delta_rule", "chunk_delta_rule", [*given, beta], matrix)
    given += [*_turned(torch.float32, log_decay), beta]
    if log_decay.dim() == 3:
        return _called("gated_delta_rule", "chunk_gated_delta_rule", given, matrix)
    return _called("kda", "chunk_kda", given, matrix)


def dplr(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    asks: Float[Tensor, "batch heads time key_dim"],
    replies: Float[Tensor, "batch heads time key_dim"],
    log_decay: Float[Tensor, "batch heads time key_dim"],
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
    dtype: torch.dtype,
) -> Result:
    """As `hopbound.mixers.dplr.dplr`, in chunks."""
    given = [*_turned(dtype, queries, keys, values, asks, replies), *_turned(torch.float32, log_decay)]
    return _called("generalized_delta_rule", "chunk_dplr_delta_rule", given, matrix)
