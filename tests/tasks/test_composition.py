"""Sequential function composition: sizes, prompts, right answers, adversarial families."""

import doctest
import math
import time
from collections import Counter
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.errors import InputError
from hopbound.tasks import (
    ADVERSARIAL_FAMILIES,
    FunctionAnswerer,
    FunctionComposition,
    Parts,
    accuracy,
    composition,
    format_task,
    parse_task,
    sizes,
)
from hopbound.tasks.composition import Distribution, Order, Query

SIZES: list[tuple[int, int, tuple[int, ...], tuple[int, ...] | None]] = [
    (1, 3, (), None),
    (2, 3, (2,), None),
    (2, 3, (2,), (4,)),
    (3, 2, (3, 2), None),
    (3, 2, (3, 2), (5, 3)),
    (4, 3, (1, 2, 3), (2, 4, 3)),
]
LAYOUTS: list[tuple[Order, Query]] = [("hard", "one"), ("hard", "many"), ("easy", "one"), ("easy", "many")]
every_layout = pytest.mark.parametrize(("order", "query"), LAYOUTS)
every_size = pytest.mark.parametrize("sizes", SIZES, ids=str)


def make(sizes: tuple[int, int, tuple[int, ...], tuple[int, ...] | None], order: Order, query: Query):
    return FunctionComposition(*sizes, order=order, query=query)


def naive_answer(task: FunctionComposition, prompt: list[int]) -> int:
    """The definition, with plain lists: read the prompt token by token, then make the hops."""
    L, M, D = task.hops, task.values, task.domains
    tokens = iter(prompt)

    def read_query() -> list[int]:
        if task.query == "many":
            return [next(tokens) for _ in range(L - 1)]
        rest, digits = next(tokens), []
        for n in task.n:
            digits.append(rest % n)
            rest //= n
        return digits

    z: dict[int, list[int]] = {}
    if task.order == "hard":
        for hop in range(L, 0, -1):
            z[hop] = [next(tokens) for _ in range(D[hop - 1])]
        i = next(tokens)
        w = read_query()
    else:
        w = read_query()
        i = next(tokens)
        for hop in range(1, L + 1):
            z[hop] = [next(tokens) for _ in range(D[hop - 1])]
        assert next(tokens) == 0
    assert next(tokens, None) is None
    i = z[1][i]
    for hop in range(1, L):
        i = z[hop + 1][w[hop - 1] * M[hop - 1] + i]
    return i


def test_worked_example_of_the_docstring() -> None:
    result = doctest.testmod(composition)
    assert result.attempted > 0
    assert result.failed == 0


def test_sizes_of_the_definition() -> None:
    paper = FunctionComposition(3, 2, (3, 2))
    assert paper.domains == paper.values == (2, 6, 12)
    free = FunctionComposition(3, 2, (3, 2), values=(5, 3))
    assert (free.domains, free.values) == ((2, 15, 6), (5, 3, 6))
    assert free.prompt_length == 2 + 15 + 6 + 2
    assert free.vocabulary_size == 6
    assert (free.answers, free.chance) == (6, 1 / 6)
    assert free.instances == 5**2 * 3**15 * 6**6 * 2 * 3 * 2
    assert FunctionComposition(1, 5).prompt_length == 7
    assert FunctionComposition(1, 5, query="many").prompt_length == 6
    assert FunctionComposition(4, 2, (3, 3, 3), values=(2, 2, 2)).vocabulary_size == 27
    assert FunctionComposition(4, 2, (3, 3, 3), values=(2, 2, 2), query="many").vocabulary_size == 6


def test_sizes_given_in_other_ways_are_one_task() -> None:
    task = FunctionComposition(2, 3, (2,))
    same = [FunctionComposition(2, 3, [2], values=values) for values in ((3,), (3, 6), [3])]
    assert all(other == task and other.identity == task.identity and hash(other) == hash(task) for other in same)
    assert task != FunctionComposition(2, 3, (2,), order="easy")


@every_size
@every_layout
def test_segments_cover_the_prompt(sizes: Any, order: Order, query: Query) -> None:
    task = make(sizes, order, query)
    names = [f"z_{hop}" for hop in range(task.hops, 0, -1)]
    w = ["w"] if query == "one" or task.hops > 1 else []
    expected = [*names, "z_0", *w] if order == "hard" else [*w, "z_0", *reversed(names), "ask"]
    assert [segment.name for segment in task.segments] == expected
    positions = [
        task.position(segment.function, address) for segment in task.segments for address in range(segment.length)
    ]
    assert positions == list(range(task.prompt_length))


