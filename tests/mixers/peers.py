"""Reference functions of other projects, each loaded from its file: their packages would import triton."""

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
