"""The data rule: bytes that depend on the key and the example's number alone."""

import hashlib
import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition
from hopbound.tasks.stream import BLOCK, MAX_RANGE, below, block_key, integers, words


def sha256(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def test_philox_is_the_published_one() -> None:
    # Random123's known answer for Philox 4x64-10 with counter 0 and key 0; numpy adds 1 to the counter first.
    raw = np.random.Philox(key=0, counter=2**256 - 1).random_raw(4)
    assert [f"{word:016x}" for word in raw.tolist()] == [
        "16554d9eca36314c",
        "db20fe9d672d0fdc",
        "d7e772cee186176b",
        "7e68b68aec7ba23b",
    ]


def test_key_is_the_start_of_the_sha256_of_a_json_list() -> None:
    digest = hashlib.sha256(b'[7,"a task","train",3]').digest()
    assert block_key(7, "a task", "train", 3) == int.from_bytes(digest[:16], "little")


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 13])
def test_an_example_is_reached_by_its_counter(columns: int) -> None:
    """Any range equals the same rows of the whole blocks, drawn in one go by the rule's own text."""
    width = -(-columns // 4) * 4
    blocks = [
        np.random.Philox(key=block_key(1, "t", "s", block), counter=0)
        .random_raw(BLOCK * width)
        .reshape(BLOCK, width)[:, :columns]
        for block in range(3)
    ]
    whole = np.concatenate(blocks)
    for start, count in [(0, 1), (5, 0), (1023, 2), (1024, 1024), (700, 2000), (3071, 1)]:
        np.testing.assert_array_equal(words(1, "t", "s", start, count, columns), whole[start : start + count])


def test_integers_are_the_words_of_the_stream_converted() -> None:
    ranges = np.arange(1, 300, dtype=np.int64)
    drawn = below(words(3, "t", "s", 900, 2000, ranges.size), ranges)
    np.testing.assert_array_equal(integers(3, "t", "s", 900, 2000, ranges), drawn)


word = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
size = st.integers(1, MAX_RANGE) | st.sampled_from([1, 2, 2**31, 2**32 - 1, 2**32])


@given(rows=st.lists(st.tuples(word, word), min_size=1, max_size=20), ranges=st.tuples(size, size))
def test_below_is_multiply_high(rows: list[tuple[int, int]], ranges: tuple[int, int]) -> None:
    drawn = np.array(rows, dtype=np.uint64)
    before = drawn.copy()
    made = below(drawn, np.array(ranges, dtype=np.int64))
    assert made.dtype == np.int64
    assert made.tolist() == [[w * k >> 64 for w, k in zip(row, ranges, strict=True)] for row in rows]
    np.testing.assert_array_equal(drawn, before)


@pytest.mark.parametrize("bad", [0, -1, 2**32 + 1])
def test_below_refuses_a_range_it_cannot_convert(bad: int) -> None:
    with pytest.raises(InputError, match="ranges: got"):
        below(np.zeros((1, 2), dtype=np.uint64), np.array([3, bad]))


@pytest.mark.parametrize(
    ("seed", "split", "start", "count", "message"),
    [
        (1.5, "train", 0, 1, "seed: got 1.5, expected a whole number"),
        (True, "train", 0, 1, "seed: got True"),
        (0, 3, 0, 1, "split: got 3, expected a name"),
        (0, "train", -1, 1, "start: got -1, expected a whole number of at least 0"),
        (0, "train", 0, -1, "count: got -1"),
        (0, "train", 0, 1.0, "count: got 1.0"),
    ],
)
def test_wrong_ranges_and_keys_are_refused(seed: int, split: str, start: int, count: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        integers(seed, "t", split, start, count, np.array([2]))


def test_keys_differ_in_every_part() -> None:
    keys = {
        block_key(0, "t", "s", 0),
        block_key(1, "t", "s", 0),
        block_key(0, "u", "s", 0),
        block_key(0, "t", "r", 0),
        block_key(0, "t", "s", 1),
        block_key(0, 't","s', "s", 0),
        block_key(0, "t", 's","s', 0),
    }
    assert len(keys) == 7


@pytest.mark.parametrize(
    ("task", "digest"),
    [
        (FunctionComposition(1, 8), "c2a5b9937001616d604d618952347b3ac037e1905e48402abbdae270e7ebbb7c"),
        (FunctionComposition(2, 4, (2,)), "749647640795954c2e2818d5e6827737045d9a8b306cea3ede9f1b74c32cee1f"),
        (
            FunctionComposition(3, 4, (2, 3), values=(5, 3)),
            "b5016562f00c69c4db897d6a1a91cdb0f57875479e9ae054be2590cbf789a323",
        ),
        (
            FunctionComposition(3, 4, (2, 3), values=(5, 3), order="easy", query="many"),
            "b513e008d1e89f54b89d35c2031102a5caa0b2d63a47d3c8a3e11ca2a8f589f4",
        ),
    ],
)
def test_golden_bytes(task: FunctionComposition, digest: str) -> None:
    uniform, adversarial = task.sample(0, "train", 1000, 100), task.adversarial(0, 1000, 100)
    assert sha256(uniform.prompts, uniform.answers, adversarial.prompts, adversarial.answers) == digest


def test_batch_size_does_not_change_the_bytes() -> None:
    task = FunctionComposition(2, 4, (3,), values=(5,))
    whole = task.sample(5, "test", 1000, 64)
    for size in (1, 7, 64):
        parts = [task.sample(5, "test", start, min(size, 1064 - start)) for start in range(1000, 1064, size)]
        np.testing.assert_array_equal(np.concatenate([part.prompts for part in parts]), whole.prompts)
        np.testing.assert_array_equal(np.concatenate([part.answers for part in parts]), whole.answers)


HASH_SCRIPT = """
import sys
if {torch}:
    import torch
import hashlib
from hopbound.tasks import FunctionComposition
assert ("torch" in sys.modules) == {torch}
task = FunctionComposition(2, 4, (3,), values=(5,))
uniform, adversarial = hashlib.sha256(), hashlib.sha256()
for start in range(1000, 1064, {size}):
    drawn = ((uniform, task.sample(5, "test", start, {size})), (adversarial, task.adversarial(5, start, {size})))
    for digest, batch in drawn:
        assert len(batch) == {size}
        for row, answer in zip(batch.prompts.tolist(), batch.answers.tolist()):
            digest.update(repr((row, answer)).encode())
print(uniform.hexdigest() + adversarial.hexdigest())
"""


def hash_in_another_process(hash_seed: str, size: int, with_torch: bool) -> str:
    script = HASH_SCRIPT.format(size=size, torch=with_torch)
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_processes_hash_seeds_batch_sizes_and_torch_do_not_change_the_bytes() -> None:
    plain = hash_in_another_process("0", 64, with_torch=False)
    assert len(plain) == 2 * 64
    assert hash_in_another_process("1", 1, with_torch=True) == plain


def test_global_generators_stay_untouched() -> None:
    before = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    task = FunctionComposition(2, 4, (2,))
    task.sample(0, "train", 0, 2000)
    task.adversarial(0, 0, 20)
    task.enumerate(0, 20)
    assert random.getstate() == before[0]
    np.testing.assert_equal(np.random.get_state(legacy=False), before[1])
    assert torch.equal(torch.get_rng_state(), before[2])


def test_uniform_over_each_range() -> None:
    """Chi-square of 20,000 integers a column against the uniform distribution, seed fixed."""
    ranges = np.array([2, 3, 7, 10, 64])
    made = integers(11, "chi-square", "test", 0, 20_000, ranges)
    for column, values in enumerate(ranges.tolist()):
        counts = np.bincount(made[:, column], minlength=values)
        assert len(counts) == values
        expected = len(made) / values
        statistic = float(((counts - expected) ** 2 / expected).sum())
        freedom = values - 1
        # Five standard deviations of a chi-square variable (mean k, variance 2k) above its mean.
        assert statistic < freedom + 5 * (2 * freedom) ** 0.5
