r"""The easy order, w, z_0, z_1, .., z_L, ask: causal full layers make L hops in ⌊log2 L⌋ + 5 layers, mostly fewer.

Here w stands before the functions, so that every token can know it after one layer, and pointers can be doubled while
they are not yet known to be on the path. Causal tokens look to the left, where pointers come from: what z_l and
z_{l+1} make together can only be held to the right of both. The tokens of a later function z_p are lent for that.

*Blocks.* A block [a, b] is the function z_b ∘ .. ∘ z_a of i_{a-1}, the parts of w in their places. A block of one
function stands in the prompt. Any other is held by the tokens of one z_p, p > b: those whose address has the value
part y work out what the block makes of y. They know w after layer 1, and from layer 2 on each layer takes them through
one block further: one of the prompt, at the address (w_l, value), or one that other tokens, further left but to the
right of its end, have finished a layer before, at the value part (value). So M_{p-1} ≥ M_{a-1} must hold; the addresses
of z_p that differ in the query part hold the same, and their average is that. The token that asks fetches z_0 in
layer 1, looks up z_1 in layer 2, where it also takes w from the token it finds, and goes on through blocks likewise.

*How many layers.* Let g(t) = 2^{t-2} be the longest block that tokens far enough to the right can hold after t layers:
one function in layer 2, one in layer 3, and g(r - 1) in layer r, 1 + Σ_{r=3}^{t} g(r - 1) = 2^{t-2} functions. Close
behind its end there is no room for a holder's holders: the last block of a chain that ends just before its holder must
be one function, the block before it has one segment of room, and the others have room enough (a test looks for their
holders, up to L = 47). With f(t) the longest chain of the token that asks,

    f(2) = 1,  f(3) = 2,  f(t) = 1 + f(t - 2) + 2^{t-4}     (3, 5, 8, 14, 25, 47 for t = 4 .. 9),

about 2^{t-2} / 3, so that t ≤ ⌊log2 L⌋ + 5 layers are enough where the tokens to be lent suffice. `plan` looks for the
blocks and their holders for the task at hand; a test compares it with f. Without lent tokens L + 1 layers are needed.
A k-hop lookup whose pointers lead to the left takes ⌊log2 k⌋ + 2 layers (arXiv 2402.09268); C5 takes as many. The up to
three layers more are the price of pointers that lead to the right. In the hard order w comes last, nothing can be
doubled, and F full layers cannot make F hops on long prompts (Theorem B).

Weights and their exactness: `pointers.py`. *Limits:* layers; `head_dim` at least the digits of function, value and
query part; value channels at least twice those of a value and those of all of w.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, final

import torch

from hopbound.architecture import Architecture
from hopbound.constructions.construction import Built, Construction, Example
from hopbound.constructions.layout import full_layers, value_size
from hopbound.constructions.pointers import Ask, Program, Role, program_directions, write_program
from hopbound.tasks import FunctionComposition

_QUERY, _ASK = -1, -2


@dataclass(frozen=True)
class Chain:
    """What tokens go through, and what other tokens do for it.

    Attributes:
        start: number of the first function.
        end: number of the last one.
        asks: in layer 2, 3, ..
        lent: the chains of the functions whose tokens hold blocks.
    """

    start: int
    end: int
    asks: tuple[Ask | None, ...]
    lent: dict[int, "Chain"] = field(default_factory=dict)


def longest(layers: int) -> int:
    """f(t): the most hops in so many layers, where all functions have tokens to lend."""
    return layers - 1 if layers <= 3 else 1 + longest(layers - 2) + 2 ** (layers - 4)


def plan(task: FunctionComposition, layers: int) -> Chain | None:
    """The chain of the token that asks, through all functions in so many layers; None if it was not found."""
    chain = _asking(task, layers)
    return chain if chain.start == 1 else None


def layers_needed(task: FunctionComposition) -> int:
    """The least number of layers for which there is a plan; L + 1 are always enough."""
    return next(layers for layers in range(2, task.hops + 2) if plan(task, layers) is not None)


@cache
def _asking(task: FunctionComposition, layers: int) -> Chain:
    """z_1 in layer 2, and then the longest chain that ends with z_L; all of them if its start is 1."""
    chain = _chain(task, 2, task.hops, 3, layers, task.hops + 1, frozenset())
    first = Ask(1, None, pointer=False)
    return Chain(1 if chain.start <= 2 else chain.start, task.hops, (first, *chain.asks), chain.lent)


def _chain(
    task: FunctionComposition, low: int, end: int, first: int, last: int, holder: int, taken: frozenset[int]
) -> Chain:
    """The longest chain found, from no function before `low` to `end`, block by block from its end.

    Args:
        task: for its sizes.
        low: number of the first function that it may start with.
        end: number of its last function.
        first: layer of its first block.
        last: layer of its last block.
        holder: number of the function whose tokens go through it: only those to the left can be asked.
        taken: functions whose tokens are lent already.
    """
    asks: list[Ask | None] = []
    lent: dict[int, Chain] = {}
    reach = end
    for layer in range(last, first - 1, -1):
        if end < low:
            asks.append(None)
            continue
        start, ask = end, Ask(end, end - 1 if end > 1 else None, pointer=False)
        block: dict[int, Chain] = {}
        for other in range(end + 1, holder):
            if other in taken or other in lent:
                continue
            inner = _chain(task, low, end, 2, layer - 1, other, taken | {*lent, other})
            fits = value_size(task, other) >= value_size(task, inner.start)
            if fits and inner.start < start:
                start, ask, block = inner.start, Ask(other, None, pointer=True), {other: inner, **inner.lent}
        asks.append(ask)
        lent |= block
        end = start - 1
    return Chain(end + 1, reach, tuple(reversed(asks)), lent)


@final
class Doubling(Construction[FunctionComposition]):
    """The easy order; see the head of this file."""

    name: ClassVar[str] = "doubling"
    task = FunctionComposition
    about: ClassVar[str] = "later functions' tokens work out blocks of earlier functions, each twice as long"
    source: ClassVar[str] = "hopbound/constructions/doubling.py"
    examples = (
        Example(schedule="3*full[heads=1,head_dim=24]", task="composition[hops=2,m=2,n=2/,order=easy]"),
        Example(schedule="4*full[heads=1,head_dim=24]", task="composition[hops=3,m=2,n=2/1,values=2/2,order=easy]"),
        Example(
            schedule="5*full[heads=1,head_dim=24]", task="composition[hops=5,m=2,n=1/2/1/1,values=2/2/2/2,order=easy]"
        ),
        Example(
            schedule="6*full[heads=1,head_dim=24]",
            task="composition[hops=8,m=4,n=2/1/2/1/2/1/2,values=4/4/4/4/4/4/4,order=easy]",
        ),
        Example(
            schedule="6*full[heads=1,head_dim=24]",
            task="composition[hops=8,m=40,n=2/1/2/1/2/1/2,values=40/40/40/40/40/40/40,order=easy]",
        ),
        Example(
            schedule="6*full[heads=1,head_dim=32]",
            task="composition[hops=8,m=8400,n=2/1/2/1/2/1/2,values=8400/8400/8400/8400/8400/8400/8400,order=easy]",
        ),
        Example(
            schedule="5*full[heads=1,head_dim=24]",
            task="composition[hops=6,m=4,n=2/1/2/1/1,values=4/4/4/4/4,order=easy]",
            fits=False,
        ),
        Example(schedule="3*full[heads=1,head_dim=5]", task="composition[hops=2,m=4,n=2/,order=easy]", fits=False),
    )

    def refusal(self, architecture: Architecture, task: FunctionComposition) -> str | None:
        """Too few layers or digits, or what is fatal."""
        if (fatal := self.fatal_refusal(architecture, task)) is not None:
            return fatal
        layers, needed = full_layers(architecture), layers_needed(task)
        if len(layers) < needed:
            return f"{len(layers)} full layers, {task.hops} hops take {needed} in the easy order"
        return easy_program(task, needed).room.shortage(architecture, layers[:needed])

    def fatal_refusal(self, architecture: Architecture, task: FunctionComposition) -> str | None:
        """Another layout of the prompt, or a single layer."""
        if task.order != "easy" or task.query != "one":
            return f"order={task.order} query={task.query}, expected order=easy query=one"
        if (count := len(full_layers(architecture))) < 2:
            return f"{count} full layers, {task.hops} hops take {layers_needed(task)} in the easy order"
        return None

    def write(self, architecture: Architecture, task: FunctionComposition, dtype: torch.dtype) -> Built:
        """The weights; with too few layers the token that asks skips the functions it has no layers for."""
        layers = full_layers(architecture)
        used = min(len(layers), layers_needed(task))
        program = easy_program(task, used)
        steps = [f"layer {layers[0] + 1} fetch w and i_0"]
        reached = 1
        for place, ask in zip(layers[1:used], program.roles[_ASK].asks, strict=True):
            if ask is not None:
                reached = _asking(task, used).lent[ask.tag].end if ask.pointer else ask.tag
            steps.append(f"layer {place + 1} reach i_{reached}")
        return Built(
            decoder=write_program(architecture, program, layers, dtype),
            construction=self.name,
            steps=tuple(steps),
            directions=program_directions(program),
        )


def easy_program(task: FunctionComposition, layers: int) -> Program:
    """Blocks and their holders in so many layers; with too few, the first functions are skipped."""
    query, chain = task.hops + 1, _asking(task, layers)
    roles = {function: Role(fetches=query, starts="token") for function in (_QUERY, *range(task.hops + 1))}
    for holder, held in chain.lent.items():
        roles[holder] = Role(fetches=query, starts="address value", asks=held.asks)
    roles[_ASK] = Role(fetches=0, starts="fetched token", query="found", asks=chain.asks)
    return Program(task=task, layers=layers, roles=roles, causal=True)
