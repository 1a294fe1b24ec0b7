"""The inverse: the largest setting that is certified is certified, the next is not, and counting gives it exactly."""

import json
from dataclasses import replace
from math import ceil, log2
from pathlib import Path

import pytest

from hopbound.architecture import Architecture, Defaults, Precisions, parse_schedule
from hopbound.bounds import limits, matches_schedule, prove
from hopbound.cli.main import run_with
from hopbound.errors import InputError
from hopbound.witness import verify_files


def stack(schedule: str, head_dim: int = 4, bits: int = 32) -> Architecture:
    return parse_schedule(schedule, Defaults(head_dim=head_dim), Precisions.uniform(bits))


@pytest.mark.parametrize(("tokens", "head_dim"), [(21, 4), (500, 4), (4096, 24), (100_000, 16)])
def test_one_hop_of_a_linear_layer_is_counted(tokens: int, head_dim: int) -> None:
    """m log m > (d² + d) p with m = n - 2: the largest p by hand."""
    m = tokens - 2
    held = head_dim**2 + head_dim
    expected = max(p for p in range(4097) if m * log2(m) > held * p)
    found = {limit.knob: limit for limit in limits(stack("linear", head_dim), 1, tokens)}
    assert found["precision"].largest == expected
    assert found["precision"].factor == (32 / expected if expected else None)
    most = ceil(m * log2(m)) - 1  # bits of state, found to one part in 64
    assert most * (1 - 1 / 64) - 1 <= found["state"].largest <= most
    assert found["state"].actual == 32 * held


CASES = [("linear full linear", 2, 3_000), ("2*full", 2, 100_000), ("full", 1, 300), ("linear full[heads=2]", 3, 9_000)]


@pytest.mark.parametrize(("schedule", "hops", "tokens"), CASES)
@pytest.mark.parametrize("bits", [4, 32])
def test_the_largest_is_certified_and_the_next_is_not(schedule: str, hops: int, tokens: int, bits: int) -> None:
    architecture = stack(schedule, bits=bits)
    for limit in limits(architecture, hops, tokens):
        if limit.largest == 0:
            assert limit.factor is None
            assert (limit.verdict.prompt_length or 0) > tokens
            continue
        assert limit.factor == limit.actual / limit.largest
        certificate = limit.verdict.certificate
        assert certificate is not None
        assert certificate.prompt_length <= tokens
        matches_schedule(certificate.document())
        if limit.knob == "precision":
            assert certificate.precisions == Precisions.uniform(limit.largest)
            larger = replace(architecture, precisions=Precisions.uniform(limit.largest + 1))
            assert (prove(larger, hops).prompt_length or 0) > tokens
        elif limit.knob == "state":
            assert max(layer.bits for layer in certificate.layers if layer.kind == "bounded") == limit.largest
            own = [layer.bits for layer in architecture.layer_bits()[0] if layer.kind == "full"]
            assert [layer.bits for layer in certificate.layers if layer.kind == "full"] == own
        else:
            assert f"heads={limit.largest}" in certificate.schedule


def test_a_stack_is_within_the_limits_exactly_where_it_is_certified() -> None:
    architecture = stack("linear full linear", bits=4)
    certified = prove(architecture, 2).prompt_length
    assert certified is not None
    for tokens, within in ((certified, True), (certified - 1, False)):
        precision = next(limit for limit in limits(architecture, 2, tokens) if limit.knob == "precision")
        assert (precision.largest >= precision.actual) == within


def test_the_states_keep_their_proportions_and_their_places() -> None:
    """Unlike layers, one of them in parallel with attention: each has its share, rounded up."""
    architecture = stack("linear mlp full|gdn[head_dim=8] conv[channels=3,kernel=2] full", bits=2)
    limit = next(limit for limit in limits(architecture, 3, 10**10) if limit.knob == "state")
    assert limit.largest > 8
    certificate = limit.verdict.certificate
    assert certificate is not None
    matches_schedule(certificate.document())
    shares = [layer.bits for layer in certificate.layers]
    own = next(r for r in architecture.layer_bits() if [x.kind for x in r] == [x.kind for x in certificate.layers])
    most = max(layer.bits for layer in own if layer.kind == "bounded")
    assert limit.actual == most
    for share, layer in zip(shares, own, strict=True):
        assert share == (layer.bits if layer.kind == "full" else -(-layer.bits * limit.largest // most))


def test_what_the_theorems_do_not_speak_of_has_no_limits() -> None:
    assert limits(stack("linear full"), 1, 1000) == ()
    assert limits(stack("nsa[k=2,block=4]"), 2, 1000) == ()


def test_where_nothing_is_certified_the_length_of_the_smallest_is_told() -> None:
    found = limits(stack("12*(3*gdn full)", head_dim=128), 13, 131_072)
    assert {limit.largest for limit in found} == {0}
    assert all(limit.factor is None and (limit.verdict.log2_prompt_length or 0) > 17 for limit in found)


@pytest.mark.parametrize("tokens", [0, -1, True, 1.5])
def test_tokens_are_a_number(tokens: int) -> None:
    with pytest.raises(InputError, match=r"^at: "):
        limits(stack("linear"), 1, tokens)


def test_the_command_writes_what_verify_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["bound", "linear full linear", "--head-dim", "4", "--hops", "2", "--at", "20000"]
    assert run_with([*line, "--json", "--out", str(tmp_path)]) == 0
    at = json.loads(capsys.readouterr().out)["at"]
    assert at["tokens"] == 20_000
    assert [limit["knob"] for limit in at["limits"]] == ["precision", "state", "heads"]
    assert [limit["certificate"] for limit in at["limits"]] == ["at-precision.json", "at-state.json", "at-heads.json"]
    results = list(verify_files([tmp_path]))
    assert len(results) == 4
    assert all(result.accepted for result in results)
    assert run_with(line) == 0
    shown = capsys.readouterr().out
    assert all(f": {limit['largest']:,} (the stack has {limit['actual']:,}" in shown for limit in at["limits"])
