"""Every architecture of GGUF files that is understood: the family whose config.json says the same, and by which keys.

Names of architectures and keys are those of the package `gguf` (`gguf.constants`); what conversion writes into the
keys, and what llama.cpp holds beside them, is of its `conversion/` and `src/` (github.com/ggml-org/llama.cpp).
"""

from hopbound.catalog.gguf import rules
from hopbound.catalog.gguf.rules import ATTENTION, DEFINED_ATTENTION, WIDTH, context
from hopbound.catalog.gguf.schedules import (
    everywhere,
    exaone4_windows,
    gemma3n_sharing,
    gemma4_layers,
    interval,
    llama4_chunks,
    marked_by_two_zeros,
    marked_by_zero,
    window_everywhere,
    windows,
)
from hopbound.catalog.gguf.stack import Rule, Spelling
from hopbound.catalog.schedules import LINEAR

HIDDEN = {"hidden_size": WIDTH}
CONV = "ssm.conv_kernel"
# Rank of Mamba's time step, and whether it is normalised: neither is kept.
MAMBA_ASIDE = ("ssm.time_step_rank", "ssm.dt_b_c_rms")
NO_WINDOWS = "files of this architecture give no windows, whatever the model was made with: all layers count as full"

FULL_EVERYWHERE = """
apertus arcee arctic baichuan bailingmoe bailingmoe2 bitnet bloom chameleon chatglm codeshell command-r dbrx deepseek
dots1 ernie4_5 ernie4_5-moe exaone falcon gemma glm4 glm4moe gpt2 gptj gptneox granite granitemoe grok grovemoe
hunyuan-dense hunyuan-moe internlm2 jais jais2 llama maincoder minicpm minimax-m2 mistral3 mpt nemotron olmo olmoe
orion pangu-embedded phi2 plamo qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3vl qwen3vlmoe refact seed_oss smollm3
stablelm starcoder starcoder2 xverse
"""
MAY_HAVE_HAD_WINDOWS = ("llama", "starcoder2")  # Mistral 7B v0.1 is a llama there


def attention(family: str, schedule: Rule, *more: Rule) -> Spelling:
    """Softmax attention with grouped heads in every layer."""
    return Spelling(family=family, rules=(schedule, ATTENTION, context, *more), sizes=HIDDEN)


def latent(family: str, schedule: Rule, *more: Rule, **sizes: str) -> Spelling:
    """Latent attention."""
    return Spelling(family=family, rules=(schedule, rules.latent, context, *more), sizes={**HIDDEN, **sizes})


def recurrent(family: str, *made: Rule, **sizes: str) -> Spelling:
    """A recurrence in every layer, which knows no context."""
    return Spelling(family=family, rules=made, sizes={**HIDDEN, **sizes}, ignored=MAMBA_ASIDE)


def _full(architecture: str) -> Spelling:
    notes = (NO_WINDOWS,) if architecture in MAY_HAVE_HAD_WINDOWS else ()
    return Spelling(family="llama", rules=(everywhere(), ATTENTION, context), sizes=HIDDEN, notes=notes)


_QWEN_HYBRID = (interval, rules.gated_delta)
_NEMOTRON_H = attention(
    "nemotron_h",
    marked_by_two_zeros,
    rules.mamba2(
        heads="mamba_num_heads",
        head_dim="mamba_head_dim",
        state="ssm_state_size",
        groups="n_groups",
        conv="conv_kernel",
    ),
)
_BAMBA = rules.mamba2(
    heads="mamba_n_heads",
    head_dim="mamba_d_head",
    state="mamba_d_state",
    groups="mamba_n_groups",
    conv="mamba_d_conv",
)
_LFM2 = Spelling(
    family="lfm2",
    rules=(marked_by_zero("conv"), DEFINED_ATTENTION, context),
    sizes={**HIDDEN, "conv_L_cache": "shortconv.l_cache"},
)

ARCHITECTURES: dict[str, Spelling] = {
    **{name: _full(name) for name in FULL_EVERYWHERE.split()},
    "deci": attention("llama", marked_by_zero("mlp")),
    "phi3": attention("phi3", window_everywhere),
    "phimoe": attention("phimoe", window_everywhere),
    "gemma2": attention("gemma2", windows(2, width=4096)),
    "gemma3": attention("gemma3_text", windows(6)),
    "gemma3n": attention("gemma3n_text", windows(5), gemma3n_sharing),
    "gemma4": Spelling(family="gemma4_text", rules=(gemma4_layers, context), sizes=HIDDEN),
    "gpt-oss": attention("gpt_oss", windows(2)),
    "cohere2": attention("cohere2", windows(4)),
    "olmo2": attention("olmo3", windows(4)),
    "afmoe": attention("afmoe", windows(4)),
    "exaone4": attention("exaone4", exaone4_windows),
    "exaone-moe": attention("exaone_moe", windows(None)),
    "smallthinker": attention("llama", windows(4, dense_first=True)),
    "llama4": attention("llama4_text", llama4_chunks),
    "deepseek2": latent("deepseek_v3", everywhere()),
    "mistral4": latent("mistral4", everywhere()),
    "minicpm3": Spelling(family="minicpm3", rules=(everywhere(), rules.latent_of_width, context), sizes=HIDDEN),
    "glm-dsa": latent(
        "glm_moe_dsa",
        everywhere("indexed_attention"),
        index_topk="attention.indexer.top_k",
        index_head_dim="attention.indexer.key_length",
        index_n_heads="attention.indexer.head_count",
    ),
    "kimi-linear": latent("kimi_linear", marked_by_zero(LINEAR), rules.kimi_delta),
    "qwen3next": attention("qwen3_next", *_QWEN_HYBRID),
    "qwen35": attention("qwen3_5_text", *_QWEN_HYBRID),
    "qwen35moe": attention("qwen3_5_moe_text", *_QWEN_HYBRID),
    "jamba": Spelling(
        family="jamba",
        rules=(marked_by_zero(LINEAR), DEFINED_ATTENTION, rules.mamba_expansion, context),
        sizes={**HIDDEN, "mamba_d_state": "ssm.state_size", "mamba_d_conv": CONV},
        ignored=MAMBA_ASIDE,
    ),
    "granitehybrid": Spelling(
        family="granitemoehybrid",
        rules=(marked_by_zero(LINEAR), DEFINED_ATTENTION, _BAMBA, rules.context_if_limited),
        sizes=HIDDEN,
    ),
    "falcon-h1": attention("falcon_h1", everywhere("hybrid"), _BAMBA),
    "nemotron_h": _NEMOTRON_H,
    "nemotron_h_moe": _NEMOTRON_H,
    "lfm2": _LFM2,
    "lfm2moe": _LFM2,
    "mamba": recurrent(
        "mamba", everywhere(LINEAR), intermediate_size="ssm.inner_size", state_size="ssm.state_size", conv_kernel=CONV
    ),
    "mamba2": recurrent(
        "mamba2",
        everywhere(LINEAR),
        rules.mamba2(heads="num_heads", head_dim="head_dim", state="state_size", groups="n_groups", conv="conv_kernel"),
    ),
    "rwkv6": recurrent("rwkv6", rules.both_shifts, rules.rwkv6),
    "rwkv7": recurrent("rwkv7", rules.both_shifts, head_dim="wkv.head_size"),
}
"""By `general.architecture`."""
