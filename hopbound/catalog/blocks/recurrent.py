"""Recurrences and convolutions under the names that transformers' config files give their sizes."""

from dataclasses import dataclass

from hopbound.architecture import MixerSpec, mixer_spec
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block, Builder


def whole(fields: Fields, name: str, total: int, parts: int) -> int:
    """`total / parts`.

    Raises:
        InputError: it does not divide.
    """
    if total % parts:
        raise fields.error(name, parts, f"a divisor of {total}")
    return total // parts


def gated_delta(fields: Fields) -> Block:
    """Gated DeltaNet of Qwen3-Next and its kin: keys shared by groups of value heads."""
    heads = fields.number("linear_num_value_heads")
    keys = fields.number("linear_num_key_heads")
    if heads % keys:
        raise fields.error("linear_num_key_heads", keys, f"a divisor of linear_num_value_heads={heads}")
    sizes = {
        "heads": heads,
        "key_heads": keys,
        "head_dim": fields.number("linear_key_head_dim"),
        "value_dim": fields.number("linear_value_head_dim"),
        "conv": fields.number("linear_conv_kernel_dim"),
    }
    return Block(mixers=(mixer_spec("gdn", sizes),))


def gated_delta_by_width(fields: Fields) -> Block:
    """Gated DeltaNet of OLMo hybrids: sizes that follow from width and heads where they are not given."""
    heads = fields.number("num_attention_heads")
    keys = fields.number("linear_num_key_heads", derived=heads)
    values = fields.number("linear_num_value_heads", derived=heads)
    if values % keys:
        raise fields.error("linear_num_key_heads", keys, f"a divisor of linear_num_value_heads={values}")
    dim = fields.number("linear_key_head_dim", derived=max(3 * fields.number("hidden_size") // (4 * keys), 1))
    sizes = {
        "heads": values,
        "key_heads": keys,
        "head_dim": dim,
        "value_dim": fields.number("linear_value_head_dim", derived=2 * dim),
        "conv": fields.number("linear_conv_kernel_dim"),
    }
    if fields.flag("linear_allow_neg_eigval", derived=False):
        sizes["beta"] = 2
    return Block(mixers=(mixer_spec("gdn", sizes),))


# Sizes of Kimi Delta Attention, in an object of their own in released files, and flat in those of transformers.
_KDA_SIZES = {
    "heads": ("num_heads", "linear_num_heads"),
    "head_dim": ("head_dim", "linear_head_dim"),
    "conv": ("short_conv_kernel_size", "linear_conv_kernel_dim"),
}


def kimi_delta(fields: Fields) -> Block:
    """Kimi Delta Attention, its sizes in `linear_attn_config`; where that is silent the flat fields count."""
    place = fields.child("linear_attn_config")

    def size(inner: str, flat: str) -> int:
        return place.number(inner) if place is not None and place.has(inner) else fields.number(flat)

    return Block(mixers=(mixer_spec("kda", {key: size(*names) for key, names in _KDA_SIZES.items()}),))


def ling_delta(fields: Fields) -> Block:
    """Kimi Delta Attention of Ling 3, whose released files size it by the fields of the softmax layers.

    Its class copies them to `linear_…` and then overwrites `head_dim` by the rotary dimension, so that in the files
    that transformers saves `linear_head_dim` alone says how large the state is.
    """
    released = {"heads": "num_attention_heads", "head_dim": "head_dim", "conv": "short_conv_kernel_size"}
    names = {key: flat if fields.has(flat) else released[key] for key, (_, flat) in _KDA_SIZES.items()}
    return Block(mixers=(mixer_spec("kda", {key: fields.number(name) for key, name in names.items()}),))


def lightning(fields: Fields) -> Block:
    """Lightning attention of MiniMax: every head has keys and values of the head dimension."""
    heads = fields.number("num_attention_heads")
    width = fields.number("hidden_size")
    dim = fields.maybe("head_dim")
    if dim is None:
        dim = whole(fields, "num_attention_heads", width, heads)
        fields.notes.assume("head_dim", dim)
    return Block(mixers=(mixer_spec("lightning", {"heads": heads, "head_dim": dim}),))


def lightning_of_width(fields: Fields) -> Block:
    """Lightning attention whose heads share the width, whatever `head_dim` says of the softmax layers."""
    heads = fields.number("num_attention_heads")
    dim = whole(fields, "num_attention_heads", fields.number("hidden_size"), heads)
    return Block(mixers=(mixer_spec("lightning", {"heads": heads, "head_dim": dim}),))


@dataclass(frozen=True, kw_only=True)
class Mamba:
    """Mamba.

    Attributes:
        expand: field of the factor from hidden to inner width.
        state: field of the numbers a channel.
        conv: field of the convolution's width.
        inner: fields of the inner width, which win over the factor.
    """

    expand: str
    state: str
    conv: str
    inner: tuple[str, ...] = ()

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        channels = fields.maybe(*self.inner) if self.inner and fields.has(*self.inner) else None
        if channels is None:
            channels = int(fields.real(self.expand) * fields.number("hidden_size"))
        sizes = {
            "channels": fields.checked(self.expand, channels),
            "state": fields.number(self.state),
            "conv": fields.number(self.conv),
        }
        return Block(mixers=(mixer_spec("mamba", sizes),))


@dataclass(frozen=True, kw_only=True)
class Mamba2:
    """Mamba-2.

    Attributes:
        heads: field of the heads.
        head_dim: field of their channels; `auto` or absent: the inner width over the heads.
        state: field of the numbers a channel.
        groups: field of the groups that share B and C.
        conv: field of the convolution's width.
        expand: field of the factor from hidden to inner width; empty if the class has none.
        inner: field of the inner width, which wins over the factor.
        recomputed: whether the class computes `head_dim` itself, whatever the file says.
    """

    heads: str
    head_dim: str
    state: str
    groups: str
    conv: str
    expand: str = ""
    inner: str = ""
    recomputed: bool = False

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        heads = fields.number(self.heads)
        sizes = {
            "heads": heads,
            "head_dim": self._head_dim(fields, heads),
            "state": fields.number(self.state),
            "groups": fields.number(self.groups),
            "conv": fields.number(self.conv),
        }
        return Block(mixers=(mixer_spec("mamba2", sizes),))

    def _head_dim(self, fields: Fields, heads: int) -> int:
        name, value = fields.find(self.head_dim)
        automatic = (
            self.recomputed
            or value == "auto"
            or (not fields.has(self.head_dim) and fields.default(self.head_dim) == "auto")
        )
        if not automatic:
            found = fields.maybe(self.head_dim)
            if found is not None:
                self._check_inner(fields, heads, found)
                return found
        inner = fields.maybe(self.inner) if self.inner else None
        if inner is None:
            if not self.expand:
                raise fields.error(name, None, "a whole number of at least 1")
            inner = int(fields.real(self.expand) * fields.number("hidden_size"))
        return whole(fields, self.heads, inner, heads)

    def _check_inner(self, fields: Fields, heads: int, head_dim: int) -> None:
        """Where the file gives the inner width twice, both must agree."""
        inner = fields.maybe(self.inner) if self.inner and fields.has(self.inner) else None
        if inner is not None and inner != heads * head_dim:
            raise fields.error(self.inner, inner, f"{self.heads} times {self.head_dim}, {heads} * {head_dim}")


def rglru(fields: Fields) -> Block:
    """Real-gated linear recurrent unit of RecurrentGemma, whose engines keep the k-1 columns that are needed."""
    width = fields.number("lru_width", derived=fields.number("hidden_size"))
    mixer = mixer_spec("rglru", {"channels": width, "conv": fields.number("conv1d_width")})
    return Block(mixers=(mixer,), allocated=mixer.elements.conv)


@dataclass(frozen=True)
class ShortConv:
    """A convolution alone, over the hidden width.

    Attributes:
        kernel: field of its width.
    """

    kernel: str

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        sizes = {"channels": fields.number("hidden_size"), "kernel": fields.number(self.kernel)}
        return Block(mixers=(mixer_spec("conv", sizes),))


def xlstm(fields: Fields) -> Block:
    """mLSTM cells whose key and value widths are fractions of the hidden width, rounded up to a multiple of 64."""
    width, heads = fields.number("hidden_size"), fields.number("num_heads")
    multiple = fields.number("mlstm_round_up_to_multiple_of", derived=64)

    def rounded(name: str, fraction: float) -> int:
        total = -(-int(width * fields.real(name, derived=fraction)) // multiple) * multiple
        return whole(fields, "num_heads", fields.checked(name, total), heads)

    sizes = {"heads": heads, "head_dim": rounded("qk_dim_factor", 0.5), "value_dim": rounded("v_dim_factor", 1.0)}
    return Block(mixers=(mixer_spec("mlstm", sizes),))


def with_shifts(core: MixerSpec, width: int) -> Block:
    """A mixer, and the last token of the inputs of both halves of its block, which engines keep as they are."""
    shifts = mixer_spec("conv", {"channels": 2 * width, "kernel": 2})
    return Block.beside((core,), shifts, allocated=2 * width)


def rwkv4(fields: Fields) -> Block:
    """RWKV-4: numerator, denominator and maximum of each channel, and the shifts of both halves of a block."""
    width = fields.number("hidden_size")
    channels = fields.number("attention_hidden_size", derived=width)
    core = mixer_spec("rwkv4", {"channels": channels})
    return with_shifts(core, width)


@dataclass(frozen=True)
class InParallel:
    """The mixers of several blocks in one layer.

    Attributes:
        blocks: the blocks.
    """

    blocks: tuple[Builder, ...]

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        made = [block(fields) for block in self.blocks]
        return Block(
            mixers=tuple(mixer for block in made for mixer in block.mixers),
            helpers=tuple(mixer for block in made for mixer in block.helpers),
        )


def mlp(fields: Fields) -> Block:
    """A position-wise layer."""
    return Block(mixers=(mixer_spec("mlp"),))
