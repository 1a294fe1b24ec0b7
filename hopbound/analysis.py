"""What can be said of a real model: what it keeps, how many hops its stack can make, which it provably cannot.

Everything here is about the stack and not about trained weights: `possible` is a construction for the idealised decoder
with these mixers (docs/constructions.md), `impossible` a theorem about all weights (docs/theory.md).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log2
from typing import Any

from hopbound.architecture import Architecture, Kind
from hopbound.bounds import Limit, Verdict, limits, prove
from hopbound.bounds.first import FirstImpossible, Scale, first_hops, first_impossible, scales
from hopbound.bounds.reach import mixer_reach
from hopbound.bounds.recall import pairs_recallable
from hopbound.catalog import KINDS, Model, ModelLayer
from hopbound.claims import best_plan, conditions
from hopbound.errors import InputError

MAX_CONTEXT = 2**40
MAX_BATCH = 2**30
MOST_HOPS_SEARCHED = 8  # with more, the search takes minutes and finds lengths that no one has
CURVE = tuple(2**k for k in range(8, 25))


@dataclass(frozen=True, kw_only=True)
class Possible:
    """Hops that a construction of this project makes.

    Attributes:
        hops: how many.
        construction: which one; empty where none makes any.
        conditions: what it asks of sizes and of the model beside the idealised decoder.
    """

    hops: int
    construction: str
    conditions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Impossible:
    """Hops that no weights make.

    Attributes:
        hops: how many.
        theorem: by which.
        source: `closed form`, or `search` where a certificate was searched.
        log2_prompt_length: of the prompt from which on.
    """

    hops: int
    theorem: str
    source: str
    log2_prompt_length: float


@dataclass(frozen=True, kw_only=True)
class Recall:
    """How many key-value pairs the bounded layers alone can hold.

    Attributes:
        state_bits: what crosses a cut in them.
        values: how many values a pair can have.
        pairs: the most pairs at accuracy 1.
    """

    state_bits: int
    values: int
    pairs: int


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All that is said of a model.

    Attributes:
        model: the model.
        context: tokens at which caches are counted.
        batch: sequences.
        possible: hops that can be built.
        impossible: the first number of hops that cannot be; None with a `silence`.
        silence: why nothing is impossible.
        excess: by what factors the stack is too large to be certified at `context`, in closed form.
        limits: the same by search, where it was asked for.
        recall: what the bounded layers can hold; None if there are none.
        window_reach: how far windows, chunks and convolutions see back together; None where none of them are.
        notes: everything that was assumed.
    """

    model: Model
    context: int
    batch: int
    possible: Possible
    impossible: Impossible | None
    silence: str
    excess: tuple[Scale, ...]
    limits: tuple[Limit, ...]
    recall: Recall | None
    window_reach: int | None
    notes: tuple[str, ...]


