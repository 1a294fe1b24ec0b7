"""Families of flash-linear-attention: a native mixer, and softmax attention in the layers that `attn` lists."""

from collections.abc import Mapping
from typing import Any

from hopbound.architecture import mixer_spec
from hopbound.catalog.blocks import fla, fla_softmax
from hopbound.catalog.blocks.fla import DeltaHeads, Expanded, Slots
from hopbound.catalog.blocks.recurrent import Mamba, whole
from hopbound.catalog.blocks.softmax import full
from hopbound.catalog.families.family import Family, model_state
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block, Builder
from hopbound.catalog.schedules import FULL, LINEAR, Words, all_alike
from hopbound.catalog.schedules.indices import layer_numbers
from hopbound.catalog.schedules.sharing import all_share_from
from hopbound.catalog.schedules.way import counted

ATTENTION = "listed_attention"


def _entries(fields: Fields) -> list[Mapping[str, Any]]:
    """The objects of `attn`: none, one, or a list of them.

    Raises:
        InputError: it is something else.
    """
    value = fields.raw.get("attn")
    entries = [] if value is None else value if isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, dict):
            raise fields.error("attn", value, "null, an object with `layers`, or a list of such")
    return entries


def _inside(fields: Fields, entry: Mapping[str, Any]) -> Fields:
    return Fields(raw=entry, notes=fields.notes, path=f"{fields.path}attn.", index=fields.index)


def _of_width(fields: Fields, place: Fields) -> Fields:
    """The fields of an inner object, with the hidden width of the whole."""
    return place.at(fields.index, {"hidden_size": fields.number("hidden_size"), **place.raw})


def listed_attention(fields: Fields, layers: int | None) -> Words | None:
    """Layers in `attn.layers`, counted from 0, are softmax attention, the others the native mixer."""
    n = counted(fields, layers)
    words = n * [LINEAR]
    for entry in _entries(fields):
        place = _inside(fields, entry)
        if place.items("layers") is None:
            raise place.error("layers", None, "a list of layers")
        for i in layer_numbers(place, "layers", n):
            if words[i] == ATTENTION:
                raise place.error("layers", i, "each layer once")
            words[i] = ATTENTION
    return Words(tuple(words), "attn", True)


def attention_of_entry(fields: Fields) -> Block:
    """The softmax attention of a listed layer, with the sizes of its entry."""
    for entry in _entries(fields):
        place = _inside(fields, entry)
        if fields.index in (place.numbers("layers") or ()):
            return fla_softmax.attention(_of_width(fields, place))
    raise AssertionError("a listed layer that no entry lists")


def attention_and_shift(fields: Fields) -> Block:
    """The same in RWKV, whose position-wise half keeps its last token in these layers too."""
    width = fields.number("hidden_size")
    shift = mixer_spec("conv", {"channels": width, "kernel": 2})
    return Block.beside(attention_of_entry(fields).mixers, shift, allocated=width)


def native(*types: str, block: Builder, attention: Builder = attention_of_entry, **more: Any) -> Family:
    """A family with a native mixer."""
    return Family(types=types, layers={LINEAR: block, ATTENTION: attention}, schedule=(listed_attention,), **more)


def everywhere(*types: str, block: Builder, **more: Any) -> Family:
    """A family whose layers are all attention."""
    return Family(types=types, layers={FULL: block}, schedule=(all_alike(),), **more)


def decoders(fields: Fields, layers: int | None) -> Words | None:
    """YOCO: the first `num_self_decoder_layers` have the mixer of the self-decoder, the others one shared cache."""
    n = counted(fields, layers)
    own = fields.number("num_self_decoder_layers", derived=10)
    if own >= n:
        raise fields.error("num_self_decoder_layers", own, f"less than {n}")
    return Words((*(own * ("self_decoder",)), *((n - own) * (FULL,))), "num_self_decoder_layers", True)


def _decoder(fields: Fields, name: str) -> Fields:
    """The object of one of YOCO's decoders, which may be left out, with the hidden width of the whole."""
    return _of_width(fields, fields.child(name) or Fields({}, fields.notes, path=f"{fields.path}{name}."))


def retention(fields: Fields) -> Block:
    """YOCO's gated retention: a square matrix a head, and no convolution."""
    heads, width = fields.number("num_heads", derived=6), fields.number("hidden_size")
    state = width * whole(fields, "num_heads", width, heads)
    fields.notes.say(UNNAMED)
    return Block(mixers=(mixer_spec("recurrence", {"state": state, "channels": width}),))


def own_window(fields: Fields) -> Block:
    """YOCO's window, whose key-value heads stand in `num_v_heads`."""
    heads = fields.number("num_heads", derived=6)
    sizes = {"num_heads": heads, "num_kv_heads": fields.number("num_v_heads", derived=heads)}
    fields.number("window_size")
    return fla_softmax.attention(fields.at(fields.index, sizes))


def self_decoder(fields: Fields) -> Block:
    """The mixer of YOCO's first half."""
    place = _decoder(fields, "self_decoder_attn")
    kinds: dict[str, Builder] = {
        "gated_deltanet": DeltaHeads("gdn", 6, 256, 2.0),
        "gated_retention": retention,
        "swa": own_window,
    }
    return kinds[place.one_of("type", place.text("type") or "gated_deltanet", kinds)](place)


