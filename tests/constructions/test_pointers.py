"""C5 and the easy order: pointers that are doubled are right, in as few layers as is said and in no fewer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hopbound.architecture import Defaults, parse_schedule
from hopbound.bounds import prove
from hopbound.constructions import build, write_weights
from hopbound.constructions.construction import Construction, Example, Mode
from hopbound.constructions.doubling import Chain, Doubling, easy_program, layers_needed, longest, plan
from hopbound.constructions.encoder import Encoder, encoder_program
from hopbound.constructions.encoder import layers_needed as encoder_layers
from hopbound.constructions.pointers import Program, write_program
from hopbound.constructions.verification import EXHAUSTIVE_UP_TO, LONG_PROMPT
from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.falsify import break_model, model_subject
from hopbound.tasks import FunctionComposition, parse_task
from hopbound.witness import verify_files

BOTH: Sequence[Construction[FunctionComposition]] = (Encoder(), Doubling())
CASES = [(one, example) for one in BOTH for example in one.examples]
MODES: dict[str, dict[str, Any]] = {"hard": {"bidirectional": True}, "easy": {}}


def exhaustive(example: Example) -> bool:
    return parse_task(example.task).log2_instances <= np.log2(EXHAUSTIVE_UP_TO)


def slow(example: Example) -> bool:
    return example.fits and not exhaustive(example)


def cases(*, fits: bool) -> list[Any]:
    return [
        pytest.param(one, example, id=f"{example.schedule} {example.task}", marks=[pytest.mark.slow] * slow(example))
        for one, example in CASES
        if example.fits == fits
    ]


def stack(layers: int, head_dim: int = 24) -> Any:
    return parse_schedule(f"{layers}*full", Defaults(head_dim=head_dim))


def right(decoder: Decoder, task: FunctionComposition, count: int = 60) -> float:
    batches = [task.sample(0, "test", 0, count), task.adversarial(0, 0, count)]
    return float(np.mean([decoder.answer(batch.prompts) == batch.answers for batch in batches]))


@pytest.mark.parametrize(("construction", "example"), cases(fits=True))
def test_examples(construction: Construction[FunctionComposition], example: Example) -> None:
    task = parse_task(example.task)
    result = build(parse_schedule(example.schedule), task, **example.options)
    assert result.built.construction == construction.name
    assert result.verification.exhaustive == exhaustive(example)
    assert result.verification.accuracy == 1.0
    assert result.verification.smallest_margin > 1.99
    if task.prompt_length > LONG_PROMPT:  # at least one random and one adversarial instance
        assert result.verification.instances > result.verification.adversarial >= 1


def test_each_is_shown_at_short_middle_and_long_prompts() -> None:
    for one in BOTH:
        fitting = [example for example in one.examples if example.fits]
        assert any(exhaustive(example) for example in fitting)
        lengths = [parse_task(example.task).prompt_length for example in fitting]
        assert any(400 <= length <= LONG_PROMPT for length in lengths)
        assert max(lengths) > LONG_PROMPT


@pytest.mark.parametrize(("construction", "example"), cases(fits=False))
def test_beyond_the_limits_forced_weights_fail(
    construction: Construction[FunctionComposition], example: Example
) -> None:
    architecture, task = parse_schedule(example.schedule), parse_task(example.task)
    assert isinstance(task, FunctionComposition)
    with pytest.raises(InputError, match=rf"^schedule: [^\n]*{construction.name}: "):
        build(architecture, task, **example.options)
    built = write_weights(architecture, task, overfill=True, mode=construction.mode)
    assert right(built.decoder, task) < 1.0


SIZES = [
    FunctionComposition(1, 5),
    FunctionComposition(2, 3, (4,)),
    FunctionComposition(3, 3, (2, 3)),
    FunctionComposition(4, 3, (3, 1, 5), values=(2, 6, 3)),
    FunctionComposition(5, 3, (2, 1, 2, 1), values=(3, 4, 4, 5)),
    FunctionComposition(8, 3, (1, 2, 1, 2, 1, 1, 2), values=(3, 3, 2, 3, 3, 3, 3)),
]


def ordered(task: FunctionComposition, order: Any) -> FunctionComposition:
    return FunctionComposition(task.hops, task.m, task.n, task.values, order=order)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("order", MODES)
@pytest.mark.parametrize("sizes", SIZES, ids=lambda task: task.identity)
def test_sizes_that_are_no_powers_of_two(sizes: FunctionComposition, order: str, dtype: torch.dtype) -> None:
    task = ordered(sizes, order)
    needed = encoder_layers(task.hops) if order == "hard" else layers_needed(task)
    mode = Mode.BIDIRECTIONAL if order == "hard" else Mode.PLAIN
    for layers in (needed, needed + 2):  # layers that are left over do nothing
        assert right(write_weights(stack(layers), task, dtype=dtype, mode=mode).decoder, task, 24) == 1.0
    if needed > 2:
        with pytest.raises(InputError, match=rf"^schedule: [^\n]*{task.hops} hops take {needed}"):
            write_weights(stack(needed - 1), task, mode=mode)
        forced = write_weights(stack(needed - 1), task, mode=mode, overfill=True)
        assert right(forced.decoder, task) < 1.0


@pytest.mark.parametrize("order", MODES)
def test_on_demand_is_the_whole_forward(order: str) -> None:
    task = ordered(SIZES[4], order)
    mode = Mode.BIDIRECTIONAL if order == "hard" else Mode.PLAIN
    decoder = write_weights(stack(6), task, dtype=torch.float64, mode=mode).decoder
    prompts = torch.from_numpy(task.sample(0, "test", 0, 8).prompts)
    torch.testing.assert_close(decoder.final_logits(prompts), decoder(prompts)[0][:, -1], atol=1e-9, rtol=0)


ALL = [
    pytest.param(one, example, id=f"{example.schedule} {example.task}")
    for one, example in CASES
    if example.fits and exhaustive(example)
]


def both_ways(decoder: Decoder, prompts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits on demand, with attention in tiles, and by the whole forward."""
    return torch.cat(list(decoder.logits_of(prompts))), decoder(torch.from_numpy(prompts))[0][:, -1]


