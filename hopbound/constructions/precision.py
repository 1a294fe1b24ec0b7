r"""How many significand bits a model needs: found by running it in arithmetic of p bits, and in the types there are.

**The emulated arithmetic.** Weights are rounded to p significand bits (the leading 1 counts: float32 has 24, float16
11, bfloat16 8), to the nearest, ties to even. Then the model runs in float64, and the result of every operation of
torch is rounded to p bits before the next one sees it: stream, projections, scores, gates, states, logits. Attention is
taken apart into scores, their scale, exponentials, sums, quotients and the weighted sum. What one operation adds up, an
entry of a matrix product, is rounded once, as in hardware that keeps such sums wider. So for sums and softmax this is
*harder* than bfloat16 or float16 as torch runs them (accumulators of float32), and for the range of exponents, which is
that of float64, it is easier: overflow shows only in the types themselves.

A result is rounded to 53 bits first and then to p. For +, -, ×, / and roots this is the same as once if 53 ≥ 2p + 2, so
for every p up to 25.

**"Exact from N on".** Rounding is not monotone, so nothing is inferred: every p from N to 24 is run on a few instances,
N on all that are asked, and with N - 1 bits an answer was wrong. A p above N that fails on an instance that was not
put to it is possible; what is said is what was run.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from hopbound.constructions.verification import LONG_PROMPT, margins
from hopbound.decoder import Decoder
from hopbound.decoder.folder import DTYPES
from hopbound.tasks import Batch, Task

MOST_BITS = 24
"""Of float32: what is exact with fewer is exact there, as far as the range of exponents goes."""
ASKED = 200
"""Random instances, and as many adversarial ones, for each type and for the least number of bits."""
REPORTED = ("bfloat16", "float16", "float32", "float64")
FEW = 10
"""The same for the bits between the least and the most."""
_LONG_ASKED = 4
_FLOAT64_BITS = 53


@dataclass(frozen=True, kw_only=True)
class PrecisionReport:
    """In which arithmetic every instance that was asked is answered right.

    Attributes:
        significand_bits: N, so that emulated arithmetic of N, N + 1, .., 24 bits is exact; None: not even of 24.
        dtypes: type to whether the model is exact in it; False too where a weight is beyond its range.
        beyond_range: types in which a weight or a code is no finite number.
        asked: how many instances were put to each.
    """

    significand_bits: int | None
    dtypes: Mapping[str, bool]
    beyond_range: tuple[str, ...]
    asked: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "significand_bits": self.significand_bits,
            "dtypes": dict(self.dtypes),
            "beyond_range": list(self.beyond_range),
            "asked": self.asked,
        }

    def __str__(self) -> str:
        emulated = (
            f"exact from {self.significand_bits} significand bits on (emulated)"
            if self.significand_bits is not None
            else f"not exact with {MOST_BITS} significand bits (emulated)"
        )

        def said(name: str, exact: bool) -> str:
            why = " (a weight is beyond its range)" if name in self.beyond_range else ""
            return f"{name} yes" if exact else f"{name} no{why}"

        return f"{emulated}; {', '.join(said(name, exact) for name, exact in self.dtypes.items())}"


def rounded(x: Tensor, bits: int) -> Tensor:
    """The float64 numbers `x` to `bits` significand bits, to the nearest, ties to even; what is not finite stays."""
    if bits >= _FLOAT64_BITS:
        return x
    dropped = _FLOAT64_BITS - bits
    pattern = x.contiguous().view(torch.int64)
    last = (pattern >> dropped) & 1
    pattern = (pattern + ((1 << (dropped - 1)) - 1) + last) & -(1 << dropped)
    return torch.where(x.isfinite(), pattern.view(torch.float64), x)


class SignificandBits(TorchFunctionMode):
    """Within it, every result of torch that is a number is rounded to `bits` significand bits."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation and round; softmax and attention are taken apart first."""
        given = dict(kwargs or {})
        if func in _IN_STEPS:
            with self:  # within this method the mode is off
                return _IN_STEPS[func](*args, **given)
        result = func(*args, **given)
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                self._round(tensor)
        return result

    def _round(self, tensor: Tensor) -> None:
        """In place, so that a view stays one; what is rounded already is left alone."""
        wide = tensor.detach().double()
        narrow = rounded(wide, self.bits)
        if not torch.equal(narrow.nan_to_num(), wide.nan_to_num()):
            tensor.detach().copy_(narrow)


