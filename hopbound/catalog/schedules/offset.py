"""Period and offset: layer i is different where `i % period == offset`."""

from hopbound.catalog.fields import Fields
from hopbound.catalog.schedules.way import FULL, LINEAR, Way, Words, counted


def period_and_offset(
    period: str, offset: str, *, word: str = FULL, other: str = LINEAR, start: tuple[str, ...] = ()
) -> Way:
    """A period and an offset below it.

    Args:
        period: the field of the period.
        offset: the field of the offset.
        word: of the layers that are different.
        other: of the rest.
        start: words of the first layers, after which the count begins.
    """

    def way(fields: Fields, layers: int | None) -> Words | None:
        declared = fields.has(period) or fields.has(offset)
        length = fields.number(period)
        at = fields.number(offset, least=0)
        if at >= length:
            raise fields.error(offset, at, f"an offset below {period}={length}")
        n = counted(fields, layers)
        rest = tuple(word if i % length == at else other for i in range(max(n - len(start), 0)))
        return Words((*start, *rest)[:n], f"{period} and {offset}", declared)

    return way
