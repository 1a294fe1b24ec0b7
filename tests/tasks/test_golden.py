"""The bytes of every task, which must never change: the same in other processes, batches and hash seeds."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hopbound.tasks import SEQUENCE_TASKS, parse_sequence_task
from hopbound.tasks.dataset import ExamplesHash

GOLDEN: dict[str, str] = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
COUNT = 2048


def test_every_task_has_its_bytes() -> None:
    assert {parse_sequence_task(text).name for text in GOLDEN} == set(SEQUENCE_TASKS)


@pytest.mark.parametrize("text", GOLDEN)
def test_golden_bytes(text: str) -> None:
    """The sha256 of the first examples, each its tokens and then its labels as little-endian 64-bit integers."""
    made = parse_sequence_task(text).labelled(0, "train", 0, COUNT)
    rows = np.concatenate([made.tokens, made.labels], axis=1).astype("<i8")
    assert hashlib.sha256(rows.tobytes()).hexdigest() == GOLDEN[text]
    digest = ExamplesHash()
    digest.update(made)
    assert digest.hexdigest() == GOLDEN[text]


PROGRAM = """
import json, sys
from hopbound.tasks import parse_sequence_task
from hopbound.tasks.dataset import ExamplesHash
found = {}
for text in json.loads(sys.argv[1]):
    task, digest = parse_sequence_task(text), ExamplesHash()
    for start in range(0, 2048, int(sys.argv[2])):
        digest.update(task.labelled(0, "train", start, min(int(sys.argv[2]), 2048 - start)))
    found[text] = digest.hexdigest()
print(json.dumps(found))
"""


@pytest.mark.parametrize(("hash_seed", "size"), [("1", 97), ("2", 1500)])
def test_other_processes_and_batches_give_the_same_bytes(hash_seed: str, size: int) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(list(GOLDEN)), str(size)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == GOLDEN