def _softmax(x: Tensor, dim: int, *_: object, **__: object) -> Tensor:
    """Exponentials, their sum, quotients."""
    powers = (x - x.amax(dim=dim, keepdim=True)).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Scores, their scale, softmax, the weighted sum; rows that see nothing are 0, as torch has them."""
    assert not dropout_p
    assert not enable_gqa
    scores = (query @ key.transpose(-1, -2)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return _softmax(scores, dim=-1).nan_to_num(nan=0.0) @ value


_IN_STEPS: Mapping[Any, Callable[..., Tensor]] = {
    functional.scaled_dot_product_attention: _attention,
    functional.softmax: _softmax,
    torch.softmax: _softmax,
    Tensor.softmax: _softmax,
}


def is_exact(decoder: Decoder, task: Task, *, bits: int | None = None, seed: int = 0, asked: int = ASKED) -> bool:
    """Whether a model answers every instance that is asked right, by a margin.

    Args:
        decoder: the model.
        task: what is asked.
        bits: of the emulated significand; None: in the model's own type.
        seed: of the instances.
        asked: random instances, and as many adversarial ones; fewer at long prompts.
    """
    if bits is None:
        return _all_right(decoder, task, seed, asked)
    narrow = copy.deepcopy(decoder).double()
    with torch.no_grad():
        for parameter in narrow.parameters():
            parameter.copy_(rounded(parameter, bits))
        with SignificandBits(bits):
            return _all_right(narrow, task, seed, asked)


def smallest_precision(
    decoder: Decoder, task: Task, *, seed: int = 0, asked: int = ASKED, most: int = MOST_BITS
) -> int | None:
    """The least N so that emulated arithmetic of N, N + 1, .., `most` bits is exact; None: not even of `most`."""
    least = most + 1
    while least > 1 and is_exact(decoder, task, bits=least - 1, seed=seed, asked=min(asked, FEW)):
        least -= 1
    while least <= most and not is_exact(decoder, task, bits=least, seed=seed, asked=asked):
        least += 1
    return least if least <= most else None


def precision_report(decoder: Decoder, task: Task, *, seed: int = 0, asked: int = ASKED) -> PrecisionReport:
    """Run a model in emulated arithmetic and in every type that a model can have."""
    dtypes, beyond = {}, []
    for name in REPORTED:
        narrow = copy.deepcopy(decoder).to(DTYPES[name])
        if not all(bool(parameter.isfinite().all()) for parameter in narrow.parameters()):
            beyond.append(name)
        dtypes[name] = name not in beyond and is_exact(narrow, task, seed=seed, asked=asked)
    return PrecisionReport(
        significand_bits=smallest_precision(decoder, task, seed=seed, asked=asked),
        dtypes=dtypes,
        beyond_range=tuple(beyond),
        asked=sum(len(batch) for batch in _batches(task, seed, asked)),
    )


def _all_right(decoder: Decoder, task: Task, seed: int, asked: int) -> bool:
    return all(bool((one > 0).all()) for batch in _batches(task, seed, asked) for one in margins(decoder, batch))


def _batches(task: Task, seed: int, asked: int) -> Iterator[Batch]:
    """Adversarial instances first: they fail sooner."""
    count = min(asked, _LONG_ASKED) if task.prompt_length > LONG_PROMPT else asked
    yield task.adversarial(seed, 0, count)
    yield task.sample(seed, "precision", 0, count)