@pytest.mark.parametrize(("construction", "example"), ALL)
def test_on_demand_is_the_whole_forward_on_all_instances(
    construction: Construction[FunctionComposition], example: Example
) -> None:
    """In float32, also where a weight is damaged: errors show both ways."""
    task = parse_task(example.task)
    assert isinstance(task, FunctionComposition)
    decoder = construction.write(parse_schedule(example.schedule), task, torch.float32).decoder
    batch = task.enumerate(0, task.instances)
    demanded, whole = both_ways(decoder, batch.prompts)
    torch.testing.assert_close(demanded, whole, atol=1e-4, rtol=0)
    assert np.array_equal(demanded.argmax(dim=1).numpy(), batch.answers)
    assert np.array_equal(whole.argmax(dim=1).numpy(), batch.answers)
    some = batch.prompts[np.random.default_rng(0).choice(len(batch), 500, replace=False)]
    places = [
        (weight, tuple(place))
        for name, weight in decoder.named_parameters()
        if name.endswith(("query.weight", "value.weight", "out.weight"))
        for place in weight.nonzero().tolist()
    ]
    wrong = 0
    for weight, place in places:
        before = weight[place].item()
        weight[place] = -before
        demanded, whole = both_ways(decoder, some)
        weight[place] = before
        torch.testing.assert_close(demanded, whole, atol=1e-3, rtol=1e-4)
        wrong += not np.array_equal(demanded.argmax(dim=1).numpy(), task.oracle(some))
    assert wrong >= len(places) / 4


def pointers(program: Program, prompt: np.ndarray) -> list[int]:
    """The pointer of the last token after each layer, by a plain simulation of the roles with integers."""
    task = program.task
    (parts,) = (task.decode(prompt[None]),)
    w = parts.query[0]
    held: dict[tuple[int, int], int] = {}
    for segment in task.segments:
        for place in range(segment.length):
            size = task.m if segment.function <= 1 else task.values[segment.function - 2]
            starts = {"token": int(prompt[segment.start + place]), "address value": place % size}
            held[segment.function, place] = starts.get(program.roles[segment.function].starts, int(parts.start[0]))
    last, seen = task.segments[-1].function, []
    for layer in range(2, program.layers + 1):
        before = dict(held)
        for function, place in held:
            ask = program.roles[function].ask(layer)
            if ask is None:
                continue
            address = before[function, place]
            if ask.part is not None:
                address += int(w[ask.part - 1]) * task.values[ask.part - 1]
            found = before.get((ask.tag, address), 0)
            token = int(prompt[task.position(ask.tag, address)]) if (ask.tag, address) in before else 0
            held[function, place] = found if ask.pointer else token
        seen.append(held[last, 0])
    return seen


@pytest.mark.parametrize("sizes", [*SIZES, FunctionComposition(14, 2, (1,) * 13)], ids=lambda task: task.identity)
def test_roles_by_a_plain_simulation(sizes: FunctionComposition) -> None:
    hard, easy = sizes, ordered(sizes, "easy")
    for task, program in (
        (hard, encoder_program(hard, encoder_layers(hard.hops))),
        (easy, easy_program(easy, layers_needed(easy))),
    ):
        prompts = task.sample(0, "test", 0, 30).prompts
        for prompt, answer in zip(prompts, task.oracle(prompts), strict=True):
            assert pointers(program, prompt)[-1] == answer


