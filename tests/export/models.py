"""Model folders to export."""

from pathlib import Path

from hopbound.architecture import parse_schedule
from hopbound.constructions import build
from hopbound.tasks import FunctionComposition, Task

ONE_HOP = FunctionComposition(1, 8, ())
TWO_HOPS = FunctionComposition(2, 4, (4,))
SHARED_KEYS = "3*full[heads=4,kv_heads=2,head_dim=10]"
FULL = "3*full[heads=1,head_dim=24]"


def folder_of(schedule: str, task: Task, path: Path) -> Path:
    result = build(parse_schedule(schedule), task, out=path)
    assert result.path is not None
    return result.path
