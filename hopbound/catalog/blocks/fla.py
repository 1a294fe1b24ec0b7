"""Mixers under the names of flash-linear-attention's config files, which say more of a mixer than transformers' do."""

from dataclasses import dataclass
from math import ceil

from hopbound.architecture import MixerSpec, mixer_spec
from hopbound.catalog.blocks.recurrent import whole, with_shifts
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block

CONV_SIZE = 4


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
        conv: whether there is a short convolution unless the file says otherwise.
    """

    name: str
    heads: int
    expand_k: float = 1.0
    expand_v: float = 1.0
    conv: bool = False

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        width, heads = fields.number("hidden_size"), fields.number("num_heads", derived=self.heads)
        keys = int(width * fields.real("expand_k", "exapnd_k", derived=self.expand_k))
        values = int(width * fields.real("expand_v", "exapnd_v", derived=self.expand_v))
        dims = {
            "head_dim": whole(fields, "num_heads", keys, heads),
            "value_dim": whole(fields, "num_heads", values, heads),
        }
        groups = heads // fields.number("num_kv_heads", derived=heads)
        if self.name == "recurrence":
            mixer = mixer_spec("recurrence", {"state": keys * dims["value_dim"], "channels": max(keys, values)})
        else:
            mixer = mixer_spec(self.name, {"heads": heads, **dims})
        channels = 2 * keys + values if groups <= 1 else 2 * (keys // groups) + values // groups
        return short_convolution(fields, mixer, channels, default=self.conv)


@dataclass(frozen=True)
class DeltaHeads:
    """A delta rule whose head dimension is given, with value heads that may share keys.

    Attributes:
        name: of the mixer; `recurrence` where the table has none of its kind.
        heads: their number where the file does not say.
        head_dim: their dimension where the file does not say.
        expand_v: the value dimension over the key dimension.
        diagonal: whether a preconditioner of a number a key channel is kept too.
    """

    name: str
    heads: int
    head_dim: int
    expand_v: float
    diagonal: bool = False

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        keys = fields.number("num_heads", derived=self.heads)
        heads = fields.number("num_v_heads", derived=keys)
        if heads % keys:
            raise fields.error("num_v_heads", heads, f"a multiple of num_heads={keys}")
        dim = fields.number("head_dim", derived=self.head_dim)
        value = fields.checked("expand_v", int(dim * fields.real("expand_v", derived=self.expand_v)))
        steps = fields.number("num_householder", derived=2) if self.name == "deltaproduct" else 1
        sizes = {"heads": heads, "key_heads": keys, "head_dim": dim, "value_dim": value}
        if self.name == "recurrence":
            state = heads * dim * value + (heads * dim if self.diagonal else 0)
            mixer = mixer_spec("recurrence", {"state": state, "channels": heads * max(dim, value)})
        elif self.name == "deltaproduct":
            mixer = mixer_spec(self.name, {**sizes, "steps": steps})
        else:
            mixer = mixer_spec(self.name, sizes)
        channels = keys * dim + steps * (keys * dim + heads * value)
        return short_convolution(fields, mixer, channels, default=True)


def hgrn(fields: Fields) -> Block:
    """HGRN: a gated average of each channel."""
    channels = int(fields.number("hidden_size") * fields.real("expand_ratio", derived=1.0))
    mixer = mixer_spec("recurrence", {"state": fields.checked("expand_ratio", channels), "channels": channels})
    return short_convolution(fields, mixer, channels, default=False)


def hgrn2(fields: Fields) -> Block:
    """HGRN 2: heads of the expansion's width."""
    width, ratio = fields.number("hidden_size"), fields.number("expand_ratio", derived=128)
    heads = fields.maybe("num_heads")
    if heads is None:
        heads = whole(fields, "expand_ratio", width, ratio)
    mixer = mixer_spec(
        "hgrn2", {"heads": heads, "head_dim": ratio, "value_dim": whole(fields, "num_heads", width, heads)}
    )
    return short_convolution(fields, mixer, 2 * heads * ratio + width, default=False)


def slots(fields: Fields) -> Block:
    """Slots of keys and of values (ABC, GSA, Raven)."""
    width = fields.number("hidden_size")
    keys = int(width * fields.real("expand_k", "exapnd_k", derived=0.5))
    values = int(width * fields.real("expand_v", "exapnd_v", derived=1.0))
    state = fields.number("num_slots") * (keys + values)
    mixer = mixer_spec("recurrence", {"state": state, "channels": max(keys, values)})
    return short_convolution(fields, mixer, 2 * keys + values, default=False)


def lightnet(fields: Fields) -> Block:
    """LightNet: a matrix a head and a normaliser a key channel."""
    width = fields.number("hidden_size")
    ratio = fields.number("expand_ratio", derived=128)
    heads = fields.maybe("num_heads")
    if heads is None:
        heads = whole(fields, "expand_ratio", width, ratio)
    keys = heads * ratio
    state = keys * whole(fields, "num_heads", width, heads) + keys
    return Block(mixers=(mixer_spec("recurrence", {"state": state, "channels": max(keys, width)}),))


