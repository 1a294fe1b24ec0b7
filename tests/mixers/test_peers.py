"""Equality with other projects' plain functions: same tensors in, same outputs, states and gradients out.

The peers compute in float32 and scale queries by 1/√d_k; where they differ in more than that it is said beside.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv1d, logsigmoid, normalize, softplus

from hopbound.mixers import Alibi, Rotary
from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.delta_rule import delta_rule
from hopbound.mixers.dplr import dplr
from hopbound.mixers.linear import EPSILON
from hopbound.mixers.mlstm import MatrixMemory, matrix_memory
from tests.mixers.examples import detached, example, random_input, tensors
from tests.mixers.peers import alike, fla, near, peer_output

BATCH, HEADS, TIME, KEY, VALUE = 2, 3, 70, 8, 5
Result = tuple[Tensor, Tensor | None]


def inputs(*, channels: bool = False, seed: int = 0) -> dict[str, Tensor]:
    """q, k, v, decays and strengths as [batch, heads, time, …], and a state, in float32 with gradients."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    made = {
        "q": normal(BATCH, HEADS, TIME, KEY),
        "k": normal(BATCH, HEADS, TIME, KEY),
        "v": normal(BATCH, HEADS, TIME, VALUE),
        "g": -normal(BATCH, HEADS, TIME, *((KEY,) if channels else ())).abs(),
        "beta": torch.rand(BATCH, HEADS, TIME, generator=generator),
        "state": normal(BATCH, HEADS, KEY, VALUE),
        "u": normal(HEADS, KEY),
    }
    made["k"] = normalize(made["k"], dim=-1)
    return {key: value.requires_grad_() for key, value in made.items()}


def agree(ours: Callable[..., Result], peer: Callable[..., Result], given: dict[str, Tensor]) -> float:
    """The largest difference of outputs, states and gradients, relative to each one's largest number."""
    results = []
    for function in (ours, peer):
        output, state = function(**given)
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(5))
        total = (output * weights).sum() + (0 if state is None else (state**2).sum())
        gradients = torch.autograd.grad(total, list(given.values()), allow_unused=True)
        results.append([output, state, *gradients])
    largest = 0.0
    for one, other in zip(*results, strict=True):
        if other is not None:
            assert one is not None
            largest = max(largest, float((one - other).detach().abs().max() / other.detach().abs().max()))
    return largest


def turned(x: Tensor) -> Tensor:
    """Heads and time exchanged."""
    return x.transpose(1, 2)


def scaled(q: Tensor) -> Tensor:
    return q * KEY**-0.5


def decayed(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, **_: Tensor) -> Result:
    return decayed_attention(scaled(q), k, v, g, state, chunk=16)


def delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, state: Tensor, g: Tensor | None = None, **_: Tensor) -> Result:
    return delta_rule(scaled(q), k, v, beta, g, state, chunk=32)


def test_scalar_decays_are_simple_gla() -> None:
    """The form of RetNet, Lightning attention and Mamba-2."""

    def peer(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, **_: Tensor) -> Result:
        function = fla("simple_gla/naive", "naive_recurrent_simple_gla")
        o, last = function(*map(turned, (q, k, v, g)), initial_state=state.clone(), output_final_state=True)
        return turned(o), last

    assert agree(decayed, peer, inputs()) < 1e-5


def test_channel_decays_are_gla() -> None:
    def peer(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, **_: Tensor) -> Result:
        function = fla("gla/naive", "naive_recurrent_gla")
        o, last = function(*map(turned, (q, k, v, g)), initial_state=state, output_final_state=True)
        return turned(o), last

    assert agree(decayed, peer, inputs(channels=True)) < 1e-5


