"""Families whose layers all attend to the whole past: decoders, encoders used as decoders, decoders of encoders."""

from hopbound.architecture import mixer_spec
from hopbound.catalog.blocks.softmax import ALL_HEADS, Heads, full
from hopbound.catalog.families.family import Family
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block
from hopbound.catalog.schedules import FULL, all_alike, listed
from hopbound.catalog.schedules.repeats import cycles

TWO_SIDED = "an encoder that can be used as a decoder: read as the causal decoder (is_decoder)"
CROSS = "the decoder alone: its attention to the encoder's output is not part of the stack"

DECODERS = """
apertus apertus1p5_text arcee aria_text cohere diffllama ernie4_5 ernie4_5_moe exaone
flex_olmo gemma glm glm4 glm4_moe granite granitemoe granitemoeshared helium hunyuan_v1_dense
hunyuan_v1_moe hy_v3 hyperclovax internlm3 iquestcoder jais2 llama minimax_m2 mllama_text_model
nanochat nemotron olmo olmo2 olmoe phi sarvam_moe seed_oss solar_open stablelm emu3_text_model
"""
ALL_HEADS_DECODERS = """
gpt2 gpt-sw3 gptj codegen ctrl openai-gpt bloom mpt opt biogpt gpt_neox gpt_neox_japanese persimmon
git xglm
"""
ENCODERS = """
bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta
roberta-prelayernorm roc_bert roformer xlm-roberta xlm-roberta-xl xmod xlm
"""
ENCODER_DECODERS = """
bart bigbird_pegasus blenderbot blenderbot-small marian mbart mvp pegasus plbart trocr whisper
"""


def falcon(fields: Fields) -> Block:
    """Falcon: one key-value head, or as many as `num_kv_heads` in the new decoder architecture."""
    heads = fields.number("num_attention_heads", "n_head")
    if fields.flag("new_decoder_architecture", derived=False):
        kv_heads = fields.number("num_kv_heads", "n_head_kv", derived=heads)
    elif fields.flag("multi_query", derived=True):
        kv_heads = 1
    else:
        kv_heads = heads
    width = fields.number("hidden_size", "n_embed")
    if width % heads or heads % kv_heads:
        raise fields.error("num_attention_heads", heads, f"a divisor of {width} and a multiple of {kv_heads}")
    return Block(mixers=(mixer_spec("full", {"heads": heads, "kv_heads": kv_heads, "head_dim": width // heads}),))


def dbrx(fields: Fields) -> Block:
    """DBRX: key-value heads inside `attn_config`."""
    heads, width = fields.number("n_heads"), fields.number("d_model")
    inner = fields.child("attn_config")
    kv_heads = 1 if inner is None else inner.number("kv_n_heads", derived=1)
    if width % heads or heads % kv_heads:
        raise fields.error("n_heads", heads, f"a divisor of {width} and a multiple of {kv_heads}")
    return Block(mixers=(mixer_spec("full", {"heads": heads, "kv_heads": kv_heads, "head_dim": width // heads}),))


def jetmoe(fields: Fields) -> Block:
    """JetMoE: each of the chosen experts has queries of its own on the same keys and values."""
    kv_heads = fields.number("num_key_value_heads")
    heads = kv_heads * fields.number("num_experts_per_tok", derived=2)
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": fields.number("kv_channels")}
    return Block(mixers=(mixer_spec("full", sizes),))


PLAIN_FAMILIES = (
    Family(
        types=tuple(DECODERS.split()),
    ),
    Family(
        types=tuple(ALL_HEADS_DECODERS.split()),
        layers={FULL: full(ALL_HEADS)},
    ),
    Family(
        types=("cpmant",),
        layers={FULL: full(Heads(kv_heads=(), head_dim=("dim_head",)))},
    ),
    Family(types=("hrm_text",), layers={FULL: full(Heads(kv_heads=()))}, schedule=(all_alike(),), after=(cycles,)),
    Family(
        types=("gpt_bigcode",),
        layers={FULL: full(Heads(kv_heads=(), head_dim=(), one_kv="multi_query"))},
    ),
    Family(types=("falcon",), layers={FULL: falcon}, aliases={"n_layer": "num_hidden_layers"}),
    Family(types=("dbrx",), layers={FULL: dbrx}),
    Family(types=("jetmoe",), layers={FULL: jetmoe}),
    Family(
        types=("xlnet",),
        layers={FULL: full(Heads(kv_heads=(), head_dim=("d_head",)))},
        context=(),
        notes=("attention beyond the prompt (mem_len) and the two streams of permutations are left out",),
    ),
    Family(
        types=tuple(ENCODERS.split()),
        layers={FULL: full(ALL_HEADS)},
        notes=(TWO_SIDED,),
    ),
    Family(
        types=tuple(ENCODER_DECODERS.split()),
        layers={FULL: full(Heads(heads=("decoder_attention_heads",), kv_heads=(), head_dim=(), width=("d_model",)))},
        schedule=(all_alike(),),
        count=("decoder_layers",),
        context=("max_position_embeddings", "max_target_positions"),
        notes=(CROSS,),
    ),
    Family(
        types=("prophetnet",),
        layers={FULL: full(Heads(heads=("num_decoder_attention_heads",), kv_heads=(), head_dim=()))},
        schedule=(all_alike(),),
        count=("num_decoder_layers",),
        notes=(CROSS,),
    ),
    Family(
        types=("musicgen_decoder", "musicgen_melody_decoder"),
        layers={FULL: full(ALL_HEADS)},
        schedule=(listed(), all_alike()),
        notes=(CROSS,),
    ),
)
