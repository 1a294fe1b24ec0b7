"""Sizes of attention and of recurrences: from keys of GGUF to the fields of config files."""

from typing import Any

from hopbound.catalog.gguf.stack import Rule, Stack, rule

HEADS, KV_HEADS = "attention.head_count", "attention.head_count_kv"
KEY, VALUE, WIDTH = "attention.key_length", "attention.value_length", "embedding_length"
INNER, DT_RANK = "ssm.inner_size", "ssm.time_step_rank"
NO_LIMIT = 2**20  # what conversion writes for models that it takes to know no limit


def counts(stack: Stack) -> tuple[list[int], list[int]]:
    """Query and key-value heads of every layer; 0 key-value heads mark a layer without attention.

    Raises:
        InputError: a layer with keys has no queries.
    """
    heads = stack.each(HEADS)
    kv_heads = stack.each(KV_HEADS) if stack.fields.has(KV_HEADS) else heads
    for i, (queries, keys) in enumerate(zip(heads, kv_heads, strict=True)):
        if keys and not queries:
            raise stack.fields.error(HEADS, queries, f"at least 1 in layer {i}, which has {keys} key-value heads")
    return heads, kv_heads


def _head_counts(stack: Stack) -> dict[str, Any]:
    """Heads of the first layer with attention, and of the layers that differ from it."""
    heads, kv_heads = counts(stack)
    attending = [i for i in range(stack.layers) if kv_heads[i]]
    if not attending:
        return {}
    made = [{"num_attention_heads": heads[i], "num_key_value_heads": kv_heads[i]} for i in attending]
    others = {str(i): sizes for i, sizes in zip(attending, made, strict=True) if sizes != made[0]}
    return {**made[0], **({"per_layer_config": others} if others else {})}


def _plain(stack: Stack, *, defined: bool) -> dict[str, Any]:
    """Heads and their dimension.

    Args:
        stack: the file.
        defined: whether width over heads is the dimension by definition of the family.

    Raises:
        InputError: keys and values differ in dimension, or the file does not say it.
    """
    found = _head_counts(stack)
    if not found:
        return {}
    dim = stack.maybe(KEY)
    width, heads = stack.number(WIDTH), found["num_attention_heads"]
    even = width // heads if width % heads == 0 else None
    if dim is None and (even is None or "per_layer_config" in found):
        raise stack.fields.error(KEY, None, f"a whole number: {WIDTH}={width} over {HEADS} does not say it")
    value = stack.maybe(VALUE)
    if (value or even) != (dim or even):
        raise stack.fields.error(VALUE, value, f"{dim or even}, the dimension of a key")
    if not defined:
        if dim is None:
            stack.say(f"no {stack.fields.path}{KEY} in the file: {WIDTH} over {HEADS}, {even}")
        return {**found, "head_dim": dim or even}
    if dim not in (None, even):
        raise stack.fields.error(KEY, dim, f"{WIDTH}={width} over {HEADS}={heads}")
    return found


ATTENTION = Rule(lambda stack: _plain(stack, defined=False), (HEADS, KV_HEADS, KEY, VALUE, WIDTH))
DEFINED_ATTENTION = Rule(lambda stack: _plain(stack, defined=True), ATTENTION.keys)


@rule("rope.dimension_count", "attention.kv_lora_rank", HEADS, KV_HEADS, KEY, VALUE, f"{KEY}_mla", f"{VALUE}_mla")
def latent(stack: Stack) -> dict[str, Any]:
    """Latent attention. Files with `…_mla` give the cached vector as the key; in older ones keys are those of a head.

    Raises:
        InputError: a size is missing, or the key is not as long as the latent and its rotary part.
    """
    rank, rotary = stack.number("attention.kv_lora_rank"), stack.number("rope.dimension_count", least=0)
    absorbed = stack.fields.has(f"{VALUE}_mla")
    if absorbed and stack.maybe(KEY) not in (None, rank + rotary):
        raise stack.fields.error(KEY, stack.maybe(KEY), f"the latent and its rotary part, {rank} + {rotary}")
    if not absorbed:
        stack.say(f"no {stack.fields.path}{VALUE}_mla in the file: an older one, whose {VALUE} is that of a head")
    return {
        "num_attention_heads": max(stack.each(HEADS)),
        "kv_lora_rank": rank,
        "qk_rope_head_dim": rotary,
        "v_head_dim": stack.number(f"{VALUE}_mla" if absorbed else VALUE),
    }


