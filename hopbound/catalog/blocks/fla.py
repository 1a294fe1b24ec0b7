"""Mixers under the names of flash-linear-attention's config files, which say more of a mixer than transformers' do."""

from dataclasses import dataclass
from math import ceil, isclose
from typing import Literal

from hopbound.architecture import MixerSpec, mixer_spec
from hopbound.catalog.blocks.recurrent import whole, with_shifts
from hopbound.catalog.fields import ABSENT, Fields
from hopbound.catalog.model import Block

CONV_SIZE = 4


def scaled(fields: Fields, total: int, *names: str, derived: float = 1.0) -> int:
    """A width times a factor that a field gives.

    Args:
        fields: of the layer.
        total: the width.
        names: of the field.
        derived: the factor where the file does not give it.

    Raises:
        InputError: it is no factor, or the product is no whole number.
    """
    factor = fields.real(*names, derived=derived)
    product = round(total * factor)
    if product < 1 or not isclose(total * factor, product):
        raise fields.error(names[0], factor, f"a factor that makes a whole number of {total}")
    return fields.checked(names[0], product)


def unless_null(fields: Fields, name: str, default: int) -> int | None:
    """A whole number whose null means something else (None) than its absence, for which the class has a default.

    Raises:
        InputError: it is no whole number of at least 1.
    """
    if fields.find(name)[1] is ABSENT:
        fields.notes.assume(f"{fields.path}{name}", default)
        return default
    return fields.maybe(name)


def short_convolution(fields: Fields, mixer: MixerSpec, channels: int, *, default: bool) -> Block:
    """A mixer with its short convolution, if it has one."""
    if not fields.flag("use_short_conv", derived=default):
        return Block(mixers=(mixer,))
    sizes = {"channels": channels, "kernel": fields.number("conv_size", derived=CONV_SIZE)}
    conv = mixer_spec("conv", sizes)
    return Block.beside((mixer,), conv)


@dataclass(frozen=True)
class Expanded:
    """A matrix state whose key and value widths are fractions of the hidden width.

    Attributes:
        name: of the mixer; `recurrence` where the table has none of its kind.
        heads: their number where the file does not say.
        expand_k: the fraction of the keys.
        expand_v: the fraction of the values.
        conv: whether there is a short convolution unless the file says otherwise; None: the class has none.
    """

    name: str
    heads: int
    expand_k: float = 1.0
    expand_v: float = 1.0
    conv: bool | None = None

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        width, heads = fields.number("hidden_size"), fields.number("num_heads", derived=self.heads)
        keys = scaled(fields, width, "expand_k", "exapnd_k", derived=self.expand_k)
        values = scaled(fields, width, "expand_v", "exapnd_v", derived=self.expand_v)
        dims = {
            "head_dim": whole(fields, "num_heads", keys, heads),
            "value_dim": whole(fields, "num_heads", values, heads),
        }
        if self.name == "recurrence":
            mixer = mixer_spec("recurrence", {"state": keys * dims["value_dim"], "channels": max(keys, values)})
        else:
            mixer = mixer_spec(self.name, {"heads": heads, **dims})
        channels = grouped_channels(fields, keys, values, heads)
        if self.conv is None:
            return Block(mixers=(mixer,))
        return short_convolution(fields, mixer, channels, default=self.conv)


def grouped_channels(fields: Fields, keys: int, values: int, heads: int) -> int:
    """Channels of the convolutions of queries, keys and values, of which heads may share keys and values.

    Raises:
        InputError: `num_kv_heads` is no divisor of the heads.
    """
    kv_heads = fields.number("num_kv_heads", derived=heads)
    groups = whole(fields, "num_kv_heads", heads, kv_heads)
    return keys + keys // groups + values // groups


@dataclass(frozen=True)
class DeltaHeads:
    """A delta rule whose head dimension is given, with value heads that may share keys.

    Attributes:
        name: of the mixer; `recurrence` where the table has none of its kind.
        heads: their number where the file does not say.
        head_dim: their dimension where the file does not say.
        expand_v: the value dimension over the key dimension.
        shared: whether `num_v_heads` value heads may share fewer key heads.
        diagonal: of which heads a preconditioner, a number a key channel, is kept too.
    """

    name: str
    heads: int
    head_dim: int
    expand_v: float
    shared: bool = True
    diagonal: Literal["", "keys", "values"] = ""

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        keys = fields.number("num_heads", derived=self.heads)
        heads = fields.number("num_v_heads", derived=keys) if self.shared else keys
        if heads % keys:
            raise fields.error("num_v_heads", heads, f"a multiple of num_heads={keys}")
        dim = fields.number("head_dim", derived=self.head_dim)
        value = scaled(fields, dim, "expand_v", derived=self.expand_v)
        steps = fields.number("num_householder", derived=1) if self.name == "deltaproduct" else 1
        sizes = {"heads": heads, "key_heads": keys, "head_dim": dim, "value_dim": value}
        if self.name == "recurrence":
            state = heads * dim * value + {"": 0, "keys": keys, "values": heads}[self.diagonal] * dim
            mixer = mixer_spec("recurrence", {"state": state, "channels": heads * max(dim, value)})
        elif self.name == "deltaproduct":
            mixer = mixer_spec(self.name, {**sizes, "steps": steps})
        else:
            mixer = mixer_spec(self.name, sizes)
        channels = keys * dim + steps * (keys * dim + heads * value)
        return short_convolution(fields, mixer, channels, default=True)