def test_positions_that_do_not_exist_are_refused() -> None:
    task = FunctionComposition(2, 3, (2,))
    for function, expected in ((3, "one of -1, 0, 1, 2"), (-2, "one of -1, 0, 1, 2")):
        with pytest.raises(InputError, match=f"function: got {function}, expected {expected}"):
            task.position(function, 0)
    for address in (-1, 6):
        with pytest.raises(InputError, match=f"address: got {address}, expected 0 to 5 in z_2"):
            task.position(2, address)


@every_size
@every_layout
def test_oracle_is_the_definition(sizes: Any, order: Order, query: Query) -> None:
    task = make(sizes, order, query)
    for batch in (task.sample(1, "test", 1000, 60), task.adversarial(1, 0, 60)):
        assert batch.answers.tolist() == [naive_answer(task, prompt) for prompt in batch.prompts.tolist()]


@st.composite
def tasks(draw: st.DrawFn) -> FunctionComposition:
    hops = draw(st.integers(1, 4))
    n = tuple(draw(st.integers(1, 3)) for _ in range(hops - 1))
    values = tuple(draw(st.integers(2, 5)) for _ in range(hops - 1))
    order, query = draw(st.sampled_from(LAYOUTS))
    return FunctionComposition(hops, draw(st.integers(2, 5)), n, draw(st.sampled_from([None, values])), order, query)


@given(task=tasks(), seed=st.integers(0, 5))
def test_any_sizes_oracle_and_composition_round_trip(task: FunctionComposition, seed: int) -> None:
    batch = task.sample(seed, "test", 0, 5)
    assert batch.answers.tolist() == [naive_answer(task, prompt) for prompt in batch.prompts.tolist()]
    np.testing.assert_array_equal(task.compose(task.decode(batch.prompts)), batch.prompts)
    pairs = task.adversarial(seed, 4, 2)
    assert (pairs.prompts[0] != pairs.prompts[1]).sum() == 1
    assert pairs.answers[0] != pairs.answers[1]


@every_layout
def test_the_layout_changes_no_answer(order: Order, query: Query) -> None:
    hard = make(SIZES[-1], "hard", "one")
    batch = hard.sample(0, "test", 0, 50)
    other = make(SIZES[-1], order, query)
    parts = hard.decode(batch.prompts)
    np.testing.assert_array_equal(other.oracle(other.compose(parts)), batch.answers)
    back = other.decode(other.compose(parts))
    np.testing.assert_equal((back.functions, back.start, back.query), (parts.functions, parts.start, parts.query))


def test_path_is_read_at_the_addresses_it_names() -> None:
    task = FunctionComposition(3, 2, (3, 2), values=(5, 3))
    batch = task.sample(0, "test", 0, 40)
    path = task.hops_path(batch.prompts)
    assert path.values.shape == (40, 4)
    assert path.addresses.shape == (40, 3)
    np.testing.assert_array_equal(path.values[:, 0], batch.prompts[:, task.position(0, 0)])
    for row, prompt in enumerate(batch.prompts):
        for hop in (1, 2, 3):
            assert prompt[task.position(hop, int(path.addresses[row, hop - 1]))] == path.values[row, hop]


@pytest.mark.parametrize(
    "task",
    [
        FunctionComposition(1, 3),
        FunctionComposition(1, 3, query="many"),
        FunctionComposition(2, 2, (1,)),
        FunctionComposition(2, 2, (2,), order="easy"),
        FunctionComposition(3, 2, (1, 2), values=(2, 2), query="many"),
        FunctionComposition(3, 2, (2, 1), values=(2, 2)),
    ],
    ids=lambda task: task.identity,
)
def test_enumeration_is_a_bijection(task: FunctionComposition) -> None:
    functions = math.prod(value**domain for value, domain in zip(task.values, task.domains, strict=True))
    assert task.instances == functions * task.m * math.prod(task.n)
    assert task.instances <= 100_000
    half = task.instances // 2
    batches = [task.enumerate(0, half), task.enumerate(half, task.instances - half)]
    prompts = np.concatenate([batch.prompts for batch in batches])
    assert len(np.unique(prompts, axis=0)) == task.instances
    np.testing.assert_array_equal(np.concatenate([batch.answers for batch in batches]), task.oracle(prompts))


