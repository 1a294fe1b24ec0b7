"""Softmax attention: heads, key-value heads and head dimension under the names of the field's config files."""

from dataclasses import dataclass

from hopbound.architecture import MixerSpec, mixer_spec
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block

HEADS, KV_HEADS, HEAD_DIM, WIDTH = ("num_attention_heads",), ("num_key_value_heads",), ("head_dim",), ("hidden_size",)


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Where a family keeps the sizes of its attention.

    Attributes:
        heads: fields of the number of query heads.
        kv_heads: fields of the number of key-value heads; none: as many as query heads.
        head_dim: fields of the head dimension; none: `width / heads` by definition.
        value_dim: fields of a head's value dimension; none: the head dimension.
        width: fields of the width that the heads share.
        times: how often that width is wide (2 where two hidden states are concatenated).
        one_kv: a flag that means a single key-value head.
    """

    heads: tuple[str, ...] = HEADS
    kv_heads: tuple[str, ...] = KV_HEADS
    head_dim: tuple[str, ...] = HEAD_DIM
    value_dim: tuple[str, ...] = ()
    width: tuple[str, ...] = WIDTH
    times: int = 1
    one_kv: str = ""

    def sizes(self, fields: Fields) -> dict[str, int]:
        """The sizes, checked against each other.

        Raises:
            InputError: one is missing, out of range, or does not divide.
        """
        heads = fields.number(*self.heads)
        if self.one_kv and fields.flag(self.one_kv):
            kv_heads = 1
        elif self.kv_heads:
            kv_heads = fields.number(*self.kv_heads, derived=heads)
        else:
            kv_heads = heads
        if heads % kv_heads:
            raise fields.error((*self.kv_heads, *self.heads)[0], kv_heads, f"a divisor of {self.heads[0]}={heads}")
        sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": self._head_dim(fields, heads)}
        if self.value_dim:
            sizes["value_dim"] = fields.number(*self.value_dim, derived=sizes["head_dim"])
        return sizes

    def _head_dim(self, fields: Fields, heads: int) -> int:
        given = fields.maybe(*self.head_dim) if self.head_dim else None
        if given is not None:
            return given
        width = self.times * fields.number(*self.width)
        if width % heads:
            raise fields.error(self.width[0], width, f"a multiple of {self.heads[0]}={heads}")
        if self.head_dim:
            fields.notes.assume(f"{fields.path}{self.head_dim[0]}", width // heads)
        return width // heads


PLAIN = Heads()
DEFINED = Heads(head_dim=())
ALL_HEADS = Heads(kv_heads=(), head_dim=())


@dataclass(frozen=True)
class Softmax:
    """Attention over the whole past, a window or a chunk.

    Attributes:
        where: the sizes.
        name: of the mixer.
        window: fields of the window; none for attention over the whole past.
        extra: what to add to the window, where a file does not count the token itself.
        halved: whether the file gives the whole width of a two-sided window.
    """

    where: Heads = PLAIN
    name: str = "full"
    window: tuple[str, ...] = ()
    extra: int = 0
    halved: bool = False

    def mixer(self, fields: Fields) -> MixerSpec:
        """The mixer of one layer.

        Raises:
            InputError: a size is missing or out of range.
        """
        sizes = self.where.sizes(fields)
        if self.window:
            width = fields.number(*self.window)
            width = (width // 2 if self.halved else width) + self.extra
            sizes["w"] = fields.checked(self.window[0], width)
        return mixer_spec(self.name, sizes)

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        return Block(mixers=(self.mixer(fields),))


def full(where: Heads = PLAIN) -> Softmax:
    """Attention over the whole past."""
    return Softmax(where)


def window(*names: str, where: Heads = PLAIN, extra: int = 0, halved: bool = False) -> Softmax:
    """Attention over a window; `sliding_window` where no field is named."""
    return Softmax(where, "window", names or ("sliding_window",), extra, halved)


def chunk(*names: str, where: Heads = PLAIN) -> Softmax:
    """Attention inside chunks."""
    return Softmax(where, "chunk", names or ("attention_chunk_size",))


def latent(fields: Fields) -> Block:
    """Multi-head latent attention whose cache holds the latent and the rotary key."""
    return Block(mixers=(mixer_spec("mla", latent_sizes(fields)),))


def latent_sizes(fields: Fields) -> dict[str, int]:
    """The sizes of multi-head latent attention.

    Raises:
        InputError: one is missing or out of range.
    """
    return {
        "heads": fields.number("num_attention_heads"),
        "latent": fields.number("kv_lora_rank"),
        "rope_dim": fields.number("qk_rope_head_dim", least=0),
        "value_dim": fields.number("v_head_dim"),
    }


def latent_if_rotary(fields: Fields) -> Fields:
    """The fields of latent attention some of whose layers have no rotary positions, and so keep no rotary part.

    `no_rope_layers` says which, 1 meaning *with* rotary positions; without it one in `no_rope_layer_interval`.

    Raises:
        InputError: the list says nothing of this layer, or something else than 0 or 1.
    """
    rotary = fields.numbers("no_rope_layers", most=1)
    if rotary is None:
        with_positions = (fields.index + 1) % fields.number("no_rope_layer_interval", derived=4) != 0
    elif fields.index < len(rotary):
        with_positions = rotary[fields.index] == 1
    else:
        raise fields.error("no_rope_layers", f"{len(rotary)} numbers", f"one for layer {fields.index}")
    return fields if with_positions else fields.at(fields.index, {"qk_rope_head_dim": 0})


def latent_window(fields: Fields) -> Block:
    """Latent attention over a window: one key-value head, whose key is the rotary part and whose value the latent."""
    sizes = latent_sizes(fields)
    width = fields.number("sliding_window")
    given = {"heads": sizes["heads"], "kv_heads": 1, "head_dim": sizes["rope_dim"], "value_dim": sizes["latent"]}
    return Block(mixers=(mixer_spec("window", {**given, "w": width}),))
