"""How config files write which layer is what: one file per way of writing it.

A *way* reads some fields and returns one word a layer, or None where its fields are not there. The words are those of
transformers (`full_attention`, `sliding_attention`, `linear_attention`, ...); a family says what its words mean.
"""

from hopbound.catalog.schedules.flags import flags
from hopbound.catalog.schedules.gates import gated_window, rope_gate, window_everywhere
from hopbound.catalog.schedules.indices import marked, named_indices
from hopbound.catalog.schedules.interval import every, spaced
from hopbound.catalog.schedules.letters import letters
from hopbound.catalog.schedules.listed import listed
from hopbound.catalog.schedules.offset import period_and_offset
from hopbound.catalog.schedules.parallel import all_alike
from hopbound.catalog.schedules.tiles import tiles
from hopbound.catalog.schedules.way import FULL, LINEAR, SLIDING, Way, Words, ruled

__all__ = [
    "FULL",
    "LINEAR",
    "SLIDING",
    "Way",
    "Words",
    "all_alike",
    "every",
    "flags",
    "gated_window",
    "letters",
    "listed",
    "marked",
    "named_indices",
    "period_and_offset",
    "rope_gate",
    "ruled",
    "spaced",
    "tiles",
    "window_everywhere",
]
