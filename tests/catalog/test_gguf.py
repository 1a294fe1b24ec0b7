"""GGUF files: the layers of the config.json that was converted, and one line for what is wrong or not determined."""

import random
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFEndian, GGUFWriter
from gguf.constants import MODEL_ARCH_NAMES

from hopbound.catalog import Model, published_models, read_config, read_model
from hopbound.catalog.gguf.architectures import ARCHITECTURES
from hopbound.cli.main import run_with
from hopbound.errors import InputError
from tests.catalog.gguf_files import CONVERSIONS, SMALL, Keys, base, jamba, windowed, write

PUBLISHED: dict[str, Any] = {entry["name"]: entry["config"] for entry in published_models()}
PLAIN = {
    "num_hidden_layers": 6,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 999,
}
JAMBA = PUBLISHED["ai21labs/Jamba-v0.1"]


def same(model: Model, expected: Model) -> None:
    """Equal layers, equal bytes."""
    assert [layer.layer for layer in model.layers] == [layer.layer for layer in expected.layers]
    assert model.layers == expected.layers
    assert model.precisions == expected.precisions
    assert model.kv_bytes(100_000) == expected.kv_bytes(100_000)
    assert model.kv_bytes_per_token == expected.kv_bytes_per_token
    assert model.state_bytes == expected.state_bytes
    assert model.conv_bytes_allocated == expected.conv_bytes_allocated


@pytest.mark.parametrize(("name", "architecture", "keys"), CONVERSIONS, ids=[case[0] for case in CONVERSIONS])
def test_published_models_are_the_same_from_gguf(
    tmp_path: Path, name: str, architecture: str, keys: Callable[[Mapping[str, Any]], Keys]
) -> None:
    config = PUBLISHED[name]
    written = keys(config.get("text_config", config))
    model = read_model(str(write(tmp_path / "model.gguf", architecture, written)))
    expected = read_config(config)
    same(model, expected)
    assert model.model_type == architecture
    # Granite without rotary positions is taken to know no limit; of recurrences neither file says one.
    assert model.context == (None if name.startswith("ibm-granite") else expected.context)


@pytest.mark.parametrize(("architecture", "config", "keys"), SMALL, ids=[case[0] for case in SMALL])
def test_small_models_are_the_same_from_gguf(
    tmp_path: Path, architecture: str, config: Mapping[str, Any], keys: Callable[[Mapping[str, Any]], Keys]
) -> None:
    same(read_model(str(write(tmp_path / "m.gguf", architecture, keys(config)))), read_config(dict(config)))


def test_what_was_assumed_is_in_the_notes(tmp_path: Path) -> None:
    """No number of a layer comes from the defaults of a class."""
    for name, architecture, keys in CONVERSIONS:
        config = PUBLISHED[name]
        file = write(tmp_path / f"{architecture}.gguf", architecture, keys(config.get("text_config", config)))
        model = read_model(str(file))
        defaults = [line for line in model.notes if "defaults of its class" in line]
        allowed = [line for line in defaults if line.endswith(": mamba_ssm_cache_dtype=float32")]
        assert defaults == allowed
        assert any("no dtype in the file" in line for line in model.notes)
        has_state = any(layer.state_elements for layer in model.layers)
        assert has_state == any("recurrent state" in line for line in model.notes)


def test_rules_of_the_engine_are_noted(tmp_path: Path) -> None:
    config = PLAIN | {"sliding_window": 33}
    model = read_model(str(write(tmp_path / "m.gguf", "gemma3", windowed(config))))
    assert model.of_kind("full") == (5,)
    line = "no gemma3.attention.sliding_window_pattern in the file: llama.cpp's own, one full layer in 6"
    assert line in model.notes
    declared = windowed(config) | {"attention.sliding_window_pattern": [True, False, True, False, True, True]}
    model = read_model(str(write(tmp_path / "n.gguf", "gemma3", declared)))
    assert model.of_kind("full") == (1, 3)
    assert line not in model.notes
    periodic = windowed(config) | {"attention.sliding_window_pattern": 3}
    assert read_model(str(write(tmp_path / "o.gguf", "gemma3", periodic))).of_kind("full") == (2, 5)


def test_layers_with_heads_of_their_own(tmp_path: Path) -> None:
    heads = {"attention.head_count": [8, 0, 8, 8, 4, 8], "attention.head_count_kv": [2, 0, 0, 4, 4, 8]}
    keys = base(PLAIN) | heads | {"attention.key_length": 16, "attention.value_length": 16}
    model = read_model(str(write(tmp_path / "m.gguf", "deci", keys)))
    assert model.of_kind("mlp") == (1, 2)
    assert [layer.kv_elements for layer in model.layers] == [2 * kv * 16 for kv in (2, 0, 0, 4, 4, 8)]


