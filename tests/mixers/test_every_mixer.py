"""What every registered mixer keeps to: one map however it is evaluated, causal, with the state its spec states."""

from collections.abc import Sequence

import jaxtyping
import numpy as np
import pytest
import torch
from torch import Tensor

from hopbound.architecture import Kind, mixer_spec
from hopbound.errors import InputError
from hopbound.mixers import REGISTRY, make_mixer
from tests.mixers.examples import (
    CHOOSE,
    WIDTH,
    detached,
    every_mixer,
    example,
    example_spec,
    in_pieces,
    random_input,
    tensors,
)

LENGTHS = (1, 2, 3, 63, 64, 65, 127, 129)
FAST = {(1, torch.float64), (65, torch.float64), (129, torch.float32)}
# The same sums in another order: a few hundred roundings, relative to the largest number.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}

every_length = pytest.mark.parametrize(
    ("time", "dtype"),
    [
        pytest.param(time, dtype, id=f"{time}-{dtype}", marks=[] if (time, dtype) in FAST else pytest.mark.slow)
        for time in LENGTHS
        for dtype in TOLERANCE
    ],
)


def halves(time: int) -> list[int]:
    """Split at 17, or in the middle where there are not so many tokens."""
    first = 17 if time > 17 else time // 2
    return [size for size in (first, time - first) if size]


def close(one: Sequence[Tensor], other: Sequence[Tensor], tolerance: float) -> None:
    """Each pair alike, relative to its largest number."""
    for a, b in zip(one, other, strict=True):
        assert b.isfinite().all()
        torch.testing.assert_close(a, b, atol=tolerance * max(1.0, float(b.detach().abs().max())), rtol=0)


@every_mixer
@every_length
def test_recurrence_chunks_pieces_and_steps_agree(name: str, time: int, dtype: torch.dtype) -> None:
    """Outputs, last state and all gradients, from a random state on."""
    mixer, x = example(name, dtype), random_input(time, dtype=dtype).requires_grad_()
    weights = random_input(time, dtype=dtype, seed=2)
    _, before = mixer(random_input(9, dtype=dtype, seed=3), None)
    before = detached(before)
    variables = [x, *mixer.parameters(), *tensors(before)]

    def evaluated(chunk: int, sizes: list[int]) -> list[Tensor]:
        mixer.chunk = chunk
        output, state = in_pieces(mixer, x, sizes, before)
        total = (output * weights).sum() + sum((tensor**2).sum() for tensor in tensors(state))
        gradients = torch.autograd.grad(total, variables, allow_unused=True)
        return [output, *tensors(state), *(g if g is not None else x.new_zeros(1) for g in gradients)]

    plain = evaluated(1, [time])
    for chunk, sizes in ((16, [time]), (64, [time]), (64, halves(time)), (64, [1] * time)):
        close(evaluated(chunk, sizes), plain, TOLERANCE[dtype])


@every_mixer
@pytest.mark.parametrize("time", [3, 40])
def test_every_parameter_has_a_gradient(name: str, time: int) -> None:
    mixer, x = example(name), random_input(time).requires_grad_()
    output, _ = mixer(x, None)
    names, parameters = zip(*mixer.named_parameters(), strict=True)
    total = (output * random_input(time, seed=2)).sum()
    gradients = torch.autograd.grad(total, [x, *parameters], allow_unused=True)
    for key, gradient in zip(("x", *names), gradients, strict=True):
        if key in CHOOSE.get(name, ()):
            assert gradient is None
        else:
            assert gradient is not None
            assert gradient.isfinite().all()
            assert gradient.abs().max() > 0


@every_mixer
def test_tokens_that_do_not_count_are_as_if_they_were_not_there(name: str) -> None:
    """Masked spans in the middle, at both ends, none, and other ones in each row; the state carried on too."""
    mixer, time = example(name), 40
    x, later = random_input(time, batch=4), random_input(6, batch=4, seed=5)
    mask = torch.ones(4, time, dtype=torch.bool)
    mask[0, 11:19], mask[1, :7], mask[2, 30:] = False, False, False
    mask[3, ::3] = False
    output, state = mixer(x, None, mask)
    assert (output[~mask] == 0).all()
    after, _ = mixer(later, state)
    for row in range(4):
        alone, left = mixer(x[row : row + 1, mask[row]], None)
        close([output[row : row + 1, mask[row]]], [alone], 1e-10)
        close([after[row : row + 1]], [mixer(later[row : row + 1], left)[0]], 1e-10)


@every_mixer
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_masks_piece_after_piece(name: str, seed: int) -> None:
    """A row with all tokens, rows with some, one with none; pieces of any length, empty ones and one without a mask."""
    mixer, time, rng = example(name, seed=seed), 50, np.random.default_rng(seed)
    x = random_input(time, batch=4, seed=seed + 5)
    sizes = [0, *rng.multinomial(time, [1 / 6] * 6).tolist(), 0]
    mask = torch.from_numpy(rng.random((4, time)) < np.array([[1.0], [0.7], [0.3], [0.0]]))
    whole = None if seed == 0 else 3 + seed  # every token of this piece counts, in the row that had none too
    outputs, state = [], None
    for index, (piece, counts) in enumerate(zip(x.split(sizes, dim=1), mask.split(sizes, dim=1), strict=True)):
        if index == whole:
            counts.fill_(True)
        output, state = mixer(piece, state, None if index == whole else counts)
        outputs.append(output)
    output = torch.cat(outputs, dim=1)
    assert (output[~mask] == 0).all()
    for row in mask.any(dim=1).nonzero()[:, 0].tolist():
        close([output[row : row + 1, mask[row]]], [mixer(x[row : row + 1, mask[row]], None)[0]], 1e-10)


