"""Families that have no class in transformers: released files of other code bases."""

from hopbound.architecture import mixer_spec
from hopbound.catalog.blocks.recurrent import Mamba, Mamba2, whole
from hopbound.catalog.families.family import Family
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block
from hopbound.catalog.schedules import FULL, LINEAR, SLIDING, Words, all_alike, marked
from hopbound.catalog.schedules.way import counted


def _attentions(fields: Fields) -> list[Fields]:
    """Nemotron-NAS: the `attention` of each layer's object.

    Raises:
        InputError: there is no such list, or an entry has none.
    """
    blocks = fields.items("block_configs")
    if blocks is None:
        raise fields.error("block_configs", None, "a list of objects, one a layer")
    found = []
    for at, block in enumerate(blocks):
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            raise fields.error(f"block_configs[{at}]", block, "an object with `attention`")
        found.append(Fields(attention, fields.notes, path=f"{fields.path}block_configs[{at}].attention."))
    return found


def block_configs(fields: Fields, layers: int | None) -> Words | None:
    """Nemotron-NAS: an object a layer, whose `attention` may be left out, replaced, or over a window."""
    n, words = counted(fields, layers), []
    for place in _attentions(fields):
        gone = place.flag("no_op", derived=False), place.flag("replace_with_linear", derived=False)
        words.append("mlp" if any(gone) else FULL if place.maybe("window_length") is None else SLIDING)
    if len(words) != n:
        raise fields.error("block_configs", f"{len(words)} objects", f"{n} objects, one a layer")
    return Words(tuple(words), "block_configs", True)


def searched_attention(fields: Fields) -> Block:
    """Nemotron-NAS: how many query heads share a key-value head differs from layer to layer."""
    place = _attentions(fields)[fields.index]
    heads, group = fields.number("num_attention_heads"), place.number("n_heads_in_group")
    if heads % group:
        raise place.error("n_heads_in_group", group, f"a divisor of num_attention_heads={heads}")
    dim = fields.maybe("head_dim") or whole(fields, "num_attention_heads", fields.number("hidden_size"), heads)
    sizes = {"heads": heads, "kv_heads": heads // group, "head_dim": dim}
    wide, first = place.maybe("window_length"), place.maybe("num_sink_tokens", least=0)
    if wide is None:
        return Block(mixers=(mixer_spec("full", sizes),))
    if first:
        return Block(mixers=(mixer_spec("longformer", {**sizes, "w": wide, "global_tokens": first}),))
    return Block(mixers=(mixer_spec("window", {**sizes, "w": wide}),))


def state_spaces(fields: Fields) -> Block:
    """Files of mamba_ssm: `d_model`, `n_layer`, and `ssm_cfg` with what differs from the defaults of its layers."""
    inner = fields.child("ssm_cfg") or Fields({}, fields.notes, path="ssm_cfg.")
    kind = inner.one_of("layer", inner.text("layer") or "Mamba1", ("Mamba1", "Mamba2"))
    flat = {
        "hidden_size": fields.number("d_model"),
        "expand": inner.number("expand", derived=2),
        "conv_kernel": inner.number("d_conv", derived=4),
    }
    if kind == "Mamba1":
        given = Fields(flat | {"state_size": inner.number("d_state", derived=16)}, fields.notes)
        return Mamba(expand="expand", state="state_size", conv="conv_kernel")(given)
    dim = inner.number("headdim", derived=64)
    width = inner.maybe("d_ssm")
    if width is None:
        width = flat["expand"] * flat["hidden_size"]
    heads = whole(inner, "headdim", width, dim)
    flat |= {
        "state_size": inner.number("d_state", derived=128),
        "n_groups": inner.number("ngroups", derived=1),
        "head_dim": dim,
        "num_heads": heads,
    }
    mixer = Mamba2(heads="num_heads", head_dim="head_dim", state="state_size", groups="n_groups", conv="conv_kernel")
    return mixer(Fields(flat, fields.notes))


def beside_state_spaces(fields: Fields) -> Block:
    """The attention of mamba_ssm's hybrids, with a convolution over queries, keys and values where they have one."""
    place = fields.child("attn_cfg")
    if place is None:
        raise fields.error("attn_cfg", None, "an object with num_heads, as attn_layer_idx lists layers")
    heads = place.number("num_heads")
    kv_heads = place.number("num_heads_kv", derived=heads)
    whole(place, "num_heads_kv", heads, kv_heads)
    dim = place.maybe("head_dim") or whole(place, "num_heads", fields.number("d_model"), heads)
    core = mixer_spec("full", {"heads": heads, "kv_heads": kv_heads, "head_dim": dim})
    kernel = place.maybe("d_conv", least=0)
    if not kernel:
        return Block(mixers=(core,))
    conv = mixer_spec("conv", {"channels": dim * (heads + 2 * kv_heads), "kernel": kernel})
    return Block.beside((core,), conv)


MAMBA_SSM = "mamba_ssm"

REMOTE_FAMILIES = (
    Family(
        types=("nemotron-nas",),
        layers={FULL: searched_attention, SLIDING: searched_attention},
        schedule=(block_configs,),
    ),
    Family(
        types=(MAMBA_SSM,),
        layers={LINEAR: state_spaces, FULL: beside_state_spaces},
        schedule=(marked("attn_layer_idx", word=FULL, other=LINEAR), all_alike(LINEAR)),
        count=("n_layer",),
        context=(),
    ),
)
