"""The tiny models run, and what is counted is what their tensors' shapes say by hand."""

import random
from fractions import Fraction

import pytest
import torch

from tests.catalog.families import CASES, FAMILIES
from tests.catalog.oracle import from_raw, resolved
from tests.catalog.tiny import NOTES, UNFILLED, LayerCount, counted

# Words whose layers keep something of each kind.
GROWING = {"full_attention", "indexed_attention", "minimax_m3_sparse", "hybrid"}
WINDOWED = {"sliding_attention", "chunked_attention", "hybrid_sliding"}
COMPRESSED = {"heavily_compressed_attention", "compressed_sparse_attention"}
STATEFUL = {"linear_attention", "conv", "hybrid", "hybrid_sliding"}
# Their caches hold some layers several times, which the resolver does not say.
LOOPED = {"dory", "inkling2_loop_text"}


@pytest.mark.parametrize("family", CASES)
def test_each_layer_keeps_what_its_word_says(family: str) -> None:
    layers, words = counted(family).layers, resolved(from_raw(counted(family).raw))
    if words is None:  # rwkv, xlstm
        words = ("linear_attention",) * len(layers)
    assert len(layers) == len(words) or (family in LOOPED and len(layers) > len(words))
    if family in LOOPED:
        return
    for word, layer in zip(words, layers, strict=True):
        assert (layer.kv_per_token > 0) == (word in GROWING | COMPRESSED)
        assert (layer.window_tokens_kept is not None) == (word in WINDOWED | COMPRESSED)
        assert layer.window_tokens_kept in (None, 7)  # the window of 8 without the token itself
        assert (layer.fixed_recurrent + layer.fixed_conv > 0) == (word in STATEFUL)
        assert (layer.fixed_other > 0) == (word == "compressed_sparse_attention")


BF16, F32 = "bfloat16", "float32"
NOTHING = (0, "")


def count(
    *,
    kv: tuple[int, str] = NOTHING,
    index: tuple[int, str] = NOTHING,
    window: tuple[int, str] = NOTHING,
    recurrent: tuple[int, str] = NOTHING,
    conv: tuple[int, str] = NOTHING,
    needed: int = 0,
) -> LayerCount:
    """Each kind's elements (those of kv and window a token) and precision; of those of conv, how many are needed."""
    kinds = {"kv": kv, "index": index, "window": window, "recurrent": recurrent, "conv": conv}
    return LayerCount(
        kv_per_token=Fraction(kv[0] + index[0]),
        index_per_token=Fraction(index[0]),
        window_per_token=window[0],
        window_tokens_kept=7 if window[0] else None,
        fixed_recurrent=recurrent[0],
        fixed_conv=conv[0],
        fixed_other=0,
        conv_needed=needed,
        held=UNFILLED * (kv[0] + index[0]) + 7 * window[0] + recurrent[0] + conv[0],
        dtypes={kind: precision for kind, (elements, precision) in kinds.items() if elements},
    )


@pytest.mark.parametrize(
    ("family", "layer", "expected"),
    [
        ("llama", 0, count(kv=(2 * 2 * 28, BF16))),
        ("qwen2", 3, count(window=(2 * 2 * 12, BF16))),
        ("deepseek_v3", 0, count(kv=(26 + 10, BF16))),
        ("deepseek_v32", 0, count(kv=(26 + 10, BF16), index=(12, BF16))),
        ("minimax", 1, count(recurrent=(6 * 28 * 28, BF16))),
        (
            "qwen3_next",
            0,
            count(
                recurrent=(4 * 10 * 14, F32),
                conv=(5 * (2 * 2 * 10 + 4 * 14), BF16),
                needed=4 * (2 * 2 * 10 + 4 * 14),
            ),
        ),
        (
            "falcon_h1",
            2,
            count(
                kv=(2 * 2 * 28, BF16),
                recurrent=(8 * 13 * 11, F32),
                conv=(5 * (8 * 13 + 2 * 2 * 11), BF16),
                needed=4 * (8 * 13 + 2 * 2 * 11),
            ),
        ),
        ("recurrent_gemma", 0, count(recurrent=(78, F32), conv=(4 * 78, BF16), needed=4 * 78)),
        ("rwkv", 0, count(recurrent=(3 * 72, F32), conv=(2 * 72, BF16), needed=2 * 72)),
        ("xlstm", 0, count(recurrent=(4 * (16 * 32 + 16 + 1), BF16))),
        (
            "zaya",
            0,
            count(
                kv=(2 * 2 * 28, BF16),
                recurrent=(28, BF16),
                conv=((3 + 2 - 2) * (6 + 2) * 28, BF16),
                needed=(3 + 2 - 2) * (6 + 2) * 28,
            ),
        ),
    ],
)
def test_counts_by_hand(family: str, layer: int, expected: LayerCount) -> None:
    assert counted(family).layers[layer] == expected


def test_notes_speak_of_families() -> None:
    assert set(NOTES) <= set(FAMILIES)


def test_the_global_generators_stay_where_they_are() -> None:
    counted.cache_clear()
    before = torch.get_rng_state(), random.getstate()
    counted("llama")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
