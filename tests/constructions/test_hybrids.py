"""One recurrent and one windowed layer do together what neither does alone."""

import numpy as np
import pytest
import torch

from hopbound.architecture import parse_schedule
from hopbound.bounds.reach import reach
from hopbound.constructions import Example, build, write_weights
from hopbound.constructions.hybrid_copying import COUNTS_ITSELF, HybridCopying, write_digits_of_count
from hopbound.constructions.hybrid_recall import HybridRecall, write_exclusive_or
from hopbound.constructions.parents import recurrences_alone, windows_alone
from hopbound.constructions.reflections import DELTA_RULES
from hopbound.decoder.codes import signs
from hopbound.errors import InputError
from hopbound.tasks import MaskedRecall, SelectiveCopying, parse_task
from tests.constructions.single import check_example, check_whole_forward, weights_survive_bfloat16

RECALL, COPYING = HybridRecall(), HybridCopying()
EXAMPLES = [(one, example) for one in (RECALL, COPYING) for example in one.examples]
MASKED = "masked_recall[pairs=2,bits=2,values=3,gap=1]"
SELECTIVE = "selective_copying[far=2,recent=3,symbols=3,noise=2]"
COUNTERS = {
    "gla": "gla[heads=2,head_dim=4]",
    "mamba": "mamba[channels=6,state=2]",
    "mamba2": "mamba2[heads=1,head_dim=2,state=2,conv=4]",
    "rwkv6": "rwkv6[heads=1,head_dim=3]",
    "rwkv7": "rwkv7[heads=1,head_dim=3]",
}


@pytest.mark.parametrize(
    ("construction", "example"),
    [
        pytest.param(
            *one, marks=pytest.mark.slow if parse_task(one[1].task).prompt_length > 100 else (), id=one[1].task
        )
        for one in EXAMPLES
    ],
)
def test_an_example(construction: HybridRecall | HybridCopying, example: Example) -> None:
    check_example(construction, example)


@pytest.mark.parametrize(
    ("construction", "example"),
    [one for one in EXAMPLES if one[1].fits and parse_task(one[1].task).prompt_length > 100],
    ids=lambda one: getattr(one, "task", ""),
)
def test_neither_parent_alone_even_twice(construction: HybridRecall | HybridCopying, example: Example) -> None:
    architecture, task = parse_schedule(example.schedule), parse_task(example.task)
    assert isinstance(task, construction.task)
    assert isinstance(task, MaskedRecall | SelectiveCopying)
    for alone in (windows_alone, recurrences_alone):
        for copies in (1, 2):
            assert alone(architecture, task, copies).impossible
        assert not alone(architecture, task, 10**6).impossible


def test_the_numbers_of_the_parents() -> None:
    stack, task = parse_schedule("gla[heads=1,head_dim=1] 2*window[w=9,heads=1,head_dim=8]"), SelectiveCopying(20, 8, 4)
    assert windows_alone(stack, task).statement == (
        "windows alone reach 16 tokens back < 28, where the first token stands"
    )
    assert recurrences_alone(stack, task).statement == "recurrences alone hold 32 bits >= 8 log2(4)"
    assert recurrences_alone(stack, SelectiveCopying(20, 17, 4)).impossible
    for schedule in ("window[w=9,heads=1,head_dim=8]", "full[heads=1,head_dim=8] gla[heads=1,head_dim=1]"):
        with pytest.raises(InputError, match="windows and recurrences"):
            recurrences_alone(parse_schedule(schedule), task)


def test_windows_alone_are_fooled_by_the_first_token() -> None:
    """The bound on a real stack: random weights give the same logits to prompts that differ where none sees."""
    from hopbound.decoder import Decoder

    task = MaskedRecall(4, 3, 8, gap=30)
    decoder = Decoder.from_schedule("2*window[w=16]", vocabulary=8, width=16, heads=1, head_dim=8, seed=1).eval()
    assert reach(decoder.config.architecture) == 30
    pairs = next(iter(task.changes(task.sample(0, "test", 0, 20), 0)))
    first, second = (torch.from_numpy(pairs[:, side].copy()) for side in (0, 1))
    with torch.no_grad():
        assert torch.equal(decoder(first)[0][:, -1], decoder(second)[0][:, -1])
    assert (task.oracle(first.numpy()) != task.oracle(second.numpy())).all()


