"""Families that no class of transformers reads: layers and sizes by hand arithmetic on their released code's."""

from dataclasses import replace
from typing import Any

import pytest

from hopbound.catalog import read_config
from hopbound.errors import InputError
from tests.catalog.held import Case, Held, check, full, recurrent, window


def _searched(**attention: Any) -> dict[str, Any]:
    """A layer's object as Nemotron-NAS files write it."""
    said = {"n_heads_in_group": None, "no_op": False, "num_sink_tokens": None, "replace_with_linear": False}
    return {"attention": {**said, "sparsify": None, "window_length": None, **attention}, "ffn": {"no_op": False}}


_NAS = {
    "num_hidden_layers": 4,
    "hidden_size": 96,
    "num_attention_heads": 6,
    "num_key_value_heads": None,
    "max_position_embeddings": 131072,
    "block_configs": [
        _searched(n_heads_in_group=3),
        _searched(no_op=True),
        _searched(replace_with_linear=True),
        _searched(n_heads_in_group=2),
    ],
}
_NONE = Held(kinds=("mlp",))
_SSM = {"d_model": 96, "n_layer": 2, "vocab_size": 50277, "rms_norm": True, "residual_in_fp32": True}
_LIGHTNING = {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20}
_LIGHT = recurrent(6 * 20 * 20)
_LING = {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20}
_MIMO = {
    "hidden_size": 96,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "v_head_dim": 16,
    "swa_num_attention_heads": 8,
    "swa_num_key_value_heads": 4,
    "swa_head_dim": 20,
    "swa_v_head_dim": 14,
    "sliding_window": 128,
}
_M3 = {
    "num_hidden_layers": 3,
    "hidden_size": 96,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 20,
    "sparse_attention_config": {
        "sparse_attention_freq": [0, 1, 1],
        "sparse_index_dim": 12,
        "sparse_block_size": 16,
        "sparse_topk_blocks": 4,
    },
}

