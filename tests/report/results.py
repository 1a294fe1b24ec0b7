"""One small run of the main job, made once for all tests that read its results."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hopbound.hierarchy import Hierarchy, RunSizes, run_hierarchy

STACKS = ("2*linear", "linear full", "full")
HOPS = (1, 2)
TWO_SUM = ("full", "moba[k=2,block=16]")
SIZES = RunSizes(heads=1, head_dim=6, bits=4)


@cache
def small_run() -> tuple[Path, Hierarchy]:
    """The results folder, to be read only, and what `run_hierarchy` returned."""
    folder = Path(tempfile.mkdtemp(prefix="hopbound-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, run_hierarchy(folder, sizes=SIZES, stacks=STACKS, hops=HOPS, two_sum=TWO_SUM)


def small_results() -> Path:
    return small_run()[0]
