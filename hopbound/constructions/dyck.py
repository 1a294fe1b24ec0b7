r"""Brackets of bounded depth by two recurrent layers, exact at any length.

*The counter.* The first layer keeps the number h of open brackets. In `mamba2` with a decay of exactly 1 it is the sum
of +1 and -1, times Δ = 32. In a delta rule of two steps a token it is a translation made of two reflections,

    S → 2 a - S → 2 b - (2 a - S) = S + 2 (b - a) ,      a = 0, b = ±1/2.

*The stack.* The position-wise map makes of h, with u_j = relu(h - j), the one-hot code of 1 .. depth,

    slot_d = u_{d-1} - 2 u_d + u_{d+1} ,      empty = relu(1 - h).

The second layer, a delta rule, keeps a table with a row for each depth: an opener writes its kind, one-hot, under the
key slot_h with the strength 1, so that it takes the place of what stood there; a closer has the strength 0. The last
token reads under its own slot_h: the last opener that brought the depth to h is the innermost open bracket, for any
later bracket at that depth was opened by a later opener. Where none is open the key is zero, nothing is read, and
`empty` is the answer's logit. All numbers are whole and at most 256, which every type holds: nothing is rounded,
and the margin is 1.

*Limits.* None of length. A key coordinate for each depth, a value channel for each kind. Depths of at most 255.

Bounded depth makes the language star-free, so that diagonal recurrences are enough for it (arXiv 2405.17394) and
attention is (arXiv 2105.11115); this construction, in which a delta rule is the stack, is this project's.
"""

import torch

from hopbound.architecture import Architecture, MixerSpec
from hopbound.architecture.sizes import GroupedState, MatrixState
from hopbound.constructions.assembly import Place, finished, plain_config
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.directions import Directions
from hopbound.constructions.memory import HELD, LARGE, SURE
from hopbound.constructions.reflections import is_delta_rule, key_rows, value_rows, write_strength
from hopbound.decoder import Decoder, PointwiseMap
from hopbound.mixers import GatedDeltaNet, Mixer
from hopbound.mixers.delta import DeltaRecurrence
from hopbound.mixers.deltaproduct import DeltaProduct
from hopbound.mixers.kda import KimiDeltaAttention
from hopbound.mixers.mamba2 import Mamba2
from hopbound.tasks import Dyck


class BracketStack(Construction[Dyck]):
    """A counter, and a stack that it addresses."""

    name = "stack"
    task = Dyck
    about = "a recurrence counts the depth, a delta rule keeps the opener at each depth"
    source = "hopbound/constructions/dyck.py"
    examples = (
        Example(
            schedule="mamba2[heads=1,head_dim=1,state=1] delta[heads=1,head_dim=2,value_dim=2]",
            task="dyck[kinds=2,depth=2,length=9]",
        ),
        Example(
            schedule="deltaproduct[heads=1,head_dim=1,steps=2,beta=2] gdn[heads=1,head_dim=8,value_dim=3,beta=2]",
            task="dyck[kinds=3,depth=8,length=40]",
        ),
        Example(
            schedule="mamba2[heads=1,head_dim=1,state=1] kda[heads=2,head_dim=32,value_dim=8]",
            task="dyck[kinds=16,depth=32,length=40]",
        ),
        Example(
            schedule="2*deltaproduct[heads=1,head_dim=8,value_dim=4,steps=2,beta=2]",
            task="dyck[kinds=4,depth=8,length=200000]",
        ),
        Example(
            schedule="mamba2[heads=1,head_dim=1,state=1] delta[heads=1,head_dim=2,value_dim=2]",
            task="dyck[kinds=2,depth=3,length=9]",
            fits=False,
        ),
        Example(
            schedule="mamba2[heads=1,head_dim=1,state=1] delta[heads=1,head_dim=2,value_dim=2]",
            task="dyck[kinds=3,depth=2,length=9]",
            fits=False,
        ),
    )

    def fatal_refusal(self, architecture: Architecture, task: Dyck) -> str | None:
        """No counter with a stack above it."""
        counter = "mamba2, or deltaproduct[beta=2] of two steps, without convolution"
        found = _find(architecture)
        return None if found else f"no layer with a delta rule without convolution above one that counts: {counter}"

    def refusal(self, architecture: Architecture, task: Dyck) -> str | None:
        """Also, too few key coordinates or value channels."""
        found = _find(architecture)
        if found is None:
            return self.fatal_refusal(architecture, task)
        spec = found[2]
        if spec.head_dim < task.depth:
            return f"a key coordinate for each of {task.depth} depths, {spec.name} has head_dim={spec.head_dim}"
        held = spec.heads * spec.value_dim
        return f"{task.kinds} kinds, {spec.name} has {held} value channels" if held < task.kinds else None

    def write(self, architecture: Architecture, task: Dyck, dtype: torch.dtype) -> Built:
        """Count, then keep."""
        found = _find(architecture)
        assert found is not None
        (counter, counting), (keeper, keeping), _ = found
        directions = Directions()
        for name, size in (("one", 1), ("step", 1), ("opens", 1), ("kind", task.kinds), ("height", 1)):
            directions.add(name, size)
        for name, size in (("slot", task.depth), ("empty", 1), ("innermost", task.kinds)):
            directions.add(name, size)
        decoder = Decoder.zeros(plain_config(architecture, task, directions, hidden={counter: task.depth + 3}))
        blocks = decoder.each_block()
        with torch.no_grad():
            _write_tables(decoder, directions, task)
            _write_counter(blocks[counter].each_mixer()[counting], directions)
            pointwise = blocks[counter].pointwise
            assert pointwise is not None
            _write_slots(pointwise, directions, task.depth)
            mixer = blocks[keeper].each_mixer()[keeping]
            assert isinstance(mixer, DeltaRecurrence | DeltaProduct)
            _write_stack(mixer, directions)
        steps = (f"layer {counter + 1} counts the depth", f"layer {keeper + 1} keeps the openers")
        return finished(decoder, self.name, steps, directions, dtype)