CASES = (
    Case(
        name="nemotron-nas",
        config=_NAS,
        layers=(full(2 * 2 * 16), _NONE, _NONE, full(2 * 3 * 16)),
    ),
    Case(name="nemotron-nas:wide heads", config={**_NAS, "head_dim": 20}, layers=(full(80), _NONE, _NONE, full(120))),
    Case(
        name="nemotron-nas:windows",
        config={
            **_NAS,
            "num_hidden_layers": 2,
            "block_configs": [
                _searched(n_heads_in_group=3, window_length=20),
                _searched(n_heads_in_group=2, window_length=20, num_sink_tokens=4),
            ],
        },
        layers=(window(2 * 2 * 16, 20), window(2 * 3 * 16, 20)),
    ),
    Case(
        name="nemotron-nas:few words",  # fields at their defaults left out
        config={
            **_NAS,
            "num_hidden_layers": 2,
            "block_configs": [{"attention": {"no_op": True}}, {"attention": {"n_heads_in_group": 6}}],
        },
        layers=(_NONE, full(2 * 16)),
    ),
    Case(name="mamba_ssm", config={**_SSM, "ssm_cfg": {}}, layers=2 * (recurrent(192 * 16, 192, 4),)),
    Case(name="mamba_ssm:no object", config=_SSM, layers=2 * (recurrent(192 * 16, 192, 4),)),
    Case(
        name="mamba_ssm:sizes",
        config={**_SSM, "ssm_cfg": {"layer": "Mamba1", "d_state": 11, "d_conv": 3, "expand": 3}},
        layers=2 * (recurrent(288 * 11, 288, 3),),
    ),
    Case(
        name="mamba_ssm:second kind",
        config={**_SSM, "ssm_cfg": {"layer": "Mamba2"}, "attn_layer_idx": [], "attn_cfg": {}},
        layers=2 * (recurrent(192 * 128, 192 + 2 * 128, 4),),
    ),
    Case(
        name="mamba_ssm:second kind, sizes",
        config={
            **_SSM,
            "ssm_cfg": {"layer": "Mamba2", "d_state": 11, "d_conv": 3, "expand": 3, "headdim": 36, "ngroups": 2},
        },
        layers=2 * (recurrent(8 * 36 * 11, 288 + 2 * 2 * 11, 3),),
    ),
    Case(
        name="mamba_ssm:hybrid",
        config={
            **_SSM,
            "ssm_cfg": {"layer": "Mamba2"},
            "attn_layer_idx": [1],
            "attn_cfg": {"causal": True, "d_conv": 3, "head_dim": 20, "num_heads": 6, "num_heads_kv": 2},
        },
        layers=(
            recurrent(192 * 128, 192 + 2 * 128, 4),
            replace(full(2 * 2 * 20), conv=2 * 20 * (6 + 4), allocated=3 * 20 * (6 + 4)),
        ),
    ),
    Case(
        name="mamba_ssm:hybrid, few words",
        config={**_SSM, "attn_layer_idx": [0], "attn_cfg": {"num_heads": 6}},
        layers=(full(2 * 96), recurrent(192 * 16, 192, 4)),
    ),
    Case(
        name="minimax_text_01",
        config={**_LIGHTNING, "num_hidden_layers": 3, "attn_type_list": [0, 0, 1]},
        layers=(_LIGHT, _LIGHT, full(2 * 2 * 20)),
        state_bits=16,
    ),
    Case(
        name="minimax_m1",
        config={**_LIGHTNING, "num_hidden_layers": 2, "attn_type_list": [1, 0]},
        layers=(full(2 * 2 * 20), _LIGHT),
        state_bits=16,
    ),
    Case(
        name="minimax_m1:words of today",
        config={**_LIGHTNING, "num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"]},
        layers=(full(2 * 2 * 20), _LIGHT),
        state_bits=16,
    ),
    Case(  # the last two layers are no whole group, hence full; linear heads share the width whatever head_dim says
        name="bailing_moe_linear",
        config={**_LING, "num_hidden_layers": 8, "layer_group_size": 3},
        layers=(*2 * (recurrent(6 * 16 * 16), recurrent(6 * 16 * 16), full(2 * 2 * 20)), *2 * (full(2 * 2 * 20),)),
    ),
    Case(
        name="bailing_moe_linear:words of today",
        config={**_LING, "num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"]},
        layers=(full(2 * 2 * 20), recurrent(6 * 16 * 16)),
    ),
    Case(
        name="mimo_v2",
        config={**_MIMO, "num_hidden_layers": 3, "hybrid_layer_pattern": [0, 1, 0]},
        layers=(full(2 * (24 + 16)), window(4 * (20 + 14), 128), full(2 * (24 + 16))),
    ),
    Case(  # a file that counts the earlier tokens of the window only
        name="mimo_v2:earlier tokens",
        config={**_MIMO, "num_hidden_layers": 2, "hybrid_layer_pattern": [0, 1], "sliding_window_size": 128},
        layers=(full(2 * (24 + 16)), window(4 * (20 + 14), 129)),
    ),
    Case(
        name="mimo_v2:words of today",
        config={**_MIMO, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
        layers=(window(4 * (20 + 14), 128), full(2 * (24 + 16))),
    ),
    Case(
        name="minimax_m3",
        config=_M3,
        layers=(full(80), *2 * (Held(kinds=("sparse",), kv=80 + 12),)),
    ),
    Case(
        name="mistral_large4",
        config={
            "num_hidden_layers": 3,
            "hidden_size": 96,
            "num_attention_heads": 6,
            "kv_lora_rank": 26,
            "qk_rope_head_dim": 10,
            "v_head_dim": 18,
            "index_head_dim": 12,
            "index_topk": 5,
            "kv_source_layers": [0, 1, 1],
            "indexer_types": ["full", "full", "shared"],
        },
        layers=(
            *2 * (Held(kinds=("sparse",), kv=26 + 10 + 12),),
            Held(kinds=("sparse",), shared_from=1),
        ),
    ),
    Case(
        name="step3p5_text",
        config={
            "num_hidden_layers": 2,
            "hidden_size": 96,
            "num_attention_heads": 6,
            "num_attention_groups": 2,
            "head_dim": 20,
            "sliding_window": 32,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "num_nextn_predict_layers": 1,
            "attention_other_setting": {"num_attention_heads": 9, "num_attention_groups": 3, "head_dim": 20},
        },
        layers=(full(2 * 2 * 20), window(2 * 3 * 20, 32)),
    ),
)
BY_NAME = {case.name: case for case in CASES}


def file_of(case: Case) -> dict[str, Any]:
    """The file; those of mamba_ssm have no model type."""
    return dict(case.config) if case.model_type == "mamba_ssm" else case.raw


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("spelling", ["dtype", "torch_dtype"])
def test_layers_hold_what_those_of_the_released_code_do(case: Case, spelling: str) -> None:
    check(case, **{spelling: "bfloat16"})
    model = read_config({**file_of(case), spelling: "float32"})
    assert model.precisions.kv == 32
    assert len(model.layers) == len(case.layers)


def test_sinks_are_kept_beside_the_window() -> None:
    plain, sinks = read_config(BY_NAME["nemotron-nas:windows"].raw).layers
    assert plain.kv_elements_at(1000) == 19 * 64
    assert sinks.kv_elements_at(1000) == (19 + 4) * 96


def test_the_context_is_that_of_the_file() -> None:
    assert read_config(BY_NAME["nemotron-nas"].raw).context == 131072
    assert read_config(file_of(BY_NAME["mamba_ssm"])).context is None


