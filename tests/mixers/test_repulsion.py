"""Repulsion between heads: the rule in numpy with loops, and what it does."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.mixers import SoftmaxAttention
from hopbound.mixers.repulsion import repel_heads, svgd
from tests.mixers.examples import WIDTH, example, random_input

Array = NDArray[np.float64]


def kernel(one: Array, other: Array, h: float) -> float:
    return float(np.exp(-((one - other) ** 2).sum() / h))


def gradient_in_the_first(one: Array, other: Array, h: float) -> Array:
    """∇ κ in its first argument, by central differences."""
    gradient = np.zeros_like(one)
    for place in range(len(one)):
        step = np.zeros_like(one)
        step[place] = 1e-6
        gradient[place] = (kernel(one + step, other, h) - kernel(one - step, other, h)) / 2e-6
    return gradient


def expected(samples: Array, gradients: Array, strength: float) -> Array:
    count = len(samples)
    distances = [np.linalg.norm(samples[i] - samples[j]) for i in range(count) for j in range(i)]
    h = float(np.median(distances) ** 2 / np.log(count))
    moved = np.zeros_like(samples)
    for i in range(count):
        for j in range(count):
            pull = kernel(samples[j], samples[i], h) * gradients[j]
            moved[i] += (pull - strength * gradient_in_the_first(samples[j], samples[i], h)) / count
    return moved


def attention(**sizes: int) -> SoftmaxAttention:
    mixer = example("full", torch.float64, 0, **sizes)
    assert isinstance(mixer, SoftmaxAttention)
    return mixer


@pytest.mark.parametrize("strength", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_the_rule(strength: float, kv_heads: int) -> None:
    mixer, x = attention(heads=4, kv_heads=kv_heads), random_input(9)
    before = mixer(x)[0].detach()
    (mixer(x)[0] ** 2).sum().backward()
    gradients = {name: parameter.grad.numpy().copy() for name, parameter in mixer.named_parameters()}  # pyright: ignore[reportOptionalMemberAccess]
    repel_heads(mixer, strength)
    for name, heads in (("query", 4), ("key", kv_heads), ("value", kv_heads)):
        weight = mixer.get_parameter(f"{name}.weight")
        samples, given = weight.detach().numpy().reshape(heads, -1), gradients[f"{name}.weight"].reshape(heads, -1)
        assert weight.grad is not None
        moved = weight.grad.numpy().reshape(heads, -1)
        np.testing.assert_allclose(moved, expected(samples, given, strength), atol=1e-8, rtol=1e-8)
    assert mixer.out.weight.grad is not None
    np.testing.assert_array_equal(mixer.out.weight.grad.numpy(), gradients["out.weight"])
    assert torch.equal(mixer(x)[0], before)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_heads_that_nearly_coincide_are_driven_apart(count: int) -> None:
    """Even without any loss: a step of gradient descent lets every distance grow."""
    generator = torch.Generator().manual_seed(count)
    one = torch.randn(1, 3 * WIDTH, generator=generator, dtype=torch.float64)
    samples = one + 1e-3 * torch.randn(count, 3 * WIDTH, generator=generator, dtype=torch.float64)
    moved = samples - 1e-8 * svgd(samples, torch.zeros_like(samples))
    assert (torch.pdist(moved) > torch.pdist(samples)).all()
    pushed = samples - 1e-8 * svgd(samples, torch.zeros_like(samples), 2.0)
    assert (torch.pdist(pushed) > torch.pdist(moved)).all()


def test_the_same_gradient_moves_heads_apart_while_both_follow_it() -> None:
    samples = torch.tensor([[1.0, 0.0], [1.001, 0.0]], dtype=torch.float64)
    gradients = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    moved = svgd(samples, gradients)
    assert (moved[:, 1] > 0).all()
    assert moved[0, 0] > 0 > moved[1, 0]


def test_equal_heads_and_a_single_one_have_nowhere_to_go() -> None:
    gradients = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    torch.testing.assert_close(svgd(torch.ones(2, 2), gradients), torch.tensor([[2.0, 4.0], [2.0, 4.0]]))
    torch.testing.assert_close(svgd(torch.ones(1, 2), gradients[:1]), gradients[:1])


def test_without_gradients_it_says_so() -> None:
    with pytest.raises(InputError, match=r"^query\.weight\.grad: got None, expected a gradient: call backward first$"):
        repel_heads(attention())
