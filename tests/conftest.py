"""What holds in every test: shapes are checked, one thread, poisoned memory, the global generators left alone."""

import random
from collections.abc import Iterator

import hypothesis
import jaxtyping
import numpy as np
import pytest
import torch

# Every shape in a signature of these packages is checked in every call; the hook must stand before they are imported.
# By default beartype draws the list items that it looks at from the global generator of `random`, and minds an int
# where a float is expected.
jaxtyping.install_import_hook(
    ["hopbound.mixers", "hopbound.decoder", "hopbound.constructions"],
    "beartype.beartype(conf=beartype.BeartypeConf(is_random=False, is_pep484_tower=True))",
)

torch.set_num_threads(1)
hypothesis.settings.register_profile("hopbound", deadline=None)  # no test fails because a machine is busy
hypothesis.settings.load_profile("hopbound")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device and the extra gpu")
    config.addinivalue_line("markers", "draws: may move the global generators of random, numpy or torch")


@pytest.fixture(scope="session", autouse=True)
def poisoned_memory() -> Iterator[None]:
    """`torch.empty` holds NaN, so that whoever forgets to write is found."""
    torch.use_deterministic_algorithms(True)  # with torch.utils.deterministic.fill_uninitialized_memory, the default
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def untouched_generators(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whoever draws must draw from a generator of their own; the mark `draws` excuses a test."""
    python, numpy, torch_ = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    yield
    moved = []
    if random.getstate() != python:
        moved.append("random")
        random.setstate(python)
    if repr(np.random.get_state(legacy=False)) != repr(numpy):
        moved.append("numpy")
        np.random.set_state(numpy)
    if not torch.equal(torch.get_rng_state(), torch_):
        moved.append("torch")
        torch.set_rng_state(torch_)
    excused = request.node.get_closest_marker("draws") is not None
    assert excused or not moved, f"the test moved the global generator of {' and '.join(moved)}"


@pytest.fixture
def without_mamba(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mamba` has sizes but cannot be run, as every mixer did that was not written yet."""
    from hopbound.mixers import REGISTRY  # not before the check of shapes is set up

    monkeypatch.delitem(REGISTRY, "mamba")
