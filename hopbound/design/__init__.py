"""Which schedules make L hops at every choice of sizes with prompts of up to N tokens, and what the cheapest hold.

`hardest` says which sizes decide about all; `stacks` asks the claims there; `search` goes through the schedules;
`cost` says what they hold; `reasons` says why a design works; `schedules` puts it together. Standard library only.
"""

from hopbound.design.cost import Held, held
from hopbound.design.hardest import LONGEST, Hardest, HardSizes, hardest
from hopbound.design.reasons import Names, Placement
from hopbound.design.schedules import Design, Designs, FewerFull, design
from hopbound.design.search import Found, Situations, count_orders, minimal_counts, orders
from hopbound.design.stacks import Limit, limit, makes_hops, most_hops, plans, shortest_prompt

__all__ = [
    "LONGEST",
    "Design",
    "Designs",
    "FewerFull",
    "Found",
    "HardSizes",
    "Hardest",
    "Held",
    "Limit",
    "Names",
    "Placement",
    "Situations",
    "count_orders",
    "design",
    "hardest",
    "held",
    "limit",
    "makes_hops",
    "minimal_counts",
    "most_hops",
    "orders",
    "plans",
    "shortest_prompt",
]
