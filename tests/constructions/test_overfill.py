"""Accuracy beyond the capacity: whole within it, less beyond; and the figure that shows it."""

from pathlib import Path

import pytest

from hopbound.architecture import parse_schedule
from hopbound.constructions.overfill import Overfill, measure_overfill
from hopbound.errors import InputError
from hopbound.report.overfill import write_overfill


@pytest.fixture(scope="module")
def found() -> Overfill:
    """Four rows of 8 numbers of 5 digits hold 8 values of 5 bits each."""
    return measure_overfill(
        parse_schedule("2*linear[head_dim=4,value_dim=8] full[head_dim=16]"), 2, (2, 4, 5, 8, 24), instances=60
    )


def test_right_on_all_that_fits_and_not_on_more(found: Overfill) -> None:
    built = found.capacity.built
    assert {(one.m, one.memory, one.fits) for one in found.measured} >= {
        (2, "an entry a row", True),
        (5, "an entry a row", False),
        (5, "packed", True),
        (built, "packed", True),
        (built + 1, "packed", False),
    }
    for one in found.measured:
        assert one.fits == (one.m <= (4 if one.memory == "an entry a row" else built))
        assert (one.accuracy == 1.0) == one.fits
        assert one.chance == 1 / one.m


def test_between_what_is_built_and_what_is_impossible(found: Overfill) -> None:
    assert found.capacity.built == 4 * (8 * 5 // 5)
    assert found.capacity.impossible > found.capacity.built


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_figure(found: Overfill, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"overfill.{suffix}"
    write_overfill(found.document(), path)
    if suffix == "svg":
        text = path.read_text(encoding="utf-8")
        assert f"built up to m = {found.capacity.built}" in text
        assert f"impossible at m = {found.capacity.impossible:,}" in text
    assert path.stat().st_size > 1000


def test_a_stack_that_needs_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="schedule"):
        measure_overfill(parse_schedule("conv 2*full"), 2, (4,))
