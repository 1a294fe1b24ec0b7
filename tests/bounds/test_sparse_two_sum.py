"""Block codes and 2-Sum: the proof run at toy size, on every input, and codes that suffice are never ruled out."""

import random
from collections.abc import Callable
from itertools import combinations, combinations_with_replacement, product
from math import comb

import pytest

from hopbound.architecture import Precisions, parse_schedule
from hopbound.bounds.ceiling import Ceiling, Question
from hopbound.bounds.sparse_two_sum import ceiling, code_bits_needed, shortest_prompt
from hopbound.errors import InputError

Content = tuple[int, ...]
Codes = list[dict[Content, int]]  # of each block: the code of each of its contents


def right_answer(prompt: Content, modulus: int) -> bool:
    return any((x + prompt[-1]) % modulus == 0 for x in prompt)


def fooling_pair(
    codes: Codes, modulus: int, block: int, select: Callable[[list[int], int], set[int]]
) -> tuple[Content, Content]:
    """The two prompts of the proof: alike in all codes and in what is selected, with different right answers."""
    found: dict[int, dict[int, tuple[Content, Content]]] = {}
    for g, code in enumerate(codes):
        for v in range(modulus):
            if 2 * v % modulus == 0:
                continue
            with_v = {code[c]: c for c in code if v in c}
            pair = next(((c, with_v[code[c]]) for c in code if v not in c and code[c] in with_v), None)
            if pair is not None:
                found.setdefault(v, {})[g] = pair
    v, unresolved = max(found.items(), key=lambda item: len(item[1]))
    filler = next(other for other in range(modulus) if other != v)
    blocks = [unresolved[g][0] if g in unresolved else (filler,) * block for g in range(len(codes))]
    seen = select([code[content] for code, content in zip(codes, blocks, strict=True)], -v % modulus)
    hidden = next(g for g in unresolved if g not in seen)
    swapped = [*blocks[:hidden], unresolved[hidden][1], *blocks[hidden + 1 :]]
    one, other = ((*(x for content in chosen for x in content), -v % modulus) for chosen in (blocks, swapped))
    return one, other


@pytest.mark.parametrize(
    ("modulus", "block", "bits", "k"), [(6, 1, 1, 1), (7, 2, 2, 1), (8, 2, 2, 2), (10, 3, 3, 1), (9, 1, 2, 3)]
)
def test_with_too_short_codes_the_proof_finds_two_prompts(modulus: int, block: int, bits: int, k: int) -> None:
    assert bits < code_bits_needed(modulus, block)
    length = shortest_prompt(block, k)
    G = (length - 1) // block
    assert 2 * k < G
    for seed in range(20):
        rng = random.Random(seed)
        contents = list(product(range(modulus), repeat=block))
        codes: Codes = [{content: rng.randrange(2**bits) for content in contents} for _ in range(G)]

        def select(told: list[int], query: int, seed: int = seed) -> set[int]:
            return set(random.Random(f"{seed} {told} {query}").sample(range(len(told)), k))

        one, other = fooling_pair(codes, modulus, block, select)
        assert len(one) == len(other) == length
        assert right_answer(one, modulus) != right_answer(other, modulus)
        told = [[code[p[g * block : (g + 1) * block]] for g, code in enumerate(codes)] for p in (one, other)]
        assert told[0] == told[1]
        assert one[-1] == other[-1]
        seen = select(told[0], one[-1])
        assert all(one[g * block : (g + 1) * block] == other[g * block : (g + 1) * block] for g in seen)


@pytest.mark.parametrize(("modulus", "block"), [(2, 1), (3, 1), (4, 2), (6, 3), (8, 4), (9, 2)])
def test_a_code_that_tells_the_set_of_values_suffices_and_is_never_ruled_out(modulus: int, block: int) -> None:
    sets = sum(comb(modulus, size) for size in range(1, block + 1))
    assert (sets - 1).bit_length() >= code_bits_needed(modulus, block)


@pytest.mark.parametrize("modulus", range(2, 9))
@pytest.mark.parametrize("block", range(1, 5))
def test_the_bits_needed_are_those_of_the_sets_counted_one_by_one(modulus: int, block: int) -> None:
    sets = list(combinations(range((modulus + 1) // 2), block))
    needed = code_bits_needed(modulus, block)
    assert 2**needed >= len(sets)
    assert needed == 0 or 2 ** (needed - 1) < len(sets)


def test_no_code_of_one_block_resolves_half_of_the_values_with_too_few_bits() -> None:
    """The counting step, over every code there is: M = 5, B = 1, c = 1 and M = 6, B = 1, c = 1."""
    for modulus in (5, 6):
        assert code_bits_needed(modulus, 1) == 2
        for code in product(range(2), repeat=modulus):
            unresolved = [v for v in range(modulus) if any(code[u] == code[v] for u in range(modulus) if u != v)]
            assert len(unresolved) > modulus / 2
    contents = list(combinations_with_replacement(range(3), 2))
    assert len(contents) == 6


def test_stacks() -> None:
    narrow = parse_schedule("moba[heads=1,head_dim=1,k=2,block=8]", precisions=Precisions.uniform(4))
    found = ceiling(narrow, Question(64))
    assert isinstance(found, Ceiling)
    assert found.numbers == {"code_bits": 4, "code_bits_needed": 24, "impossible_from": 25}
    wide = ceiling(parse_schedule("moba[heads=1,head_dim=8,k=2,block=8]"), Question(64))
    assert isinstance(wide, Ceiling)
    assert "impossible_from" not in wide.numbers
    for other in ("full", "2*moba[k=2,block=8]", "conv moba[k=2,block=8]"):
        assert not isinstance(ceiling(parse_schedule(other), Question()), Ceiling)


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="values"):
        code_bits_needed(1, 1)
    with pytest.raises(InputError, match="block"):
        code_bits_needed(4, 0)
    with pytest.raises(InputError, match="selected"):
        shortest_prompt(4, -1)