def test_baselines_make_their_mistakes() -> None:
    task = FunctionComposition(2, 2, (2,))
    prompts = np.array([[3, 0, 3, 2, 1, 0, 0, 1], [0, 1, 1, 0, 1, 1, 1, 0]])
    answers = {name: function(prompts).tolist() for name, function in task.baselines().items()}
    assert task.oracle(prompts).tolist() == [2, 1]
    assert answers == {
        "constant": [0, 0],
        "most common value": [3, 0],
        "stop one hop early": [1, 1],
        "skip the first hop": [3, 1],
    }


def test_baselines_are_near_chance_on_large_sizes() -> None:
    task = FunctionComposition(3, 16, (4, 4))
    batch = task.sample(0, "test", 0, 2000)
    for name in ("constant", "stop one hop early"):
        assert accuracy(FunctionAnswerer(task.baselines()[name]), batch) < 0.02
    # Two different i_1 lead to the same i_2 by accident: a skipped hop is right where z_1(z_0) = z_0, or later.
    assert accuracy(FunctionAnswerer(task.baselines()["skip the first hop"]), batch) < 0.15


@every_size
@every_layout
def test_adversarial_families(sizes: Any, order: Order, query: Query) -> None:
    task = make(sizes, order, query)
    batch = task.adversarial(2, 0, 64)
    parts = task.decode(batch.prompts)
    names = [task.adversarial_family(number) for number in range(64)]
    assert {name: names.count(name) for name in ADVERSARIAL_FAMILIES} == dict.fromkeys(ADVERSARIAL_FAMILIES, 16)
    for number, name in enumerate(names):
        for values, domain, size in zip(parts.functions, task.domains, task.values, strict=True):
            row = values[number]
            if name == "permutation":
                counts = np.bincount(row, minlength=size)
                assert counts.max() - counts.min() <= 1
                assert domain != size or sorted(row.tolist()) == list(range(domain))
            elif name == "constant":
                assert len(set(row.tolist())) == 1
            elif name == "identity":
                assert any(row.tolist() == [(x + shift) % size for x in range(domain)] for shift in (0, 1))


@every_size
@every_layout
def test_near_collisions_differ_in_one_entry_on_the_path(sizes: Any, order: Order, query: Query) -> None:
    task = make(sizes, order, query)
    batch = task.adversarial(3, 0, 400)
    path = task.hops_path(batch.prompts)
    hops_changed: set[int] = set()
    for number in range(0, 400, 2):
        if task.adversarial_family(number) != "near-collision":
            continue
        differs = np.flatnonzero(batch.prompts[number] != batch.prompts[number + 1])
        assert len(differs) == 1
        assert batch.answers[number] != batch.answers[number + 1]
        read = {task.position(hop, int(path.addresses[number, hop - 1])): hop for hop in range(1, task.hops + 1)}
        hops_changed.add(read[int(differs[0])])
    assert hops_changed == set(range(1, task.hops + 1))