def hgrn(fields: Fields) -> Block:
    """HGRN: a gated average of each channel, with convolutions of its input and of its forget gate."""
    channels = scaled(fields, fields.number("hidden_size"), "expand_ratio")
    mixer = mixer_spec("recurrence", {"state": channels, "channels": channels})
    return short_convolution(fields, mixer, 2 * channels, default=False)


def _expansion(fields: Fields, width: int) -> tuple[int, int]:
    """Heads, and the key channels of each: one follows from the other where it is null.

    Raises:
        InputError: neither is given, or one does not divide the width.
    """
    ratio, heads = unless_null(fields, "expand_ratio", 128), fields.maybe("num_heads")
    if heads is None:
        if ratio is None:
            raise fields.error("expand_ratio", None, "a whole number, as num_heads is null too")
        heads = whole(fields, "expand_ratio", width, ratio)
    return heads, ratio if ratio is not None else whole(fields, "num_heads", width, heads)


def hgrn2(fields: Fields) -> Block:
    """HGRN 2: heads of the expansion's width."""
    width = fields.number("hidden_size")
    heads, ratio = _expansion(fields, width)
    mixer = mixer_spec(
        "hgrn2", {"heads": heads, "head_dim": ratio, "value_dim": whole(fields, "num_heads", width, heads)}
    )
    return short_convolution(fields, mixer, 2 * heads * ratio + width, default=False)


@dataclass(frozen=True)
class Slots:
    """Slots of keys and of values (ABC, GSA, Raven).

    Attributes:
        expand_k: the fraction of the keys where the file does not say.
        conv: whether the class has short convolutions.
    """

    expand_k: float = 1.0
    conv: bool = True

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer; every head has slots of its own."""
        width, heads = fields.number("hidden_size"), fields.number("num_heads", derived=4)
        keys = scaled(fields, width, "expand_k", "exapnd_k", derived=self.expand_k)
        values = scaled(fields, width, "expand_v", "exapnd_v")
        key_dim = whole(fields, "num_heads", keys, heads)
        whole(fields, "num_heads", values, heads)
        slots = unless_null(fields, "num_slots", 64) or key_dim
        mixer = mixer_spec("recurrence", {"state": slots * (keys + values), "channels": max(keys, values)})
        channels = grouped_channels(fields, keys, values, heads)
        return short_convolution(fields, mixer, channels, default=False) if self.conv else Block(mixers=(mixer,))


def lightnet(fields: Fields) -> Block:
    """LightNet: a matrix a head and a normaliser a key channel."""
    width = fields.number("hidden_size")
    heads, ratio = _expansion(fields, width)
    keys = heads * ratio
    state = keys * whole(fields, "num_heads", width, heads) + keys
    mixer = mixer_spec("recurrence", {"state": state, "channels": max(keys, width)})
    return short_convolution(fields, mixer, 2 * keys + width, default=False)


def rwkv6(fields: Fields) -> Block:
    """RWKV-6."""
    width, heads = fields.number("hidden_size"), fields.number("num_heads", derived=4)
    keys = scaled(fields, width, "expand_k", derived=0.5)
    values = scaled(fields, width, "expand_v")
    sizes = {
        "heads": heads,
        "head_dim": whole(fields, "num_heads", keys, heads),
        "value_dim": whole(fields, "num_heads", values, heads),
    }
    return with_shifts(mixer_spec("rwkv6", sizes), width)


def rwkv7(fields: Fields) -> Block:
    """RWKV-7: the head dimension counts, whatever the file says of the number of heads."""
    width = fields.number("hidden_size")
    dim = unless_null(fields, "head_dim", 64)
    if dim is None:
        heads = fields.number("num_heads")
        dim = whole(fields, "num_heads", width, heads)
    heads = whole(fields, "head_dim", width, dim)
    told = fields.maybe("num_heads")
    if told is not None and told != heads:
        fields.notes.say(f"num_heads={told} is not used: head_dim={dim} makes {heads} heads")
    value = whole(fields, "value_dim", _value_width(fields, width), heads)
    return with_shifts(mixer_spec("rwkv7", {"heads": heads, "head_dim": dim, "value_dim": value}), width)


def _value_width(fields: Fields, width: int) -> int:
    """RWKV-7's value channels: the hidden width, one number, or a number a layer.

    Raises:
        InputError: it is none of these, or a list that does not have a number for each layer.
    """
    given = fields.raw.get("value_dim")
    if given is None:
        return width
    if not isinstance(given, list):
        return fields.number("value_dim")
    listed, layers = fields.numbers("value_dim", least=1) or [], fields.number("num_hidden_layers")
    if len(listed) != layers:
        raise fields.error("value_dim", f"{len(listed)} numbers", f"{layers} numbers, one a layer")
    return listed[fields.index]


def mesa_net(fields: Fields) -> Block:
    """MesaNet: key by key and key by value matrices, and convolutions of queries and keys in every case."""
    heads, dim = fields.number("num_heads", derived=16), fields.number("head_dim", derived=128)
    mixer = mixer_spec("recurrence", {"state": 2 * heads * dim * dim, "channels": heads * dim})
    sizes = {"channels": 2 * heads * dim, "kernel": fields.number("conv_size", derived=CONV_SIZE)}
    return Block.beside((mixer,), mixer_spec("conv", sizes))


def memories(fields: Fields) -> Block:
    """Mixture of memories: a delta rule's matrix for each memory, and one that all share."""
    heads, dim = fields.number("num_heads", derived=4), fields.number("head_dim", derived=256)
    count = fields.number("num_memories", derived=4) + fields.flag("shared_mem", derived=True)
    value = scaled(fields, dim, "expand_v")
    sizes = {"state": count * heads * dim * value, "channels": heads * max(dim, value)}
    channels = count * heads * (2 * dim + value)
    return short_convolution(fields, mixer_spec("recurrence", sizes), channels, default=True)


