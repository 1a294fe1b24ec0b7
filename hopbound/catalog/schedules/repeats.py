"""More caches than layers: a layer that runs twice, stacks that run in cycles, loops over a middle part."""

from dataclasses import replace

from hopbound.catalog.fields import Fields
from hopbound.catalog.model import ModelLayer
from hopbound.catalog.schedules.sharing import Change

MAX_LAYERS = 10_000


def renumbered(fields: Fields, name: str, layers: list[ModelLayer], order: list[int]) -> list[ModelLayer]:
    """The layers in the order in which they run, each use with a cache of its own.

    Raises:
        InputError: there are more than 10,000 of them.
    """
    if len(order) > MAX_LAYERS:
        raise fields.error(name, len(order), f"at most {MAX_LAYERS} layers in all")
    first: dict[int, int] = {}
    run = []
    for index, source in enumerate(order):
        again = first.setdefault(source, index)
        run.append(replace(layers[source], index=index, weights_from=None if again == index else again))
    return run


def twice(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
    """Every layer holds two attention blocks with weights of their own, one after the other."""
    return [replace(layer, index=2 * layer.index + half) for layer in layers for half in (0, 1)]


def cycles(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
    """Two stacks, H and L: each of `H_cycles` cycles runs L `L_cycles` times and H once.

    A file of today gives the number of all uses and, in `num_layers_per_stack`, the layers of a stack; an older one
    the layers of a stack alone.
    """
    high, low = fields.number("H_cycles"), fields.number("L_cycles")
    stack = fields.maybe("num_layers_per_stack")
    total = high * (low + 1)
    if stack is None:
        stack = len(layers)
    elif stack * total != len(layers):
        raise fields.error("num_hidden_layers", len(layers), f"{stack} * {high} * ({low} + 1)")
    if stack * total > MAX_LAYERS:
        raise fields.error("H_cycles", high, f"at most {MAX_LAYERS} layers in all")
    fields.notes.say(f"{stack} layers a stack, run in {high} cycles of {low} + 1: each use has a cache of its own")
    both = [replace(layers[0], index=i) for i in range(2 * stack)]
    one = low * list(range(stack)) + list(range(stack, 2 * stack))
    return renumbered(fields, "H_cycles", both, high * one)


def dory_halved(fields: Fields) -> Fields:
    """Released files list attention and position-wise maps in turn; a pair of them is one layer."""
    words = fields.words("layer_types")
    if words is None or "mlp" not in words:
        return fields
    changed: dict[str, object] = {"layer_types": words[::2]}
    if "mlp" in words[::2] or set(words[1::2]) != {"mlp"} or len(words) % 2:
        raise fields.error("layer_types", words, "attention and mlp in turn")
    for name in ("num_hidden_layers", "n_input_layers", "n_output_layers", "n_recurrent_layers"):
        value = fields.maybe(name, least=0)
        if value is not None:
            if value % 2:
                raise fields.error(name, value, "an even number: layer_types lists attention and mlp separately")
            changed[name] = value // 2
    fields.notes.say("layer_types lists attention and mlp separately: each pair is read as one layer")
    return fields.at(fields.index, changed)


def loops(*, start: str, core: str, end: str) -> Change:
    """The layers between the first and the last ones run several times.

    Args:
        start: field of how many layers run before.
        core: field of how many are repeated; absent: the rest.
        end: field of how many run after.
    """

    def change(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
        n = len(layers)
        before, after = fields.number(start, least=0, derived=n // 4), fields.number(end, least=0, derived=n // 4)
        middle = fields.maybe(core, least=0)
        if before + after > n or (middle is not None and before + middle + after != n):
            raise fields.error(start, before, f"layers that add up to {n} with {core} and {end}")
        passes = fields.number("n_recurrent_loops")
        once = list(range(before, n - after))
        order = [*range(before), *(passes * once), *range(n - after, n)]
        run = renumbered(fields, "n_recurrent_loops", layers, order)
        if passes == 1:
            return run
        if fields.text("recurrent_kv_cache_mode") == "last_loop":
            last = before + (passes - 1) * len(once)
            fields.notes.say("only the last loop writes keys and values; the earlier ones read them")
            return [
                replace(layer, kv_shared_from=last + (layer.index - before) % len(once))
                if before <= layer.index < last
                else layer
                for layer in run
            ]
        fields.notes.say(f"layers {before} to {n - after - 1} run {passes} times: each use has a cache of its own")
        return run

    return change


def core_loop(fields: Fields, words: tuple[str, ...], layers: list[ModelLayer]) -> list[ModelLayer]:
    """The layers from a first to before a last one run `num_passes` times (`loop_config`, or flat fields)."""
    inner = fields.child("loop_config")

    def size(name: str, flat: str, least: int) -> int:
        if inner is not None and inner.has(name):
            return inner.number(name, least=least)
        return fields.number(flat, least=least)

    first, last = size("core_start", "loop_layer_index_start", 0), size("core_end", "loop_layer_index_end", 0)
    passes = size("num_passes", "loop_num_passes", 1)
    if not first <= last <= len(layers):
        raise fields.error("loop_layer_index_end", last, f"from {first} to {len(layers)}")
    order = [*range(first), *(passes * list(range(first, last))), *range(last, len(layers))]
    if passes > 1 and last > first:
        fields.notes.say(f"layers {first} to {last - 1} run {passes} times: each use has a cache of its own")
    return renumbered(fields, "loop_num_passes", layers, order)
