r"""Words over permutations of k points by reflections, exact at any length.

A permutation is a product of transpositions, a cycle of c points of c - 1 of them,

    (a_1 a_2 .. a_c) = (a_1 a_2) ∘ (a_2 a_3) ∘ .. ∘ (a_{c-1} a_c)        (the last acts first),

so that k - 1 transpositions are enough for any, and one for a swap (arXiv 2411.12537; DeltaProduct, arXiv 2502.10297).
Each is one step of a delta rule with strength 2 and a doubled key (`reflections.py`, where the proof is that nothing is
rounded): step s of a token reflects with k_s = (f_i - f_j)/2, or with a zero key if the token has fewer transpositions.

Let X = Σ_i f_i c(i)ᵀ, c(i) the ±1 digits of point i, and let the last token ask with q = e_{2b}. As f_i · q is 1 for
i = b and else 0, and each reflection takes f_i to its image,

    Xᵀ q = c(b) ,      Xᵀ (R_1 .. R_n q) = c(g_1(g_2(.. g_n(b)))) ,

the second because R_1 .. R_n is the product of the word's permutation matrices in the word's order. The output c(b) -
c(answer) is taken away from the c(b) that stands in the token's row of the table: digits ±1 exactly, margin 2.

Values are v_s = Xᵀ k_s = c(i) - c(j), linear in the column pair that the table holds for the step, e_i - e_j.

*Limits.* None of length. Two coordinates a point: 2 k ≤ head_dim. As many steps a token as a letter has transpositions:
1 for swaps, k - 1 for symmetric and cyclic groups, k - 1 or k - 2 for alternating ones. No short convolution: silu
leaves no negative numbers, and a swap's key has two of them.
"""

import itertools

import numpy as np
import torch
from numpy.typing import NDArray

from hopbound.architecture import Architecture
from hopbound.constructions.assembly import finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.reflections import (
    DOUBLED,
    find_delta_rule,
    key_rows,
    no_negative_eigenvalue,
    too_few_values,
    value_rows,
    write_doubled,
    write_strength,
)
from hopbound.decoder import Decoder, bit_length, signs
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.tasks import PermutationWords

Swap = tuple[int, int]


