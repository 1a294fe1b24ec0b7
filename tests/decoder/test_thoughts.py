"""Tokens that a decoder generates itself, and encoders: against the plain whole forward."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hopbound.decoder import Decoder, DecoderConfig
from hopbound.decoder.demand import is_local
from hopbound.decoder.folder import load_model, save_model
from hopbound.decoder.thoughts import think
from hopbound.errors import InputError, RejectedError
from tests.decoder.examples import LENGTH, MIXERS, VOCABULARY, config, random_decoder, random_tokens

THOUGHTS = 4


def thinking(schedule: str, *, seed: int = 0, zeros: float = 0.0, norm: str = "none", coded: bool = False) -> Decoder:
    made = config(schedule, norm=norm, coded=coded)
    return random_decoder(dataclasses.replace(made, thoughts=THOUGHTS), seed, zeros)


def encoder(schedule: str, *, seed: int = 0, zeros: float = 0.0, norm: str = "none") -> Decoder:
    return random_decoder(dataclasses.replace(config(schedule, norm=norm), causal=False), seed, zeros)


def by_whole_forwards(decoder: Decoder, prompts: Tensor) -> tuple[Tensor, Tensor]:
    """The definition: the whole sequence again for each token."""
    tokens = prompts
    for _ in range(THOUGHTS):
        tokens = torch.cat([tokens, decoder(tokens)[0][:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return tokens[:, prompts.shape[1] :], decoder(tokens)[0][:, -1]


@pytest.mark.parametrize("schedule", [MIXERS[0], " ".join(MIXERS), f"{MIXERS[1]} {MIXERS[4]}"])
@pytest.mark.parametrize("norm", ["none", "rms"])
@pytest.mark.parametrize("coded", [False, True], ids=["tables", "codes"])
def test_thoughts_are_what_whole_forwards_give(schedule: str, norm: str, coded: bool) -> None:
    decoder, prompts = thinking(schedule, norm=norm, coded=coded), random_tokens(time=LENGTH - THOUGHTS)
    thoughts, logits = think(decoder, prompts)
    expected_thoughts, expected = by_whole_forwards(decoder, prompts)
    assert torch.equal(thoughts, expected_thoughts)
    torch.testing.assert_close(logits, expected, atol=1e-9, rtol=1e-9)
    assert np.array_equal(decoder.answer(prompts.numpy()), expected.argmax(dim=-1).numpy())


def test_one_layer_is_evaluated_on_demand_and_more_that_hang_together_are_not() -> None:
    prompts = random_tokens(time=LENGTH - THOUGHTS)
    assert is_local(thinking(MIXERS[0]), prompts[:1])
    assert not is_local(thinking(f"{MIXERS[0]} {MIXERS[0]}"), prompts[:1])


def test_thoughts_take_their_places_from_the_prompt() -> None:
    decoder = thinking(MIXERS[0])
    assert decoder.prompt_limit == LENGTH - THOUGHTS
    with pytest.raises(InputError, match=f"at most {LENGTH - THOUGHTS} tokens"):
        decoder.answer(random_tokens().numpy())


@pytest.mark.parametrize("norm", ["none", "rms"])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("schedule", [MIXERS[0], f"{MIXERS[0]} {MIXERS[1]} {MIXERS[0]}"])
def test_an_encoder_on_demand_is_the_whole_forward(schedule: str, norm: str, zeros: float) -> None:
    for seed in range(4):
        decoder, tokens = encoder(schedule, seed=seed, zeros=zeros, norm=norm), random_tokens()
        whole = decoder(tokens)[0][:, -1]
        torch.testing.assert_close(decoder.final_logits(tokens), whole, atol=1e-9, rtol=1e-9)


def test_a_token_of_an_encoder_sees_later_ones_and_a_decoder_s_does_not() -> None:
    tokens = random_tokens(batch=1)
    changed = tokens.clone()
    changed[0, -1] = (changed[0, -1] + 1) % VOCABULARY
    made = config(MIXERS[0])
    for causal in (True, False):
        decoder = random_decoder(dataclasses.replace(made, causal=causal))
        first = [decoder(one)[0][0, 0] for one in (tokens, changed)]
        assert torch.equal(*first) is causal


def test_attention_of_an_encoder_by_hand() -> None:
    decoder, tokens = encoder(MIXERS[0]), random_tokens()
    (block,) = decoder.each_block()
    (mixer,) = block.each_mixer()
    x = decoder.embed_tokens(tokens) + decoder.embed_positions(torch.arange(LENGTH))
    query, key, value, out = (
        dict(mixer.named_parameters())[f"{name}.weight"] for name in ("query", "key", "value", "out")
    )
    heads = []
    for head in range(2):
        scores = (x @ query[3 * head : 3 * head + 3].T) @ (x @ key.T).transpose(1, 2) / 3**0.5
        heads.append(scores.softmax(dim=-1) @ (x @ value.T))
    torch.testing.assert_close(mixer(x)[0], torch.cat(heads, dim=-1) @ out.T, atol=1e-9, rtol=1e-9)


def test_tokens_that_do_not_count_are_not_seen_by_an_encoder() -> None:
    decoder, tokens = encoder(f"{MIXERS[0]} {MIXERS[1]}"), random_tokens()
    mask = torch.from_numpy(np.random.default_rng(5).random(tokens.shape) < 0.6)
    mask[2] = False
    masked = decoder(tokens, None, mask)[0]
    for row in range(len(tokens)):
        alone = decoder(tokens[row : row + 1, mask[row]])[0][0] if mask[row].any() else masked[row, :0]
        torch.testing.assert_close(masked[row, mask[row]], alone, atol=1e-9, rtol=1e-9)


def test_an_encoder_has_no_state() -> None:
    decoder, tokens = encoder(MIXERS[0]), random_tokens()
    _, state = decoder(tokens[:, :5])
    with pytest.raises(InputError, match=r"^state: [^\n]*reads a sequence as a whole$"):
        decoder(tokens[:, 5:], state)
    (mixer,) = decoder.each_block()[0].each_mixer()
    x = torch.zeros(1, 2, decoder.config.width, dtype=torch.float64)
    with pytest.raises(InputError, match=r"^state: "):
        mixer(x, mixer(x)[1])


@pytest.mark.parametrize("schedule", MIXERS[2:])
def test_an_encoder_of_other_mixers_is_refused(schedule: str) -> None:
    with pytest.raises(InputError, match=r"^causal: [^\n]*only full can$"):
        dataclasses.replace(config(f"{MIXERS[0]} {schedule}"), causal=False)


@pytest.mark.parametrize(
    "changes", [{"thoughts": -1}, {"thoughts": 1, "vocabulary": 5}, {"thoughts": 1, "causal": False}], ids=str
)
def test_what_cannot_be_read_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"^thoughts: "):
        dataclasses.replace(config(MIXERS[0]), **changes)


@pytest.mark.parametrize("decoder", [thinking(MIXERS[0]), encoder(MIXERS[0])], ids=["thoughts", "encoder"])
def test_the_folder_keeps_how_a_model_is_read(decoder: Decoder, tmp_path: Path) -> None:
    save_model(tmp_path / "model", decoder, notes={})
    read = load_model(tmp_path / "model").decoder
    assert read.config == decoder.config
    prompts = random_tokens(time=LENGTH - THOUGHTS).numpy()
    assert np.array_equal(read.answer(prompts), decoder.answer(prompts))


def test_a_file_with_thoughts_for_a_window_encoder_is_rejected() -> None:
    document = json.loads(json.dumps(config(MIXERS[2]).to_json())) | {"causal": False}
    with pytest.raises(RejectedError, match=r"^model config: causal: "):
        DecoderConfig.from_json(document)
