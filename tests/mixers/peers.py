"""Reference functions of other projects, each loaded from its file: their packages would import triton; comparisons."""

import importlib.metadata
import importlib.util
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.func import functional_call


def _block_means(x: Tensor, chunk_size: int, cu_seqlens: None = None) -> Tensor:
    """Stands for fla's `mean_pooling`, a kernel: means over blocks of tokens of [batch, time, heads, dim]."""
    return torch.stack([block.mean(dim=1) for block in x.split(chunk_size, dim=1)], dim=1)


def _refused(*_: Any) -> None:
    raise NotImplementedError("packed sequences")


def _stand_ins() -> dict[str, ModuleType]:
    """Modules of fla that some files import from, without triton."""
    modules = {name: ModuleType(name) for name in ("fla", "fla.ops", "fla.ops.utils", "fla.ops.utils.pooling")}
    setattr(modules["fla.ops.utils"], "prepare_chunk_offsets", _refused)  # noqa: B010
    setattr(modules["fla.ops.utils.pooling"], "mean_pooling", _block_means)  # noqa: B010
    return modules


@cache
def fla(module: str, function: str) -> Callable[..., Any]:
    """A function of `fla/ops/<module>.py` of flash-linear-attention."""
    files = importlib.metadata.files("fla-core") or []
    path = next(Path(str(file.locate())) for file in files if str(file).endswith(f"fla/ops/{module}.py"))
    spec = importlib.util.spec_from_file_location(f"peer_{module.replace('/', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, _stand_ins()), warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # some say that they miss a package of kernels
        spec.loader.exec_module(loaded)
    return getattr(loaded, function)


def near(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    """Alike, relative to the largest number; unless said otherwise as far as float32 goes."""
    torch.testing.assert_close(one, other, atol=tolerance * float(other.detach().abs().max()), rtol=0)


def alike(mixer: Any, x: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """The mixer's outputs for `x`, which must ask for gradients, and the gradients of `x` and of all parameters."""
    ours = mixer(x)[0]
    near(ours, expected, tolerance)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(5))
    names, parameters = zip(*mixer.named_parameters(), strict=True)
    both = (torch.autograd.grad((y * weights).sum(), [x, *parameters], allow_unused=True) for y in (ours, expected))
    for name, one, other in zip(("x", *names), *both, strict=True):
        assert (one is None) == (other is None), name
        if one is not None and other is not None:
            near(one, other, tolerance)


def peer_output(peer: Any, weights: dict[str, Tensor], *given: Any) -> Tensor:
    """Of a peer with these weights, through which gradients flow; where it returns more, what comes first."""
    output = functional_call(peer, weights, given)
    return output[0] if isinstance(output, tuple) else output
