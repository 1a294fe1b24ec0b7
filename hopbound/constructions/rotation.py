r"""Words over shifts of k points by rotations of the plane: two reflections a token, and a drift that is bounded.

The shifts of k points are the rotations of a regular polygon. A rotation by θ is the product of two reflections, with
normals at the angles θ/2 and 0: two steps of a delta rule a token, whatever k, and a state of two coordinates, where
`permutation_words.py` takes k - 1 steps and 2 k coordinates. With X the identity (`reflections.py`) the state is
S_t = X - R_t .. R_1 X, the last token asks with the corner q_b = (cos 2πb/k, sin 2πb/k), and q_b minus what is read is
the corner of the answer. The logit of the corner a is q_a · (what is left): 1 for the right one, cos(2π/k) for its
neighbours, so that the margin is 1 - cos(2π/k).

*Rounding.* Sines are no numbers of a floating-point type, so that each token turns by a slightly wrong angle, and
rounds. In float32, u = 2^-24, a step computes two products of a key and the state (at most 2), their sum, the
difference from the value, the factor 2, and an update; keys are unit up to 3 u and values up to u. That is less than
64 u = 2^-18 of error in the state, 2^-17 for the two steps of a token, and a step enlarges the errors before it by no
more than 2^-21. So after n tokens the corner that is left is off by at most 2^-16 n, two logits come nearer by at most
2^-15 n, and the answer is right if

    2^-15 n < 1 - cos(2π/k) .

The count is for token by token; in chunks the same sums are taken in another order, and that their errors stay below
this is what runs show, not what is proved here. They stay far below: a test finds less than 2^-20 a letter.

Weights in bfloat16 would turn by angles that are off by 2^-9, and are refused.
"""

import math

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.assembly import finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions, copy
from hopbound.constructions.reflections import (
    find_delta_rule,
    key_rows,
    no_negative_eigenvalue,
    too_few_values,
    value_rows,
    write_strength,
)
from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.tasks import PermutationWords

PLANE = 2  # coordinates, and reflections of a rotation
DRIFT = 2.0**-15  # how much nearer two logits can come with each token, in float32


class ShiftsByRotation(Construction[PermutationWords]):
    """A rotation of the plane for each shift."""

    name = "rotation"
    task = PermutationWords
    about = "a delta rule of two steps rotates the plane at each letter"
    source = "hopbound/constructions/rotation.py; arXiv 2502.10297"
    examples = (
        Example(
            schedule="deltaproduct[heads=1,head_dim=2,steps=2,beta=2]",
            task="permutation_words[points=7,length=4,letters=cyclic]",
        ),
        Example(
            schedule="deltaproduct[heads=2,head_dim=3,value_dim=1,steps=3,beta=2]",
            task="permutation_words[points=60,length=150,letters=cyclic]",
        ),
        Example(
            schedule="deltaproduct[heads=1,head_dim=2,steps=2,beta=2]",
            task="permutation_words[points=1000,length=100000,letters=cyclic]",
            fits=False,
        ),
    )

    def fatal_refusal(self, architecture: Architecture, task: PermutationWords) -> str | None:
        """Letters that are no shifts, no delta rule, a convolution, less than a plane or two steps."""
        found = find_delta_rule(architecture)
        if task.letters != "cyclic":
            return f"letters={task.letters} are no rotations of the plane: letters=cyclic"
        if found is None:
            return "no layer writes by a delta rule: deltaproduct[beta=2]"
        spec = found[2]
        if spec.conv:
            return f"{spec.name} stands behind a convolution: conv=0"
        if min(spec.head_dim, spec.steps) < PLANE:
            return f"two coordinates and two steps, {spec.name} has head_dim={spec.head_dim}, steps={spec.steps}"
        return no_negative_eigenvalue(spec) or too_few_values(spec, PLANE)

    def refusal(self, architecture: Architecture, task: PermutationWords) -> str | None:
        """Also, words so long that rounding could take one corner to the next."""
        fatal = self.fatal_refusal(architecture, task)
        if fatal is not None:
            return fatal
        longest = math.ceil((1 - math.cos(math.tau / task.points)) / DRIFT) - 1
        if task.length <= longest:
            return None
        return f"rounding may add up to a wrong corner, {task.points} points are safe for {longest} letters"

    def write(self, architecture: Architecture, task: PermutationWords, dtype: torch.dtype) -> Built:
        """Normals for each letter, a corner for each point.

        Raises:
            InputError: the weights would be too coarse.
        """
        if dtype not in (torch.float32, torch.float64):
            raise InputError("dtype", str(dtype), "float32 or float64: bfloat16 does not hold the sines")
        found = find_delta_rule(architecture)
        assert found is not None
        layer, place, _ = found
        directions = Directions()
        (one,) = directions.add("one", 1)
        normals = [directions.add(f"normal {step + 1}", PLANE) for step in range(PLANE)]
        asked, image = directions.add("asked corner", PLANE), directions.add("image", PLANE)
        decoder = Decoder.zeros(plain_config(architecture, task, directions)).to(dtype)
        assert decoder.token_table is not None
        assert decoder.readout_table is not None
        with torch.no_grad():
            table, turns = decoder.token_table.weight, torch.arange(task.points, dtype=torch.float64) / task.points
            corners = _directions_at(math.tau * turns).to(dtype)
            table[:, one] = 1.0
            table[1 : task.points, normals[0].start : normals[0].stop] = _directions_at(math.pi * turns)[1:].to(dtype)
            table[1 : task.points, normals[1].start] = 1.0
            for columns in (asked, image):
                table[task.points :, columns.start : columns.stop] = corners
            decoder.readout_table.weight[:, image.start : image.stop] = corners
            mixer = decoder.each_block()[layer].each_mixer()[place]
            assert isinstance(mixer, DeltaRecurrence | DeltaProduct)
            write_strength(mixer, one)
            for step, columns in enumerate(normals):
                for row in key_rows(mixer, step):
                    copy(mixer.key.weight, range(row, row + PLANE), columns)
                for row, column in zip(value_rows(mixer, step), columns, strict=False):
                    mixer.value.weight[row, column] = 1.0
            for head in range(mixer.spec.key_heads):
                row = head * mixer.spec.head_dim
                copy(mixer.query.weight, range(row, row + PLANE), asked)
            copy(mixer.out.weight, image, range(PLANE), -1.0)
        return finished(decoder, self.name, (f"layer {layer + 1} rotates at every letter",), directions, dtype)


def _directions_at(angles: torch.Tensor) -> torch.Tensor:
    """Unit vectors of the plane [.., 2]."""
    return torch.stack([angles.cos(), angles.sin()], dim=-1)
