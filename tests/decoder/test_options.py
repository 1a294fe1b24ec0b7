"""What a decoder can be made of: norms, maps, positions, shared layers, parallel mixers; masks and packed sequences."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from hopbound.architecture import Defaults, Precisions, spec_text
from hopbound.decoder import Decoder, DecoderConfig
from hopbound.decoder.folder import load_model, save_model
from hopbound.errors import InputError
from hopbound.mixers import REGISTRY, make_mixer
from tests.mixers.examples import VARIANTS, every_mixer, example_spec

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = 11
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"maps": "plain", "activation": "gelu", "norm": "layer"},
    "gated": {"maps": "gated", "norm": "rms"},
    "no norm": {"norm": "none", "hidden": 5},
    "no maps": {"hidden": 0},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "learned": {"positions": 64},
    "shared": {"shared": (0, 1, 0, 1)},
}
every_option = pytest.mark.parametrize("option", OPTIONS)


def made(schedule: str = "2*(gdn full|window)", **options: Any) -> Decoder:
    sizes = {"width": 12, "heads": 2, "head_dim": 4, "vocabulary": VOCABULARY, "defaults": Defaults(window=5)}
    return Decoder.from_schedule(schedule, **(sizes | options)).double()


def tokens(time: int, batch: int = 2, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (batch, time), generator=torch.Generator().manual_seed(seed))


def same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


@every_option
def test_whole_split_and_single_tokens_agree(option: str) -> None:
    decoder, prompt = made(**OPTIONS[option]), tokens(23)
    whole, _ = decoder(prompt)
    for sizes in ([17, 6], [1] * 23):
        state, parts = None, []
        for piece in prompt.split(sizes, dim=1):
            logits, state = decoder(piece, state)
            parts.append(logits)
        same(torch.cat(parts, dim=1), whole)


@every_option
def test_on_demand_is_the_forward_pass(option: str) -> None:
    decoder, prompt = made(**OPTIONS[option]), tokens(23)
    same(decoder.final_logits(prompt), decoder(prompt)[0][:, -1])


@every_option
def test_left_padding_changes_nothing(option: str) -> None:
    decoder, prompt = made(**OPTIONS[option]), tokens(19)
    plain, _ = decoder(prompt)
    padded = torch.cat([tokens(4, seed=1), prompt], dim=1)
    mask = torch.ones(2, 23, dtype=torch.bool)
    mask[:, :4] = False
    logits, state = decoder(padded, None, mask)
    same(logits[:, 4:], plain)
    after, _ = decoder(tokens(3, seed=2), state)
    same(after, decoder(torch.cat([prompt, tokens(3, seed=2)], dim=1))[0][:, 19:])


@every_option
def test_packed_sequences_do_not_see_each_other(option: str) -> None:
    decoder, bounds = made(**OPTIONS[option]), [0, 7, 7, 8, 20]
    prompt = tokens(20, batch=1)
    packed = decoder.packed(prompt, torch.tensor(bounds))
    pieces = [prompt[:, a:b] for a, b in pairwise(bounds) if b > a]
    same(packed, torch.cat([decoder(piece)[0] for piece in pieces], dim=1))


@every_option
def test_the_folder_keeps_it(option: str, tmp_path: Path) -> None:
    decoder, prompt = made(**OPTIONS[option]), tokens(9)
    assert DecoderConfig.from_json(json.loads(json.dumps(decoder.config.to_json()))) == decoder.config
    save_model(tmp_path / "model", decoder, notes={})
    loaded = load_model(tmp_path / "model").decoder
    assert all(torch.equal(value, decoder.state_dict()[key]) for key, value in loaded.state_dict().items())
    same(loaded(prompt)[0], decoder(prompt)[0])


@every_option
def test_parameters_are_counted(option: str) -> None:
    decoder = made(**OPTIONS[option])
    assert decoder.config.parameters == sum(parameter.numel() for parameter in decoder.parameters())


def test_shared_layers_are_one() -> None:
    own, shared = made(), made(shared=(0, 1, 0, 1))
    assert shared.config.parameters < own.config.parameters
    first, _, third, _ = shared.each_block()
    assert first is third
    state = own.state_dict()
    for name, value in shared.state_dict().items():
        state[name] = value
        state[name.replace("blocks.0.", "blocks.2.").replace("blocks.1.", "blocks.3.")] = value
    own.load_state_dict(state)
    assert torch.equal(own(tokens(9))[0], shared(tokens(9))[0])


@pytest.mark.parametrize("shared", [(0, 0, 2, 3), (0, 1, 3, 3), (0, 1, 1, 2), (0, 1), (0, 1, 2, 4)])
def test_only_like_layers_share(shared: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"^shared: got \("):
        made(shared=shared)


def test_parallel_mixers_add_up() -> None:
    """As the attention and state-space heads of Falcon-H1."""
    decoder = made("full|mamba2", norm="rms", hidden=0)
    (block,) = decoder.each_block()
    x = torch.randn(2, 9, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    attention, states = block.each_mixer()
    normed = block.norm(x)
    same(block(x, None)[0], x + attention(normed)[0] + states(normed)[0])


def test_a_layer_is_falcon_h1_s() -> None:
    """Attention with rotary embedding beside Mamba-2 heads on one norm, then a gated map.

    The peer gates what the state space reads; here its gate is held open, silu(1.278…) = 1, by a bias.
    """
    from transformers.models.falcon_h1 import modeling_falcon_h1 as falcon
    from transformers.models.falcon_h1.configuration_falcon_h1 import FalconH1Config

    width, heads, groups, channels, state = 14, 4, 2, 3, 5
    schedule = f"full[heads={heads},kv_heads=2,head_dim=6]|mamba2[heads={heads},head_dim={channels},state={state},"
    decoder = Decoder.from_schedule(f"{schedule}groups={groups},conv=4]", vocabulary=2, width=width, positions="rotary")
    (block,) = decoder.each_block()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in block.parameters():
            if parameter.dim() == 1:
                parameter.copy_(1 + 0.3 * torch.randn(parameter.shape, generator=generator))
    attention, mamba = (cast(Any, mixer) for mixer in block.each_mixer())
    pointwise = block.pointwise
    assert pointwise is not None
    assert pointwise.gate is not None
    with torch.no_grad():
        pointwise.rise.bias.zero_()
        pointwise.fall.bias.zero_()

    config = FalconH1Config(
        hidden_size=width,
        num_attention_heads=heads,
        num_key_value_heads=2,
        intermediate_size=pointwise.rise.out_features,
        mamba_d_ssm=heads * channels,
        mamba_n_heads=heads,
        mamba_d_head=channels,
        mamba_d_state=state,
        mamba_n_groups=groups,
        mamba_d_conv=4,
        mamba_rms_norm=False,
        mamba_proj_bias=True,
        num_hidden_layers=1,
        rms_norm_eps=torch.finfo(torch.float32).eps,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    config._attn_implementation = "eager"
    setattr(config, "head_dim", 6)  # noqa: B010 - a field that it looks for and does not declare
    with torch.random.fork_rng(devices=[]):
        peer: Any = falcon.FalconH1DecoderLayer(config, 0)
        peer.mamba.register_buffer("mup_vector", torch.ones(1, 1, 1))
        rotary: Any = falcon.FalconH1RotaryEmbedding(config)
    for name, ours in (("q", attention.query), ("k", attention.key), ("v", attention.value), ("o", attention.out)):
        getattr(peer.self_attn, f"{name}_proj").weight = ours.weight
    peer.feed_forward.gate_proj.weight, peer.feed_forward.up_proj.weight = pointwise.gate.weight, pointwise.rise.weight
    peer.feed_forward.down_proj.weight = pointwise.fall.weight
    peer.input_layernorm.weight, peer.pre_ff_layernorm.weight = block.norm.weight, pointwise.norm.weight
    peer.mamba.out_proj.weight, peer.mamba.D = mamba.out.weight, mamba.skip
    peer.mamba.dt_bias, peer.mamba.A_log = mamba.step_bias, mamba.log_rate
    closed = torch.zeros(heads * channels, width)
    parts = [closed, *(part.weight for part in (mamba.channel, mamba.write, mamba.read, mamba.step))]
    with torch.no_grad():
        peer.mamba.in_proj.weight.copy_(torch.cat(parts))
        peer.mamba.in_proj.bias.zero_()
        peer.mamba.in_proj.bias[: heads * channels] = 1.2784645427610738  # silu of it is 1
        peer.mamba.conv1d.weight.copy_(mamba.short.filter.flip(0).T[:, None])
        peer.mamba.conv1d.bias.zero_()

    time = 40
    x = torch.randn(2, time, width, generator=generator).requires_grad_()
    above = torch.full((time, time), -torch.inf).triu(1)[None, None]
    positions = rotary(x, torch.arange(time)[None])
    expected = peer(x, attention_mask=above, position_embeddings=positions)[0]
    found, _ = block(x, None)
    variables = [x, attention.query.weight, mamba.out.weight, mamba.log_rate, mamba.skip, pointwise.gate.weight]
    weights = torch.randn(found.shape, generator=generator)
    results = [
        [output.detach(), *torch.autograd.grad((output * weights).sum(), variables)] for output in (found, expected)
    ]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5 * float(other.abs().max()), rtol=0)


def test_a_gated_map_is_llama_s() -> None:
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    pointwise = made("full", maps="gated").each_block()[0].pointwise
    assert pointwise is not None
    assert pointwise.gate is not None
    config = LlamaConfig(hidden_size=12, num_attention_heads=2, intermediate_size=pointwise.rise.out_features)
    with torch.random.fork_rng(devices=[]):
        peer: Any = LlamaMLP(config).double()
    peer.gate_proj.weight, peer.up_proj.weight = pointwise.gate.weight, pointwise.rise.weight
    peer.down_proj.weight = pointwise.fall.weight
    x = torch.randn(2, 9, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    same(pointwise(x), x + peer(pointwise.norm(x)))


def test_the_example_of_the_docstring() -> None:
    decoder = Decoder.from_schedule("6*(3*gdn full)", vocabulary=512, width=128, positions="rotary")
    assert len(decoder.each_block()) == 24
    assert decoder.training
    loss = decoder(torch.zeros(1, 3, dtype=torch.int64))[0].logsumexp(-1).mean()
    loss.backward()
    assert all(parameter.grad is not None for parameter in decoder.parameters())
    again = Decoder.from_schedule("6*(3*gdn full)", vocabulary=512, width=128, positions="rotary")
    assert all(torch.equal(a, b) for a, b in zip(decoder.parameters(), again.parameters(), strict=True))


@every_mixer
def test_random_weights_start_where_the_mixer_says(name: str) -> None:
    """Finite, the same each time, and what is no projection as the mixer has it when it is made alone."""
    spec = example_spec(name)
    decoder = Decoder.from_schedule(spec_text(spec), vocabulary=VOCABULARY, width=6, hidden=0)
    (one,) = decoder.each_block()[0].each_mixer()
    with torch.random.fork_rng(devices=[]):
        alone = make_mixer(spec, 6)
    for key, value in one.constants().items():
        assert torch.equal(one.get_parameter(key), alone.get_parameter(key))
        wanted = torch.as_tensor(value).to(one.get_parameter(key)).expand_as(one.get_parameter(key))
        assert torch.equal(one.get_parameter(key), wanted)
    assert decoder(tokens(30))[0].isfinite().all()


@pytest.mark.parametrize(
    ("option", "value"),
    [("positions", "rope"), ("positions", 0), ("positions", -3), ("width", 0), ("vocabulary", 0), ("hidden", -1)],
    ids=str,
)
def test_what_makes_no_model_is_refused(option: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{option}: got {value!r}, expected "):
        made(**{option: value})


@pytest.mark.parametrize("field", ["activation", "maps", "norm", "scores"])
def test_a_config_takes_only_what_it_knows(field: str) -> None:
    """Also where nothing checks types: `swiglu` for `gated` would be a plain map."""
    given = made().config
    object.__setattr__(given, field, "other")  # otherwise the checks of types that the tests switch on would come first
    with pytest.raises(InputError, match=rf"^{field}: got 'other', expected one of "):
        given.__post_init__()


def test_maps_stand_where_the_schedule_writes_them() -> None:
    decoder = made("mamba2 mlp full|mlp gdn", hidden=7)
    assert decoder.config.hidden == (0, 7, 7, 0)
    assert [len(block.each_mixer()) for block in decoder.each_block()] == [1, 0, 1, 1]
    assert made("mamba2 full", hidden=7).config.hidden == (7, 7)


def test_positions_are_limited_by_the_table_only() -> None:
    with pytest.raises(InputError, match=r"^prompt length: got 65, expected at most 64 tokens"):
        made(positions=64)(tokens(65))
    made(positions="rotary")(tokens(65))


@every_mixer
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_state_bytes_are_those_of_the_architecture(name: str, dtype: torch.dtype) -> None:
    """At the precisions of the run: in bfloat16 those that the architecture takes for granted."""
    time, spec, bits = 41, example_spec(name), torch.finfo(dtype).bits
    precisions = Precisions() if dtype is torch.bfloat16 else Precisions.uniform(bits)
    sizes = {"vocabulary": VOCABULARY, "width": 6, "hidden": 0, "precisions": precisions}
    decoder = Decoder.from_schedule(spec_text(spec), **sizes).to(dtype)
    _, state = decoder(tokens(time, batch=1))
    architecture, held = decoder.config.architecture, spec.elements
    cached = held.kv_per_token * (time // held.kv_every) * precisions.kv
    assert 8 * Decoder.state_bytes(state) == architecture.state_bits + cached


@every_mixer
def test_packed_mixers(name: str) -> None:
    """Outputs and gradients of each sequence are those that it has alone."""
    bounds = [0, 9, 10, 26]
    mixer = Decoder.from_schedule(spec_text(example_spec(name)), vocabulary=VOCABULARY, width=6, hidden=0).double()
    (block,) = mixer.each_block()
    (one,) = block.each_mixer()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 26, 6, dtype=torch.float64, generator=generator).requires_grad_()
    weights = torch.randn(1, 26, 6, dtype=torch.float64, generator=generator)
    packed = one.packed(x, torch.tensor(bounds))
    alone = torch.cat([one(x[:, a:b])[0] for a, b in pairwise(bounds)], dim=1)
    same(packed, alone)
    gradients = [torch.autograd.grad((output * weights).sum(), x)[0] for output in (packed, alone)]
    same(*gradients)


@pytest.mark.parametrize("bounds", [[0, 5], [1, 6], [0, 4, 3, 6], [6], [0, 7]])
def test_bounds_of_packed_sequences_are_checked(bounds: list[int]) -> None:
    with pytest.raises(InputError, match=r"^cu_seqlens: got \["):
        made().packed(tokens(6, batch=1), torch.tensor(bounds))


@pytest.mark.parametrize(
    "names",
    [["full rotary", "gdn conv", "codes"], pytest.param(list(VARIANTS), marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_decoders_compile_without_a_break(names: list[str]) -> None:
    """Whole, from a state on, with learned positions and with positions by rule."""
    command = [sys.executable, "-m", "tests.decoder.compiling", *names]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [line for line in said.splitlines() if not line.endswith(": ok")] == []
    assert len(said.splitlines()) == len(names)


def test_every_mixer_of_the_registry_is_here() -> None:
    assert {VARIANTS[name][0] for name in VARIANTS} == set(REGISTRY)
