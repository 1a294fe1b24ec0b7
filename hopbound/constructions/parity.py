r"""Parity by one layer of a delta rule with strengths up to 2, exact at any length.

One coordinate of the state: at a token 1 the key is e_0, the value 1 and the strength 2, at a token 0 the key is zero:

    S ← S - 2 (S - 1) = 2 - S     at a 1,          S ← S     at a 0

From S = 0 the state is 0 after an even number of ones and 2 after an odd one; both are numbers of every floating-point
type, and so are all intermediate ones (in chunks the entries of the triangular inverse are 0, ±2), so that nothing is
rounded, however long the word. Strength 2 is 2 · sigmoid(512), whose sigmoid is exactly 1. This is the reflection of
arXiv 2411.12537 about the point 1, the case k = 2 of `permutation_words.py` with one coordinate in place of four.

The digit that is read is S - 1, ±1: the margin is 2.

Behind a short convolution, whose only tap is the token itself, the numbers are 32, which silu leaves alone: the key is
32 e_0, normalised e_0; the state is 0 or 64.

*Limits.* None of length. The delta rule must reach the eigenvalue -1, beta = 2: with strengths in (0, 1) no weights of
any fixed depth recognise parity at every length (arXiv 2411.12537, Theorem 1).
"""

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.assembly import finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.memory import LARGE
from hopbound.constructions.reflections import (
    find_delta_rule,
    key_rows,
    no_negative_eigenvalue,
    value_rows,
    write_strength,
)
from hopbound.decoder import Decoder
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.tasks import Parity


class ParityByReflection(Construction[Parity]):
    """One reflection for each 1."""

    name = "reflection"
    task = Parity
    about = "a delta rule reflects one coordinate of its state at every 1"
    source = "hopbound/constructions/parity.py; arXiv 2411.12537"
    examples = (
        Example(schedule="delta[heads=1,head_dim=1,beta=2]", task="parity[length=12]"),
        Example(schedule="gdn[heads=2,head_dim=3,conv=4,beta=2]", task="parity[length=50]"),
        Example(schedule="kda[heads=1,head_dim=2,beta=2]", task="parity[length=50]"),
        Example(schedule="deltaproduct[heads=1,head_dim=1,steps=2,beta=2]", task="parity[length=50]"),
        Example(schedule="gdn[heads=1,head_dim=1,beta=2]", task="parity[length=1000000]"),
        Example(schedule="gdn[heads=1,head_dim=1]", task="parity[length=12]", fits=False),
    )

    def fatal_refusal(self, architecture: Architecture, task: Parity) -> str | None:
        """No delta rule."""
        return None if find_delta_rule(architecture) else "no layer writes by a delta rule: gdn[beta=2]"

    def refusal(self, architecture: Architecture, task: Parity) -> str | None:
        """Also, a delta rule without the eigenvalue -1."""
        found = find_delta_rule(architecture)
        return self.fatal_refusal(architecture, task) if found is None else no_negative_eigenvalue(found[2])

    def write(self, architecture: Architecture, task: Parity, dtype: torch.dtype) -> Built:
        """The token's row of the table says whether it is a 1; -1 waits in "parity" for what is read."""
        found = find_delta_rule(architecture)
        assert found is not None
        layer, place, _ = found
        directions = Directions()
        (one,), (bit,), (parity,) = (directions.add(name, 1) for name in ("one", "bit", "parity"))
        decoder = Decoder.zeros(plain_config(architecture, task, directions, answer=directions["parity"]))
        assert decoder.token_table is not None
        with torch.no_grad():
            decoder.token_table.weight[:, one] = 1.0
            decoder.token_table.weight[:, parity] = -1.0
            decoder.token_table.weight[1, bit] = 1.0
            mixer = decoder.each_block()[layer].each_mixer()[place]
            assert isinstance(mixer, DeltaRecurrence | DeltaProduct)
            write_parity(mixer, one=one, bit=bit, parity=parity)
        return finished(decoder, self.name, (f"layer {layer + 1} reflects at every 1",), directions, dtype)


def write_parity(mixer: DeltaRecurrence | DeltaProduct, *, one: int, bit: int, parity: int) -> None:
    """Let a zeroed delta rule add 2 to `parity` where the number of tokens with `bit` = 1 so far is odd.

    Args:
        mixer: with all weights zero.
        one: the column that is 1 at every token.
        bit: the column that is 1 or 0.
        parity: the column that is written.
    """
    factor = 1.0
    if mixer.short is not None:
        mixer.short.filter[0] = 1.0
        factor = LARGE
    write_strength(mixer, one)
    for row in key_rows(mixer):
        mixer.key.weight[row, bit] = factor
    for head in range(mixer.spec.key_heads):
        mixer.query.weight[head * mixer.spec.head_dim, one] = factor
    mixer.value.weight[value_rows(mixer)[0], bit] = factor
    mixer.out.weight[parity, 0] = 1.0 / factor
