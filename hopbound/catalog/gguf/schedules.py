"""Which layer is what: declared layer by layer, by a period, or by a rule that llama.cpp holds for an architecture.

Source: the loaders of llama.cpp (github.com/ggml-org/llama.cpp, `src/llama-model.cpp`, `src/models/`).
"""

from collections.abc import Sequence
from typing import Any

from hopbound.catalog.gguf.rules import KEY, KV_HEADS, VALUE, counts
from hopbound.catalog.gguf.stack import Rule, Stack, rule
from hopbound.catalog.schedules import FULL, LINEAR, SLIDING

WINDOW, PATTERN, SHARED = "attention.sliding_window", "attention.sliding_window_pattern", "attention.shared_kv_layers"
INTERVAL, RECURRENT, FEED_FORWARD = "full_attention_interval", "attention.recurrent_layers", "feed_forward_length"
ZERO_MARKS = "a list with a number a layer, 0 for a layer without attention"
LLAMA4_CHUNK, EXAONE4_WINDOWED, GEMMA3N_OWN = 8192, 64, 20


def _types(words: Sequence[str]) -> dict[str, Any]:
    return {"layer_types": list(words)}


def everywhere(word: str = FULL) -> Rule:
    """All layers are alike."""
    return Rule(lambda stack: _types(stack.layers * [word]))


def marked_by_zero(word: str, *, other: str = FULL) -> Rule:
    """Layers without key-value heads are `word`.

    Raises:
        InputError: (of the rule) the file gives one number for all layers.
    """

    @rule(KV_HEADS)
    def made(stack: Stack) -> dict[str, Any]:
        return _types([other if heads else word for heads in stack.listed(KV_HEADS, ZERO_MARKS)])

    return made


@rule(KV_HEADS, FEED_FORWARD)
def marked_by_two_zeros(stack: Stack) -> dict[str, Any]:
    """Nemotron-H: a layer is attention, or position-wise, or, where both have size 0, recurrent.

    Raises:
        InputError: a layer is both, or the file gives one number for all layers.
    """
    words = []
    widths = stack.listed(FEED_FORWARD, "a list with a number a layer, 0 for a layer without a position-wise map")
    for i, (heads, width) in enumerate(zip(stack.listed(KV_HEADS, ZERO_MARKS), widths, strict=True)):
        if heads and width:
            raise stack.fields.error(f"{FEED_FORWARD}[{i}]", width, f"0: layer {i} has {heads} key-value heads")
        words.append(FULL if heads else "mlp" if width else LINEAR)
    return {"layers_block_type": words}


def _periodic(stack: Stack, period: int, word: str, dense_first: bool = False) -> list[str]:
    """One full layer a period, its last or its first; period 0: none is full."""
    at = 0 if dense_first else period - 1
    return [FULL if period and i % period == at else word for i in range(stack.layers)]


def _pattern(stack: Stack, period: int | None, *, dense_first: bool = False) -> list[str]:
    """Windows by the file's list or period, else by the period that llama.cpp holds for the architecture.

    Raises:
        InputError: neither says it.
    """
    given = stack.fields.raw.get(PATTERN)
    if isinstance(given, list):
        return [SLIDING if window else FULL for window in stack.flags(PATTERN)]
    if given is not None:
        return _periodic(stack, stack.number(PATTERN, least=0), SLIDING, dense_first)
    if period is None:
        raise stack.fields.error(PATTERN, None, "a list of true and false, or a period")
    stack.say(f"no {stack.fields.path}{PATTERN} in the file: llama.cpp's own, one full layer in {period}")
    return _periodic(stack, period, SLIDING, dense_first)


def windows(period: int | None, *, dense_first: bool = False, width: int | None = None) -> Rule:
    """Windows in all but some layers, where the file gives a window at all.

    Args:
        period: the one that llama.cpp holds for the architecture; None: the file must say it.
        dense_first: whether the first layer of a period is the full one, instead of the last.
        width: of the windows where the file does not give it; None: no layer then has a window.
    """

    @rule(WINDOW, PATTERN)
    def made(stack: Stack) -> dict[str, Any]:
        wide = stack.maybe(WINDOW, least=0)
        if wide is None and width is not None:
            stack.say(f"no {stack.fields.path}{WINDOW} in the file: llama.cpp's own, {width}")
            wide = width
        if not wide:
            return _types(stack.layers * [FULL])
        return {"sliding_window": wide, **_types(_pattern(stack, period, dense_first=dense_first))}

    return made


