"""What every mixer is: a map from a sequence to a sequence, causal, with a state that can be carried on.

One method evaluates: `forward(x, state)` takes any number of tokens and the state left by the tokens before them, and
returns the outputs and the state after them. Whole-sequence, split and step-by-step evaluation are this one method,
called with all tokens, some, or one. Recurrences compute in chunks of `Mixer.chunk` tokens; with `chunk` = 1 they are
the plain recurrence that their file opens with.

A mask says which tokens count. One that does not, wherever it stands, neither decays nor writes nor is read, and its
output is zero: the others come out as if it were not there.

For prompts of a million tokens the decoder evaluates *on demand* (`hopbound.decoder.demand`): only where something
downstream reads. What it needs to know of a mixer is said by three masks of residual-stream columns, taken from the
weights (`reads`, `writes`), and by which positions can matter to an output (`Sight`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from hopbound.architecture import MixerSpec
from hopbound.errors import InputError
from hopbound.mixers.chunks import CHUNK

State = TypeVar("State")
Spec = TypeVar("Spec", bound=MixerSpec)


class Sight(Enum):
    """Which earlier positions an output can depend on."""

    ALL = "all"
    """Every one: softmax attention over the whole past."""
    NEAR = "near"
    """The last `reach` positions: windows and convolutions."""
    WRITERS = "writers"
    """Those that change the state (`changes_state`), wherever they stand; all may, and for most mixers do."""


@dataclass(frozen=True)
class Reads:
    """Columns of the residual stream that a mixer reads, as masks over the width.

    Attributes:
        query: at the position whose output is wanted.
        memory: at the earlier positions that the output depends on.
        gate: of `memory`, those that decide whether a position changes the state (`Sight.WRITERS`).
    """

    query: Bool[Tensor, "width"]
    memory: Bool[Tensor, "width"]
    gate: Bool[Tensor, "width"]


class Mixer(nn.Module, ABC, Generic[Spec, State]):
    """Moves information between positions. Subclasses are final, one a file.

    Attributes:
        spec: name and sizes, from `hopbound.architecture`; no mixer states a size of its own.
        width: of the residual stream.
        chunk: tokens a chunk of a recurrence; 1: token by token.
    """

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.spec = spec
        self.width = width
        self.chunk = CHUNK

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        state: State | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        """Outputs for the tokens `x`, and the state after them.

        Args:
            x: what the tokens hold.
            state: after the tokens before them; None: there are none.
            mask: True for tokens that count; None: all do.

        Raises:
            InputError: `x` has another shape.
        """
        if x.dim() != 3 or x.shape[2] != self.width:
            raise InputError("x", f"shape {tuple(x.shape)}", f"[batch, time, width={self.width}]")
        if x.shape[1] == 0:  # the state that there is, or the one before any token: as after one that does not count
            if state is None:
                one = x.new_zeros(x.shape[0], 1, self.width)
                _, state = self.mix(one, None, torch.zeros(x.shape[0], 1, dtype=torch.bool, device=x.device))
            return x.clone(), state
        if mask is None:
            return self.mix(x, state, None)
        gone = ~mask[..., None]
        output, state = self.mix(x.masked_fill(gone, 0), state, mask)  # whatever they held, be it infinite
        return output.masked_fill(gone, 0), state

    def constants(self) -> Mapping[str, Tensor | float]:
        """Where parameters that are no projections start, by name; those that are not named start at 0."""
        return {}

    @torch.no_grad()
    def start(self) -> None:
        """Give these parameters the values that they start with."""
        for name, value in self.constants().items():
            self.get_parameter(name).copy_(torch.as_tensor(value))

    @abstractmethod
    def mix(
        self,
        x: Float[Tensor, "batch time width"],
        state: State | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time width"], State]:
        """As `forward`; tokens that do not count hold zeros, and their outputs may be anything finite."""

    def packed(
        self, x: Float[Tensor, "1 total width"], cu_seqlens: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "1 total width"]:
        """Outputs for several sequences laid end to end, none of which sees another.

        Args:
            x: the sequences one after the other.
            cu_seqlens: where each begins, and at last the total, as in flash-linear-attention.

        Raises:
            InputError: `cu_seqlens` does not run from 0 to the total without falling.
        """
        padded, mask = unpacked(x, cu_seqlens)
        return self(padded, None, mask)[0][mask][None]

    @property
    @abstractmethod
    def sight(self) -> Sight:
        """Which earlier positions an output can depend on."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many positions back an output depends on (`Sight.NEAR`); 0 otherwise."""

    @abstractmethod
    def reads(self) -> Reads:
        """The columns it reads, from the zero columns of its weights."""

    @abstractmethod
    def writes(self) -> Bool[Tensor, "width"]:
        """The columns its output can change, from the zero rows of its last projection."""

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """Positions that can change the recurrent state (`Sight.WRITERS`), as rounded arithmetic has it: all may.

        Where this is False the state after the token equals the state before it to the bit.
        """
        return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)

    def carried_elements(self, state: State) -> int:
        """Elements of `state` for one sequence, counted from its tensors of numbers."""
        return sum(tensor[0].numel() for tensor in state_tensors(state) if tensor.is_floating_point())


