"""Designs: the hardest sizes against all sizes, the search against all schedules, the sentences against the claims."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbound.architecture import Architecture, Defaults, Kind, Layer, Precisions, parse_layers, parse_schedule
from hopbound.claims import Move, TaskSizes, best_plan, obstacle
from hopbound.cli.main import run_with
from hopbound.design import (
    Hardest,
    Situations,
    count_orders,
    design,
    hardest,
    held,
    limit,
    makes_hops,
    minimal_counts,
    most_hops,
    orders,
    shortest_prompt,
)
from hopbound.errors import InputError

# Small heads and states of unlike sizes, so that short prompts meet every obstacle.
MENUS = [
    "linear[head_dim=3] conv[channels=2,kernel=2] full[head_dim=5,value_dim=3]",
    "delta[head_dim=4,value_dim=2] window[w=2,head_dim=2] full[head_dim=4] full[head_dim=6,value_dim=2]",
    "gdn[head_dim=2,value_dim=3] full[head_dim=5,value_dim=4] full|gdn[head_dim=8] mamba2",
    "linear[head_dim=3] full[head_dim=9] mlp",
]


def menu(text: str) -> tuple[Layer, ...]:
    return parse_layers(text, Defaults(head_dim=8))


def stack(layers: tuple[Layer, ...]) -> Architecture:
    return Architecture(layers, Precisions())


@cache
def all_sizes(hops: int, context: int) -> tuple[TaskSizes, ...]:
    """Every choice of sizes whose prompt has at most so many tokens, by the definition of the task."""

    def rest(room: int, pairs: int) -> Iterator[tuple[tuple[int, int], ...]]:
        if not pairs:
            yield ()
            return
        for M in range(2, room + 1):
            for n in range(1, room // M + 1):
                for others in rest(room - n * M, pairs - 1):
                    yield ((M, n), *others)

    found = []
    for m in range(2, context - 1):
        for pairs in rest(context - 2 - m, hops - 1):
            domains = (m, *(M * n for M, n in pairs))
            found.append(TaskSizes(domains, (*(M for M, _ in pairs), domains[-1]), tuple(n for _, n in pairs)))
    return tuple(found)


def makes_all(architecture: Architecture, hops: int, context: int) -> bool:
    sizes = all_sizes(hops, context)
    return bool(sizes) and all(best_plan(architecture, hops, one).hops == hops for one in sizes)


# The hardest sizes


@pytest.mark.parametrize(
    ("hops", "context", "number"),
    [(1, 3, 0), (1, 4, 1), (1, 9, 6), (2, 5, 0), (2, 6, 1), (2, 8, 7), (3, 7, 0), (3, 8, 1)],
)
def test_all_sizes(hops: int, context: int, number: int) -> None:
    """m alone; with a pair (M, n) and m + M n <= 6: 2 + (2, 3, 4 or 2 * 2), 3 + (2 or 3), 4 + 2."""
    assert len(all_sizes(hops, context)) == number
    assert all(sum(sizes.domains) + 2 <= context for sizes in all_sizes(hops, context))


MOVES = tuple(move for move in Move if move.is_common)  # designs do without the others
CONTEXTS = {1: (3, 4, 5, 6, 7, 11, 18, 19, 20, 35), 2: (5, 6, 7, 8, 9, 12, 14, 20, 26), 3: (7, 8, 9, 12, 15, 18)}


@pytest.mark.parametrize("hops", CONTEXTS)
@pytest.mark.parametrize("text", MENUS)
def test_what_the_hardest_sizes_refuse_is_the_most_that_any_sizes_refuse(text: str, hops: int) -> None:
    mixers = frozenset(mixer for layer in menu(text) for mixer in layer.mixers)
    moves = [(move, hop) for hop in range(hops + 1) for move in MOVES if (move is Move.LOOK_UP) <= (hop > 0)]
    moves = [
        (move, hop)
        for move, hop in moves
        if hop < 2 or move is Move.LOOK_UP
        if hop == 1 or move not in (Move.RECALL, Move.LOOK_AHEAD)
    ]
    for context in CONTEXTS[hops]:
        sets = {
            frozenset(
                (mixer, move, hop) for mixer in mixers for move, hop in moves if obstacle(mixer, move, hop, sizes)
            )
            for sizes in all_sizes(hops, context)
        }
        hard = hardest(mixers, hops).at(context)
        assert {one.refused for one in hard} == {one for one in sets if not any(one < other for other in sets)}
        assert all(one.sizes in all_sizes(hops, context) and one.prompt_length <= context for one in hard)


@st.composite
def sizes(draw: st.DrawFn) -> TaskSizes:
    hops = draw(st.integers(1, 4))
    number = st.one_of(st.integers(1, 40), st.integers(1, 2**22))
    m = 1 + draw(number)
    values = [1 + draw(number) for _ in range(hops - 1)]
    n = [draw(number) for _ in range(hops - 1)]
    domains = [m, *(M * fan for M, fan in zip(values, n, strict=True))]
    return TaskSizes(tuple(domains), (*values, domains[-1]), tuple(n))


def with_pairs(m: int, pairs: list[tuple[int, int]]) -> TaskSizes:
    domains = (m, *(M * n for M, n in pairs))
    return TaskSizes(domains, (*(M for M, _ in pairs), domains[-1]), tuple(n for _, n in pairs))


REFUSING = [
    mixer
    for text in (
        "linear delta gdn conv window full mamba2 retnet topk[k=2] mla",
        "full[kv_heads=2,heads=4] conv[channels=19]",
    )
    for head_dim in (2, 7, 24)
    for layer in parse_layers(text, Defaults(head_dim=head_dim))
    for mixer in layer.mixers
]


@given(sizes(), st.data())
def test_the_three_facts_about_obstacles(task: TaskSizes, data: st.DataObject) -> None:
    """Monotone, apart, and for pairs by bits: for any sizes, mixer and move."""
    mixer = data.draw(st.sampled_from(REFUSING))
    hop = data.draw(st.integers(0, task.hops))
    moves = {0: (Move.FETCH, Move.CARRY), 1: MOVES}.get(hop, (Move.LOOK_UP,))
    move = data.draw(st.sampled_from(moves))

    def refused(one: TaskSizes) -> bool:
        return obstacle(mixer, move, hop, one) is not None

    m, pairs = task.domains[0], list(zip(task.values[:-1], task.n, strict=True))
    larger = with_pairs(m + data.draw(st.integers(0, 3)), [(M + 1, n + 1) for M, n in pairs])
    assert refused(task) <= refused(larger)

    smallest = [(2, 1)] * len(pairs)
    apart = [with_pairs(m, smallest)]
    apart += [with_pairs(2, [*smallest[:i], pair, *smallest[i + 1 :]]) for i, pair in enumerate(pairs)]
    assert refused(task) == any(refused(one) for one in apart)

    for i, (M, n) in enumerate(pairs):
        # Any pair with the same bits, and for the last one the same bits of the product.
        like = [
            (other_M, other_n)
            for other_M in {M, 2 ** ((M - 1).bit_length() - 1) + 1, 2 ** (M - 1).bit_length()}
            for other_n in {n, (2 ** ((n - 1).bit_length() - 1) if n > 1 else 0) + 1, 2 ** (n - 1).bit_length()}
            if i < len(pairs) - 1 or (other_M * other_n - 1).bit_length() == (M * n - 1).bit_length()
        ]
        for other in like:
            assert refused(
                with_pairs(2, [*smallest[:i], (int(other[0]), int(other[1])), *smallest[i + 1 :]])
            ) == refused(apart[i + 1])


@pytest.mark.parametrize("text", MENUS)
def test_a_stack_makes_the_hops_exactly_if_it_does_at_every_choice_of_sizes(text: str) -> None:
    stacks = [stack(layers) for depth in (1, 2, 3) for layers in product(menu(text), repeat=depth)]
    stacks += [stack(parse_layers(line, Defaults(head_dim=8))) for line in ("2*linear[head_dim=3] full[head_dim=9]",)]
    for architecture in stacks:
        for hops, contexts in {1: (3, 4, 5, 7, 9, 20), 2: (5, 6, 8, 11), 3: (8, 9)}.items():
            for context in contexts:
                expected = makes_all(architecture, hops, context)
                assert makes_hops(architecture, hops, context) == expected, (str(architecture), hops, context)


@pytest.mark.parametrize(
    ("schedule", "hops"),
    [
        ("2*linear[head_dim=5]", 1),
        ("2*linear[head_dim=5] full", 2),
        ("conv[channels=3] full", 1),
        ("window[w=3,head_dim=3] 2*full[head_dim=5]", 2),
        ("linear full[head_dim=6] full[head_dim=5,value_dim=9]", 2),
        ("3*full[head_dim=5]", 2),
        ("linear[head_dim=3] delta[head_dim=4] 2*full[head_dim=5]", 3),
        ("full", 1),
    ],
)
def test_the_limit_is_the_last_length_at_which_all_sizes_work(schedule: str, hops: int) -> None:
    architecture = parse_schedule(schedule, Defaults(head_dim=8))
    found = limit(architecture, hops)
    assert found is not None
    first = next(context for context in range(shortest_prompt(hops), 40) if not makes_all(architecture, hops, context))
    assert found.context == (first - 1 if first > shortest_prompt(hops) else 0)
    assert sum(found.sizes.domains) + 2 == first
    assert best_plan(architecture, hops, found.sizes).hops < hops
    assert found.reason


def test_the_last_product_counts_exactly() -> None:
    """Where a value channel is wanting for the last product alone, the least product with so many bits is the limit."""
    for room in range(2, 9):
        architecture = parse_schedule(f"conv 1*full full[value_dim={room}]", Defaults(head_dim=40))
        found = limit(architecture, 2)
        assert found is not None
        assert found.context == 2**room + 1 + 2 + 2 - 1  # D_2 = 2^room + 1 = M_1 with n_1 = 1, m = 2


def test_no_limit_within_what_is_asked_for() -> None:
    assert limit(parse_schedule("conv 2*full", Defaults(head_dim=64)), 2) is None


# The search


def brute_force(text: str, hops: int, context: int, depth: int) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """All minimal multisets of layers with all their working orders, from all schedules up to a depth."""
    chosen = menu(text)
    working: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for length in range(1, depth + 1):
        for order in product(range(len(chosen)), repeat=length):
            if makes_all(stack(tuple(chosen[i] for i in order)), hops, context):
                counts = tuple(order.count(i) for i in range(len(chosen)))
                working.setdefault(counts, set()).add(order)

    def smaller(counts: tuple[int, ...]) -> bool:
        return any(other != counts and all(a <= b for a, b in zip(other, counts, strict=True)) for other in working)

    return {counts: found for counts, found in working.items() if not smaller(counts)}


def compare_with_brute_force(text: str, hops: int, context: int, depth: int) -> int:
    expected = brute_force(text, hops, context, depth)
    chosen = menu(text)
    mixers = frozenset(mixer for layer in chosen for mixer in layer.mixers)
    situations = Situations(hops, hardest(mixers, hops).at(context))
    found = {one.counts: one.order for one in minimal_counts(chosen, situations, deepest=depth)}
    assert set(found) == set(expected)
    for counts, order in found.items():
        assert order in expected[counts]
        total = sum(1 for _ in orders(counts))
        assert count_orders(chosen, counts, situations) == (len(expected[counts]), total)
    return len(found)


@pytest.mark.parametrize("text", MENUS)
@pytest.mark.parametrize(("hops", "context"), [(1, 4), (1, 6), (1, 8), (2, 6), (2, 7), (2, 9), (3, 8)])
def test_the_search_finds_what_all_schedules_of_four_layers_show(text: str, hops: int, context: int) -> None:
    compare_with_brute_force(text, hops, context, 4)


@pytest.mark.slow
@pytest.mark.parametrize("text", MENUS)
@pytest.mark.parametrize(("hops", "context"), [(1, 12), (2, 8), (2, 10), (3, 9), (4, 10), (4, 11)])
def test_the_search_finds_what_all_schedules_of_five_layers_show(text: str, hops: int, context: int) -> None:
    compare_with_brute_force(text, hops, context, 5)


def test_brute_force_is_not_about_nothing() -> None:
    assert compare_with_brute_force(MENUS[0], 2, 7, 4) > 1


def test_sizes_may_ask_for_different_plans() -> None:
    """A small table is recalled where the address of `z_1` is too wide for the second full layer, and so on."""
    architecture = stack(parse_layers("2*linear[head_dim=4,value_dim=9] full[head_dim=6,value_dim=9] full[head_dim=4]"))
    for context in range(6, 14):
        assert makes_hops(architecture, 2, context) == makes_all(architecture, 2, context)


@pytest.mark.parametrize("text", MENUS[:2])
@pytest.mark.parametrize(("hops", "context"), [(1, 6), (2, 7)])
def test_the_cheapest_are_the_cheapest_of_all_schedules(text: str, hops: int, context: int) -> None:
    chosen = menu(text)
    points: dict[tuple[int, ...], tuple[float, ...]] = {}
    for length in range(1, 5):
        for order in product(range(len(chosen)), repeat=length):
            layers = tuple(chosen[i] for i in order)
            if makes_all(stack(layers), hops, context):
                cost = held(layers, Precisions(), context)
                key = tuple(order.count(i) for i in range(len(chosen)))
                points[key] = (float(cost.kv_bits), cost.state_bits, length)
    front = {
        key
        for key, point in points.items()
        if not any(o != point and all(a <= b for a, b in zip(o, point, strict=True)) for o in points.values())
    }
    result = design(hops, context, chosen)
    found = {tuple(one.architecture.layers.count(layer) for layer in chosen) for one in result.designs if one.cheapest}
    assert found == front
    assert result.designs[0].held.bytes == min(
        held(stack_of(key, chosen), Precisions(), context).bytes for key in front
    )


def stack_of(counts: tuple[int, ...], chosen: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return tuple(layer for layer, count in zip(chosen, counts, strict=True) for _ in range(count))


def test_the_search_goes_on_to_many_hops() -> None:
    found = design(8, 2**17, parse_layers("full gdn conv window"), limit_to=1)
    assert found.designs[0].architecture.label == "conv 8*full"
    assert found.found == 4  # with each bounded mixer eight full layers, or nine alone


# Costs


@pytest.mark.parametrize(
    ("schedule", "context", "kv", "state"),
    [
        ("full[heads=2,kv_heads=1,head_dim=8]", 1000, 1 * 16 * 2 * 1000, 0),
        ("window[w=5,head_dim=8]", 1000, 16 * 2 * 4, 0),
        ("window[w=5,head_dim=8]", 3, 16 * 2 * 3, 0),
        ("linear[head_dim=8]", 1000, 0, (64 + 8) * 4),
        ("conv[channels=10,kernel=4]", 1000, 0, 30 * 2),
        ("conv[channels=10,kernel=4] 2*full[head_dim=4] gdn[head_dim=4]", 100, 2 * 8 * 2 * 100, 60 + 64),
        ("longformer[head_dim=8,w=5,global_tokens=2]", 1000, 16 * 2 * 6, 0),
        ("longformer[head_dim=8,w=5,global_tokens=2]", 4, 16 * 2 * 4, 0),
    ],
)
def test_bytes(schedule: str, context: int, kv: int, state: int) -> None:
    cost = held(parse_layers(schedule), Precisions(), context)
    assert (cost.kv_bytes, cost.state_bytes, cost.bytes) == (kv, state, kv + state)


def test_bytes_of_single_bits_are_rounded_up() -> None:
    cost = held(parse_layers("conv[channels=3,kernel=2] full[head_dim=1]"), Precisions.uniform(1), 5)
    assert (cost.kv_bytes, cost.state_bytes) == (2, 1)


# What is said


@cache
def example() -> dict:
    out: list[str] = []
    return json.loads(run(["design", "--hops", "3", "--context", "131072", "--json"], out))


def run(line: list[str], out: list[str]) -> str:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert run_with(line) == 0
    out.append(shown.getvalue())
    return out[-1]


def test_three_full_layers_and_one_small_bounded_layer_are_the_cheapest_for_three_hops() -> None:
    designs = example()["designs"]
    assert designs[0]["label"] == "conv 3*full"
    front = [one for one in designs if one["cheapest"]]
    assert len(front) >= 2
    for one in front:
        kinds = Counter(layer["kind"] for layer in one["stack"])
        assert kinds == {"full": 3, "bounded": 1}
        assert (one["construction"], one["hops"]) == ("C2", 3)
    assert {one["label"] for one in designs} >= {"4*full", "gdn 3*full"}
    costs = [one["bytes"] for one in designs]
    assert costs == sorted(costs)


def test_the_sentences_agree_with_the_claims() -> None:
    """The stacks that a sentence names are asked about again, at the context, by the claims."""
    for one in example()["designs"]:
        architecture = parse_schedule(one["schedule"])
        assert most_hops(architecture, 131072) == one["hops"] == 3
        placement = one["placement"]
        assert placement["working"] == len(placement["same"])
        assert placement["orders"] == len(placement["same"]) + len(placement["fewer"])
        assert one["label"] in placement["same"]
        for label in placement["same"]:
            assert makes_hops(parse_schedule(label), 3, 131072)
        for other in placement["fewer"]:
            assert most_hops(parse_schedule(other["label"]), 131072) == other["hops"] < 3
        text = "\n".join(one["why"])
        for place, layer in enumerate(one["stack"], start=1):
            assert f"layer {place} ({layer['name']})" in text
        assert [layer["move"] for layer in one["stack"]][1:] == ["look up i_1", "look up i_2", "look up i_3"]
        if "conv" in one["label"]:
            assert "conv may stand anywhere before full layer 2; behind that one the stack makes 2 hops" in text
            assert re.search(
                r"one more layer of .*conv.*, changes nothing: none of the \d+ stacks reaches 4 hops", text
            )
        architecture = parse_schedule(one["schedule"])
        assert limit(architecture, 3) is not None
        assert one["limit"]["context"] == limit(architecture, 3).context  # type: ignore[union-attr]


def test_one_full_layer_fewer_is_enough_while_a_state_holds_the_table() -> None:
    fewer = example()["fewer_full"]
    assert fewer["full_layers"] == 2
    largest = fewer["largest_context"]
    architecture = parse_schedule(fewer["schedule"])
    assert len(architecture.full_layers) == 2
    assert makes_hops(architecture, 3, largest)
    assert not makes_hops(architecture, 3, largest + 1)
    assert sum(fewer["limit"]["sizes"]["domains"]) + 2 == largest + 1
    two = design(3, largest, parse_layers("full window linear gdn conv"), limit_to=1)
    assert (two.designs[0].construction, len(two.designs[0].architecture.full_layers)) == ("C3", 2)


def test_a_state_counts_only_if_it_holds_the_largest_table_that_fits() -> None:
    for context, schedule in ((28, "2*gdn full"), (29, "gdn 2*full")):
        found = design(2, context, parse_layers("gdn full"))
        by_full = min(found.designs, key=lambda one: len(one.architecture.full_layers))
        assert by_full.architecture.label == schedule


def test_exact_depth() -> None:
    chosen = parse_layers("full gdn conv")
    found = design(2, 4096, chosen, layers=10)
    for one in found.designs:
        assert len(one.architecture.layers) == 10
        assert one.hops >= 2
        assert makes_hops(one.architecture, 2, 4096)
        assert Counter(layer.mixers[0].name for layer in one.architecture.layers)["conv"] >= one.idle > 0
    assert found.designs[0].architecture.full_layers == (5, 8)
    deep = design(2, 4096, chosen, layers=40, limit_to=1).designs[0]
    assert deep.placement.working < deep.placement.orders
    assert deep.placement.same == ()
    with pytest.raises(InputError, match="layers: got 2, expected at least 3"):
        design(2, 4096, chosen, layers=2)


def test_a_full_filler_does_not_stand_before_a_recall() -> None:
    """At short prompts a full layer holds less than a state."""
    found = design(2, 8, parse_layers("linear[head_dim=16] full[head_dim=6,value_dim=3]"), layers=5)
    assert found.designs
    for one in found.designs:
        assert makes_all(one.architecture, 2, 8)


def test_budget() -> None:
    chosen = parse_layers("full gdn conv")
    free = design(2, 4096, chosen)
    costs = [one.held.bytes for one in free.designs]
    assert len(set(costs)) == len(costs) == 3
    for number, cost in enumerate(costs, start=1):
        assert [one.held.bytes for one in design(2, 4096, chosen, budget=cost).designs] == costs[:number]
    with pytest.raises(InputError, match=f"budget: .*at least {costs[0]:,} bytes"):
        design(2, 4096, chosen, budget=costs[0] - 1)


def test_what_cannot_be_done_says_what_can() -> None:
    with pytest.raises(
        InputError, match=r"mixers: got 'gdn', expected .*prompts of at most 26 tokens: there '2.gdn' makes 1 hop"
    ):
        design(1, 4096, parse_layers("gdn"))
    with pytest.raises(InputError, match="mixers: got 'gdn', expected at most 1 hop of them at 20 tokens"):
        design(2, 20, parse_layers("gdn"))
    with pytest.raises(InputError, match="expected at most 0 hops of them"):
        design(2, 20, parse_layers("mlp"))


@pytest.mark.parametrize(
    ("hops", "context", "text", "field"),
    [
        (0, 99, "full", "hops"),
        (17, 99, "full", "hops"),
        (3, 7, "full", "context"),
        (1, 2**41, "full", "context"),
        (True, 99, "full", "hops"),
    ],
)
def test_questions_out_of_range(hops: int, context: int, text: str, field: str) -> None:
    with pytest.raises(InputError, match=field):
        design(hops, context, parse_layers(text))


def test_too_many_mixers() -> None:
    text = " ".join(f"conv[channels={k}]" for k in range(1, 14))
    with pytest.raises(InputError, match="mixers: got 13"):
        design(1, 9, parse_layers(text))


# The command


@pytest.mark.parametrize(
    "line",
    [
        ["--hops", "1", "--context", "64"],
        ["--hops", "2", "--context", "24", "--mixers", "full gdn linear", "--limit", "3"],
        ["--hops", "3", "--context", "30", "--limit", "2"],
    ],
)
def test_every_design_is_confirmed_by_build(line: list[str]) -> None:
    result = json.loads(run(["design", *line, "--confirm", "--json"], []))
    assert result["designs"]
    for one in result["designs"]:
        built = one["confirmed"]
        assert built["verdict"] == "possible"
        assert built["accuracy"] == 1.0
        assert built["smallest_margin"] > 1
        assert built["construction"] == one["construction"]
        assert built["prompt_length"] <= result["context"]


def test_the_command_writes_what_it_says(tmp_path: Path) -> None:
    line = ["design", "--hops", "2", "--context", "4096", "--budget", "256/token", "--out", str(tmp_path)]
    shown = run(line, [])
    assert {path.name for path in tmp_path.iterdir()} == {"design.json", "design.svg"}
    written = json.loads((tmp_path / "design.json").read_text(encoding="utf-8"))
    assert written == json.loads(run([*line, "--json"], []))
    picture = (tmp_path / "design.svg").read_text(encoding="utf-8")
    for one in written["designs"]:
        assert one["cost"] <= 256
        assert one["label"] in shown
        assert one["label"] in re.sub(r"\s+", " ", picture.replace("\u00a0", " "))
    assert "carry i_0" in picture


@pytest.mark.parametrize("budget", ["96144", "96144B", "96.144kB", "93.890625KiB", "0.096144 MB", "96.144/token"])
def test_a_budget_is_read_in_every_unit(budget: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One full layer and a convolution of three columns of 24 channels: 2 * 24 * 2 * 1000 + 3 * 24 * 2 bytes."""
    line = ["design", "--hops", "1", "--context", "1000", "--mixers", "full conv", "--budget", budget, "--json"]
    (one,) = json.loads(run(line, []))["designs"]
    assert one["bytes"] == 96_144
    less = [
        *line[:-2],
        budget.replace("96144", "96143").replace("96.144", "96.143").replace("93.89", "93.88"),
        "--json",
    ]
    assert run_with(less) == 2
    assert "budget: got" in capsys.readouterr().err


def test_kinds_are_those_of_the_layers() -> None:
    for one in example()["designs"]:
        layers = parse_schedule(one["schedule"]).layers
        assert [layer["kind"] == "full" for layer in one["stack"]] == [Kind.FULL in layer.kinds for layer in layers]
        assert one["full_layers"] == sum(Kind.FULL in layer.kinds for layer in layers)


def test_the_hardest_sizes_of_no_prompts_are_none() -> None:
    mixers = frozenset(mixer for layer in menu(MENUS[0]) for mixer in layer.mixers)
    assert Hardest(mixers, 2).at(5) == ()
