"""A real model as this project sees it: layers with their mixers, what each keeps, and in which precision.

Sizes are those of the mixers (`architecture`); what a file adds is which layers share a cache, what engines allocate
for convolutions, and how long a context the model was made for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from hopbound.architecture import Architecture, Kind, Layer, MixerSpec, Precisions, mixer_spec
from hopbound.architecture.sizes import Columns, GroupedHeads, OpenState, TransientGlobalAttention, WindowAttention
from hopbound.catalog.fields import Fields

KINDS = ("full", "sparse", "window", "chunked", "recurrent", "conv", "mlp")
_KIND_OF = {
    "topk": "sparse",
    "dsa": "sparse",
    "indexed": "sparse",
    "moba": "sparse",
    "nsa": "sparse",
    "compressed": "sparse",
    "bigbird": "sparse",
    "tglobal": "sparse",
    "window": "window",
    "longformer": "window",
    "h2o": "window",
    "adakv": "window",
    "chunk": "chunked",
    "block": "chunked",
    "conv": "conv",
    "shift": "conv",
    "mlp": "mlp",
}


def kind_word(mixer: MixerSpec) -> str:
    """In which layer list of an answer a mixer belongs."""
    default = "full" if mixer.kind is Kind.FULL else "recurrent"
    return _KIND_OF.get(mixer.name, default)


@dataclass(frozen=True, kw_only=True)
class Block:
    """What one layer of a file comes to.

    Attributes:
        mixers: in parallel, helpers (convolutions and shifts beside a mixer) among them.
        helpers: those of the mixers that do not count as a kind of their own.
        allocated: elements that common engines allocate for convolutions; None: k columns for a kernel of k.
    """

    mixers: tuple[MixerSpec, ...]
    helpers: tuple[MixerSpec, ...] = ()
    allocated: int | None = None

    @classmethod
    def beside(cls, main: Sequence[MixerSpec], helper: MixerSpec, allocated: int | None = None) -> "Block":
        """Mixers with a helper beside them."""
        return cls(mixers=(*main, helper), helpers=(helper,), allocated=allocated)


Builder = Callable[[Fields], Block]
"""From the fields that one layer sees to its block."""


@dataclass(frozen=True, kw_only=True)
class ModelLayer:
    """One layer of a model.

    Attributes:
        index: from 0.
        layer: its mixers in parallel.
        kinds: words of `KINDS`, each once.
        kv_shared_from: the layer whose keys and values it reads instead of some of its own; None if it has its own.
        weights_from: the layer whose weights it shares; None if it has its own.
        conv_allocated: elements that common engines allocate for its convolutions (k columns, of which k-1 are needed).
    """

    index: int
    layer: Layer
    kinds: tuple[str, ...]
    kv_shared_from: int | None = None
    weights_from: int | None = None
    conv_allocated: int = 0

    @classmethod
    def of(cls, index: int, block: Block) -> "ModelLayer":
        """The layer of a block."""
        main = [mixer for mixer in block.mixers if mixer not in block.helpers]
        kinds = tuple(dict.fromkeys(kind_word(mixer) for mixer in main))
        allocated = sum(map(_allocated, block.mixers)) if block.allocated is None else block.allocated
        return cls(index=index, layer=Layer(block.mixers), kinds=kinds, conv_allocated=allocated)

    @property
    def window(self) -> int | None:
        """Tokens of its window or chunk, the token itself included; None if it has none."""
        widths = [w for m in self.layer.mixers if (w := getattr(m, "w", None)) is not None]
        return max(widths, default=None)

    @property
    def kv_elements(self) -> Fraction:
        """Keys and values of one token: of every token in a full layer, of those in sight in a window."""
        if self.kv_shared_from is not None:
            return Fraction(self._index_keys)
        return sum((_one_token(mixer) for mixer in self.layer.mixers), Fraction(0))

    @property
    def kv_elements_for_ever(self) -> Fraction:
        """What each token adds to the cache for ever."""
        if self.kv_shared_from is not None:
            return Fraction(self._index_keys)
        held = [mixer.elements for mixer in self.layer.mixers]
        return sum((Fraction(e.kv_per_token, e.kv_every) for e in held), Fraction(0))

    def kv_elements_at(self, context: int) -> int:
        """Cached keys and values after `context` tokens; a window of W tokens keeps W - 1."""
        if self.kv_shared_from is not None:
            return self._index_keys * context
        total = 0
        for mixer in self.layer.mixers:
            held = mixer.elements
            total += context // held.kv_every * held.kv_per_token
            kept = held.window
            if isinstance(mixer, GroupedHeads):
                kept = min(kept, mixer.one_token * context)
            total += kept
        return total

    @property
    def _index_keys(self) -> int:
        """Numbers of a token's index key, which a layer keeps even where it reads another's keys and values."""
        return sum(getattr(mixer, "index_dim", 0) for mixer in self.layer.mixers)

    @property
    def state_elements(self) -> int:
        """Recurrent state."""
        return sum(mixer.elements.state for mixer in self.layer.mixers)

    @property
    def conv_elements(self) -> int:
        """Columns of convolutions that are needed: k-1 of each."""
        return sum(mixer.elements.conv for mixer in self.layer.mixers)

    @property
    def own(self) -> Layer:
        """The layer without what it takes from another: one whose keys and values are shared looks nothing up."""
        if self.kv_shared_from is None:
            return self.layer
        kept = tuple(m for m in self.layer.mixers if not isinstance(m, GroupedHeads) and m.kind is not Kind.FULL)
        return Layer(kept or (mixer_spec("mlp"),))


def _one_token(mixer: MixerSpec) -> Fraction:
    held = mixer.elements
    if isinstance(mixer, GroupedHeads) and not isinstance(mixer, TransientGlobalAttention) and held.window:
        return Fraction(mixer.one_token)
    if isinstance(mixer, WindowAttention):  # a window of one token
        return Fraction(mixer.one_token)
    return Fraction(held.kv_per_token, held.kv_every)


def _allocated(mixer: MixerSpec) -> int:
    """Elements of the k columns that engines keep for a convolution of width k; shifts and open columns as they are."""
    needed = mixer.elements.conv
    if isinstance(mixer, OpenState) or mixer.name == "shift":
        return needed
    width = mixer.kernel if isinstance(mixer, Columns) else getattr(mixer, "conv", 0)
    if width < 2:
        return mixer.width * width if isinstance(mixer, Columns) else 0
    return needed // (width - 1) * width


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model.

    Attributes:
        name: as it was asked for.
        model_type: of its config; empty for a schedule.
        layers: from the input to the output.
        precisions: bits of what it keeps.
        context: tokens it was made for; None if the file does not say.
        notes: everything that the reading assumed, and what is left out.
    """

    name: str
    model_type: str
    layers: tuple[ModelLayer, ...]
    precisions: Precisions
    context: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of_architecture(cls, name: str, architecture: Architecture, notes: Sequence[str] = ()) -> "Model":
        """The model of a schedule."""
        layers = tuple(ModelLayer.of(i, Block(mixers=layer.mixers)) for i, layer in enumerate(architecture.layers))
        return cls(name=name, model_type="", layers=layers, precisions=architecture.precisions, notes=tuple(notes))

    @cached_property
    def architecture(self) -> Architecture:
        """The stack, for bounds: layers that share keys and values count as if they had their own."""
        return Architecture(tuple(layer.layer for layer in self.layers), self.precisions)

    @cached_property
    def own_architecture(self) -> Architecture:
        """The stack, for constructions: layers that share keys and values are left out."""
        return Architecture(tuple(layer.own for layer in self.layers), self.precisions)

    def of_kind(self, kind: str) -> tuple[int, ...]:
        """Indices of the layers of a kind."""
        return tuple(layer.index for layer in self.layers if kind in layer.kinds)

    def with_bits(self, *, every: int | None = None, kv: int | None = None, state: int | None = None) -> "Model":
        """The same model with every number, its keys and values, or its recurrent state, kept in so many bits.

        Raises:
            InputError: a number of bits out of range.
        """
        base = self.precisions if every is None else Precisions.uniform(every)
        changed = replace(base, kv=base.kv if kv is None else kv, state=base.state if state is None else state)
        return replace(self, precisions=changed)

    @property
    def kv_bytes_per_token(self) -> Fraction:
        """Bytes that one more token adds for ever."""
        return sum((layer.kv_elements_for_ever for layer in self.layers), Fraction(0)) * self.precisions.kv / 8

    def kv_bytes(self, context: int) -> Fraction:
        """Bytes of keys and values after `context` tokens, windows and chunks capped."""
        return Fraction(sum(layer.kv_elements_at(context) for layer in self.layers) * self.precisions.kv, 8)

    @property
    def state_bytes(self) -> Fraction:
        """Bytes of recurrent state."""
        return Fraction(sum(layer.state_elements for layer in self.layers) * self.precisions.state, 8)

    @property
    def conv_bytes(self) -> Fraction:
        """Bytes of the columns that convolutions need."""
        return Fraction(sum(layer.conv_elements for layer in self.layers) * self.precisions.activation, 8)

    @property
    def conv_bytes_allocated(self) -> Fraction:
        """Bytes of the columns that common engines allocate."""
        return Fraction(sum(layer.conv_allocated for layer in self.layers) * self.precisions.activation, 8)