def test_the_bonus_is_rwkv6_s() -> None:
    def ours(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, u: Tensor, **_: Tensor) -> Result:
        return decayed_attention(scaled(q), k, v, g, state, u, chunk=16)

    def peer(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, u: Tensor, **_: Tensor) -> Result:
        function = fla("rwkv6/recurrent_naive", "naive_recurrent_rwkv6")
        return function(q, k, v, g, u, initial_state=state, output_final_state=True)

    assert agree(ours, peer, inputs(channels=True)) < 1e-5


def test_retention() -> None:
    mixer: Any = example("retnet", torch.float32)
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    q, k, v, _ = mixer.projected(x)
    expected = mixer.out(turned(fla("retention/naive", "naive_retention")(q, k, v)).flatten(2))
    alike(mixer, x, expected)


def test_normalised_linear_attention() -> None:
    """The peer's guard of the normaliser is 1e-10, and its scale of the queries cancels but for the guard."""
    mixer: Any = example("linear", torch.float32)
    x = random_input(64, dtype=torch.float32).requires_grad_()
    q, k, v, _ = mixer.projected(x)
    function = fla("linear_attn/naive", "naive_recurrent_linear_attn")
    o, _ = function(*map(turned, (mixer.features(q), mixer.features(k), v)), normalize=True)
    alike(mixer, x, mixer.out(o.flatten(2)))
    assert EPSILON < 1e-5


def test_the_delta_rule() -> None:
    def peer(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, state: Tensor, **_: Tensor) -> Result:
        return fla("delta_rule/naive", "delta_rule_recurrence")(q, k, v, beta, initial_state=state)

    given = inputs()
    del given["g"]
    assert agree(delta, peer, given) < 1e-5


def test_the_gated_delta_rule() -> None:
    def peer(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor, **_: Tensor) -> Result:
        function = fla("gated_delta_rule/naive", "naive_recurrent_gated_delta_rule")
        o, last = function(*map(turned, (q, k, v, beta, g)), initial_state=state, output_final_state=True)
        return turned(o), last

    assert agree(delta, peer, inputs()) < 1e-5


@pytest.mark.parametrize("form", ["torch_recurrent_gated_delta_rule", "torch_chunk_gated_delta_rule"])
def test_the_gated_delta_rule_of_transformers(form: str) -> None:
    from transformers.models.qwen3_next import modeling_qwen3_next

    def peer(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor, **_: Tensor) -> Result:
        function = getattr(modeling_qwen3_next, form)
        given = map(turned, (q, k, v, g, beta))
        o, last = function(*given, initial_state=state.clone(), output_final_state=True)
        return turned(o), last

    assert agree(delta, peer, inputs()) < 1e-5


def test_kimi_delta_attention() -> None:
    def peer(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor, **_: Tensor) -> Result:
        function = fla("kda/naive", "naive_recurrent_kda")
        o, last = function(*map(turned, (q, k, v, g, beta)), initial_state=state, output_final_state=True)
        return turned(o), last

    assert agree(delta, peer, inputs(channels=True)) < 1e-5


@pytest.mark.parametrize("form", ["dplr_recurrence", "dplr_chunkwise"])
def test_rwkv7_is_a_diagonal_plus_rank_one(form: str) -> None:
    """The peer's chunks take multiples of their own size."""

    def ours(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, **_: Tensor) -> Result:
        return dplr(scaled(q), k, v, -k, beta[..., None] * k, g, state, chunk=16)

    def peer(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, **_: Tensor) -> Result:
        return fla("generalized_delta_rule/dplr/naive", form)(q, k, v, -k, beta[..., None] * k, g, state)

    given = {key: part.detach() for key, part in inputs(channels=True).items()}
    cut = {key: part[:, :, :64] if part.dim() > 2 and part.shape[2] == TIME else part for key, part in given.items()}
    assert agree(ours, peer, {key: part.clone().requires_grad_() for key, part in cut.items()}) < 1e-5