def test_adversarial_bytes_do_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    task = FunctionComposition(2, 3, (2,), values=(4,))
    whole = task.adversarial(4, 1000, 60).prompts
    for size in (1, 3, 60):
        parts = [task.adversarial(4, start, min(size, 1060 - start)).prompts for start in range(1000, 1060, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(sizes, "DRAWN_AT_ONCE", 5 * task.prompt_length)
    np.testing.assert_array_equal(task.adversarial(4, 1001, 59).prompts, whole[1:])
    assert len(task.adversarial(4, 3, 0)) == 0


def test_a_million_tokens() -> None:
    task = FunctionComposition(2, 500, (1999,), values=(500,))
    assert task.prompt_length == 1_000_002
    begin = time.monotonic()
    batch = task.sample(0, "test", 5000, 2)
    pair = task.adversarial(0, 4, 2)
    assert time.monotonic() - begin < 10
    assert batch.answers.tolist() == [naive_answer(task, prompt) for prompt in batch.prompts.tolist()]
    assert (pair.prompts[0] != pair.prompts[1]).sum() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hops": 0, "m": 2}, "hops: got 0, expected a whole number of at least 1"),
        ({"hops": True, "m": 2}, "hops: got True, expected a whole number of at least 1"),
        ({"hops": 1, "m": 1}, "m: got 1, expected a whole number of at least 2"),
        ({"hops": 1, "m": 2.0}, "m: got 2.0, expected a whole number of at least 2"),
        ({"hops": 3, "m": 2, "n": (4,)}, "n: got (4,), expected 2 numbers for 3 hops"),
        ({"hops": 2, "m": 2}, "n: got (), expected 1 number for 2 hops"),
        ({"hops": 1, "m": 2, "n": (3,)}, "n: got (3,), expected no numbers for 1 hop"),
        ({"hops": 2, "m": 2, "n": (0,)}, "n: got 0, expected a whole number of at least 1"),
        ({"hops": 2, "m": 2, "n": (2,), "values": (1,)}, "values: got 1, expected a whole number of at least 2"),
        (
            {"hops": 2, "m": 2, "n": (2,), "values": (2, 2, 2)},
            "values: got (2, 2, 2), expected 1 number, or 2 with the last, for 2 hops",
        ),
        (
            {"hops": 3, "m": 2, "n": (2, 2), "values": (2,)},
            "values: got (2,), expected 2 numbers, or 3 with the last, for 3 hops",
        ),
        (
            {"hops": 2, "m": 2, "n": (3,), "values": (4, 5)},
            "values: got (4, 5), expected 12 as the last number (M_L = D_L), or only 1 number",
        ),
        ({"hops": 1, "m": 2, "order": "odd"}, "order: got 'odd', expected hard or easy"),
        ({"hops": 1, "m": 2, "query": "two"}, "query: got 'two', expected one or many"),
        ({"hops": 1, "m": 2**32 + 1}, "vocabulary: got 4294967297, expected at most 4294967296 values a token"),
        (
            {"hops": 3, "m": 2, "n": (2**17, 2**16), "values": (2, 2)},
            "vocabulary: got 8589934592, expected at most 4294967296 values a token; "
            "query='many' gives each w_l a token of its own",
        ),
    ],
)
def test_wrong_sizes_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        FunctionComposition(**arguments)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 2}, "n: got 2, expected a list of numbers"),
        ({"values": None}, "values: got None, expected a list of numbers"),
        ({"m": "3"}, "m: got '3', expected a whole number"),
        ({"n": [True]}, "n: got True, expected a whole number"),
        ({"order": ["hard"]}, "order: got"),
        ({"task": "parity"}, "task: got 'parity', expected composition"),
    ],
)
def test_wrong_json_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        FunctionComposition.from_json(FunctionComposition(2, 3, (2,)).to_json() | change)


def test_prompts_of_another_task_are_refused() -> None:
    task = FunctionComposition(2, 3, (2,), values=(4,))
    prompts = task.sample(0, "test", 0, 4).prompts
    for wrong in (prompts[:, 1:], prompts[0], prompts.astype(np.float64)):
        with pytest.raises(InputError, match="prompts: got"):
            task.oracle(wrong)  # pyright: ignore[reportArgumentType]
    for function, value in ((2, 8), (1, 4), (0, 3), (-1, 2), (1, -1)):
        spoiled = prompts.copy()
        spoiled[2, task.position(function, 0)] = value
        with pytest.raises(InputError, match=f"{'w' if function < 0 else f'z_{function}'}: got"):
            task.oracle(spoiled)


def test_parts_that_do_not_fit_are_refused() -> None:
    task = FunctionComposition(3, 2, (2, 3), values=(2, 2))
    parts = task.decode(task.sample(0, "test", 0, 2).prompts)
    z, start, query = parts.functions, parts.start, parts.query
    cases = [
        ("functions", Parts(z[:2], start, query)),
        ("z_1", Parts((z[0][:1], *z[1:]), start, query)),
        ("z_3", Parts((*z[:2], z[2] + 6), start, query)),
        ("z_0", Parts(z, start - 2, query)),
        ("w", Parts(z, start, query[:, :1])),
        # Within the range of w_2 but not of w_1; as one token it would pass for another query.
        ("w", Parts(z, start, np.full_like(query, 2))),
    ]
    for field, wrong in cases:
        with pytest.raises(InputError, match=f"^{field}: got"):
            task.compose(wrong)