def test_the_first_layer_of_a_period_may_be_the_full_one(tmp_path: Path) -> None:
    keys = windowed(PLAIN | {"sliding_window": 4096})
    assert read_model(str(write(tmp_path / "m.gguf", "smallthinker", keys))).of_kind("full") == (0, 4)


def test_older_files_with_keys_of_every_head(tmp_path: Path) -> None:
    keys = base(PLAIN) | {
        "attention.kv_lora_rank": 24,
        "attention.key_length": 16,
        "attention.value_length": 20,
        "rope.dimension_count": 4,
    }
    model = read_model(str(write(tmp_path / "m.gguf", "deepseek2", keys)))
    assert [layer.kv_elements for layer in model.layers] == 6 * [24 + 4]
    assert any("an older one" in line for line in model.notes)


def test_blocks_that_predict_further_tokens_are_left_out(tmp_path: Path) -> None:
    keys = base(PLAIN) | {"block_count": 7, "nextn_predict_layers": 1, "attention.head_count_kv": [*(6 * [2]), 8]}
    model = read_model(str(write(tmp_path / "m.gguf", "glm4moe", keys)))
    assert [layer.kv_elements for layer in model.layers] == 6 * [2 * 2 * 8]


def test_every_architecture_is_one_of_the_format() -> None:
    assert set(ARCHITECTURES) <= set(MODEL_ARCH_NAMES.values())