@every_mixer
@pytest.mark.parametrize("after", [0, 9])
def test_no_token_changes_nothing(name: str, after: int) -> None:
    mixer, x = example(name), random_input(after + 8)
    state = mixer(x[:, :after], None)[1] if after else None
    expected, _ = mixer(x[:, after:], state)
    for mask in (None, torch.ones(2, 0, dtype=torch.bool)):
        output, same = mixer(x[:, after:after], state, mask)
        assert output.shape == (2, 0, WIDTH)
        close([mixer(x[:, after:], same)[0]], [expected], 1e-12)


@every_mixer
def test_what_a_token_that_does_not_count_holds_does_not_matter(name: str) -> None:
    """Not even where it is no number: outputs, state and all gradients."""
    mixer, x, mask = example(name), random_input(20), torch.ones(2, 20, dtype=torch.bool)
    mask[0, 8:11], mask[0, :2], mask[1, 15:] = False, False, False
    results = []
    for held in (1.0, torch.nan, torch.inf, -1e300):
        x = torch.where(mask[..., None], x.detach(), held).requires_grad_()
        output, state = mixer(x, None, mask)
        total = output.square().sum() + sum(tensor.square().sum() for tensor in tensors(state))
        gradients = torch.autograd.grad(total, [x, *mixer.parameters()], allow_unused=True)
        results.append([output, *tensors(state), *(part for part in gradients if part is not None)])
    for result in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0], strict=True))


@every_mixer
def test_a_mask_of_all_tokens_changes_nothing(name: str) -> None:
    mixer, x = example(name), random_input(20)
    masked, one = mixer(x, None, torch.ones(2, 20, dtype=torch.bool))
    plain, other = mixer(x, None)
    close([masked, *tensors(one)[:1]], [plain, *tensors(other)[:1]], 1e-12)


@every_mixer
def test_a_masked_token_gives_no_gradient(name: str) -> None:
    mixer, x = example(name), random_input(12).requires_grad_()
    mask = torch.ones(2, 12, dtype=torch.bool)
    mask[:, 4:6] = False
    output, state = mixer(x, None, mask)
    total = output.sum() + sum(tensor.sum() for tensor in tensors(state) if mixer.spec.kind is Kind.BOUNDED)
    (gradient,) = torch.autograd.grad(total, [x])
    assert (gradient[:, 4:6] == 0).all()
    assert gradient[:, :4].abs().max() > 0


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
    mixer, time = example(name), 41  # chunks of 7 hold most, 6, after so many tokens
    _, state = mixer(random_input(time, batch=3), None)
    held = mixer.spec.elements
    fixed = held.state + held.conv + held.window
    assert mixer.carried_elements(state) == fixed + held.kv_per_token * (time // held.kv_every)
    assert mixer.carried_elements(state) == sum(tensor[0].numel() for tensor in tensors(state)) > 0


@every_mixer
def test_the_state_of_a_bounded_mixer_does_not_grow(name: str) -> None:
    mixer, held = example(name), example(name).spec.elements
    sizes = [mixer.carried_elements(mixer(random_input(time), None)[1]) for time in (27, 83)]
    assert sizes[1] - sizes[0] == held.kv_per_token * (83 // held.kv_every - 27 // held.kv_every)
    assert (mixer.spec.kind is Kind.BOUNDED) == (sizes[1] == sizes[0])


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
    held = mixer.spec.elements
    wide = sum(tensor[0].numel() for tensor in tensors(state) if tensor.dtype is torch.float32)
    assert wide == held.state  # the columns of convolutions and what a cache holds stay as they are


@every_mixer
@pytest.mark.parametrize("shape", [(2, 3, WIDTH + 1), (3, WIDTH), (2, 3, WIDTH, 1)])
def test_a_wrong_shape_raises(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises((jaxtyping.TypeCheckError, InputError)):
        example(name)(torch.zeros(shape, dtype=torch.float64), None)


def test_shapes_are_checked_at_run_time() -> None:
    # The matrix product alone would take this one: only the annotation says that there is a time axis.
    with pytest.raises(jaxtyping.TypeCheckError, match="batch time width"):
        example("conv").changes_state(torch.zeros(3, WIDTH, dtype=torch.float64))


def test_uninitialised_memory_is_poisoned() -> None:
    assert torch.empty(1000).isnan().all()


@pytest.mark.usefixtures("without_mamba")
def test_sizes_without_code_are_refused() -> None:
    with pytest.raises(InputError, match=r"^mixer: got 'mamba', expected one that can be run: full "):
        make_mixer(mixer_spec("mamba"), WIDTH)


def test_the_registry_has_names_of_the_table() -> None:
    assert [example_spec(name).name for name in REGISTRY] == list(REGISTRY)
