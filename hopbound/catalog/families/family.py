"""What a family of models is: how its files write the schedule, and what the words of the schedule mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hopbound.architecture import Precisions
from hopbound.catalog.blocks.recurrent import mlp
from hopbound.catalog.blocks.softmax import PLAIN, chunk, full, window
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Builder, ModelLayer
from hopbound.catalog.schedules import Way, all_alike, listed

After = Callable[[Fields, tuple[str, ...], list[ModelLayer]], list[ModelLayer]]
"""Changes the layers once they are all known: shared caches, repeated layers."""

COMMON: dict[str, Builder] = {
    "full_attention": full(PLAIN),
    "sliding_attention": window(),
    "chunked_attention": chunk(),
    "moe": mlp,
    "mlp": mlp,
}
"""What words mean where a family does not say otherwise."""


def float_state(fields: Fields, bits: int) -> Precisions:
    """Recurrent state in single precision, everything else in the model's dtype."""
    return Precisions(activation=bits, kv=bits, state=32)


def model_state(fields: Fields, bits: int) -> Precisions:
    """Recurrent state in the model's dtype too."""
    return Precisions(activation=bits, kv=bits, state=bits)


def float_columns(fields: Fields, bits: int) -> Precisions:
    """Columns of convolutions in single precision."""
    return Precisions(activation=32, kv=bits, state=32)


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of models.

    Attributes:
        types: its values of `model_type`.
        layers: the words of its schedules, beside the common ones.
        schedule: the ways in which its files write it, the one that wins first.
        count: fields of the number of layers.
        context: fields of the context that it was made for.
        precisions: from the bits of the model's dtype to those of everything that is kept.
        before: rewrites fields that mean something else in older files.
        after: what layers share with each other.
        aliases: other spellings of fields, beside those of the class.
        notes: what is to be said of each of its models.
    """

    types: tuple[str, ...]
    layers: Mapping[str, Builder] = field(default_factory=dict)
    schedule: tuple[Way, ...] = (listed(), all_alike())
    count: tuple[str, ...] = ("num_hidden_layers",)
    context: tuple[str, ...] = ("max_position_embeddings",)
    precisions: Callable[[Fields, int], Precisions] = float_state
    before: Callable[[Fields], Fields] = lambda fields: fields
    after: tuple[After, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def builder(self, word: str) -> Builder | None:
        """What a word means, None if nothing."""
        return self.layers.get(word, COMMON.get(word))

    @property
    def words(self) -> tuple[str, ...]:
        """All words that mean something."""
        return tuple(dict.fromkeys([*self.layers, *COMMON]))
