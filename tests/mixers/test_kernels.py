"""Kernels behind the engines: handed what they take, against the package's plain functions; equal on a device."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from hopbound.mixers import kernels
from tests.mixers.examples import detached, example, random_input, tensors
from tests.mixers.peers import fla

# Of each kernel the plain function with the same arguments, and a mixer that is computed by it.
PLAIN = {
    "chunk_simple_gla": ("simple_gla/naive", "naive_recurrent_simple_gla"),
    "chunk_gla": ("gla/naive", "naive_recurrent_gla"),
    "chunk_kda": ("kda/naive", "naive_recurrent_kda"),
}
MIXERS = {
    "linear": "chunk_simple_gla",
    "retnet": "chunk_simple_gla",
    "mamba2": "chunk_simple_gla",
    "gla": "chunk_gla",
    "hgrn2": "chunk_gla",
    "kda": "chunk_kda",
    "gdn": "chunk_gated_delta_rule",
    "delta": "chunk_delta_rule",
    "deltaproduct": "chunk_delta_rule",
    "rwkv6": "chunk_rwkv6",
    "rwkv7": "chunk_dplr_delta_rule",
}


def heads_first(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


def stand_in(module: str, function: str) -> Callable[..., Any]:
    """The plain function behind the kernel's signature; some take heads first, or scale queries themselves."""

    def call(*given: Tensor, scale: float, initial_state: Tensor, output_final_state: bool) -> tuple[Tensor, Tensor]:
        assert scale == 1.0
        assert output_final_state
        state, q = initial_state.clone(), given[0] * given[0].shape[-1] ** 0.5
        if function in PLAIN:
            return fla(*PLAIN[function])(q, *given[1:], initial_state=state, output_final_state=True)
        turned = [heads_first(part) for part in (q, *given[1:5]) if part.dim() > 2]
        if function == "chunk_gated_delta_rule":
            peer = fla("gated_delta_rule/naive", "naive_recurrent_gated_delta_rule")
            q, k, v, g, beta = given
            return peer(q * q.shape[-1] ** 0.5, k, v, beta, g, initial_state=state, output_final_state=True)
        if function == "chunk_delta_rule":
            output, last = fla("delta_rule/naive", "delta_rule_recurrence")(*turned, initial_state=state)
        elif function == "chunk_rwkv6":
            peer = fla("rwkv6/recurrent_naive", "naive_recurrent_rwkv6")
            output, last = peer(*turned[:4], given[4], initial_state=state, output_final_state=True)
        else:
            assert (module, function) == ("generalized_delta_rule", "chunk_dplr_delta_rule")
            peer = fla("generalized_delta_rule/dplr/naive", "dplr_recurrence")
            output, last = peer(*turned, heads_first(given[5]), state)
        return heads_first(output), last

    return call


@pytest.mark.parametrize("name", MIXERS)
def test_kernels_are_handed_what_they_take(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the plain functions in the kernels' places, in float32 so that nothing is rounded."""
    mixer, x = example(name, torch.float32), random_input(21, dtype=torch.float32)
    mask = torch.ones(2, 21, dtype=torch.bool)
    mask[1, 3:7] = False
    _, before = mixer(random_input(5, dtype=torch.float32, seed=3))
    before = detached(before)
    expected, last = mixer(x, before, mask)
    called = []

    def find(module: str, function: str) -> Callable[..., Any]:
        called.append(function)
        return stand_in(module, function)

    monkeypatch.setattr(kernels, "find", find)
    monkeypatch.setattr(kernels, "usable", lambda queries, dtype: True)
    output, state = mixer(x, before, mask)
    assert called == [MIXERS[name]]
    for one, other in ((output, expected), *zip(tensors(state), tensors(last), strict=True)):
        torch.testing.assert_close(one, other, atol=1e-5 * float(other.detach().abs().max()), rtol=0)


@pytest.mark.parametrize("name", MIXERS)
def test_on_a_cpu_torch_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_called", None)
    example(name, torch.bfloat16)(random_input(21, dtype=torch.bfloat16))


@pytest.mark.parametrize("module", ["simple_gla", "no_such_module"])
def test_without_triton_there_are_no_kernels(module: str) -> None:
    assert kernels.find(module, "chunk_simple_gla") is None or torch.cuda.is_available()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", MIXERS)
def test_kernels_compute_the_same(name: str) -> None:
    """Outputs, states and gradients in bfloat16, against torch on the same device."""
    mixer = example(name, torch.bfloat16, head_dim=64, value_dim=64, state=64).cuda()
    x = random_input(150, dtype=torch.bfloat16).cuda().requires_grad_()
    results = []
    for context in (kernels.without_kernels, torch.enable_grad):
        with context():
            output, state = mixer(x)
            gradients = torch.autograd.grad(output.float().sum(), [x, *mixer.parameters()])
        results.append([output, *tensors(state), *gradients])
    assert kernels.usable(x, torch.bfloat16)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one.float(), other.float(), atol=3e-2 * float(one.abs().max()), rtol=0)