def test_several_steps_of_the_delta_rule_a_token() -> None:
    mixer: Any = example("deltaproduct", torch.float32, steps=3, beta=2)
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    spec = mixer.spec

    def by_token(part: Tensor) -> Tensor:  # steps of a token one after the other on the axis of time
        return turned(part.unflatten(-1, (spec.steps, -1)).flatten(2, 3))

    q, k, v, _ = mixer.projected(x)
    strength = 2 * mixer.strength(x).sigmoid().unflatten(-1, (spec.heads, spec.steps)).transpose(2, 3).flatten(1, 2)
    o, last = fla("gated_delta_product/naive", "naive_recurrent_gated_delta_product")(
        turned(normalize(q, dim=-1)),
        normalize(by_token(k), dim=-1),
        by_token(v),
        None,
        strength,
        scale=1.0,
        num_householder=spec.steps,
    )
    alike(mixer, x, mixer.out(o.flatten(2)))
    near(mixer(x, None)[1], last)


def test_the_short_convolution_of_transformers() -> None:
    """Qwen3-Next's, over queries, keys and values at once: torch's taps run the other way."""
    from transformers.models.qwen3_next import modeling_qwen3_next

    mixer: Any = example("gdn conv", torch.float32)
    u = torch.randn(2, TIME, mixer.short.filter.shape[1], generator=torch.Generator().manual_seed(0))
    past = torch.randn(2, 3, mixer.short.filter.shape[1], generator=torch.Generator().manual_seed(1))
    state = torch.nn.functional.pad(past.transpose(1, 2), (1, 0))
    taps = mixer.short.filter.flip(0).T
    expected = modeling_qwen3_next.causal_conv1d_update(u.transpose(1, 2), state, taps, None, "silu")
    output, columns = mixer.short(u, past, None)
    near(output, expected.transpose(1, 2))
    assert torch.equal(columns, state[:, :, 1:].transpose(1, 2))


def test_hgrn2_is_gla_with_the_complements_as_keys() -> None:
    """The peer scales the queries; HGRN2 does not."""
    mixer: Any = example("hgrn2", torch.float32)
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    q, k, v, g = mixer.inputs(x, *mixer.projected(x)[:3])
    o, _ = fla("gla/naive", "naive_recurrent_gla")(*map(turned, (q * q.shape[-1] ** 0.5, k, v, g)))
    alike(mixer, x, mixer.out(o.flatten(2)))


@pytest.mark.parametrize("name", ["conv", "shift"])
def test_convolutions_are_torch_s(name: str) -> None:
    """torch's taps run the other way: its last one weighs the token itself."""
    mixer: Any = example(name)
    x = random_input(TIME).requires_grad_()
    taps, u = mixer.taps(), mixer.inner(x).transpose(1, 2)
    padded = torch.nn.functional.pad(u, (taps.shape[0] - 1, 0))
    expected = conv1d(padded, taps.flip(0).T[:, None], groups=taps.shape[1])
    alike(mixer, x, mixer.out(expected.transpose(1, 2)), tolerance=1e-12)


def test_the_slopes_of_lightning_attention_are_minimax_s() -> None:
    """Its slopes are the paper's times a factor that falls over the layers and is 1 + 1e-5 at the first."""
    from transformers.models.minimax.configuration_minimax import MiniMaxConfig
    from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention

    config = MiniMaxConfig(hidden_size=6, num_attention_heads=4, head_dim=3, num_hidden_layers=2, block_size=16)
    with torch.random.fork_rng(devices=[]):
        peer: Any = MiniMaxLightningAttention(config, layer_idx=0)
    mixer: Any = example("lightning", torch.float32, heads=4)
    torch.testing.assert_close(peer.slope_rate.flatten().double(), mixer.slopes.double(), rtol=2e-5, atol=0)


def by_time(x: Tensor) -> Tensor:
    """Key-value heads and groups as heads, behind the time."""
    return x.flatten(1, 2).transpose(1, 2)


