"""State collisions: two different pasts after which a stack's bounded layers hold the same, to within rounding.

A layer with a state of fixed size cannot tell such pasts apart whatever comes after them. Three ways to find one:

- *order*: two tokens of the past change places. A sum does not know the order of what was added: in one layer of
  linear attention without positions every permutation of the past leaves the same state.
- *edits*: where writes are added up, and fade at rates that do not depend on the tokens, the state after several edits
  of a past is the state before them plus the sum of what each changes. Two sets of at most two edits each with equal
  sums give two pasts with equal states; with keys that depend on each other (more of them than the key dimension) or
  are written again there are such sets. All sums are laid on a line by a random projection and neighbours compared.
  For other recurrences this holds to first order, and the pasts found are tried.
- *birthday*: random pasts whose states, rounded, are equal; about the square root of the number of states is enough.

Whatever the way, the model is run on both pasts, and what counts is the distance of the states that come out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.falsify.states import ROUNDING, bounded_states, distance, has_bounded_layers, scaled, unbounded_mixers
from hopbound.tasks import stream

MAX_EDITS = 96  # single edits of a past whose sums are compared: 4,656 sets of one or two
PROJECTIONS = 4
NEIGHBOURS = 2  # on the line, that are compared with each sum
BASES = 4  # pasts whose edits are tried
SWAPS = 64


@dataclass(frozen=True)
class Collision:
    """Two pasts that leave the same state.

    Attributes:
        pasts: int64 [2, t], different.
        distance: of the states, relative to their largest elements (see `states.distance`).
        way: `order`, `edits` or `birthday`.
    """

    pasts: NDArray[np.int64]
    distance: float
    way: str


def state_collision(
    decoder: Decoder,
    length: int,
    *,
    seed: int = 0,
    tries: int = 4096,
    tolerance: float = ROUNDING,
    alphabets: Sequence[int] | None = None,
) -> Collision | None:
    """Two different pasts of `length` tokens after which the decoder's state is the same, to within `tolerance`.

    Args:
        decoder: a stack whose layers all keep states of fixed size.
        length: of the pasts, at least 1.
        seed: of the pasts that are tried.
        tries: how many random pasts the birthday search draws.
        tolerance: the largest distance that counts as the same; the default is rounding to bfloat16.
        alphabets: how many values each token of the past can have; None: the whole vocabulary everywhere.

    Returns:
        The first collision found; None if there was none.

    Raises:
        InputError: a layer remembers the whole past, no layer remembers anything, or a number is out of range.
    """
    if names := unbounded_mixers(decoder):
        raise InputError("decoder", " ".join(names), "layers with a state of fixed size only")
    if not has_bounded_layers(decoder):
        raise InputError("decoder", decoder.config.schedule, "at least one layer that keeps a state")
    if not 1 <= length <= decoder.prompt_limit:
        raise InputError("length", length, f"1 to {decoder.prompt_limit} tokens for this model")
    sizes = np.array([decoder.config.vocabulary] * length if alphabets is None else alphabets, dtype=np.int64)
    if sizes.shape != (length,) or sizes.min() < 1 or sizes.max() > decoder.config.vocabulary:
        raise InputError("alphabets", alphabets, f"{length} numbers from 1 to {decoder.config.vocabulary}")
    key = f"state collision {decoder.config.schedule} {sizes.tolist()}"
    pasts = stream.integers(seed, key, "pasts", 0, max(tries, BASES), sizes)
    values = [np.arange(size) for size in sizes]
    for way in ("order", "edits"):
        for base in pasts[:BASES]:
            found = swapped(base) if way == "order" else edited(decoder, base, values, seed)
            for pair in found:
                apart = _apart(decoder, pair)
                if apart <= tolerance and (pair < sizes).all():
                    return Collision(pair, apart, way)
    for pair in birthday(decoder, pasts, tolerance):
        apart = _apart(decoder, pair)
        if apart <= tolerance:
            return Collision(pair, apart, "birthday")
    return None


def _apart(decoder: Decoder, pair: NDArray[np.int64]) -> float:
    return distance(bounded_states(decoder, pair), 0, 1)


def swapped(past: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The past beside itself with two unequal tokens in each other's place, the last ones first."""
    done = 0
    for first, second in combinations(range(len(past) - 1, -1, -1), 2):
        if past[first] != past[second]:
            other = past.copy()
            other[[first, second]] = past[[second, first]]
            yield np.stack([past, other])
            done += 1
        if done >= SWAPS:
            return


