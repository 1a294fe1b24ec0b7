"""Families of flash-linear-attention: a native mixer, and softmax attention in the layers that `attn` lists."""

from collections.abc import Mapping
from typing import Any

from hopbound.catalog.blocks import fla
from hopbound.catalog.blocks.fla import DeltaHeads, Expanded
from hopbound.catalog.blocks.recurrent import Mamba
from hopbound.catalog.blocks.softmax import expanded_latent
from hopbound.catalog.blocks.sparse import SparseInCompute
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
            return fla.attention(_of_width(fields, place))
    raise AssertionError("a listed layer that no entry lists")


def native(*types: str, block: Builder, **more: Any) -> Family:
    """A family with a native mixer."""
    return Family(
        types=types, layers={LINEAR: block, ATTENTION: attention_of_entry}, schedule=(listed_attention,), **more
    )


def everywhere(*types: str, block: Builder, **more: Any) -> Family:
    """A family whose layers are all attention."""
    return Family(types=types, layers={FULL: block}, schedule=(all_alike(),), **more)


def decoders(fields: Fields, layers: int | None) -> Words | None:
    """YOCO: the first `num_self_decoder_layers` have the mixer of the self-decoder, the others one shared cache."""
    n = counted(fields, layers)
    own = fields.number("num_self_decoder_layers", derived=n // 2 or None)
    if own >= n:
        raise fields.error("num_self_decoder_layers", own, f"less than {n}")
    return Words((*(own * ("self_decoder",)), *((n - own) * (FULL,))), "num_self_decoder_layers", True)


def self_decoder(fields: Fields) -> Block:
    """The mixer of YOCO's first half."""
    place = fields.child("self_decoder_attn")
    if place is None:
        raise fields.error("self_decoder_attn", None, "an object with `type`")
    kinds: dict[str, Builder] = {
        "gated_deltanet": DeltaHeads("gdn", 6, 256, 2.0),
        "gla": Expanded("gla", 4, 0.5, 1.0),
        "attention": fla.attention,
    }
    kind = place.one_of("type", place.text("type") or "gated_deltanet", kinds)
    return kinds[kind](_of_width(fields, place))


def share_cross(fields: Fields, words: tuple[str, ...], layers: list[Any]) -> list[Any]:
    """The cross-decoder reads one cache, held by its first layer."""
    return all_share_from(words.index(FULL))(fields, words, layers)


UNNAMED = "its recurrence is none of this project's mixers: counted by its size alone"

FLA_FAMILIES = (
    native("gla", block=Expanded("gla", 4, 0.5, 1.0)),
    native("retnet", block=Expanded("retnet", 8, 1.0, 2.0)),
    native("linear_attn", block=Expanded("recurrence", 4), notes=(UNNAMED,)),
    native("delta_net", block=Expanded("delta", 16, conv=True)),
    native("gated_deltanet", block=DeltaHeads("gdn", 6, 256, 2.0)),
    native("comba", block=DeltaHeads("recurrence", 6, 256, 2.0), notes=(UNNAMED,)),
    native("gated_deltaproduct", block=DeltaHeads("deltaproduct", 6, 256, 2.0)),
    native("kda", block=DeltaHeads("kda", 16, 128, 1.0)),
    native("precond_gated_deltanet", block=DeltaHeads("recurrence", 6, 256, 2.0, diagonal=True), notes=(UNNAMED,)),
    native("precond_kda", block=DeltaHeads("recurrence", 16, 128, 1.0, diagonal=True), notes=(UNNAMED,)),
    native("hgrn", block=fla.hgrn, precisions=model_state, notes=(UNNAMED,)),
    native("hgrn2", block=fla.hgrn2),
    native("gsa", "abc", "raven", block=fla.slots, notes=(UNNAMED,)),
    native("lightnet", block=fla.lightnet, notes=(UNNAMED,)),
    native("rwkv6", block=fla.rwkv6),
    native("rwkv7", block=fla.rwkv7, context=()),
    native("mesa_net", block=fla.mesa_net, notes=(UNNAMED,)),
    native("mom", block=fla.memories, notes=(UNNAMED,)),
    native("rodimus", block=fla.rodimus, notes=(UNNAMED,)),
    native("log_linear_mamba2", block=fla.log_linear_mamba2),
    native("samba", block=Mamba(expand="expand", state="state_size", conv="conv_kernel")),
    everywhere(
        "transformer", "parallax", "stickbreaking", "deltaformer", "wall_transformer", "cat", block=fla.attention
    ),
    everywhere("nsa", block=SparseInCompute("nsa")),
    everywhere("moba", block=SparseInCompute("moba")),
    everywhere("forgetting_transformer", block=fla.forgetting),
    everywhere("path_attn", block=fla.path),
    everywhere("mla", block=expanded_latent),
    Family(
        types=("yoco",),
        layers={"self_decoder": self_decoder, FULL: fla.attention},
        schedule=(decoders,),
        after=(share_cross,),
    ),
)