@rule(WINDOW)
def window_everywhere(stack: Stack) -> dict[str, Any]:
    """Phi 3: all layers have the window, if the file gives one."""
    wide = stack.maybe(WINDOW, least=0)
    if not wide:
        return {"sliding_window": None, **_types(stack.layers * [FULL])}
    stack.say(f"windows of {wide} tokens, as the model was made; llama.cpp itself keeps every token of it")
    return {"sliding_window": wide, **_types(stack.layers * [SLIDING])}


@rule(WINDOW, PATTERN)
def exaone4_windows(stack: Stack) -> dict[str, Any]:
    """EXAONE 4: llama.cpp holds a period for the model with 64 layers alone."""
    if stack.layers == EXAONE4_WINDOWED:
        return windows(4, width=4096).make(stack)
    return windows(None).make(stack)


@rule(WINDOW)
def llama4_chunks(stack: Stack) -> dict[str, Any]:
    """Llama 4: chunks in three layers of four, unless the file gives a window of 0."""
    wide = stack.maybe(WINDOW, least=0)
    if wide == 0:
        return _types(stack.layers * [FULL])
    if wide not in (None, LLAMA4_CHUNK):
        raise stack.fields.error(WINDOW, wide, f"nothing, 0, or the chunks of llama.cpp, {LLAMA4_CHUNK}")
    stack.say(f"chunks are not in the file: llama.cpp's own, {LLAMA4_CHUNK} tokens in all but one layer in 4")
    words = _periodic(stack, 4, "chunked_attention")
    return {"attention_chunk_size": LLAMA4_CHUNK, **_types(words)}


@rule(SHARED)
def gemma3n_sharing(stack: Stack) -> dict[str, Any]:
    """Gemma 3n: the last layers read the keys and values of earlier ones."""
    shared = stack.maybe(SHARED, least=0)
    if shared is None:
        shared = max(stack.layers - GEMMA3N_OWN, 0)
        own = f"llama.cpp's own, all layers from {GEMMA3N_OWN} on"
        stack.say(f"no {stack.fields.path}{SHARED} in the file: {own}")
    return {"num_kv_shared_layers": shared}


@rule(WINDOW, PATTERN, SHARED, KV_HEADS, "attention.head_count", KEY, VALUE, f"{KEY}_swa", f"{VALUE}_swa")
def gemma4_layers(stack: Stack) -> dict[str, Any]:
    """Gemma 4: heads of full layers have a dimension of their own, and every layer its key-value heads.

    Raises:
        InputError: keys and values differ in dimension, or a size is missing.
    """
    heads, kv_heads = counts(stack)
    dims = {FULL: stack.number(KEY), SLIDING: stack.number(f"{KEY}_swa")}
    for value, dim in ((VALUE, dims[FULL]), (f"{VALUE}_swa", dims[SLIDING])):
        if stack.maybe(value) not in (None, dim):
            raise stack.fields.error(value, stack.maybe(value), f"{dim}, the dimension of a key")
    words = _pattern(stack, None)
    sizes = {
        str(i): {"num_attention_heads": heads[i], "num_key_value_heads": kv_heads[i], "head_dim": dims[word]}
        for i, word in enumerate(words)
    }
    shared = stack.maybe(SHARED, least=0) or 0
    return {
        "sliding_window": stack.number(WINDOW),
        "num_kv_shared_layers": shared,
        "per_layer_config": sizes,
        **sizes["0"],
        **_types(words),
    }


@rule(INTERVAL, RECURRENT)
def interval(stack: Stack) -> dict[str, Any]:
    """Qwen's hybrids: one full layer in so many, or a list of the recurrent ones."""
    if stack.fields.has(RECURRENT):
        return _types([LINEAR if recurrent else FULL for recurrent in stack.flags(RECURRENT)])
    period = stack.maybe(INTERVAL)
    if period is None:
        period = 4
        stack.say(f"no {stack.fields.path}{INTERVAL} in the file: llama.cpp's own, {period}")
    return _types(_periodic(stack, period, LINEAR))
