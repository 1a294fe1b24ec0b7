"""What every registered mixer keeps to: one map however it is evaluated, causal, with the state its spec states."""

import jaxtyping
import pytest
import torch

from hopbound.architecture import Kind, mixer_spec
from hopbound.errors import InputError
from hopbound.mixers import REGISTRY, make_mixer
from tests.mixers.examples import WIDTH, every_mixer, example, in_pieces, random_input, tensors

LENGTHS = (1, 2, 3, 17, 40)
# The same sums in another order: a few hundred roundings of numbers near 1.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}

every_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
every_length = pytest.mark.parametrize("time", LENGTHS)


def halves(time: int) -> list[int]:
    """Split at 17, or in the middle where there are not so many tokens."""
    first = 17 if time > 17 else time // 2
    return [size for size in (first, time - first) if size]


@every_mixer
@every_dtype
@every_length
def test_whole_split_and_step_by_step_agree(name: str, dtype: torch.dtype, time: int) -> None:
    mixer, x, tolerance = example(name, dtype), random_input(time, dtype=dtype), TOLERANCE[dtype]
    whole, last = mixer(x, None)
    for sizes in (halves(time), [1] * time):
        pieces, state = in_pieces(mixer, x, sizes)
        torch.testing.assert_close(pieces, whole, atol=tolerance, rtol=0)
        for one, other in zip(tensors(state), tensors(last), strict=True):
            torch.testing.assert_close(one, other, atol=tolerance, rtol=0)


@every_mixer
@pytest.mark.parametrize("time", [3, 40])
def test_gradients_are_finite_and_the_same_for_whole_and_split(name: str, time: int) -> None:
    mixer, x = example(name), random_input(time).requires_grad_()
    weights = random_input(time, seed=2)
    variables = [x, *mixer.parameters()]

    def gradients(sizes: list[int]) -> list[torch.Tensor]:
        output, _ = in_pieces(mixer, x, sizes)
        return list(torch.autograd.grad((output * weights).sum(), variables))

    for whole, split in zip(gradients([time]), gradients(halves(time)), strict=True):
        assert whole.isfinite().all()
        assert whole.abs().max() > 0
        torch.testing.assert_close(split, whole, atol=1e-9, rtol=0)


@every_mixer
@pytest.mark.parametrize("edited", [0, 5, 19])
def test_causal(name: str, edited: int) -> None:
    mixer, x = example(name), random_input(20)
    changed = x.clone()
    changed[:, edited] += 1
    before, after = mixer(x, None)[0], mixer(changed, None)[0]
    assert torch.equal(before[:, :edited], after[:, :edited])
    assert (before[:, edited:] - after[:, edited:]).abs().amax() > 1e-6


@every_mixer
def test_a_batch_is_its_examples_side_by_side(name: str) -> None:
    mixer, x = example(name), random_input(20, batch=3)
    together = mixer(x, None)[0]
    for index in range(3):
        alone = mixer(x[index : index + 1], None)[0]
        torch.testing.assert_close(together[index : index + 1], alone, atol=1e-12, rtol=0)


@every_mixer
def test_the_state_holds_what_the_spec_states(name: str) -> None:
    mixer, time = example(name), 40
    _, state = mixer(random_input(time, batch=3), None)
    held = mixer.spec.elements
    if mixer.spec.kind is Kind.FULL:
        assert mixer.carried_elements(state) == held.kv_per_token * time
    else:
        assert mixer.carried_elements(state) == held.state + held.conv + held.window
    assert mixer.carried_elements(state) == sum(tensor[0].numel() for tensor in tensors(state)) > 0


@every_mixer
def test_the_state_of_a_bounded_mixer_does_not_grow(name: str) -> None:
    mixer = example(name)
    sizes = [mixer.carried_elements(mixer(random_input(time), None)[1]) for time in (30, 60)]
    assert sizes[1] == sizes[0] * (2 if mixer.spec.kind is Kind.FULL else 1)


@every_mixer
def test_the_state_carried_on_is_not_changed_in_place(name: str) -> None:
    mixer, x = example(name), random_input(4)
    _, state = mixer(x, None)
    before = [tensor.clone() for tensor in tensors(state)]
    mixer(x, state)
    assert all(torch.equal(one, other) for one, other in zip(before, tensors(state), strict=True))


@every_mixer
def test_state_and_sums_are_kept_in_float32_at_least(name: str) -> None:
    mixer, x = example(name, torch.bfloat16), random_input(9, dtype=torch.bfloat16)
    output, state = mixer(x, None)
    assert output.dtype is torch.bfloat16
    recurrent = mixer.spec.elements.state > 0
    assert {tensor.dtype for tensor in tensors(state)} == {torch.float32 if recurrent else torch.bfloat16}


@every_mixer
@pytest.mark.parametrize("shape", [(2, 3, WIDTH + 1), (3, WIDTH), (2, 3, WIDTH, 1)])
def test_a_wrong_shape_raises(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises((jaxtyping.TypeCheckError, RuntimeError)):
        example(name)(torch.zeros(shape, dtype=torch.float64), None)


def test_shapes_are_checked_at_run_time() -> None:
    # The matrix product alone would take this one: only the annotation says that there is a time axis.
    with pytest.raises(jaxtyping.TypeCheckError, match="batch time width"):
        example("conv").changes_state(torch.zeros(3, WIDTH, dtype=torch.float64))


def test_uninitialised_memory_is_poisoned() -> None:
    assert torch.empty(1000).isnan().all()


def test_sizes_without_code_are_refused() -> None:
    with pytest.raises(InputError, match=r"^mixer: got 'mamba2', expected one that can be run: full "):
        make_mixer(mixer_spec("mamba2"), WIDTH)


def test_a_short_convolution_inside_a_mixer_is_refused() -> None:
    with pytest.raises(InputError, match=r"^gdn conv: got 4, expected 0"):
        make_mixer(mixer_spec("gdn", {"conv": 4}), WIDTH)


def test_the_registry_has_names_of_the_table() -> None:
    assert [mixer_spec(name).name for name in REGISTRY] == list(REGISTRY)
