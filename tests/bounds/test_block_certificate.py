"""Certificates on block attention: every number is decided anew, whatever is changed is refused."""

import json
from math import comb, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Precisions, parse_schedule
from hopbound.bounds import block_certificate, blocks_match_schedule, check_blocks
from hopbound.bounds.ceiling import Ceiling, Question
from hopbound.bounds.sparse_two_sum import ceiling
from hopbound.errors import RejectedError
from hopbound.witness import verify_file


def made(schedule: str, modulus: int, bits: int = 32) -> dict[str, Any] | None:
    return block_certificate(parse_schedule(schedule, precisions=Precisions.uniform(bits)), modulus)


GOOD = made("moba[heads=1,head_dim=24,k=2,block=64]", 10**6)


def test_a_realistic_layer() -> None:
    """One head of 24 dimensions in 32 bits: 768 bits a block, and 64 numbers below half a million need more."""
    assert GOOD is not None
    assert log2(comb(500_000, 64)) > 768
    assert GOOD["layer"] == {"block": 64, "code_bits": 768, "selected": 1}
    assert GOOD["claim"] == {"task": "two_sum", "modulus": 10**6, "prompt_length": 193}
    assert check_blocks(GOOD).accepted
    blocks_match_schedule(GOOD)


@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.integers(3, 80), st.integers(1, 8)
)
def test_the_certificate_says_what_the_ceiling_says(
    heads: int, head_dim: int, k: int, block: int, modulus: int, bits: int
) -> None:
    schedule = f"moba[heads={heads},head_dim={head_dim},k={k},block={block}]"
    document = made(schedule, modulus, bits)
    found = ceiling(parse_schedule(schedule, precisions=Precisions.uniform(bits)), Question(modulus))
    assert isinstance(found, Ceiling)
    assert (document is None) == ("impossible_from" not in found.numbers)
    half, code = (modulus + 1) // 2, heads * head_dim * bits
    assert (document is not None) == (block <= half and 2**code < comb(half, block))
    if document is not None:
        assert document["claim"]["prompt_length"] == found.numbers["impossible_from"]
        assert check_blocks(document).accepted
        blocks_match_schedule(json.loads(json.dumps(document)))


@pytest.mark.parametrize("schedule", ["full", "2*moba[k=2,block=8]", "nsa[k=2,block=8,w=8]", "conv moba[k=2,block=8]"])
def test_of_other_stacks_nothing_is_said(schedule: str) -> None:
    assert made(schedule, 10**6, 1) is None


@pytest.mark.parametrize(
    ("part", "key", "value", "reason"),
    [
        ("layer", "code_bits", 10**6, "code_bits"),
        ("layer", "code_bits", 1000, "code_bits"),
        ("layer", "block", 500_001, "longer than half"),
        ("layer", "block", 2, "code_bits"),
        ("layer", "selected", 2, "complete blocks"),
        ("layer", "selected", True, "whole number"),
        ("layer", "block", 1.5, "whole number"),
        ("claim", "prompt_length", 192, "complete blocks"),
        ("claim", "modulus", 1000, "code_bits"),
        ("claim", "modulus", 2**70, "whole number"),
        ("claim", "task", "composition", "unknown"),
        ("stack", "schedule", 7, "text"),
        ("stack", "precisions", {"kv": 32}, "precisions"),
        ("claim", "more", 1, "claim: expected the keys"),
    ],
)
def test_what_is_changed_is_refused(part: str, key: str, value: object, reason: str) -> None:
    assert GOOD is not None
    document = {**GOOD, part: {**GOOD[part], key: value}}
    result = check_blocks(document)
    assert not result.accepted
    assert reason in result.reason
    with pytest.raises(RejectedError):
        blocks_match_schedule(document)


@pytest.mark.parametrize("document", [None, [], {}, {"schema": "hopbound/blocks/1"}, GOOD and {**GOOD, "stack": None}])
def test_anything_is_judged(document: object) -> None:
    assert not check_blocks(document).accepted


def test_work_is_bounded() -> None:
    assert GOOD is not None
    huge = {**GOOD, "layer": {**GOOD["layer"], "code_bits": 2**61}}
    assert "not compared" in check_blocks(huge).reason
    long = {
        **GOOD,
        "layer": {"block": 2**40, "code_bits": 1, "selected": 0},
        "claim": {**GOOD["claim"], "modulus": 2**50, "prompt_length": 2**41},
    }
    assert "not compared" in check_blocks(long).reason


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("schedule", "moba[k=2,block=64,heads=1,head_dim=24]", "canonical"),
        ("schedule", "moba[heads=1,head_dim=23,k=2,block=64]", "stack|layer"),
        ("schedule", "no such mixer", "stack"),
        ("schedule", "full", "stack"),
        ("precisions", {"activation": 32, "kv": 16, "state": 32, "summary": 32}, "layer"),
    ],
)
def test_the_text_of_the_stack_must_give_these_sizes(key: str, value: object, reason: str, tmp_path: Path) -> None:
    assert GOOD is not None
    document = {**GOOD, "stack": {**GOOD["stack"], key: value}}
    assert check_blocks(document).accepted
    with pytest.raises(RejectedError, match=reason):
        blocks_match_schedule(document)
    (tmp_path / "bad.json").write_text(json.dumps(document), encoding="utf-8")
    assert not verify_file(tmp_path / "bad.json").accepted


def test_the_file_is_a_witness(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    result = verify_file(path)
    assert (result.kind, result.accepted) == ("certificate", True)
    assert "impossible from 193 tokens on" in result.reason