def cross_decoder(fields: Fields) -> Block:
    """The attention of YOCO's second half."""
    place = _decoder(fields, "cross_decoder_attn")
    return fla_softmax.attention(place.at(fields.index, {"num_heads": place.number("num_heads", derived=32)}))


def share_cross(fields: Fields, words: tuple[str, ...], layers: list[Any]) -> list[Any]:
    """The cross-decoder reads one cache, held by its first layer."""
    return all_share_from(words.index(FULL))(fields, words, layers)


SAMBA_ATTENTION: Mapping[str, Any] = {
    "layers": list(range(1, 18, 2)),
    "num_heads": 18,
    "num_kv_heads": 18,
    "qkv_bias": False,
    "window_size": 2048,
    "rope_theta": 10000.0,
}


def samba_attention(fields: Fields) -> Fields:
    """Samba: attention where the file gives none, cut to its layers; older files kept that of 18 layers uncut."""
    given = fields.raw.get("attn", SAMBA_ATTENTION)
    if given != SAMBA_ATTENTION or ("attn" in fields.raw and "transformers_version" not in fields.raw):
        return fields
    n = fields.number("num_hidden_layers")
    layers = [i for i in SAMBA_ATTENTION["layers"] if i < n]
    if "attn" not in fields.raw:
        fields.notes.assume("attn.layers", layers)
    elif layers != SAMBA_ATTENTION["layers"]:
        fields.notes.say(f"attn.layers is that of 18 layers: those beyond the {n} layers are left out")
    return fields.at(fields.index, {"attn": {**SAMBA_ATTENTION, "layers": layers}})


def bitnet(fields: Fields) -> Block:
    """BitNet, which both code bases have: transformers' files say `num_attention_heads`, these `num_heads`."""
    return fla_softmax.attention(fields) if "num_heads" in fields.raw else full()(fields)


UNNAMED = "its recurrence is none of this project's mixers: counted by its size alone"
UNCACHED = "its class keeps no cache between calls: counted as one that keeps all keys and values"

FLA_FAMILIES = (
    native("gla", block=Expanded("gla", 4, 0.5, 1.0, conv=False)),
    native("retnet", block=Expanded("retnet", 8, 1.0, 2.0)),
    native("linear_attn", block=Expanded("recurrence", 4), notes=(UNNAMED,)),
    native("delta_net", block=Expanded("delta", 16, conv=True)),
    native("gated_deltanet", block=DeltaHeads("gdn", 6, 256, 2.0)),
    native("comba", block=DeltaHeads("recurrence", 6, 256, 2.0), notes=(UNNAMED,)),
    native("gated_deltaproduct", block=DeltaHeads("deltaproduct", 6, 256, 2.0, shared=False)),
    native("kda", block=DeltaHeads("kda", 16, 128, 1.0)),
    native("precond_gated_deltanet", block=DeltaHeads("recurrence", 6, 256, 2.0, diagonal="keys"), notes=(UNNAMED,)),
    native("precond_kda", block=DeltaHeads("recurrence", 16, 128, 1.0, diagonal="values"), notes=(UNNAMED,)),
    native("hgrn", block=fla.hgrn, precisions=model_state, notes=(UNNAMED,)),
    native("hgrn2", block=fla.hgrn2),
    native("gsa", block=Slots(), notes=(UNNAMED,)),
    native("abc", block=Slots(expand_k=0.5), notes=(UNNAMED,)),
    native("raven", block=Slots(conv=False), notes=(UNNAMED,)),
    native("lightnet", block=fla.lightnet, notes=(UNNAMED,)),
    native("rwkv6", block=fla.rwkv6, attention=attention_and_shift),
    native("rwkv7", block=fla.rwkv7, attention=attention_and_shift, context=()),
    native("mesa_net", block=fla.mesa_net, notes=(UNNAMED,)),
    native("mom", block=fla.memories, notes=(UNNAMED,)),
    native("rodimus", block=fla.rodimus, notes=(UNNAMED,)),
    native("log_linear_mamba2", block=fla.log_linear_mamba2),
    native(
        "samba",
        block=Mamba(expand="expand", state="state_size", conv="conv_kernel"),
        before=samba_attention,
    ),
    Family(
        types=("mamba3",),
        layers={LINEAR: fla.mamba3},
        schedule=(all_alike(LINEAR),),
        context=(),
        notes=(UNNAMED,),
    ),
    native("deltaformer", block=fla_softmax.attention, notes=(UNCACHED,)),
    everywhere("transformer", "parallax", block=fla_softmax.attention),
    everywhere("stickbreaking_attn", "stickbreaking", "cat", block=fla_softmax.attention, notes=(UNCACHED,)),
    everywhere("wall_transformer", block=fla_softmax.wall),
    Family(types=("bitnet",), layers={FULL: bitnet}),
    everywhere("nsa", block=fla_softmax.native_sparse),
    everywhere("moba", block=fla_softmax.mixture_of_blocks),
    everywhere("forgetting_transformer", block=fla_softmax.forgetting),
    everywhere("path_attn", block=fla_softmax.path),
    everywhere("mla", block=fla_softmax.expanded_latent),
    Family(
        types=("yoco",),
        layers={"self_decoder": self_decoder, FULL: cross_decoder},
        schedule=(decoders,),
        after=(share_cross,),
    ),
)
