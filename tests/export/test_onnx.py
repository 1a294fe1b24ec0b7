"""Graphs: onnxruntime gives the original's answers."""

from pathlib import Path

import numpy as np
import pytest

from hopbound.errors import InputError
from hopbound.export import export_model

from .models import FULL, ONE_HOP, TWO_HOPS, folder_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "hops"),
    [(FULL, 2)]
    + [
        (f"{mixer} full[heads=1,head_dim=24]", 1)
        for mixer in (
            "linear[heads=1,head_dim=24]",
            "gdn[heads=1,head_dim=24]",
            "mamba2[heads=1,head_dim=24,state=24]",
            "window[w=4,heads=1,head_dim=24]",
        )
    ],
)
def test_onnxruntime_gives_the_answers_of_the_task(schedule: str, hops: int, tmp_path: Path) -> None:
    """The file alone, at several numbers of prompts, against the task's own answers: neither is our code."""
    onnxruntime = pytest.importorskip("onnxruntime")
    task = TWO_HOPS if hops == 2 else ONE_HOP
    exported = export_model(folder_of(schedule, task, tmp_path / "model"), tmp_path / "graph", format="onnx")
    assert (exported.asked, exported.same, exported.right) == (1000, 1000, 1000)
    session = onnxruntime.InferenceSession(tmp_path / "graph" / "model.onnx", providers=["CPUExecutionProvider"])
    for count in (1, 3, 1000):
        batch = task.sample(7, "test", 0, count)
        (logits,) = session.run(["logits"], {"tokens": batch.prompts})
        assert logits.shape == (count, task.answers)
        np.testing.assert_array_equal(logits.argmax(axis=1), batch.answers)


@pytest.mark.slow
def test_a_mixer_that_cannot_be_traced_is_refused(tmp_path: Path) -> None:
    model = folder_of("mlstm[heads=1,head_dim=24] full[heads=1,head_dim=24]", ONE_HOP, tmp_path / "model")
    with pytest.raises(InputError, match=r"format: got 'onnx', expected .*mlstm.*cummax"):
        export_model(model, tmp_path / "graph", format="onnx")
    assert not (tmp_path / "graph").exists()