def rwkv6(fields: Fields) -> Block:
    """RWKV-6."""
    width, heads = fields.number("hidden_size"), fields.number("num_heads", derived=4)
    keys = int(width * fields.real("expand_k", derived=0.5))
    values = int(width * fields.real("expand_v", derived=1.0))
    sizes = {
        "heads": heads,
        "head_dim": whole(fields, "num_heads", keys, heads),
        "value_dim": whole(fields, "num_heads", values, heads),
    }
    return with_shifts(mixer_spec("rwkv6", sizes), width)


def rwkv7(fields: Fields) -> Block:
    """RWKV-7: the head dimension counts, whatever the file says of the number of heads."""
    width = fields.number("hidden_size")
    dim = fields.maybe("head_dim")
    if dim is None:
        heads = fields.number("num_heads")
        dim = whole(fields, "num_heads", width, heads)
    heads = whole(fields, "head_dim", width, dim)
    told = fields.maybe("num_heads")
    if told is not None and told != heads:
        fields.notes.say(f"num_heads={told} is not used: head_dim={dim} makes {heads} heads")
    value = dim
    given = fields.raw.get("value_dim")
    if isinstance(given, list):
        wide = fields.numbers("value_dim", least=1) or []
        if fields.index >= len(wide):
            raise fields.error("value_dim", f"{len(wide)} numbers", f"one for layer {fields.index}")
        value = whole(fields, "value_dim", wide[fields.index], heads)
    elif given is not None:
        value = whole(fields, "value_dim", fields.number("value_dim"), heads)
    return with_shifts(mixer_spec("rwkv7", {"heads": heads, "head_dim": dim, "value_dim": value}), width)


def mesa_net(fields: Fields) -> Block:
    """MesaNet: key by key and key by value matrices."""
    heads, dim = fields.number("num_heads"), fields.number("head_dim", derived=128)
    value = fields.checked("expand_v", int(dim * fields.real("expand_v", derived=1.0)))
    mixer = mixer_spec("recurrence", {"state": heads * dim * (dim + value), "channels": heads * max(dim, value)})
    return short_convolution(fields, mixer, 2 * heads * dim, default=True)


def memories(fields: Fields) -> Block:
    """Mixture of memories: a delta rule's matrix for each memory, and one that all share."""
    heads, dim = fields.number("num_heads", derived=4), fields.number("head_dim", derived=256)
    count = fields.number("num_memories", derived=4) + fields.flag("shared_mem", derived=True)
    value = fields.checked("expand_v", int(dim * fields.real("expand_v", derived=1.0)))
    sizes = {"state": count * heads * dim * value, "channels": heads * max(dim, value)}
    channels = count * heads * (2 * dim + value)
    return short_convolution(fields, mixer_spec("recurrence", sizes), channels, default=True)


def rodimus(fields: Fields) -> Block:
    """Rodimus: an inner width of twice the hidden one, rounded up to a multiple of 8."""
    inner = ceil(2 * fields.number("hidden_size") / 8) * 8
    ratio = fields.number("expand_ratio", derived=64)
    mixer = mixer_spec("recurrence", {"state": inner * ratio, "channels": inner})
    sizes = {"channels": inner, "kernel": fields.number("conv_size", derived=CONV_SIZE)}
    conv = mixer_spec("conv", sizes)
    return Block.beside((mixer,), conv)


def log_linear_mamba2(fields: Fields) -> Block:
    """Log-linear Mamba-2: a state for each power of two of the context that the file gives."""
    context = fields.number("max_position_embeddings", derived=2048)
    heads, dim, state = fields.number("num_heads"), fields.number("head_dim"), fields.number("state_size")
    levels = context.bit_length() + 1
    fields.notes.say(f"{levels} levels of state: enough for the {context} tokens of max_position_embeddings")
    mixer = mixer_spec("loglinear", {"heads": heads, "head_dim": state, "value_dim": dim, "levels": levels})
    channels = heads * dim + 2 * fields.number("n_groups", derived=1) * state
    conv = mixer_spec("conv", {"channels": channels, "kernel": fields.number("conv_kernel", derived=CONV_SIZE)})
    return Block.beside((mixer,), conv)


def attention(fields: Fields, name: str = "full") -> Block:
    """Softmax attention over the whole past, or over `window_size` tokens where that is given."""
    width = fields.number("hidden_size")
    heads = fields.number("num_heads", "num_attention_heads")
    kv_heads = fields.number("num_kv_heads", "num_key_value_heads", derived=heads)
    if heads % kv_heads:
        raise fields.error("num_kv_heads", kv_heads, f"a divisor of num_heads={heads}")
    dim = fields.maybe("head_dim") or whole(fields, "num_heads", width, heads)
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": dim}
    wide = fields.maybe("window_size")
    if wide is not None and name == "full":
        return Block(mixers=(mixer_spec("window", {**sizes, "w": wide}),))
    if name == "path":
        conv = mixer_spec("conv", {"channels": kv_heads * dim, "kernel": fields.number("conv_size", derived=3)})
        gated = fields.flag("use_forget_gate", derived=False)
        core = mixer_spec("path" if gated else "full", sizes)
        return Block.beside((core,), conv)
    return Block(mixers=(mixer_spec(name, sizes),))


def forgetting(fields: Fields) -> Block:
    """Attention with a forget gate."""
    return attention(fields, "fox")


def path(fields: Fields) -> Block:
    """Attention whose positions are products of reflections."""
    return attention(fields, "path")