@pytest.mark.parametrize("name", DELTA_RULES)
@pytest.mark.parametrize("conv", [0, 3])
def test_every_recurrence_that_overwrites(name: str, conv: int) -> None:
    example = Example(
        schedule=f"{name}[heads=2,head_dim=3,conv={conv}] window[w=6,heads=2,kv_heads=1,head_dim=4]", task=MASKED
    )
    result = check_example(RECALL, example)
    check_whole_forward(result.built.decoder, parse_task(MASKED))
    assert weights_survive_bfloat16(result.built.decoder)


@pytest.mark.parametrize("name", COUNTS_ITSELF)
def test_every_recurrence_that_counts(name: str) -> None:
    example = Example(schedule=f"{COUNTERS[name]} window[w=4,heads=1,head_dim=8]", task=SELECTIVE)
    result = check_example(COPYING, example)
    check_whole_forward(result.built.decoder, parse_task(SELECTIVE))
    assert weights_survive_bfloat16(result.built.decoder)


def test_masked_recall_in_bfloat16() -> None:
    example = Example(
        schedule="delta[heads=1,head_dim=4] window[w=16,heads=1,head_dim=8]",
        task="masked_recall[pairs=8,bits=4,values=16,gap=20]",
    )
    check_example(RECALL, example, torch.bfloat16)


def test_digits_of_counts_are_exact_up_to_the_limit() -> None:
    """All counts up to 4000 in float32, by the map alone, against the digits as they are."""
    most, bits = 4000, 12
    rise, bias = torch.zeros(most + 1, 1 + bits), torch.zeros(most + 1)
    fall, fall_bias = torch.zeros(1 + bits, most + 1), torch.zeros(1 + bits)
    write_digits_of_count(rise, bias, fall, fall_bias, count=0, target=range(1, 1 + bits), most=most, first=1)
    counts = torch.zeros(most + 1, 1 + bits)
    counts[:, 0] = 2.0 * torch.arange(most + 1)
    made = torch.relu(counts @ rise.T + bias) @ fall.T + fall_bias
    wanted = torch.tensor([signs(max(count - 1, 0), bits) for count in range(most + 1)], dtype=torch.float32)
    assert torch.equal(made[:, 1:], wanted)


def test_exclusive_or_of_all_digits() -> None:
    rise, fall, bias = torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(3)
    write_exclusive_or(rise, fall, bias, first_unit=0, pairs=(range(1), range(1, 2)), target=range(2, 3))
    x = torch.tensor([[a, b, 0.0] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    assert (torch.relu(x @ rise.T) @ fall.T + bias)[:, 2].tolist() == [-1.0, 1.0, 1.0, -1.0]


@pytest.mark.parametrize(
    ("schedule", "task", "said"),
    [
        ("gla[heads=1,head_dim=2] window[w=9,heads=1,head_dim=8]", MASKED, "does not overwrite"),
        ("delta[heads=1,head_dim=1] window[w=9,heads=1,head_dim=8]", MASKED, "2 key coordinates"),
        ("delta[heads=1,head_dim=2] window[w=9,heads=1,head_dim=2]", MASKED, "3 digits are compared"),
        ("delta[heads=1,head_dim=2] linear[heads=1,head_dim=2]", MASKED, "is no window"),
        ("linear[heads=1,head_dim=1] window[w=9,heads=1,head_dim=8]", SELECTIVE, "does not add up"),
        ("gla[heads=1,head_dim=3] window[w=9,heads=1,head_dim=8]", SELECTIVE, "1, 4, 16, 64"),
        ("gla[heads=1,head_dim=1] window[w=3,heads=1,head_dim=8]", SELECTIVE, "4 are needed"),
        (
            "gla[heads=1,head_dim=1] window[w=99,heads=1,head_dim=20]",
            "selective_copying[far=4000,recent=3,symbols=3]",
            "exact up to 4000",
        ),
    ],
)
def test_what_does_not_fit_is_said(schedule: str, task: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        write_weights(parse_schedule(schedule), parse_task(task))


def test_the_longest_count() -> None:
    """A few prompts at the limit of 4000 tokens."""
    task = SelectiveCopying(3936, 64, 16, noise=4)
    stack = parse_schedule("mamba2[heads=1,head_dim=1,state=1] window[w=65,heads=1,head_dim=16]")
    decoder = write_weights(stack, task).decoder
    batch = task.adversarial(0, 0, 10)
    np.testing.assert_array_equal(decoder.answer(batch.prompts), batch.answers)


def test_the_steps_are_named() -> None:
    result = build(parse_schedule(RECALL.examples[0].schedule), parse_task(RECALL.examples[0].task))
    assert result.built.steps == ("layer 1 brings mask and keys", "layer 2 looks the masked key up")
