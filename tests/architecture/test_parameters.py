"""Counts of parameters against the tensors of the mixers."""

from dataclasses import replace

import pytest
import torch

from hopbound.architecture import ROWS, mixer_parameters, mixer_spec
from hopbound.errors import InputError
from hopbound.mixers import REGISTRY
from tests.mixers.examples import WIDTH, every_mixer, example


@every_mixer
@pytest.mark.parametrize("sizes", [{}, {"heads": 2, "kv_heads": 1, "channels": 3, "value_dim": 2}], ids=str)
def test_the_count_is_that_of_the_tensors(name: str, sizes: dict[str, int]) -> None:
    mixer = example(name, torch.float64, **sizes)
    counted = sum(parameter.numel() for parameter in mixer.parameters())
    assert mixer_parameters(mixer.spec, WIDTH) == counted, f"{name}: see hopbound/architecture/parameters.py"


def test_every_mixer_of_the_table_is_counted() -> None:
    assert {name for name, row in ROWS.items() if row.runs} == set(REGISTRY)
    assert mixer_parameters(mixer_spec("mlp"), WIDTH) == 0


def test_an_unknown_mixer_is_refused() -> None:
    strange = replace(mixer_spec("gdn"), name="strange")
    with pytest.raises(InputError, match=r"^mixer: got 'strange', expected one whose parameters are counted"):
        mixer_parameters(strange, WIDTH)
