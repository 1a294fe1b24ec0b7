"""The decoder as a map: one result however it is evaluated, its definition, and a strict config."""

import dataclasses
import json
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from torch import Tensor

from hopbound.decoder import Decoder, DecoderConfig
from hopbound.decoder.model import LATER_FIELDS
from hopbound.errors import InputError, RejectedError
from tests.decoder.examples import ANSWERS, LENGTH, MIXERS, VOCABULARY, WIDTH, config, random_decoder, random_tokens

ALL = " ".join(MIXERS)
STACKS = (*MIXERS, ALL, "|".join(MIXERS), f"{MIXERS[0]} mlp {MIXERS[4]}")


def in_pieces(decoder: Decoder, tokens: Tensor, sizes: list[int]) -> Tensor:
    outputs, state = [], None
    for piece in tokens.split(sizes, dim=1):
        output, state = decoder(piece, state)
        outputs.append(output)
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("schedule", STACKS)
@pytest.mark.parametrize("norm", ["none", "rms"])
@pytest.mark.parametrize("coded", [False, True], ids=["tables", "codes"])
def test_whole_split_and_step_by_step_agree(schedule: str, norm: str, coded: bool) -> None:
    decoder, tokens = random_decoder(config(schedule, norm=norm, coded=coded)), random_tokens()
    whole = decoder(tokens)[0]
    for sizes in ([17, 23], [1, 38, 1], [1] * LENGTH):
        torch.testing.assert_close(in_pieces(decoder, tokens, sizes), whole, atol=1e-9, rtol=1e-9)


def test_the_state_counts_its_tokens() -> None:
    decoder, tokens = random_decoder(config(ALL)), random_tokens()
    _, state = decoder(tokens[:, :5])
    assert state.seen == 5
    assert [len(layer) for layer in state.layers] == [1] * len(MIXERS)
    assert decoder(tokens[:, 5:8], state)[1].seen == 8


def test_definition_of_a_layer() -> None:
    # h = x + Σ mixer(norm(x)); x' = h + W2 relu(W1 norm(h) + b1) + b2; readout(norm(x')), by hand.
    decoder = random_decoder(config(f"{MIXERS[0]}|{MIXERS[3]}", norm="rms"))
    weights = decoder.state_dict()

    def norm(x: Tensor, key: str) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt() * weights[f"{key}.weight"]

    tokens = random_tokens(batch=1)
    x = weights["token_table.weight"][tokens] + weights["position_table.weight"]
    (block,) = decoder.each_block()
    h = x + sum(mixer(norm(x, "blocks.0.norm"), None)[0] for mixer in block.each_mixer())
    inner = norm(h, "blocks.0.pointwise.norm") @ weights["blocks.0.pointwise.rise.weight"].T
    hidden = (inner + weights["blocks.0.pointwise.rise.bias"]).clamp(min=0)
    x = h + hidden @ weights["blocks.0.pointwise.fall.weight"].T + weights["blocks.0.pointwise.fall.bias"]
    expected = norm(x, "final_norm") @ weights["readout_table.weight"].T
    torch.testing.assert_close(decoder(tokens)[0], expected, atol=1e-10, rtol=0)


def test_a_layer_that_moves_nothing_is_a_map_alone() -> None:
    decoder = random_decoder(config("mlp"))
    tokens = random_tokens()
    changed = tokens.clone()
    changed[:, :-1] = (changed[:, :-1] + 1) % VOCABULARY
    assert torch.equal(decoder(tokens)[0][:, -1], decoder(changed)[0][:, -1])


def test_answer_is_the_largest_logit_at_the_last_token() -> None:
    decoder, tokens = random_decoder(config(MIXERS[0])), random_tokens(batch=20)
    answers = decoder.answer(tokens.numpy())
    assert answers.dtype == np.int64
    assert answers.tolist() == decoder(tokens)[0][:, -1].argmax(dim=1).tolist()
    assert len(set(answers.tolist())) > 1


@pytest.mark.parametrize("coded", [False, True], ids=["tables", "codes"])
def test_a_prompt_beyond_the_positions_is_refused(coded: bool) -> None:
    decoder, tokens = random_decoder(config(MIXERS[0], coded=coded)), random_tokens(time=LENGTH + 1)
    for ask in (decoder, decoder.final_logits):
        with pytest.raises(InputError, match=rf"^prompt length: got {LENGTH + 1}, expected at most {LENGTH} tokens"):
            ask(tokens)


