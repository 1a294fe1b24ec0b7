"""Softmax attention under the names of flash-linear-attention's config files."""

from hopbound.architecture import mixer_spec
from hopbound.catalog.blocks.fla import unless_null
from hopbound.catalog.blocks.recurrent import whole
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block


def _heads(fields: Fields) -> dict[str, int]:
    """The sizes of softmax attention, whose heads share the hidden width.

    Raises:
        InputError: one is missing or does not divide.
    """
    heads = fields.number("num_heads")
    kv_heads = fields.number("num_kv_heads", derived=heads)
    whole(fields, "num_kv_heads", heads, kv_heads)
    dim = whole(fields, "num_heads", fields.number("hidden_size"), heads)
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": dim}


def attention(fields: Fields) -> Block:
    """Softmax attention over the whole past, or over `window_size` tokens where that is given."""
    sizes, wide = _heads(fields), fields.maybe("window_size")
    if wide is None:
        return Block(mixers=(mixer_spec("full", sizes),))
    return Block(mixers=(mixer_spec("window", {**sizes, "w": wide}),))


def _gated_window(block: Block, gates: int, wide: int) -> Block:
    """A window whose tokens keep gates beside their keys and values."""
    if wide == 1:  # no earlier token is in sight
        return block
    kept = mixer_spec("recurrence", {"state": gates * (wide - 1), "channels": gates})
    return Block.beside(block.mixers, kept)


def forgetting(fields: Fields) -> Block:
    """Attention with a forget gate: one number a head that each token in sight keeps."""
    sizes, wide = _heads(fields), fields.maybe("window_size")
    if wide is None:
        return Block(mixers=(mixer_spec("fox", sizes),))
    return _gated_window(attention(fields), sizes["heads"], wide)


def wall(fields: Fields) -> Block:
    """Attention with a decay for each query head and key channel, and one for each head where the file says so."""
    sizes, wide = _heads(fields), fields.maybe("window_size")
    scalar = fields.flag("use_scalar_gate", derived=False)
    gates = sizes["heads"] * (sizes["head_dim"] + scalar)
    if wide is not None:
        return _gated_window(attention(fields), gates, wide)
    fields.notes.say(f"the {gates} decay gates that each token keeps beside its keys and values are left out")
    return attention(fields)


def path(fields: Fields) -> Block:
    """Attention whose positions are products of reflections, with a convolution of their directions."""
    sizes = _heads(fields)
    core = mixer_spec("path" if fields.flag("use_forget_gate", derived=False) else "full", sizes)
    if not fields.flag("use_w_shortconv", derived=True):
        return Block(mixers=(core,))
    kernel = fields.number("conv_size", derived=3)
    return Block.beside(
        (core,), mixer_spec("conv", {"channels": sizes["kv_heads"] * sizes["head_dim"], "kernel": kernel})
    )


def expanded_latent(fields: Fields) -> Block:
    """Latent attention as flash-linear-attention caches it: keys and values of every head, not the latent."""
    sizes = {
        "heads": fields.number("num_heads", derived=16),
        "head_dim": fields.number("qk_nope_head_dim", derived=128) + fields.number("qk_rope_head_dim", derived=64),
        "value_dim": fields.number("v_head_dim", derived=128),
    }
    wide = fields.maybe("window_size")
    if wide is None:
        return Block(mixers=(mixer_spec("full", sizes),))
    fields.notes.say("a window needs its last tokens only; the engine caches all of them for this class")
    return Block(mixers=(mixer_spec("window", {**sizes, "w": wide}),))


def native_sparse(fields: Fields) -> Block:
    """Native sparse attention, which caches every token."""
    heads = fields.number("num_heads", derived=64)
    kv_heads = unless_null(fields, "num_kv_heads", 4) or heads
    whole(fields, "num_kv_heads", heads, kv_heads)
    dim = unless_null(fields, "head_dim", 32) or whole(fields, "num_heads", fields.number("hidden_size"), heads)
    wide = unless_null(fields, "window_size", 512)
    if wide is None:
        fields.notes.say("window_size is null: no window, counted as one of the token itself")
    sizes = {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": dim,
        "k": fields.number("block_counts", derived=16),
        "block": fields.number("block_size", derived=64),
        "w": wide or 1,
    }
    return Block(mixers=(mixer_spec("nsa", sizes),))


def mixture_of_blocks(fields: Fields) -> Block:
    """Mixture of block attention, which caches every token."""
    if fields.has("window_size"):
        fields.notes.say("window_size is not in force: blocks of the whole past are chosen from")
    sizes = {"k": fields.number("moba_topk", derived=4), "block": fields.number("moba_chunk_size", derived=256)}
    return Block(mixers=(mixer_spec("moba", {**_heads(fields), **sizes}),))