@rule("rope.dimension_count", "attention.kv_lora_rank", HEADS, KV_HEADS, KEY, WIDTH)
def latent_of_width(stack: Stack) -> dict[str, Any]:
    """MiniCPM 3, whose value dimension is width over heads, as llama.cpp has it too."""
    return {
        "num_attention_heads": stack.number(HEADS),
        "kv_lora_rank": stack.number("attention.kv_lora_rank"),
        "qk_rope_head_dim": stack.number("rope.dimension_count", least=0),
        "v_head_dim": stack.share(HEADS, of=WIDTH),
    }


@rule("kda.head_dim", "ssm.conv_kernel", HEADS)
def kimi_delta(stack: Stack) -> dict[str, Any]:
    """Kimi Delta Attention, with as many heads as latent attention."""
    stack.say(f"heads of Kimi Delta Attention are not in the file: {HEADS}, as llama.cpp takes them")
    names = {"num_heads": HEADS, "head_dim": "kda.head_dim", "short_conv_kernel_size": "ssm.conv_kernel"}
    return {"linear_attn_config": {name: stack.number(key) for name, key in names.items()}}


@rule(INNER, DT_RANK, "ssm.state_size", "ssm.group_count", "ssm.conv_kernel")
def gated_delta(stack: Stack) -> dict[str, Any]:
    """Gated DeltaNet under the names of Mamba's sizes: groups are key heads, ranks of the time step value heads."""
    return {
        "linear_num_key_heads": stack.number("ssm.group_count"),
        "linear_num_value_heads": stack.number(DT_RANK),
        "linear_key_head_dim": stack.number("ssm.state_size"),
        "linear_value_head_dim": stack.share(DT_RANK, of=INNER),
        "linear_conv_kernel_dim": stack.number("ssm.conv_kernel"),
    }


def mamba2(*, heads: str, head_dim: str, state: str, groups: str, conv: str) -> Rule:
    """Mamba-2, whose heads stand in the place of Mamba's rank of the time step.

    Args:
        heads: the family's field of the heads.
        head_dim: of their channels.
        state: of the numbers a channel.
        groups: of the groups that share B and C.
        conv: of the convolution's width.
    """

    @rule(INNER, DT_RANK, "ssm.state_size", "ssm.group_count", "ssm.conv_kernel")
    def made(stack: Stack) -> dict[str, Any]:
        return {
            heads: stack.number(DT_RANK),
            head_dim: stack.share(DT_RANK, of=INNER),
            state: stack.number("ssm.state_size"),
            groups: stack.number("ssm.group_count"),
            conv: stack.number("ssm.conv_kernel"),
        }

    return made


@rule(INNER, WIDTH)
def mamba_expansion(stack: Stack) -> dict[str, Any]:
    """Jamba: the inner width as a multiple of the hidden one."""
    return {"mamba_expand": stack.share(WIDTH, of=INNER)}


@rule("token_shift_count")
def both_shifts(stack: Stack) -> dict[str, Any]:
    """RWKV: both halves of a block are shifted.

    Raises:
        InputError: only one is, as where another model was made an RWKV.
    """
    shifts = stack.maybe("token_shift_count")
    if shifts not in (None, 2):
        raise stack.fields.error("token_shift_count", shifts, "2: both halves of a block are shifted")
    return {}


@rule("wkv.head_size", WIDTH)
def rwkv6(stack: Stack) -> dict[str, Any]:
    """RWKV-6, whose keys and values are as wide as the model."""
    return {"num_heads": stack.share("wkv.head_size", of=WIDTH), "expand_k": 1.0, "expand_v": 1.0}


@rule("context_length")
def context(stack: Stack) -> dict[str, Any]:
    """The context that the model was made for."""
    return {"max_position_embeddings": stack.maybe("context_length")}


@rule("context_length")
def context_if_limited(stack: Stack) -> dict[str, Any]:
    """The same, but for the number that stands for none."""
    found = context.make(stack)
    if found["max_position_embeddings"] != NO_LIMIT:
        return found
    stack.say(f"{stack.fields.path}context_length={NO_LIMIT} stands for no limit: the context is left out")
    return {"max_position_embeddings": None}