def edited(
    decoder: Decoder, past: NDArray[np.int64], values: Sequence[NDArray[np.int64]], seed: int, most: int = 16
) -> Iterator[NDArray[np.int64]]:
    """Pairs of pasts, each the given one with at most two edits, whose states should be closest; closest first.

    Args:
        decoder: the model.
        past: int64 [t].
        values: the values that each token can have.
        seed: of the projections and of the choice of edits where there are too many.
        most: pairs that are given.
    """
    edits = [(place, int(value)) for place, allowed in enumerate(values) for value in allowed if value != past[place]]
    if len(edits) > MAX_EDITS:  # an even choice, the same for the same seed
        order = stream.integers(seed, f"edits {past.tolist()}", "order", 0, 1, np.full(len(edits), 2**32))[0]
        edits = [edits[i] for i in np.sort(np.argsort(order, kind="stable")[:MAX_EDITS])]
    if not edits:
        return
    pasts = np.repeat(past[None], len(edits) + 1, axis=0)
    for row, (place, value) in enumerate(edits, start=1):
        pasts[row, place] = value
    states = scaled(bounded_states(decoder, pasts))
    changes = states[1:] - states[0]
    sets = [(), *((i,) for i in range(len(edits)))]
    sets += [(i, j) for i, j in combinations(range(len(edits)), 2) if edits[i][0] != edits[j][0]]
    for first, second in _closest(changes, sets, seed, most):
        pair = np.repeat(past[None], 2, axis=0)
        for row, chosen in enumerate((first, second)):
            for edit in chosen:
                place, value = edits[edit]
                pair[row, place] = value
        if (pair[0] != pair[1]).any():
            yield pair


def _closest(
    changes: NDArray[np.float64], sets: Sequence[tuple[int, ...]], seed: int, most: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sets of rows of `changes` whose sums are closest, as far as neighbours on a few random lines tell."""
    if not changes.shape[1]:
        return []
    lines = _directions(changes.shape[1], PROJECTIONS, seed)
    members = np.array([(*chosen, *([-1] * (2 - len(chosen)))) for chosen in sets])
    padded = np.concatenate([changes, np.zeros((1, changes.shape[1]))])  # the row -1: no edit
    projected = (padded @ lines)[members].sum(axis=1)
    pairs: set[tuple[int, int]] = set()
    for line in projected.T:
        order = np.argsort(line, kind="stable")
        for step in range(1, NEIGHBOURS + 1):
            gaps = np.abs(line[order[step:]] - line[order[:-step]])
            near = np.argsort(gaps, kind="stable")[: 8 * most]
            pairs.update((int(min(a, b)), int(max(a, b))) for a, b in zip(order[near], order[near + step], strict=True))
    ordered = sorted(pairs)
    if not ordered:
        return []
    left, right = np.array(ordered).T
    sums = padded[members[left]].sum(axis=1) - padded[members[right]].sum(axis=1)
    nearest = np.argsort(np.abs(sums).max(axis=1), kind="stable")[:most]
    return [(sets[left[i]], sets[right[i]]) for i in nearest]


def _directions(dimension: int, count: int, seed: int) -> NDArray[np.float64]:
    """Random directions [dimension, count], of uniform entries in [-1, 1)."""
    drawn = stream.integers(seed, "directions", "state collision", 0, dimension, np.full(count, 2**32))
    return drawn / 2.0**31 - 1


def birthday(decoder: Decoder, pasts: NDArray[np.int64], tolerance: float = ROUNDING) -> Iterator[NDArray[np.int64]]:
    """Pairs of different pasts whose states are equal once rounded to multiples of twice the tolerance."""
    pasts = np.unique(pasts, axis=0)
    states = scaled(bounded_states(decoder, pasts))
    if not states.shape[1]:
        return
    rounded = np.round(states / (2 * tolerance)).astype(np.int64)
    seen: dict[bytes, int] = {}
    for row, code in enumerate(rounded):
        other = seen.setdefault(code.tobytes(), row)
        if other != row:
            yield pasts[[other, row]]
