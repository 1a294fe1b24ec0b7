"""Reference functions of other projects, each loaded from its file: their packages would import triton."""

import importlib.metadata
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


@cache
def fla(module: str, function: str) -> Callable[..., Any]:
    """A function of `fla/ops/<module>.py` of flash-linear-attention."""
    files = importlib.metadata.files("fla-core") or []
    path = next(Path(str(file.locate())) for file in files if str(file).endswith(f"fla/ops/{module}.py"))
    spec = importlib.util.spec_from_file_location(f"peer_{module.replace('/', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, function)