class WordsByReflections(Construction[PermutationWords]):
    """A reflection for each transposition of a letter."""

    name = "reflections"
    task = PermutationWords
    about = "a delta rule swaps points, each of them two coordinates of its keys"
    source = "hopbound/constructions/permutation_words.py; arXiv 2411.12537, arXiv 2502.10297"
    examples = (
        Example(schedule="delta[heads=1,head_dim=6,value_dim=2,beta=2]", task="permutation_words[points=3,length=6]"),
        Example(
            schedule="deltaproduct[heads=1,head_dim=6,value_dim=2,steps=2,beta=2]",
            task="permutation_words[points=3,length=5,letters=symmetric]",
        ),
        Example(schedule="gdn[heads=2,head_dim=24,value_dim=2,beta=2]", task="permutation_words[points=12,length=40]"),
        Example(schedule="kda[heads=1,head_dim=10,value_dim=3,beta=2]", task="permutation_words[points=5,length=40]"),
        Example(
            schedule="deltaproduct[heads=1,head_dim=10,value_dim=3,steps=4,beta=2]",
            task="permutation_words[points=5,length=100000,letters=symmetric]",
        ),
        Example(
            schedule="deltaproduct[heads=1,head_dim=10,value_dim=3,steps=4,beta=2]",
            task="permutation_words[points=5,length=40,letters=alternating]",
        ),
        Example(
            schedule="deltaproduct[heads=1,head_dim=14,value_dim=3,steps=6,beta=2]",
            task="permutation_words[points=7,length=40,letters=cyclic]",
        ),
        Example(
            schedule="delta[heads=1,head_dim=5,value_dim=2,beta=2]",
            task="permutation_words[points=3,length=6]",
            fits=False,
        ),
        Example(
            schedule="delta[heads=1,head_dim=6,value_dim=1,beta=2]",
            task="permutation_words[points=3,length=6]",
            fits=False,
        ),
        Example(
            schedule="delta[heads=1,head_dim=6,value_dim=2]", task="permutation_words[points=3,length=6]", fits=False
        ),
        Example(
            schedule="deltaproduct[heads=1,head_dim=8,value_dim=2,steps=2,beta=2]",
            task="permutation_words[points=4,length=2,letters=symmetric]",
            fits=False,
        ),
    )

    def fatal_refusal(self, architecture: Architecture, task: PermutationWords) -> str | None:
        """No delta rule, or one behind a convolution."""
        found = find_delta_rule(architecture)
        if found is None:
            return "no layer writes by a delta rule: deltaproduct[beta=2]"
        return f"{found[2].name} stands behind a convolution: conv=0" if found[2].conv else None

    def refusal(self, architecture: Architecture, task: PermutationWords) -> str | None:
        """Also, strengths below 2, too few coordinates, steps or values."""
        fatal, found = self.fatal_refusal(architecture, task), find_delta_rule(architecture)
        if fatal is not None or found is None:
            return fatal
        spec, swaps = found[2], most_transpositions(task.permutations)
        if spec.head_dim < DOUBLED * task.points:
            return f"{task.points} points take {DOUBLED} coordinates each, {spec.name} has head_dim={spec.head_dim}"
        if spec.steps < swaps:
            return f"letters of {swaps} transpositions, {spec.name} has {spec.steps} steps a token: deltaproduct"
        return no_negative_eigenvalue(spec) or too_few_values(spec, bit_length(task.points))

    def write(self, architecture: Architecture, task: PermutationWords, dtype: torch.dtype) -> Built:
        """Letters move, the point asks."""
        found = find_delta_rule(architecture)
        assert found is not None
        layer, place, spec = found
        directions = Directions()
        (one,) = directions.add("one", 1)
        moved = [directions.add(f"moved in step {step + 1}", task.points) for step in range(spec.steps)]
        asked = directions.add("asked point", task.points)
        image = directions.add("image", bit_length(task.points))
        decoder = Decoder.zeros(plain_config(architecture, task, directions, answer=image))
        assert decoder.token_table is not None
        with torch.no_grad():
            table = decoder.token_table.weight
            table[:, one] = 1.0
            for letter, permutation in enumerate(task.permutations):
                for columns, (i, j) in zip(moved, transpositions(permutation), strict=False):
                    table[letter, columns[i]], table[letter, columns[j]] = 1.0, -1.0
            for point in range(task.points):
                row = len(task.permutations) + point
                table[row, asked[point]] = 1.0
                table[row, image.start : image.stop] = torch.tensor(signs(point, len(image)), dtype=table.dtype)
            mixer = decoder.each_block()[layer].each_mixer()[place]
            assert isinstance(mixer, DeltaRecurrence | DeltaProduct)
            _write_mixer(mixer, one, moved, asked, image)
        return finished(decoder, self.name, (f"layer {layer + 1} reflects at every letter",), directions, dtype)


def _write_mixer(
    mixer: DeltaRecurrence | DeltaProduct, one: int, moved: list[range], asked: range, image: range
) -> None:
    """Keys f_i - f_j, values c(i) - c(j), the query e_{2b}; what is read is taken away from "image"."""
    spec = mixer.spec
    write_strength(mixer, one)
    for step, columns in enumerate(moved):
        write_doubled(mixer.key.weight, key_rows(mixer, step), columns, spec.head_dim)
        for digit, row in zip(range(len(image)), value_rows(mixer, step), strict=False):
            for point, column in enumerate(columns):
                mixer.value.weight[row, column] = float(signs(point, len(image))[digit])
    for head in range(spec.key_heads):
        for point, column in enumerate(asked):
            mixer.query.weight[head * spec.head_dim + DOUBLED * point % spec.head_dim, column] = 1.0
    for channel, column in zip(range(spec.heads * spec.value_dim), image, strict=False):
        mixer.out.weight[column, channel] = -1.0


def transpositions(permutation: NDArray[np.int64]) -> list[Swap]:
    """A permutation as a product of transpositions, as few as there are; the last acts first."""
    swaps: list[Swap] = []
    seen: set[int] = set()
    for start in range(len(permutation)):
        if start in seen:
            continue
        cycle = [start]
        while (following := int(permutation[cycle[-1]])) != start:
            cycle.append(following)
        seen.update(cycle)
        swaps += itertools.pairwise(cycle)
    return swaps


def most_transpositions(permutations: NDArray[np.int64]) -> int:
    """How many transpositions a letter has at most."""
    return max(len(transpositions(permutation)) for permutation in permutations)