def _find(architecture: Architecture) -> tuple[Place, Place, MatrixState] | None:
    """The counter, the stack above it, and the stack's sizes."""
    counter: Place | None = None
    for index, layer in enumerate(architecture.layers):
        if counter is not None:
            for place, spec in enumerate(layer.mixers):
                if isinstance(spec, MatrixState) and is_delta_rule(spec) and not spec.conv:
                    return counter, (index, place), spec
        for place, spec in enumerate(layer.mixers):
            if counter is None and _counts(spec):
                counter = index, place
    return None


def _counts(spec: MixerSpec) -> bool:
    """Whether a mixer can add up: a state space, or two reflections a token."""
    if isinstance(spec, GroupedState):
        return not spec.conv
    if not isinstance(spec, MatrixState) or spec.name != "deltaproduct":
        return False
    return spec.steps >= 2 and spec.beta == 2 and not spec.conv


def _write_tables(decoder: Decoder, directions: Directions, task: Dyck) -> None:
    assert decoder.token_table is not None
    assert decoder.readout_table is not None
    (one,), (step,), (opens,), (empty,) = (directions[name] for name in ("one", "step", "opens", "empty"))
    tokens, answers = decoder.token_table.weight, decoder.readout_table.weight
    tokens[:, one] = 1.0
    tokens[: task.kinds, step], tokens[task.kinds :, step] = 1.0, -1.0
    tokens[: task.kinds, opens] = 1.0
    for kind, (written, read) in enumerate(zip(directions["kind"], directions["innermost"], strict=True)):
        tokens[kind, written] = 1.0
        answers[kind, read] = 1.0
    answers[task.kinds, empty] = 1.0


def _write_counter(mixer: Mixer, directions: Directions) -> None:
    """The sum of "step" so far in "height"."""
    (one,), (step,), (height,) = (directions[name] for name in ("one", "step", "height"))
    if isinstance(mixer, Mamba2):
        mixer.log_rate.fill_(HELD)
        mixer.step_bias.fill_(LARGE)
        for group in range(mixer.spec.groups):
            mixer.write.weight[group * mixer.spec.state, one] = 1.0
            mixer.read.weight[group * mixer.spec.state, one] = 1.0
        mixer.channel.weight[0, step] = 1.0
        mixer.out.weight[height, 0] = 1.0 / LARGE
        return
    assert isinstance(mixer, DeltaProduct)
    write_strength(mixer, one)
    for reflection in range(2):
        for row in key_rows(mixer, reflection):
            mixer.key.weight[row, one] = 1.0
    for head in range(mixer.spec.key_heads):
        mixer.query.weight[head * mixer.spec.head_dim, one] = 1.0
    mixer.value.weight[value_rows(mixer, 1)[0], step] = 0.5
    mixer.out.weight[height, 0] = 1.0


def _write_slots(pointwise: PointwiseMap, directions: Directions, depth: int) -> None:
    """The one-hot code of the height, and whether it is 0."""
    (height,), (empty,) = directions["height"], directions["empty"]
    rise, bias, fall = pointwise.rise.weight, pointwise.rise.bias, pointwise.fall.weight
    for unit in range(depth + 2):
        rise[unit, height], bias[unit] = 1.0, float(-unit)
    for slot, column in enumerate(directions["slot"]):
        fall[column, slot], fall[column, slot + 1], fall[column, slot + 2] = 1.0, -2.0, 1.0
    rise[depth + 2, height], bias[depth + 2], fall[empty, depth + 2] = -1.0, 1.0, 1.0


def _write_stack(mixer: DeltaRecurrence | DeltaProduct, directions: Directions) -> None:
    """Openers write with the strength 1, closers with 0; a depth too many shares the key of another (`overfill`)."""
    (one,), (opens,), spec = directions["one"], directions["opens"], mixer.spec
    # beta · sigmoid: of ±512 for beta = 1; for beta = 2 of 0 and -512.
    mixer.strength.weight[:, one] = -SURE
    mixer.strength.weight[:, opens] = 2 * SURE if spec.beta == 1 else SURE
    if isinstance(mixer, GatedDeltaNet | KimiDeltaAttention):
        mixer.rate_bias.fill_(HELD)
    for slot, column in enumerate(directions["slot"]):
        for row in key_rows(mixer):
            mixer.key.weight[row + slot % spec.head_dim, column] = 1.0
        for head in range(spec.key_heads):
            mixer.query.weight[head * spec.head_dim + slot % spec.head_dim, column] = 1.0
    channels = zip(value_rows(mixer), directions["kind"], directions["innermost"], strict=False)
    for channel, (row, kind, innermost) in enumerate(channels):
        mixer.value.weight[row, kind] = 1.0
        mixer.out.weight[innermost, channel] = 1.0