def test_layers_of_an_encoder() -> None:
    for hops in range(1, 40):
        layers = encoder_layers(hops)
        assert 2 ** (layers - 1) - 1 >= hops > 2 ** (layers - 2) - 1
        assert layers == int(np.floor(np.log2(hops))) + 2


@pytest.mark.parametrize("most", [25, pytest.param(47, marks=pytest.mark.slow)])
def test_layers_in_the_easy_order(most: int) -> None:
    assert [longest(layers) for layers in range(2, 11)] == [1, 2, 3, 5, 8, 14, 25, 47, 90]
    for hops in range(1, most + 1):
        task = FunctionComposition(hops, 3, (1,) * (hops - 1), order="easy")
        needed = layers_needed(task)
        assert needed == next(layers for layers in range(2, 12) if longest(layers) >= hops)
        assert needed <= int(np.floor(np.log2(hops))) + 5


def test_holders_stand_where_they_can_be_asked_and_are_lent_once() -> None:
    def check(chain: Chain, holder: int, inside: dict[int, Chain]) -> None:
        for ask in chain.asks:
            if ask is not None and ask.pointer:
                block = inside[ask.tag]
                assert block.end < ask.tag < holder
                check(block, ask.tag, inside)
            elif ask is not None:
                assert ask.tag < holder

    task = FunctionComposition(25, 3, (1,) * 24, order="easy")
    chain = plan(task, 8)
    assert chain is not None
    check(chain, 26, chain.lent)
    assert plan(task, 7) is None


def test_without_tokens_to_lend_the_easy_order_takes_a_layer_a_hop() -> None:
    task = FunctionComposition(5, 9, (1, 1, 1, 1), values=(8, 7, 6, 5), order="easy")
    assert layers_needed(task) == 6
    assert right(write_weights(stack(6), task).decoder, task) == 1.0


def test_without_a_query_the_encoder_s_weights_are_right_under_a_causal_mask() -> None:
    task = FunctionComposition(7, 3, (1,) * 6)
    program = encoder_program(task, 4)
    causal = Program(task=task, layers=4, roles=program.roles, causal=True)
    assert right(write_program(stack(4), causal, [0, 1, 2, 3], torch.float32), task) == 1.0
    asked = FunctionComposition(7, 3, (1, 2, 1, 1, 1, 1), values=(3,) * 6)
    program = encoder_program(asked, 4)
    causal = Program(task=asked, layers=4, roles=program.roles, causal=True)
    assert right(write_program(stack(4), causal, [0, 1, 2, 3], torch.float32), asked) < 1.0


def test_the_same_stack_in_the_hard_order_is_refused_and_certified_impossible_on_long_prompts() -> None:
    easy = FunctionComposition(5, 3, (2, 2, 2, 2), values=(3, 3, 3, 3), order="easy")  # no row of one entry
    architecture = stack(5)
    assert right(write_weights(architecture, easy).decoder, easy) == 1.0
    with pytest.raises(InputError, match=r"^[^\n]*$"):
        build(architecture, ordered(easy, "hard"))
    verdict = prove(architecture, 5)
    assert verdict.kind == "impossible"
    assert verdict.theorem.startswith("B")


def test_other_layouts_and_mixers_are_refused() -> None:
    many = FunctionComposition(2, 2, (2,), query="many")
    for task in (many, ordered(SIZES[1], "easy")):
        with pytest.raises(InputError, match=r"^schedule: [^\n]*C5: order="):
            build(stack(4), task, bidirectional=True)
    with pytest.raises(InputError, match=r"C5: linear cannot see what comes after"):
        build(parse_schedule("2*full linear 2*full"), SIZES[1], bidirectional=True)
    with pytest.raises(InputError, match=r"fewer than 2 full layers"):
        build(stack(1), SIZES[1], bidirectional=True, overfill=True)
    with pytest.raises(InputError, match=r"^thoughts: "):
        build(stack(1), SIZES[1], bidirectional=True, thoughts=True)


def test_the_folder_of_an_encoder_is_verified_and_broken(tmp_path: Path) -> None:
    task = FunctionComposition(3, 2, (2, 1), values=(2, 2))
    build(stack(3), task, out=tmp_path / "right", bidirectional=True)
    (checked,) = verify_files([tmp_path / "right"])
    assert checked.accepted, checked.reason
    assert break_model(model_subject(tmp_path / "right"), max_prompts=400).pair is None
    build(stack(2), task, out=tmp_path / "wrong", bidirectional=True, overfill=True)
    assert break_model(model_subject(tmp_path / "wrong"), out=tmp_path / "pairs", max_prompts=400).pair is not None
    assert all(one.accepted for one in verify_files([tmp_path / "pairs"]))