# What is changed in the file of a case, and the start of the field of which the refusal speaks.
REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("nemotron-nas", {"block_configs": None}, "block_configs"),
    ("nemotron-nas", {"block_configs": []}, "block_configs"),
    ("nemotron-nas", {"block_configs": _NAS["block_configs"][:3]}, "block_configs"),
    ("nemotron-nas", {"block_configs": [*_NAS["block_configs"][:3], {"ffn": {}}]}, "block_configs[3]"),
    ("nemotron-nas", {"block_configs": [*_NAS["block_configs"][:3], "full"]}, "block_configs[3]"),
    ("nemotron-nas", {"num_hidden_layers": 5}, "block_configs"),
    ("nemotron-nas", {"num_attention_heads": 5}, "block_configs[0].attention.n_heads_in_group"),
    ("nemotron-nas", {"hidden_size": 97}, "num_attention_heads"),
    (
        "nemotron-nas:few words",
        {"block_configs": [{"attention": {"no_op": 1}}, {"attention": {}}]},
        "block_configs[0].attention.no_op",
    ),
    (
        "nemotron-nas:few words",
        {"block_configs": 2 * [{"attention": {}}]},
        "block_configs[0].attention.n_heads_in_group",
    ),
    ("mamba_ssm", {"ssm_cfg": {"layer": "Mamba9"}}, "ssm_cfg.layer"),
    ("mamba_ssm", {"ssm_cfg": []}, "ssm_cfg"),
    ("mamba_ssm", {"ssm_cfg": {"d_state": 0}}, "ssm_cfg.d_state"),
    ("mamba_ssm", {"d_model": None}, "d_model"),
    ("mamba_ssm", {"n_layer": 0}, "n_layer"),
    ("mamba_ssm:second kind", {"ssm_cfg": {"layer": "Mamba2", "headdim": 36}}, "ssm_cfg.headdim"),
    ("mamba_ssm:hybrid", {"attn_layer_idx": [2]}, "attn_layer_idx"),
    ("mamba_ssm:hybrid", {"attn_layer_idx": [1, 1]}, "attn_layer_idx"),
    ("mamba_ssm:hybrid", {"attn_cfg": None}, "attn_cfg"),
    ("mamba_ssm:hybrid", {"attn_cfg": {}}, "attn_cfg.num_heads"),
    ("mamba_ssm:hybrid", {"attn_cfg": {"num_heads": 7}}, "attn_cfg.num_heads"),
    ("mamba_ssm:hybrid", {"attn_cfg": {"num_heads": 6, "num_heads_kv": 4}}, "attn_cfg.num_heads_kv"),
    ("minimax_text_01", {"attn_type_list": [0, 1]}, "attn_type_list"),
    ("minimax_text_01", {"attn_type_list": [0, 0, 2]}, "attn_type_list[2]"),
    ("minimax_text_01", {"attn_type_list": [0, 0, "1"]}, "attn_type_list[2]"),
    ("minimax_m1:words of today", {"layer_types": ["full_attention"]}, "layer_types"),
    ("minimax_m1:words of today", {"layer_types": ["full_attention", "lightning"]}, "layer_types[1]"),
    ("bailing_moe_linear", {"layer_group_size": 0}, "layer_group_size"),
    ("bailing_moe_linear", {"layer_group_size": None}, "layer_types"),
    ("bailing_moe_linear", {"num_attention_heads": 5}, "num_attention_heads"),
    ("mimo_v2", {"hybrid_layer_pattern": [0, 1]}, "hybrid_layer_pattern"),
    ("mimo_v2", {"hybrid_layer_pattern": [0, 1, 3]}, "hybrid_layer_pattern[2]"),
    ("mimo_v2", {"swa_num_key_value_heads": 3}, "swa_num_key_value_heads"),
    ("mimo_v2", {"sliding_window": None}, "sliding_window"),
    ("minimax_m3", {"sparse_attention_config": {"sparse_attention_freq": [0, 1]}}, "sparse_attention_config."),
    ("mistral_large4", {"kv_source_layers": [0, 2, 1]}, "kv_source_layers[1]"),
    ("mistral_large4", {"kv_source_layers": [0, 1]}, "kv_source_layers"),
    ("step3p5_text", {"layer_types": 4 * ["full_attention"]}, "layer_types"),
)


@pytest.mark.parametrize(("name", "changed", "field"), REFUSED, ids=lambda part: str(part)[:60])
def test_damaged_files_are_refused_in_one_line(name: str, changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config({**file_of(BY_NAME[name]), **changed})
    assert "\n" not in str(caught.value)
    assert caught.value.field.startswith(field)


@pytest.mark.parametrize("model_type", ["hymba", "phi4flash", "plamo2", "hunyuan_turbos", "jamba2"])
def test_families_that_nothing_is_known_of_are_refused(model_type: str) -> None:
    sizes = {"num_hidden_layers": 4, "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2}
    with pytest.raises(InputError, match="model_type"):
        read_config({"model_type": model_type, **sizes})