def test_tensors_may_be_missing_and_byte_orders_differ(tmp_path: Path) -> None:
    file = write(tmp_path / "m.gguf", "llama", base(PLAIN), tensor=True)
    whole = read_model(str(file))
    file.write_bytes(file.read_bytes()[:-7])
    assert read_model(str(file)).layers == whole.layers
    nameless = tmp_path / "blob"
    file.rename(nameless)
    assert read_model(str(nameless)).layers == whole.layers
    writer = GGUFWriter(tmp_path / "big.gguf", "llama", endianess=GGUFEndian.BIG)
    for key, value in base(PLAIN).items():
        if isinstance(value, int):
            writer.add_uint32(f"llama.{key}", value)
    writer.add_token_list(["a", "bcd"])
    writer.add_uint32("llama.leading_dense_block_count", 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert read_model(str(tmp_path / "big.gguf")).layers == whole.layers


def refused(file: Path) -> str:
    with pytest.raises(InputError) as told:
        read_model(str(file))
    assert "\n" not in str(told.value)
    return str(told.value)


LISTS = {"attention.head_count_kv": 6 * [2]}


@pytest.mark.parametrize(
    ("architecture", "changed", "said"),
    [
        ("llama", {"block_count": None}, "llama.block_count: got None"),
        ("llama", {"block_count": 0}, "llama.block_count: got 0"),
        ("llama", {"block_count": 2**31}, "llama.block_count: got 2147483648"),
        ("llama", {"block_count": "six"}, "llama.block_count: got 'six'"),
        ("llama", {"block_count": 6.5}, "llama.block_count: got 6.5"),
        ("llama", {"block_count": True}, "llama.block_count: got True"),
        ("llama", {"attention.head_count": None}, "llama.attention.head_count: got None"),
        ("llama", {"attention.head_count": 7}, "llama.attention.key_length: got None"),
        ("llama", {"attention.head_count_kv": [2, 2]}, "llama.attention.head_count_kv: got '2 values'"),
        ("llama", {"attention.head_count_kv": 3}, "num_key_value_heads: got 3"),
        ("llama", {"attention.head_count_kv": [2, 2, 2, 2, 2, -1]}, "llama.attention.head_count_kv[5]: got -1"),
        ("llama", {"attention.value_length": 9}, "llama.attention.value_length: got 9"),
        ("llama", {"attention.sliding_window": 128}, "llama.attention.sliding_window: got 128"),
        ("llama", {"attention.causal": False}, "llama.attention.causal: got False"),
        ("llama", {"ssm.state_size": 16}, "llama.ssm.state_size: got 16"),
        ("llama", {"nextn_predict_layers": 6}, "llama.nextn_predict_layers: got 6"),
        ("llama", {"split.no": 1}, "split.no: got 1"),
        ("llama", {"general.type": "adapter"}, "general.type: got 'adapter'"),
        ("clip", {}, "general.architecture: got 'clip'"),
        ("jamba", {}, "jamba.attention.head_count_kv: got 2, expected a list"),
        ("jamba", LISTS, "jamba.embedding_length: got None"),
        ("nemotron_h", LISTS, "nemotron_h.feed_forward_length: got 8192, expected a list"),
        ("nemotron_h", LISTS | {"feed_forward_length": 6 * [3]}, "nemotron_h.feed_forward_length[0]: got 3"),
        ("falcon-h1", {}, "falcon-h1.ssm.time_step_rank: got None"),
        ("lfm2", LISTS, "lfm2.shortconv.l_cache: got None"),
        ("lfm2", {"shortconv.l_cache": 3}, "lfm2.attention.head_count_kv: got 2"),
        ("qwen3next", {"full_attention_interval": 0}, "qwen3next.full_attention_interval: got 0"),
        ("deepseek2", {}, "deepseek2.attention.kv_lora_rank: got None"),
        ("rwkv7", {}, "rwkv7.wkv.head_size: got None"),
        ("rwkv7", {"wkv.head_size": 8, "token_shift_count": 1}, "rwkv7.token_shift_count: got 1"),
        ("exaone4", {"attention.sliding_window": 9}, "exaone4.attention.sliding_window_pattern: got None"),
        ("gemma2", {"attention.sliding_window_pattern": [True]}, "gemma2.attention.sliding_window_pattern: got '1 "),
        ("gemma2", {"attention.sliding_window_pattern": 6 * [2]}, "gemma2.attention.sliding_window_pattern[0]: got 2"),
        ("llama4", {"attention.sliding_window": 9}, "llama4.attention.sliding_window: got 9"),
        ("gemma3n", {"attention.sliding_window": 9, "attention.shared_kv_layers": 6}, "num_kv_shared_layers: got 6"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_metadata_does_not_determine_is_refused(
    tmp_path: Path, architecture: str, changed: Keys, said: str
) -> None:
    keys = base(PLAIN) | changed
    if said == "jamba.embedding_length: got None":
        del keys["embedding_length"]
    given = {key: value for key, value in keys.items() if value is not None}
    assert refused(write(tmp_path / "m.gguf", architecture, given)).startswith(said)


def test_files_that_are_no_gguf(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    good = write(file, "llama", base(PLAIN)).read_bytes()
    for changed, said in (
        (b"", "empty"),
        (b"GG", "early"),
        (b"GGUF", "early"),
        (b"{}" * 50, "magic"),
        (b"GGML" + good[4:], "magic"),
        (good[:4] + struct.pack("<I", 9) + good[8:], "version 9"),
        (good[:4] + struct.pack("<I", 1) + good[8:], "version 1"),
        (good[:16] + struct.pack("<Q", 2**63) + good[24:], "early"),
        (good[:8] + struct.pack("<Q", 2**63) + good[16:], "early"),
        (good[:-40], "early"),
    ):
        file.write_bytes(changed)
        line = refused(file)
        assert line.startswith(f"model: got {str(file)!r}, expected a whole GGUF file (")
        assert said in line
    assert "an existing config.json" in refused(tmp_path / "missing.gguf")


def test_keys_of_other_characters_are_damage(tmp_path: Path) -> None:
    for key in ("ssm.inner\n_size", "ssm.größe", "ssm.\x1b[31m"):
        assert "expected a whole GGUF file (a key is " in refused(write(tmp_path / "m.gguf", "llama", {key: 3}))


def test_lengths_that_a_file_makes_up_take_no_time(tmp_path: Path) -> None:
    """A list that claims 2^60 strings, or numbers, ends with the file."""
    file = tmp_path / "m.gguf"
    for kind in (4, 8, 9):
        key = b"tokenizer.ggml.tokens"
        entry = struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, kind, 2**60) + bytes(64)
        file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry)
        assert "expected a whole GGUF file" in refused(file)


def attempted(file: Path) -> str:
    """What is said of a file: of a model nothing. No other error may come."""
    try:
        read_model(str(file))
    except InputError as error:
        return str(error)
    return ""


def test_truncated_and_damaged_files_give_one_line(tmp_path: Path) -> None:
    draw = random.Random(7)
    for architecture, keys in (("jamba", jamba(JAMBA)), ("gemma3", windowed(PLAIN | {"sliding_window": 33}))):
        good = write(tmp_path / "good.gguf", architecture, keys, tensor=True).read_bytes()
        file = tmp_path / "bad.gguf"
        for end in range(0, len(good), 37):
            file.write_bytes(good[:end])
            assert "\n" not in attempted(file)
        assert attempted(write(file, architecture, keys)) == ""
        for _ in range(600):
            damaged = bytearray(good)
            for _ in range(draw.choice((1, 1, 2, 5))):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            file.write_bytes(damaged)
            assert "\n" not in attempted(file)


def test_the_command_line_says_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "m.gguf", "jamba", jamba(JAMBA))
    assert run_with(["analyze", str(good)]) == 0
    assert "32: 4 full, 28 recurrent" in capsys.readouterr().out
    assert run_with(["bound", str(good), "--hops", "5"]) == 0
    capsys.readouterr()
    good.write_bytes(good.read_bytes()[:200])
    assert run_with(["analyze", str(good)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "m.gguf", "llama", base(PLAIN))
    monkeypatch.delitem(sys.modules, "hopbound.catalog.gguf.header", raising=False)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert refused(file).endswith('pip install "hopbound[gguf]"')