def rodimus(fields: Fields) -> Block:
    """Rodimus: twice the hidden width, rounded up to a multiple of 8; with a window beside it in the plus."""
    width = fields.number("hidden_size")
    inner = ceil(2 * width / 8) * 8
    ratio = fields.number("expand_ratio", derived=64)
    mixer = mixer_spec("recurrence", {"state": inner * ratio, "channels": inner})
    block = short_convolution(fields, mixer, inner, default=True)
    kind = fields.one_of("block_type", fields.text("block_type") or "rodimus_plus", ("rodimus", "rodimus_plus"))
    if kind == "rodimus":
        return block
    place = fields.child("ska_attn")
    if place is None:
        raise fields.error("ska_attn", None, "an object with `num_heads`, as block_type is rodimus_plus")
    heads, wide = place.number("num_heads"), unless_null(place, "window_size", 1024)
    if wide is None:
        fields.notes.say("ska_attn.window_size is null: no window")
    # One key is shared by all heads, each of which has values of its own.
    sizes = {"heads": heads, "kv_heads": 1, "head_dim": whole(place, "num_heads", width, heads), "value_dim": width}
    shared = mixer_spec("full", sizes) if wide is None else mixer_spec("window", {**sizes, "w": wide})
    return Block(mixers=(*block.mixers, shared), helpers=block.helpers)


def mamba3(fields: Fields) -> Block:
    """Mamba-3: state, rotation angles, and the last key (one a rank) and value of each head."""
    inner = scaled(fields, fields.number("hidden_size"), "expand", derived=2.0)
    dim, state = fields.number("head_dim", derived=64), fields.number("state_size", derived=128)
    heads = whole(fields, "head_dim", inner, dim)
    told = fields.maybe("num_heads")
    if told is not None and told != heads:
        raise fields.error("num_heads", told, f"expand * hidden_size / head_dim = {heads}")
    angles = scaled(fields, state, "rope_fraction", derived=0.5) // 2
    rank = fields.number("mimo_rank", derived=4) if fields.flag("is_mimo", derived=False) else 1
    held = heads * (dim * state + angles + rank * state + dim)
    return Block(mixers=(mixer_spec("recurrence", {"state": held, "channels": inner}),))


def log_linear_mamba2(fields: Fields) -> Block:
    """Log-linear Mamba-2: a state for each power of two of the context that the file gives."""
    context = fields.number("max_position_embeddings", derived=2048)
    heads, dim = fields.number("num_heads", derived=64), fields.number("head_dim", derived=64)
    state = fields.number("state_size", derived=128)
    levels = context.bit_length() + 1
    fields.notes.say(f"{levels} levels of state: enough for the {context} tokens of max_position_embeddings")
    mixer = mixer_spec("loglinear", {"heads": heads, "head_dim": state, "value_dim": dim, "levels": levels})
    channels = heads * dim + 2 * fields.number("n_groups", derived=1) * state
    conv = mixer_spec("conv", {"channels": channels, "kernel": fields.number("conv_kernel", derived=CONV_SIZE)})
    return Block.beside((mixer,), conv)
