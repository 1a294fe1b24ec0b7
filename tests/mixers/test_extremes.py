"""What mixers do at the edge: decays that forget at once, huge weights, long inputs."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hopbound.architecture import Kind
from hopbound.mixers import REGISTRY
from tests.mixers.examples import VARIANTS, WIDTH, detached, every_mixer, example, random_input, tensors

STEPS = 65
CONSTANT = WIDTH - 1  # a column of the stream that holds 1 everywhere

# Values of parameters that make each step's log-decay -20 whatever the token: a bias, or the weight of the constant
# column. None: the decay is fixed by the mixer, or it has none.
FORGETTING: dict[str, dict[str, float] | None] = {
    **dict.fromkeys(REGISTRY),
    "gla": {"gate.weight": 0.0, "gate_bias": -16 * 20.0},
    "hgrn2": {"key.weight": -20.0},
    "gdn": {"rate.weight": 0.0, "rate_bias": 20.0, "log_rate_scale": 0.0, "strength.weight": 40.0},
    "kda": {"rate.weight": 0.0, "rate_bias": 20.0, "log_rate_scale": 0.0, "strength.weight": 40.0},
    "rwkv6": {"rate.weight": 0.0, "rate_bias": 2.995732273553991},  # log 20
    "rwkv4": {"log_rate": 2.995732273553991},
    "mamba": {"step.weight": 0.0, "step.bias": 20.0, "log_rate": 0.0},
    "rglru": {"rate": 2.5, "forget.weight": 0.0, "forget.bias": 40.0},  # -8 softplus(2.5) = -20.6
    "mlstm": {"forget.weight": 0.0, "forget.bias": -20.0},
    "loglinear": {"rate.weight": 0.0, "rate_bias": 20.0, "log_rate_scale": 0.0},
    "mamba2": {"step.weight": 0.0, "step_bias": 20.0, "log_rate": 0.0},
}


def finite_with_gradients(name: str, dtype: torch.dtype, values: dict[str, float], scale: float = 1.0) -> Tensor:
    """The outputs over `STEPS` tokens after a state; asserts that they, the state and all gradients are finite."""
    mixer, x = example(name, dtype), random_input(STEPS, dtype=dtype)
    x[:, :, CONSTANT] = 1.0
    _, state = mixer(random_input(9, dtype=dtype, seed=3), None)
    state = detached(state)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.mul_(scale)
        for key, value in values.items():
            parameter = mixer.get_parameter(key)
            parameter.zero_()
            (parameter[:, CONSTANT] if parameter.dim() == 2 and parameter.shape[1] == WIDTH else parameter).fill_(value)
    output, last = mixer(x.requires_grad_(), state)
    total = output.sum() + sum(part.sum() for part in tensors(last))
    gradients = torch.autograd.grad(total, [x, *mixer.parameters()], allow_unused=True)
    assert all(part.isfinite().all() for part in (output, *tensors(last), *gradients) if part is not None)
    return output


@pytest.mark.parametrize("name", [name for name, values in FORGETTING.items() if values])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_decay_of_minus_20_a_step(name: str, dtype: torch.dtype) -> None:
    values = FORGETTING[name]
    assert values
    output = finite_with_gradients(name, dtype, values)
    mixer, x = example(name, dtype), random_input(STEPS, dtype=dtype)
    assert output.shape == x.shape
    assert mixer.spec.kind is Kind.BOUNDED


@every_mixer
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_large_weights(name: str, dtype: torch.dtype) -> None:
    """Thirty times the usual: gates shut or open, softmax weights one or zero."""
    finite_with_gradients(name, dtype, {}, scale=30.0)


class Sizes(TorchDispatchMode):
    """The largest tensor that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for part in made if isinstance(made, tuple | list) else [made]:
            if isinstance(part, Tensor) and part._base is None:
                self.largest = max(self.largest, part.untyped_storage().nbytes())
        return made


@pytest.mark.parametrize("name", [name for name in VARIANTS if example(name).spec.kind is Kind.BOUNDED])
def test_memory_grows_linearly(name: str) -> None:
    """Twice the tokens: at most twice the largest tensor, and twice what is kept for the gradients."""
    largest, kept = [], []
    for time in (512, 1024):
        mixer, x = example(name, torch.float32), random_input(time, batch=1, dtype=torch.float32).requires_grad_()
        saved: dict[int, int] = {}

        def pack(tensor: Tensor, saved: dict[int, int] = saved) -> Tensor:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with Sizes() as sizes, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            output = mixer(x, None)[0]
            total = sum(saved.values())
            output.sum().backward()
        largest.append(sizes.largest)
        kept.append(total)
    assert largest[1] <= 2.1 * largest[0]
    assert kept[1] <= 2.1 * kept[0]
