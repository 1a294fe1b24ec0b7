"""Families of flash-linear-attention, which transformers does not have: layers and sizes by hand arithmetic."""

from typing import Any

import pytest

from hopbound.catalog import read_config
from hopbound.errors import InputError
from tests.catalog.fla_attention_cases import ALONE, IN_TURN, SHARED
from tests.catalog.fla_cases import DELTA_RULES, MATRICES, OTHERS
from tests.catalog.held import Case, check

CASES = (*MATRICES, *DELTA_RULES, *OTHERS, *ALONE, *IN_TURN, *SHARED)
BY_NAME = {case.name: case for case in CASES}


def test_names_are_of_one_case_each() -> None:
    assert len(BY_NAME) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_layers_hold_what_those_of_the_code_base_do(case: Case) -> None:
    check(case, torch_dtype="bfloat16", transformers_version=case.config.get("transformers_version", "4.48.0"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_saved_today_say_dtype(case: Case) -> None:
    more = {"dtype": "bfloat16", "attnres_block_size": None, "hidden_ratio": 4, "fuse_norm": True}
    model = check(case, rope_parameters={"rope_theta": 10000.0, "rope_type": "default"}, **more)
    assert model.precisions.kv == 16


def test_both_spellings_of_a_factor_may_stand_together_if_they_agree() -> None:
    raw = BY_NAME["gsa:old names"].raw
    check(BY_NAME["gsa:old names"], expand_k=0.5, expand_v=2)
    with pytest.raises(InputError, match="exapnd_k"):
        read_config({**raw, "expand_k": 1.0})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rwkv7", "num_heads=32 is not used"),
        ("samba:uncut", "left out"),
        ("samba:attention by default", "attn.layers=[1, 3]"),
        ("wall_transformer", "102 decay gates"),
        ("cat", "keeps no cache"),
        ("mesa_net", "counted by its size alone"),
        ("nsa:defaults", "head_dim=32"),
        ("nsa:null", "window_size is null"),
        ("yoco:defaults", "cross_decoder_attn.num_heads=32"),
        ("log_linear_mamba2", "8 levels of state"),
    ],
)
def test_what_an_answer_rests_on_is_noted(name: str, says: str) -> None:
    more = {"use_scalar_gate": True} if name == "wall_transformer" else {}
    assert any(says in note for note in read_config({**BY_NAME[name].raw, **more}).notes)


ATTENTION = {"layers": [1], "num_heads": 4}

# What is changed in the file of a case, and the field of which the refusal speaks.
REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("gla", {"attn": {**ATTENTION, "layers": [2]}}, "attn.layers"),
    ("gla", {"attn": {**ATTENTION, "layers": [-1]}}, "attn.layers"),
    ("gla", {"attn": {**ATTENTION, "layers": [1, 1]}}, "attn.layers"),
    ("gla", {"attn": [ATTENTION, ATTENTION]}, "attn.layers"),
    ("gla", {"attn": {**ATTENTION, "layers": "1"}}, "attn.layers"),
    ("gla", {"attn": {**ATTENTION, "layers": [True]}}, "attn.layers"),
    ("gla", {"attn": {**ATTENTION, "layers": [1.0]}}, "attn.layers"),
    ("gla", {"attn": {"num_heads": 4}}, "attn.layers"),
    ("gla", {"attn": {"layers": [1]}}, "attn.num_heads"),
    ("gla", {"attn": {**ATTENTION, "num_heads": 5}}, "attn.num_heads"),
    ("gla", {"attn": {**ATTENTION, "num_kv_heads": 3}}, "attn.num_kv_heads"),
    ("gla", {"attn": {**ATTENTION, "window_size": 0}}, "attn.window_size"),
    ("gla", {"attn": [1]}, "attn"),
    ("gla", {"attn": "all"}, "attn"),
    ("gla", {"num_heads": 5}, "num_heads"),
    ("gla", {"num_kv_heads": 3}, "num_kv_heads"),
    ("gla", {"expand_k": 0.3}, "expand_k"),
    ("gla", {"expand_v": 0}, "expand_v"),
    ("gla", {"hidden_size": None}, "hidden_size"),
    ("gla", {"num_hidden_layers": None}, "num_hidden_layers"),
    ("gla", {"use_short_conv": 1}, "use_short_conv"),
    ("gated_deltanet", {"num_v_heads": 3}, "num_v_heads"),
    ("gated_deltanet", {"expand_v": 1.3}, "expand_v"),
    ("gated_deltaproduct", {"num_householder": 0}, "num_householder"),
    ("hgrn2", {"expand_ratio": 100}, "expand_ratio"),
    ("hgrn2", {"expand_ratio": None}, "expand_ratio"),
    ("hgrn2:heads", {"num_heads": 5}, "num_heads"),
    ("gsa", {"num_slots": 0}, "num_slots"),
    ("gsa:convolutions", {"num_kv_heads": 3}, "num_kv_heads"),
    ("lightnet", {"expand_ratio": 100}, "expand_ratio"),
    ("rwkv7", {"head_dim": 20}, "head_dim"),
    ("rwkv7", {"head_dim": None, "num_heads": None}, "num_heads"),
    ("rwkv7", {"value_dim": [96]}, "value_dim"),
    ("rwkv7", {"value_dim": [96, 96, 96]}, "value_dim"),
    ("rwkv7", {"value_dim": [96, 100]}, "value_dim"),
    ("rodimus", {"block_type": "rodimus_minus"}, "block_type"),
    ("rodimus:plus", {"ska_attn": None}, "ska_attn"),
    ("rodimus:plus", {"ska_attn": {"num_heads": 7}}, "ska_attn.num_heads"),
    ("mamba3", {"num_heads": 4}, "num_heads"),
    ("mamba3", {"head_dim": 25}, "head_dim"),
    ("transformer", {"num_kv_heads": 4}, "num_kv_heads"),
    ("transformer:no shared heads", {"num_heads": 7}, "num_heads"),
    ("transformer", {"num_heads": None}, "num_heads"),
    ("mla", {"v_head_dim": 0}, "v_head_dim"),
    ("nsa", {"num_kv_heads": 4}, "num_kv_heads"),
    ("moba", {"moba_topk": "2"}, "moba_topk"),
    ("samba", {"attn": {**ATTENTION, "layers": [3]}}, "attn.layers"),
    ("samba", {"expand": "2"}, "expand"),
    ("yoco", {"num_self_decoder_layers": 4}, "num_self_decoder_layers"),
    ("yoco", {"num_self_decoder_layers": None, "num_hidden_layers": 8}, "num_self_decoder_layers"),
    ("yoco", {"self_decoder_attn": {"type": "gla"}}, "self_decoder_attn.type"),
    ("yoco", {"self_decoder_attn": {"type": "swa"}}, "self_decoder_attn.window_size"),
    ("yoco", {"self_decoder_attn": []}, "self_decoder_attn"),
    ("yoco", {"cross_decoder_attn": {"num_heads": 7}}, "cross_decoder_attn.num_heads"),
)


@pytest.mark.parametrize(("name", "changed", "field"), REFUSED, ids=lambda part: str(part)[:60])
def test_damaged_files_are_refused_in_one_line(name: str, changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config({**BY_NAME[name].raw, **changed})
    assert "\n" not in str(caught.value)
    assert caught.value.field.split("[")[0].removeprefix("layer ").split(", ")[-1] == field
