"""Every family that the catalogue knows, and every one that should be known, is in a table of the tests."""

import json
import random
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest

from hopbound.catalog import FAMILIES, read_config
from hopbound.errors import InputError
from tests.catalog import oracle, test_fla, test_fla_caches, test_remote, test_spellings
from tests.catalog.test_published import mutated
from tests.catalog.variants import variants

# Recurrent models and hybrids of transformers, those with windows, chunks or chosen tokens, those of
# flash-linear-attention, and released ones without a class.
KNOWN = """
mamba falcon_mamba mamba2 jamba zamba zamba2 bamba granitemoehybrid falcon_h1 nemotron_h recurrent_gemma qwen3_next
qwen3_5_text qwen3_5_moe_text lara_mini olmo_hybrid qwen4_exp_text kimi_linear bailing_hybrid glm5_next_text minimax
lfm2 lfm2_moe lfm3 xlstm rwkv zaya inkling_text inkling2_text inkling2_loop_text gemma2 vaultgemma t5gemma gemma3_text
gemma3n_text gemma4_text diffusion_gemma gpt_oss mistral mixtral phi3 phimoe starcoder2 qwen2_moe qwen3_moe ministral
ministral3 qwen2 qwen3 qwen2_vl cohere2 cohere2_moe olmo3 exaone4 exaone_moe afmoe cwm granite_swa granitemoe_swa
smollm3 llama4_text modernbert-decoder mimo_v2_flash muse_glimmer muse_spark flint kolibri1 beam dory laguna mellum
step3p5 gpt_neo deepseek_v2 deepseek_v3 axk1 longcat_flash deepseek_v32 glm_moe_dsa axk2 hy_v4 mistral_large4
dots3_note_text deepseek_v4 minimax_m3_vl_text unlimited_ocr_text doge bitnet dots1 neomme gla retnet linear_attn
delta_net gated_deltanet comba gated_deltaproduct kda precond_gated_deltanet precond_kda hgrn hgrn2 gsa raven abc
lightnet rwkv6 rwkv7 mesa_net mom samba mamba3 log_linear_mamba2 rodimus transformer parallax stickbreaking_attn nsa
moba deltaformer wall_transformer cat forgetting_transformer path_attn mla yoco minimax_text_01 minimax_m1
bailing_moe_linear mimo_v2 nemotron-nas mamba_ssm
"""


def _files() -> Iterator[Mapping[str, Any]]:
    """Every file of the tables."""
    for model_type in (*oracle.CASES, *oracle.UNRESOLVED):
        yield oracle.saved(oracle.small_config(model_type))
    for model_type in test_spellings.BESIDE:
        yield oracle.saved(test_spellings.config_of(model_type))
    yield {"model_type": "muse_spark", "text_config": oracle.saved(test_spellings.config_of("muse_spark_text"))}
    yield from (variant.raw_before for variant in variants())
    yield from (entry["config"] for entry in test_fla_caches.SAVED.values())
    yield from (case.raw for case in (*test_fla.CASES, *test_spellings.BY_HAND))
    yield from (test_remote.file_of(case) for case in test_remote.CASES)
    published = files("hopbound.catalog").joinpath("published.json").read_text("utf-8")
    yield from (entry["config"] for entry in json.loads(published))


@pytest.fixture(scope="module")
def exercised() -> frozenset[str]:
    """The model types of all files that are read, outer and inner."""
    found: set[str] = set()
    for raw in _files():
        try:
            found.add(read_config(dict(raw)).model_type)
        except InputError:
            continue
        found.add(raw.get("model_type", ""))
    return frozenset(found)


def test_every_family_is_in_a_table(exercised: frozenset[str]) -> None:
    assert sorted(set(FAMILIES) - exercised) == []


def test_every_family_that_should_be_known_is(exercised: frozenset[str]) -> None:
    assert sorted(set(KNOWN.split()) - exercised) == []


def test_damaged_files_of_any_family_are_read_or_refused_in_one_line() -> None:
    draw = random.Random(3)
    originals = [*(case.raw for case in test_fla.CASES), *map(test_remote.file_of, test_remote.CASES)]
    refused: list[str] = []
    for _ in range(3000):
        try:
            read_config(mutated(draw.choice(originals), draw))
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 1000
    assert not [line for line in refused if "\n" in line]
