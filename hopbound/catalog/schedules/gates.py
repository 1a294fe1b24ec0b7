"""Windows that are declared but need not be in force: a second field turns them on."""

from hopbound.catalog.fields import ABSENT, Fields
from hopbound.catalog.schedules.way import FULL, SLIDING, Way, Words, counted


def window_everywhere(fields: Fields, layers: int | None) -> Words | None:
    """Every layer has a window if `sliding_window` is a number, none if it is null."""
    n = counted(fields, layers)
    name, value = fields.find("sliding_window")
    width = fields.maybe("sliding_window")
    if width is None and value is None:
        fields.notes.say(f"{name} is null: no window")
    return Words(n * (SLIDING if width is not None else FULL,), name, value is not ABSENT)


def gated_window(*, gated: bool = True, below: bool = False, everywhere: bool = False) -> Way:
    """`use_sliding_window` turns windows on, from layer `max_window_layers` on.

    Args:
        gated: whether there is that gate; else the windows are always on.
        below: windows are at the even layers below it instead.
        everywhere: windows are in all layers, and `max_window_layers` is not read.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        n = counted(fields, layers)
        on = not gated or fields.flag("use_sliding_window", derived=False)
        width = fields.maybe("sliding_window", least=0)
        if on and fields.find("sliding_window")[1] is None:
            fields.notes.say("sliding_window is null: no window")
        by = "use_sliding_window" if gated else "max_window_layers"
        if not on or width is None:
            if width and not on and fields.has("sliding_window"):
                fields.notes.say(f"sliding_window={width} is not in force: use_sliding_window is not true")
            return Words(n * (FULL,), by, fields.has(by))
        if everywhere:
            return Words(n * (SLIDING,), by, True)
        limit = fields.number("max_window_layers", least=0)
        inside = (lambda i: i < limit and i % 2 == 0) if below else (lambda i: i >= limit)
        return Words(tuple(SLIDING if inside(i) else FULL for i in range(n)), by, fields.has(by))

    return way


def rope_gate(word: str, *, gate: str, turns: int) -> Way:
    """`no_rope_layers`, in which 1 means *with* rotary positions, or one layer in `no_rope_layer_interval` without.

    Args:
        word: of the layers whose entry is `turns`, where the field `gate` holds a number; the others are full.
        gate: that field; a null in the file means that no layer is different.
        turns: 1 or 0.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        n = counted(fields, layers)
        if fields.find(gate)[1] is None:
            fields.notes.say(f"{gate} is null: every layer sees the whole past")
        on = fields.maybe(gate) is not None and fields.flag("use_sliding_window", derived=True)
        rotary = fields.numbers("no_rope_layers", most=1)
        if rotary:
            if len(rotary) != n:
                raise fields.error("no_rope_layers", f"{len(rotary)} numbers", f"{n} numbers, one a layer")
            by, declared = "no_rope_layers", True
        else:
            by, declared = "no_rope_layer_interval", fields.has("no_rope_layer_interval")
            period = fields.number(by, derived=4)
            rotary = [int((i + 1) % period != 0) for i in range(n)]
        return Words(tuple(word if on and one == turns else FULL for one in rotary), by, declared)

    return way