def test_top_tokens_are_deepseek_sparse_attention() -> None:
    """The peer leaves open which of equal scores it takes; with many index heads no two are 0."""
    mixer: Any = example("topk", torch.float32, k=9, index_heads=16, index_dim=6)
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    past, _ = mixer.gathered(x, None, None)
    asks = mixer.index_query(x).unflatten(-1, (16, 6))
    given = (*(by_time(part) for part in (past.queries, past.keys[:, :, None], past.values[:, :, None])),)
    o, indices = fla("dsa/naive", "naive_dsa")(
        *given, asks, mixer.index_key(x), mixer.index_weight(x), topk=9, return_indices=True
    )
    places = torch.zeros(BATCH, TIME, TIME + 1, dtype=torch.bool).scatter(2, indices % (TIME + 1), True)
    assert torch.equal(mixer.chosen(past), places[:, :, :TIME])
    alike(mixer, x, mixer.out(o.flatten(2)))


def test_the_indexer_is_deepseek_s() -> None:
    """Its norm of the keys and its rotations are left out; what it takes of equal scores is open."""
    from transformers.models.deepseek_v32.configuration_deepseek_v32 import DeepseekV32Config
    from transformers.models.deepseek_v32.modeling_deepseek_v32 import DeepseekV32Indexer

    sizes: dict[str, int] = {"hidden_size": 6, "q_lora_rank": 6, "qk_rope_head_dim": 2, "num_hidden_layers": 1}
    config = DeepseekV32Config(**sizes, index_n_heads=16, index_head_dim=4, index_topk=9)  # pyright: ignore[reportArgumentType]
    with torch.random.fork_rng(devices=[]):
        peer: Any = DeepseekV32Indexer(config, layer_idx=0)
    peer.k_norm = torch.nn.Identity()
    mixer: Any = example("topk", torch.float32, k=9, index_heads=16, index_dim=4)
    peer.wq_b, peer.wk, peer.weights_proj = mixer.index_query, mixer.index_key, mixer.index_weight
    x = random_input(TIME, dtype=torch.float32)
    still = torch.ones(BATCH, TIME, 2), torch.zeros(BATCH, TIME, 2)
    causal = torch.ones(1, TIME, TIME, dtype=torch.bool).tril()
    indices = peer(x, x, still, causal, None)
    places = torch.zeros(BATCH, TIME, TIME, dtype=torch.bool).scatter(2, indices.long(), True)
    past, _ = mixer.gathered(x, None, None)
    assert torch.equal(mixer.chosen(past), places & causal)


def test_native_sparse_attention() -> None:
    """The peer needs groups of 16 query heads and leaves the window to another package: torch has it."""
    mixer: Any = example("nsa", torch.float32, heads=32, kv_heads=2, head_dim=8, value_dim=8, block=4, k=5, w=9)
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    past, _ = mixer.gathered(x, None, None)
    q, k, v = (by_time(part) for part in (past.queries, past.keys[:, :, None], past.values[:, :, None]))
    compressed, selected, window = (by_time(gate)[..., 0] for gate in mixer.gates(past))
    sparse = fla("nsa/naive", "naive_nsa")(q, k, v, compressed, selected, block_counts=5, block_size=4)
    distance = torch.arange(TIME)[:, None] - torch.arange(TIME)
    near_by = torch.nn.functional.scaled_dot_product_attention(
        *map(turned, (q, k, v)), attn_mask=(distance >= 0) & (distance < 9), enable_gqa=True
    )
    alike(mixer, x, mixer.out((sparse + window[..., None] * turned(near_by)).flatten(2)))