# Distributions


def test_a_uniform_task_is_written_as_before() -> None:
    plain, named = FunctionComposition(2, 3, (2,)), FunctionComposition(2, 3, (2,), distribution="uniform")
    assert plain == named
    assert "distribution" not in plain.to_json()
    assert (
        plain.identity
        == named.identity
        == ('{"hops":2,"m":3,"n":[2],"order":"hard","query":"one","task":"composition","values":[3,6]}')
    )


@pytest.mark.parametrize("distribution", ["permutations", "sparse"])
def test_other_distributions_are_read_back(distribution: Distribution) -> None:
    task = FunctionComposition(2, 3, (2,), distribution=distribution)
    assert FunctionComposition.from_json(task.to_json()) == task
    assert parse_task(format_task(task)) == task
    assert task != FunctionComposition(2, 3, (2,))
    assert task.identity != FunctionComposition(2, 3, (2,)).identity


@every_layout
def test_all_permutations(order: Order, query: Query) -> None:
    """Every instance is enumerated once and drawn as often as any other, within five standard deviations."""
    task = FunctionComposition(2, 2, (2,), order=order, query=query, distribution="permutations")
    assert task.instances == math.factorial(2) * math.factorial(4) * 2 * 2
    assert math.isclose(task.log2_instances, math.log2(task.instances))
    batch = task.enumerate(0, task.instances)
    rows = {tuple(row) for row in batch.prompts.tolist()}
    assert len(rows) == task.instances
    for function in task.decode(batch.prompts).functions:
        np.testing.assert_array_equal(np.sort(function, axis=1), np.indices(function.shape)[1])
    everything = FunctionComposition(2, 2, (2,), order=order, query=query)
    np.testing.assert_array_equal(batch.answers, everything.oracle(batch.prompts))
    count = 200 * task.instances
    drawn = Counter(map(tuple, task.sample(0, "train", 0, count).prompts.tolist()))
    assert set(drawn) == rows
    spread = 5 * math.sqrt(count / task.instances)
    assert all(abs(times - 200) < spread for times in drawn.values())


def test_permutations_need_the_sizes_of_the_paper() -> None:
    with pytest.raises(InputError, match=r"values: got \(2, 4\), expected \(3, 4\), as many as addresses"):
        FunctionComposition(2, 3, (2,), values=(2,), distribution="permutations")
    with pytest.raises(InputError, match="distribution: got 'dense', expected uniform or permutations or sparse"):
        FunctionComposition(2, 3, (2,), distribution=cast(Distribution, "dense"))


@every_layout
def test_sparse_functions(order: Order, query: Query) -> None:
    """A fourth of the entries is drawn by itself, so that pairs of entries agree as often as follows from that."""
    task = FunctionComposition(2, 8, (4,), order=order, query=query, distribution="sparse")
    count = 3000
    batch = task.sample(0, "train", 0, count)
    everything = FunctionComposition(2, 8, (4,), order=order, query=query)
    np.testing.assert_array_equal(batch.answers, everything.oracle(batch.prompts))
    parts = task.decode(batch.prompts)
    for function, values in zip(parts.functions, task.values, strict=True):
        agree = (function[:, 0] == function[:, 1]).mean()
        expected = (3 / 4) ** 2 + (1 - (3 / 4) ** 2) / values
        assert abs(agree - expected) < 5 * math.sqrt(expected * (1 - expected) / count)
        # No value is more frequent than another over all functions.
        times = np.bincount(function[:, 0], minlength=values) / count
        assert np.abs(times - 1 / values).max() < 5 * math.sqrt(1 / values / count)
    assert np.bincount(parts.start, minlength=8).min() > 0
    assert task.instances == everything.instances


@pytest.mark.parametrize("distribution", ["permutations", "sparse"])
def test_other_distributions_do_not_depend_on_the_batch(distribution: Distribution) -> None:
    task = FunctionComposition(3, 3, (2, 2), distribution=distribution)
    whole = task.sample(5, "train", 1000, 41).prompts
    parts = [task.sample(5, "train", 1000 + low, min(7, 41 - low)).prompts for low in range(0, 41, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