def analyze(
    model: Model, *, context: int = 131072, batch: int = 1, values: int = 8192, tight: bool = False
) -> Analysis:
    """Everything that can be said of a model.

    Args:
        model: as `catalog.read_model` gives it.
        context: tokens of a sequence.
        batch: how many sequences.
        values: how many values a recalled pair can have.
        tight: search for the shortest certified length instead of taking the closed form's.

    Raises:
        InputError: a context, a batch or a number of values out of range.
    """
    for name, value, least, most in (
        ("context", context, 1, MAX_CONTEXT),
        ("batch", batch, 1, MAX_BATCH),
        ("values", values, 2, MAX_CONTEXT),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(name, value, f"a whole number from {least} to {most}")
    architecture = model.architecture
    first = first_impossible(architecture)
    impossible, silence, notes = _impossible(architecture, first, tight)
    found = ()
    if tight and impossible is not None and impossible.hops <= MOST_HOPS_SEARCHED:
        found = limits(architecture, impossible.hops, context)
    excess = () if first is None else scales(architecture, first, context)
    if impossible is not None and _certified(impossible, architecture, context):
        excess = tuple(replace(one, factor=1.0) for one in excess)  # the search may reach what the closed form does not
    return Analysis(
        model=model,
        context=context,
        batch=batch,
        possible=_possible(model),
        impossible=impossible,
        silence=silence,
        excess=excess,
        limits=found,
        recall=_recall(architecture, values),
        window_reach=_window_reach(model.layers),
        notes=(*model.notes, *notes),
    )


def _possible(model: Model) -> Possible:
    plan = best_plan(model.own_architecture, len(model.layers) + 1)
    if plan.hops == 0:
        return Possible(hops=0, construction="", conditions=("no construction of this project fits its mixers",))
    said = [*conditions(plan, model.own_architecture), "positions can be left out of attention scores"]
    if any(layer.weights_from is not None for layer in model.layers):
        said.append("every use of a layer has weights of its own; this model shares some")
    if any(layer.kv_shared_from is not None for layer in model.layers):
        said.append("layers that read another layer's keys and values are left out")
    return Possible(hops=plan.hops, construction=plan.construction, conditions=tuple(said))


def _impossible(
    architecture: Architecture, first: FirstImpossible | None, tight: bool
) -> tuple[Impossible | None, str, tuple[str, ...]]:
    """The first impossible number of hops, else why there is none, and what is to be noted."""
    limit = architecture.length_limit
    notes = () if limit is None else (f"the sizes hold up to {limit:,} tokens: nothing is claimed beyond",)
    closed = None
    if first is not None:
        closed = Impossible(
            hops=first.hops, theorem=first.theorem, source="closed form", log2_prompt_length=first.log2_length
        )
    hops = first_hops(architecture)
    if hops is None:
        return None, f"the theorems do not speak of this stack: {'; '.join(architecture.exclusions())}", notes
    if tight and hops > MOST_HOPS_SEARCHED:
        notes = (*notes, f"{hops:,} hops are too many for the search: the closed form stands")
    elif tight:
        closed = _shorter(closed, prove(architecture, hops))
    silence = "" if closed else "the sizes of this stack hold for shorter prompts only than the bounds speak of"
    return closed, silence, notes


def _shorter(closed: Impossible | None, verdict: Verdict) -> Impossible | None:
    """What the search found, where it is for fewer hops or for shorter prompts than the closed form."""
    length = verdict.log2_prompt_length
    if length is None or (closed and (closed.hops, closed.log2_prompt_length) <= (verdict.hops, length)):
        return closed
    return Impossible(
        hops=verdict.hops,
        theorem=verdict.theorem,
        source="search" if verdict.source == "search" else "closed form",
        log2_prompt_length=length,
    )


def _certified(impossible: Impossible, architecture: Architecture, context: int) -> bool:
    """Whether prompts of `context` tokens are long enough for the bound, and short enough for the stack's sizes."""
    limit = architecture.length_limit
    return impossible.log2_prompt_length <= log2(context) and (limit is None or context <= limit)


def _recall(architecture: Architecture, values: int) -> Recall | None:
    mixers = [mixer for layer in architecture.layers for mixer in layer.mixers if mixer.kind is Kind.BOUNDED]
    bits = sum(mixer.state_bits(architecture.precisions) for mixer in mixers)
    pairs = pairs_recallable(values, bits) if bits else None
    return None if pairs is None else Recall(state_bits=bits, values=values, pairs=pairs)


def _window_reach(layers: tuple[ModelLayer, ...]) -> int | None:
    """The reach of the layers that see a limited way back, were all others left out; None without such layers."""
    seen = []
    for layer in layers:
        mixers = [mixer for mixer in layer.layer.mixers if mixer.kind is not Kind.POINTWISE]
        ways = [mixer_reach(mixer) for mixer in mixers]
        if ways and None not in ways:
            seen.append(max(way for way in ways if way is not None))
    return sum(seen) if seen else None


def total_bytes(model: Model, context: int, batch: int = 1) -> Fraction:
    """Bytes of everything that `batch` sequences of `context` tokens keep, convolutions as they are needed."""
    return batch * (model.kv_bytes(context) + model.state_bytes + model.conv_bytes)


def document(analysis: Analysis, *, curve: bool = False) -> dict[str, Any]:
    """The analysis as the commands print it (`models[]` of `hopbound analyze --json`).

    Args:
        analysis: the analysis.
        curve: also bytes at contexts from 256 on, for the figure.
    """
    model, batch = analysis.model, analysis.batch
    lists = {f"{kind}_layers": list(model.of_kind(kind)) for kind in KINDS}
    result: dict[str, Any] = {
        "name": model.name,
        "model_type": model.model_type,
        "schedule": str(model.architecture),
        "label": model.architecture.label,
        "context_limit": model.context,
        "layers": [_layer(layer) for layer in model.layers],
        **lists,
        "bits": {
            "kv": model.precisions.kv,
            "state": model.precisions.state,
            "conv": model.precisions.activation,
            "summary": model.precisions.summary,
        },
        "kv_bytes_per_token": _number(model.kv_bytes_per_token),
        "kv_bytes": _number(batch * model.kv_bytes(analysis.context)),
        "state_bytes": _number(batch * model.state_bytes),
        "conv_bytes": _number(batch * model.conv_bytes),
        "conv_bytes_allocated": _number(batch * model.conv_bytes_allocated),
        "hops_possible": {
            "hops": analysis.possible.hops,
            "construction": analysis.possible.construction,
            "conditions": list(analysis.possible.conditions),
            "of": "the idealised decoder with these mixers, not the trained weights",
        },
        "hops_impossible": _impossible_part(analysis),
        "excess": [{"knob": one.knob, "factor": one.factor} for one in analysis.excess],
        "limits": [
            {"knob": one.knob, "actual": one.actual, "largest": one.largest, "factor": one.factor}
            for one in analysis.limits
        ],
        "recall": None
        if analysis.recall is None
        else {
            "state_bits": analysis.recall.state_bits,
            "values": analysis.recall.values,
            "pairs": analysis.recall.pairs,
        },
        "window_reach": analysis.window_reach,
        "notes": list(analysis.notes),
    }
    if curve:
        result["curve"] = [[context, _number(total_bytes(model, context, batch))] for context in CURVE]
    return result


def _layer(layer: ModelLayer) -> dict[str, Any]:
    return {
        "index": layer.index,
        "kinds": list(layer.kinds),
        "mixer": "|".join(mixer.name for mixer in layer.layer.mixers),
        "window": layer.window,
        "kv_elements": _number(layer.kv_elements),
        "kv_shared_from": layer.kv_shared_from,
        "weights_from": layer.weights_from,
        "state_elements": layer.state_elements,
        "conv_elements": layer.conv_elements,
    }


def _impossible_part(analysis: Analysis) -> dict[str, Any]:
    one = analysis.impossible
    if one is None:
        return {"hops": None, "log2_prompt_length": None, "reason": analysis.silence}
    return {
        "hops": one.hops,
        "log2_prompt_length": one.log2_prompt_length,
        "theorem": one.theorem,
        "source": one.source,
        "certified_at_context": _certified(one, analysis.model.architecture, analysis.context),
    }


def _number(value: Fraction | int) -> int | float:
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else float(exact)