@pytest.mark.parametrize("dims", [None, 4])
def test_rotary_embeddings_are_llama_s(dims: int | None) -> None:
    """The peer turns whole heads; of partial ones (GLM, Qwen3-Next) it turns the leading coordinates the same way."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    q = torch.randn(2, 3, TIME, KEY, generator=torch.Generator().manual_seed(0))
    size = dims or KEY
    angles = torch.arange(5, 5 + TIME)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.cat([angles, angles], dim=-1)
    expected, _ = apply_rotary_pos_emb(q[..., :size], q[..., :size], angles.cos()[None], angles.sin()[None])
    turned_q = Rotary(dims=dims).turn(q, torch.arange(5, 5 + TIME)[None])
    torch.testing.assert_close(turned_q[..., :size], expected, atol=2e-5, rtol=0)
    assert torch.equal(turned_q[..., size:], q[..., size:])


@pytest.mark.parametrize("heads", [1, 2, 6, 8, 12])
def test_the_slopes_of_alibi_are_bloom_s(heads: int) -> None:
    """The peer's biases are slope times position; softmax does not see the difference."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    peer = build_alibi_tensor(torch.ones(1, 9), heads, torch.float32)[:, 0]
    back = torch.arange(9)[None, :].sub(8).neg()
    ours = Alibi().bias(heads, back)[:, 0].float()
    torch.testing.assert_close(ours - ours[:, :1], peer, atol=1e-6, rtol=0)


def test_chunked_attention_is_llama_4_s() -> None:
    from transformers.masking_utils import chunked_overlay

    mixer: Any = example("chunk")
    x, w, positions = random_input(TIME).requires_grad_(), mixer.spec.w, torch.arange(TIME)
    same = chunked_overlay(w, torch.zeros(1, dtype=torch.int64))
    visible = torch.tensor([[bool(same(0, 0, t, s)) and s <= t for s in positions] for t in positions])
    spec = mixer.spec
    q, k, v = (
        projection(x).unflatten(-1, (heads, -1)).transpose(1, 2)
        for projection, heads in ((mixer.query, spec.heads), (mixer.key, spec.kv_heads), (mixer.value, spec.kv_heads))
    )
    read = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True)
    alike(mixer, x, mixer.out(read.transpose(1, 2).flatten(2)), tolerance=1e-12)


def test_gated_attention_is_qwen3_next_s() -> None:
    """The peer makes query and gate by one projection and norms queries and keys: its norms are set aside here."""
    from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

    mixer: Any = example("full gate", torch.float32, head_dim=4, value_dim=4)
    spec = mixer.spec
    config = Qwen3NextConfig(
        hidden_size=6, num_attention_heads=4, num_key_value_heads=2, head_dim=4, num_hidden_layers=1, vocab_size=8
    )
    config._attn_implementation = "eager"
    with torch.random.fork_rng(devices=[]):
        peer: Any = Qwen3NextAttention(config, 0)
    peer.q_norm = peer.k_norm = torch.nn.Identity()
    both = torch.cat([part.weight.unflatten(0, (spec.heads, -1)) for part in (mixer.query, mixer.gate)], dim=1)
    weights = {
        "q_proj.weight": both.flatten(0, 1),
        "k_proj.weight": mixer.key.weight,
        "v_proj.weight": mixer.value.weight,
        "o_proj.weight": mixer.out.weight,
    }
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    still = torch.ones(1, TIME, 4), torch.zeros(1, TIME, 4)
    mask = torch.full((TIME, TIME), -torch.inf).triu(1)[None, None]
    alike(mixer, x, peer_output(peer, weights, x, still, mask))