def state_tensors(state: object) -> list[Tensor]:
    """The tensors of a state: itself, or those in the fields of a dataclass, and of states within it."""
    if isinstance(state, Tensor):
        return [state]
    return [tensor for part in vars(state).values() for tensor in state_tensors(part)] if is_dataclass(state) else []


def unpacked(
    x: Shaped[Tensor, "1 total *rest"], cu_seqlens: Int[Tensor, " bounds"]
) -> tuple[Shaped[Tensor, "batch time *rest"], Bool[Tensor, "batch time"]]:
    """Sequences laid end to end as a batch, filled up on the right, and which tokens count.

    Raises:
        InputError: `cu_seqlens` does not run from 0 to the total without falling.
    """
    lengths, total = cu_seqlens.diff(), x.shape[1]
    if len(cu_seqlens) < 2 or cu_seqlens[0] != 0 or cu_seqlens[-1] != total or (lengths < 0).any():
        raise InputError("cu_seqlens", cu_seqlens.tolist(), f"numbers that do not fall, from 0 to {total}")
    places = torch.arange(int(lengths.max()), device=x.device)
    index = (cu_seqlens[:-1, None] + places).clamp(max=max(total - 1, 0))
    return x[0, index], places < lengths[:, None]


def inverse_softplus(y: Float[Tensor, "*some"]) -> Float[Tensor, "*some"]:
    """The x with log(1 + e^x) = y."""
    return y + torch.log(-torch.expm1(-y))


def spaced_steps(count: int) -> Float[Tensor, " count"]:
    """Biases under softplus for steps from 0.001 to 0.1, their logarithms evenly spaced (arXiv 2312.00752)."""
    return inverse_softplus(torch.logspace(-3, -1, count, dtype=torch.float64, device="cpu"))


def columns_read(*weights: Float[Tensor, "_ width"]) -> Bool[Tensor, "width"]:
    """Columns that at least one of the projections reads."""
    masks = [weight.detach().ne(0).any(dim=0) for weight in weights]
    return torch.stack(masks).any(dim=0)


def rows_written(weight: Float[Tensor, "width inner"]) -> Bool[Tensor, "width"]:
    """Columns of the stream that a last projection changes."""
    return weight.detach().ne(0).any(dim=1)


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums are kept: at least float32."""
    return torch.promote_types(dtype, torch.float32)


def unmasked(
    x: Float[Tensor, "#batch heads time *rest"], mask: Bool[Tensor, "batch time"] | None
) -> Float[Tensor, "#batch heads time *rest"]:
    """Zero where a token does not count: a key that writes nothing, the logarithm of a decay that is 1."""
    if mask is None:
        return x
    return x.masked_fill(~mask.reshape(mask.shape[0], 1, mask.shape[1], *(1,) * (x.dim() - 3)), 0)


def split_heads(x: Float[Tensor, "batch time inner"], heads: int) -> Float[Tensor, "batch heads time dim"]:
    """The last axis as heads."""
    batch, time, inner = x.shape
    return x.view(batch, time, heads, inner // heads).transpose(1, 2)


def merge_heads(x: Float[Tensor, "batch heads time dim"]) -> Float[Tensor, "batch time inner"]:
    """Heads side by side on the last axis."""
    batch, heads, time, dim = x.shape
    return x.transpose(1, 2).reshape(batch, time, heads * dim)


def linear(width: int, out: int) -> nn.Linear:
    """A projection without bias; the stream's constant column takes the bias's place where one is needed."""
    layer = nn.Linear(width, max(out, 1), bias=False)
    if not out:  # torch warns of a projection that it has nothing to start of
        layer.out_features, layer.weight = 0, nn.Parameter(layer.weight.detach()[:0])
    return layer