def test_hidden_must_fit_the_layers() -> None:
    with pytest.raises(InputError, match=r"^hidden: got .*, expected one number for each of 2 layers$"):
        Decoder(config(f"2*{MIXERS[0]}", hidden=(3,)))


def test_shapes_are_checked_at_run_time() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        random_decoder(config(MIXERS[0]))(torch.zeros(3, dtype=torch.int64))


@pytest.mark.parametrize("coded", [False, True], ids=["tables", "codes"])
@pytest.mark.parametrize("positions", [False, True])
def test_config_round_trip(coded: bool, positions: bool) -> None:
    made = config(ALL, norm="rms", coded=coded, positions=positions)
    assert DecoderConfig.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_config_names_its_fields_as_they_are_called() -> None:
    assert list(config(ALL).to_json()) == [field.name for field in dataclasses.fields(DecoderConfig)]


CODED = config(MIXERS[0], coded=True).to_json()


def test_files_from_before_a_field_existed_mean_what_they_meant() -> None:
    old = {name: value for name, value in CODED.items() if name not in LATER_FIELDS}
    assert DecoderConfig.from_json(old) == DecoderConfig.from_json(CODED)


@pytest.mark.parametrize("key", [key for key in CODED if key not in LATER_FIELDS])
def test_a_missing_field_is_rejected(key: str) -> None:
    with pytest.raises(RejectedError, match=r"^model config: [^\n]*$"):
        DecoderConfig.from_json({name: value for name, value in CODED.items() if name != key})


@pytest.mark.parametrize(
    "changes",
    [
        {"color": 3},
        {"activation": "tanh"},
        {"norm": "batch"},
        {"maps": "none"},
        {"encoding": "rotary"},
        {"encoding": {"kind": "sinus"}},
        {"encoding": {"kind": "alibi", "base": 2.0}},
        {"encoding": {"kind": "rotary", "base": 0.5, "dims": None}},
        {"encoding": {"kind": "rotary", "base": 10.0, "dims": 0}},
        {"shared": 0},
        {"shared": []},
        {"shared": [1]},
        {"shared": [-1]},
        {"scores": "two"},
        {"precisions": {"bits": 4}},
        {"precisions": CODED["precisions"] | {"bits": 4}},
        {"precisions": CODED["precisions"] | {"kv": 0}},
        {"tokens": {"fields": [{"column": 0}]}},
        {"tokens": {"fields": [{"column": 0, "divisor": 1, "modulus": 2, "bits": 1, "color": 3}]}},
        {"positions": {"segments": [{}]}},
        {"readout": {}},
        {"hidden": None},
        {"thoughts": -1},
        {"thoughts": True},
        {"thoughts": 3, "vocabulary": 2},
        {"causal": 0},
        {"causal": False, "thoughts": 1, "vocabulary": ANSWERS},
    ],
    ids=str,
)
def test_unknown_values_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(RejectedError, match=r"^model config: [^\n]*$"):
        DecoderConfig.from_json(CODED | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"precisions": {}},
        {"precisions": {"activation": 4, "kv": 4, "state": 4}},
        {"tokens": 5},
        {"vocabulary": "8"},
        {"vocabulary": 8.5},
        {"vocabulary": True},
        {"answers": None},
        {"width": -9},
        {"hidden": "77"},
        {"hidden": [1.5]},
        {"hidden": [-1]},
        {"schedule": 3},
        {"positions": "many"},
        {"positions": True},
        {"positions": -1},
        {"tokens": {"fields": [{"column": "0", "divisor": 1, "modulus": 2, "bits": 1}]}},
        {"tokens": {"fields": [{"column": 0, "divisor": 0, "modulus": 2, "bits": 1}]}},
        {"tokens": {"fields": [{"column": WIDTH, "divisor": 1, "modulus": 2, "bits": 1}]}},
        {"readout": {"column": WIDTH - 1, "divisor": 1, "modulus": ANSWERS, "bits": 3}},
        {"positions": {"segments": [{"name": "z", "length": "3", "fields": [], "constants": []}]}},
        {"positions": {"segments": [{"name": "z", "length": 3, "fields": [], "constants": [[WIDTH, 1.0]]}]}},
    ],
    ids=str,
)
def test_ill_typed_fields_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(RejectedError, match=r"^model config: [^\n]*$"):
        DecoderConfig.from_json(CODED | changes)