def test_the_real_gated_unit_of_transformers() -> None:
    """Its gates are block-diagonal: one block here. It takes the first token as it is: ours after one token of zeros.

    Where the decay is nearly 1 the peer's 1 - a² has lost digits, ours has not; these rates stay away from there.
    """
    from transformers.models.recurrent_gemma.configuration_recurrent_gemma import RecurrentGemmaConfig
    from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

    mixer: Any = example("rglru", torch.float32)
    channels = mixer.spec.channels
    config = RecurrentGemmaConfig(lru_width=channels, num_attention_heads=1, hidden_size=channels, num_hidden_layers=1)
    peer: Any = RecurrentGemmaRglru(config)
    weights = {
        "recurrent_param": mixer.rate,
        "input_gate_weight": mixer.admit.weight.T[None],
        "input_gate_bias": mixer.admit.bias[None],
        "recurrent_gate_weight": mixer.forget.weight.T[None],
        "recurrent_gate_bias": mixer.forget.bias[None],
    }
    u = torch.randn(2, TIME, channels, generator=torch.Generator().manual_seed(0))
    h = torch.randn(2, channels, generator=torch.Generator().manual_seed(1))
    given = {"u": u.requires_grad_(), "h": h.requires_grad_(), **dict(mixer.named_parameters())}

    def ours(u: Tensor, h: Tensor, **_: Tensor) -> Result:
        return mixer.recur(u, h, None)

    def theirs(u: Tensor, h: Tensor, **_: Tensor) -> Result:
        peer.recurrent_states = h
        return peer_output(peer, weights, u, torch.arange(1, TIME + 1)[None]), peer.recurrent_states

    assert agree(ours, theirs, given) < 1e-5


def test_mamba_is_transformers() -> None:
    """The whole mixer: its thin step projection multiplied out, its gate, which stands outside here, wide open."""
    from transformers.models.mamba.configuration_mamba import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer

    mixer: Any = example("mamba conv", torch.float32, conv=4)
    channels, state = mixer.spec.channels, mixer.spec.state
    config = MambaConfig(hidden_size=6, state_size=state, time_step_rank=channels, num_hidden_layers=1)
    config.intermediate_size = channels
    with torch.random.fork_rng(devices=[]):
        peer: Any = MambaMixer(config, 0)
        peer.in_proj = torch.nn.Linear(6, 2 * channels)
    open_gate = 1.2784645427610738  # silu of it is 1
    weights = {
        "in_proj.weight": torch.cat([mixer.channel.weight, torch.zeros(channels, 6)]),
        "in_proj.bias": torch.cat([torch.zeros(channels), torch.full((channels,), open_gate)]),
        "conv1d.weight": mixer.short.filter.flip(0).T[:, None],
        "conv1d.bias": torch.zeros(channels),
        "x_proj.weight": torch.cat([torch.eye(channels), mixer.write.weight, mixer.read.weight]),
        "dt_proj.weight": mixer.step.weight,
        "dt_proj.bias": mixer.step.bias,
        "A_log": mixer.log_rate,
        "D": mixer.skip,
        "out_proj.weight": mixer.out.weight,
    }
    assert peer.out_proj.bias is None
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    alike(mixer, x, peer_output(peer, weights, x))


def test_the_average_of_rwkv4_is_transformers() -> None:
    """States are compared as they are, not as they are kept, so that the maximum they are divided by has no part."""
    from transformers.models.rwkv.modeling_rwkv import rwkv_linear_attention_cpu

    mixer: Any = example("rwkv4", torch.float32)
    x = random_input(TIME, dtype=torch.float32)
    before = detached(mixer(random_input(9, dtype=torch.float32, seed=3))[1])
    held = dict(zip("ndp", tensors(before), strict=True))
    given = {"x": x.requires_grad_(), **held, **dict(mixer.named_parameters())}

    def unscaled(numerator: Tensor, denominator: Tensor, maximum: Tensor) -> Tensor:
        return torch.stack([numerator, denominator]) * maximum.exp()

    def ours(x: Tensor, **_: Tensor) -> Result:
        output, after = mixer(x, before)
        return output, unscaled(*tensors(after))

    def peer(x: Tensor, **_: Tensor) -> Result:
        made = mixer.log_rate, mixer.boost, mixer.key(x), mixer.value(x)
        average, last = rwkv_linear_attention_cpu(*made, state=tensors(before), return_state=True)
        return mixer.out(mixer.receptance(x).sigmoid() * average), unscaled(*last)

    assert agree(ours, peer, given) < 1e-5


