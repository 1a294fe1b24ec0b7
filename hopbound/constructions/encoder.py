r"""C5: an encoder, whose tokens see all others, makes L hops in 1 + ⌈log2(L + 1)⌉ layers of full attention.

In layer 1 every token fetches the query w, and the last token, w itself, fetches z_0. Then the token x of z_l, at the
address (u, i), holds z_l(x), and with w the address (w_l, z_l(x)) where its value leads in z_{l+1}: a pointer. The last
token holds i_0, a pointer into z_1. In layer k + 2 every token asks, at the address where its pointer leads, for the
pointer that stands there:

    p_0(l, x) = z_l(x),    p_{k+1}(l, x) = p_k(l + 2^k, (w_{l+2^k-1}, p_k(l, x)))    while l + 2^k ≤ L, else p_k(l, x) .

By induction p_k(l, x) is the value of z_{l+r} ∘ .. ∘ z_l at x, with the parts of w in their places, for
r = min(2^k - 1, L - l). The last token is the one address of a function 0 whose value is i_0, so that after k doublings
it holds i_{2^k - 1}, or i_L once 2^k - 1 ≥ L: after k = ⌈log2(L + 1)⌉ of them. As ⌈log2(L + 1)⌉ = ⌊log2 L⌋ + 1 these
are ⌊log2 L⌋ + 2 layers. With one layer fewer the last token holds i_{2^(k-1) - 1}, of a smaller number than L: this
construction fails, and forced weights show it. That none could do it in fewer is not said here.

Why doubling needs an encoder in the hard order: pointers lead to the left, where a causal token may look, but where
they lead depends on w, which stands to the right of all of them. Where n = 1 everywhere w says nothing, and the same
weights are right under a causal mask: it is the query at the end that makes the hard order hard.

Weights and their exactness: `pointers.py`. *Limits:* `head_dim` at least the digits of function, value and query part;
value channels at least those of a value and of all of w.
"""

from typing import ClassVar, final

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.construction import Built, Construction, Example, Mode
from hopbound.constructions.layout import full_layers
from hopbound.constructions.pointers import Ask, Program, Role, program_directions, write_program
from hopbound.tasks import FunctionComposition

_QUERY = -1


def _example(task: str, layers: int, *, head_dim: int = 24, fits: bool = True) -> Example:
    schedule = f"{layers}*full[heads=1,head_dim={head_dim}]"
    return Example(schedule=schedule, task=task, fits=fits, options={"bidirectional": True})


def layers_needed(hops: int) -> int:
    """1 + ⌈log2(L + 1)⌉."""
    return 1 + hops.bit_length()


@final
class Encoder(Construction[FunctionComposition]):
    """C5; see the head of this file."""

    name: ClassVar[str] = "C5"
    task = FunctionComposition
    mode = Mode.BIDIRECTIONAL
    about: ClassVar[str] = "pointers are doubled from layer to layer, by all tokens at once"
    source: ClassVar[str] = "hopbound/constructions/encoder.py"
    examples = (
        _example("composition[hops=2,m=2,n=2/]", 3),
        _example("composition[hops=3,m=2,n=2/1,values=2/2]", 3),
        _example("composition[hops=3,m=4,n=2/2]", 3),
        _example("composition[hops=7,m=5,n=2/1/2/1/2/1,values=5/4/5/4/5/4]", 4),
        _example("composition[hops=7,m=70,n=2/2/2/2/2/2,values=35/35/35/35/35/35]", 4),
        _example("composition[hops=7,m=15000,n=2/2/2/2/2/2,values=7500/7500/7500/7500/7500/7500]", 4),
        _example("composition[hops=3,m=4,n=2/2]", 2, fits=False),
        _example("composition[hops=4,m=4,n=2/1/2,values=4/3/4]", 3, fits=False),
        _example("composition[hops=3,m=4,n=2/2]", 3, head_dim=7, fits=False),
    )

    def refusal(self, architecture: Architecture, task: FunctionComposition) -> str | None:
        """Too few layers or digits, or what is fatal."""
        if (fatal := self.fatal_refusal(architecture, task)) is not None:
            return fatal
        layers, needed = full_layers(architecture), layers_needed(task.hops)
        if len(layers) < needed:
            return f"{len(layers)} full layers, {task.hops} hops take {needed}"
        return encoder_program(task, needed).room.shortage(architecture, layers[:needed])

    def fatal_refusal(self, architecture: Architecture, task: FunctionComposition) -> str | None:
        """Another layout of the prompt, other mixers, or a single layer."""
        if task.order != "hard" or task.query != "one":
            return f"order={task.order} query={task.query}, expected order=hard query=one"
        names = {spec.name for layer in architecture.layers for spec in layer.mixers} - {"full", "mlp"}
        if names:
            return f"{', '.join(sorted(names))} cannot see what comes after, only full can"
        if len(full_layers(architecture)) < 2:
            return f"fewer than 2 full layers, {task.hops} hops take {layers_needed(task.hops)}"
        return None

    def write(self, architecture: Architecture, task: FunctionComposition, dtype: torch.dtype) -> Built:
        """The weights; with too few layers the last token stops where the doublings end."""
        layers = full_layers(architecture)
        used = min(len(layers), layers_needed(task.hops))
        program = encoder_program(task, used)
        doublings = (f"layer {layers[k + 1] + 1} reach i_{min(2 ** (k + 1) - 1, task.hops)}" for k in range(used - 1))
        return Built(
            decoder=write_program(architecture, program, layers, dtype),
            construction=self.name,
            steps=(f"layer {layers[0] + 1} fetch w and i_0", *doublings),
            directions=program_directions(program),
        )


def encoder_program(task: FunctionComposition, layers: int) -> Program:
    """Pointer doubling in so many layers."""
    hops = task.hops

    def asks(function: int) -> tuple[Ask | None, ...]:
        led = [function + 2**k for k in range(layers - 1)]
        return tuple(Ask(to, to - 1 if to > 1 else None, pointer=True) if to <= hops else None for to in led)

    roles = {hop: Role(fetches=hops + 1, starts="token", asks=asks(hop)) for hop in range(1, hops + 1)}
    roles[0] = Role(fetches=hops + 1, starts="token")
    roles[_QUERY] = Role(fetches=0, starts="fetched token", query="own", asks=asks(0))
    return Program(task=task, layers=layers, roles=roles, causal=False)