@pytest.mark.parametrize("form", ["mlstm_recurrent_sequence_native", "mlstm_chunkwise_native_autograd"])
def test_the_matrix_memory_of_xlstm_is_transformers(form: str) -> None:
    """States are compared as they are, not as they are kept: divided by another maximum they are another number."""
    from transformers.models.xlstm import modeling_xlstm

    def ours(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Result:
        empty = MatrixMemory(torch.zeros(2, 3, KEY, VALUE), torch.zeros(2, 3, KEY), torch.zeros(2, 3))
        output, memory = matrix_memory(q, k, v, logsigmoid(f), i, empty, chunk=16)
        return output, memory.matrix * memory.maximum.exp()[..., None, None]

    def peer(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Result:
        options = {"chunk_size": 16} if "chunkwise" in form else {}
        output, (matrix, _, maximum) = getattr(modeling_xlstm, form)(q, k, v, i, f, return_last_states=True, **options)
        return output, matrix * maximum.exp().reshape(2, 3, 1, 1)

    generator = torch.Generator().manual_seed(0)
    shapes = {"q": (KEY,), "k": (KEY,), "v": (VALUE,), "i": (), "f": ()}
    given = {key: torch.randn(2, 3, 64, *more, generator=generator).requires_grad_() for key, more in shapes.items()}
    assert agree(ours, peer, given) < 1e-5


def test_log_linear_attention_is_fla_s() -> None:
    mixer: Any = example("loglinear", torch.float32)
    x, heads = random_input(TIME, dtype=torch.float32).requires_grad_(), mixer.spec.heads
    q, k, v, _ = mixer.projected(x)
    rate = softplus(mixer.rate(x) + mixer.rate_bias)
    decay = -mixer.log_rate_scale.exp() * rate
    share = softplus(mixer.share(x)).unflatten(-1, (heads, -1))
    function = fla("log_linear_attn/naive", "naive_log_linear_attn")
    o = function(turned(q), turned(k), turned(v), decay, share)
    alike(mixer, x, mixer.out(o.flatten(2)))


def test_latent_attention_is_deepseek_v3_s() -> None:
    """The peer norms the latent, which stands outside here, and has the turned coordinates last."""
    from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

    mixer: Any = example("mla rotary", torch.float32)
    spec = mixer.spec
    config = DeepseekV3Config(
        hidden_size=6,
        num_attention_heads=spec.heads,
        num_key_value_heads=spec.heads,
        q_lora_rank=None,
        kv_lora_rank=spec.latent,
        qk_rope_head_dim=spec.rope_dim,
        qk_nope_head_dim=spec.value_dim,
        v_head_dim=spec.value_dim,
        rope_interleave=False,
        num_hidden_layers=1,
        vocab_size=8,
    )
    config._attn_implementation = "eager"
    with torch.random.fork_rng(devices=[]):
        peer: Any = DeepseekV3Attention(config, 0)
    peer.kv_a_layernorm = torch.nn.Identity()
    meet, rest = mixer.query.weight.unflatten(0, (spec.heads, -1)).split([spec.rope_dim, spec.value_dim], dim=1)
    made = (part.weight.unflatten(0, (spec.heads, -1)) for part in (mixer.key_of_latent, mixer.value_of_latent))
    weights = {
        "q_proj.weight": torch.cat([rest, meet], dim=1).flatten(0, 1),
        "kv_a_proj_with_mqa.weight": torch.cat([mixer.latent.weight, mixer.key.weight]),
        "kv_b_proj.weight": torch.cat(list(made), dim=1).flatten(0, 1),
        "o_proj.weight": mixer.out.weight,
    }
    x = random_input(TIME, dtype=torch.float32).requires_grad_()
    half = spec.rope_dim // 2
    angles = torch.arange(TIME)[:, None] * mixer.encoding.base ** (-torch.arange(half) / half)
    angles = torch.cat([angles, angles], dim=-1)[None]
    mask = torch.full((TIME, TIME), -torch.inf).triu(1)[None, None]
    alike(mixer, x, peer_output(peer, weights, x, (angles.cos(), angles.sin()), mask))
