"""What real models' caches hold: tiny models with random weights, run on CPU, their tensors counted layer by layer.

A model of each family is built with sizes that differ from one another, so that two formulas cannot agree by accident,
and reads `LENGTHS` tokens, the last of them in a step of its own. An element belongs to the *growing* part of a layer
where its tensor is larger after 64 tokens than after 32, to the *window* where it is larger after 6 tokens than after 5
but not after 64 than after 32, and is *fixed* otherwise. Tensors of integers (positions) are not counted, nor is
one storage twice.

Which columns of a convolution are *needed* is measured: one that can be replaced by NaN without a change of what the
model says next is not.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, DynamicCache, PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import (
    RecurrentGemmaDecoderLayer,
    RecurrentGemmaRecurrentBlock,
)

from tests.catalog.families import FAMILIES, GENERIC
from tests.catalog.oracle import quiet, saved

LENGTHS = (5, 6, 32, 64)  # two within the window of 8, past all first blocks; two beyond it, of whole blocks
UNFILLED = 63  # all blocks lack a token: what waits to be pooled is most

NOTES: Mapping[str, str] = {
    "bailing_hybrid": "the class writes the rotary dimension into head_dim, whose first value is in linear_head_dim",
    "deepseek_v4": (
        "keys are values: one storage in compressed layers, stored twice in sliding ones; between two full blocks a "
        "compressor buffers up to `rate` tokens, twice (values, gates), which are empty at the lengths used here; what "
        "blocks of `compressed_sparse_attention` hand to their successors is counted as other, gates in float32"
    ),
    "dots3_note_text": "sliding layers have their own latent and rotary sizes (swa_*); index keys are kept in float32",
    "dory": "the layers between input and output layers are cached once a loop (recurrent_kv_cache_mode per_loop)",
    "falcon_h1": "every layer keeps keys, values and a state",
    "falcon:grouped": "new_decoder_architecture caches the keys and values of a group once for each of its heads",
    "gemma3n_text": "the last num_kv_shared_layers layers keep nothing",
    "gemma4_text": "full layers have their own head size and number of heads; the last shared layers keep nothing",
    "glm5_next_text": "no rotary part, so no values; beside each index key stand a gate of its size and a mark",
    "glm_moe_dsa": "layers whose indexer is shared keep no index keys",
    "gpt_neo": "local layers keep all keys and values, though they attend to window_size tokens only",
    "hrm_text": "a cache for each of H_cycles * (L_cycles + 1) visits of a layer",
    "inkling2_loop_text": "layers of the loop are cached once a pass",
    "longcat_flash": "two attention layers, hence two caches, in each of num_layers layers",
    "mimo_v2_flash": "values are narrower than keys; sliding layers have twice the heads for keys and values",
    "minimax": "the lightning state is kept in the model's precision",
    "minimax_m3_vl_text": "sparse layers keep one index key of index_head_dim a token",
    "mistral_large4_text": "layers without rotary positions (no_rope_layers 0) keep no rotary part",
    "qwen4_exp_text": "the indexer also keeps positions (integers, not counted here)",
    "recurrent_gemma": "states live on the module, and the convolution keeps k-1 columns instead of k",
    "rwkv": "two token shifts (conv) in the model's precision; numerator, denominator and maximum in float32",
    "xlstm": "kept in the precision that the cache is made with, that of the model",
    "zamba": "hybrid layers keep a state as well as the shared attention's keys and values",
    "zamba2": "hybrid layers keep a state as well as the shared attention's keys and values",
    "zaya": "the convolution keeps cca_time0 + cca_time1 - 2 columns; the delayed half value is counted as recurrent",
}


@dataclass(frozen=True, kw_only=True)
class LayerCount:
    """What one layer of the cache holds for one sequence, in elements.

    Attributes:
        kv_per_token: of tensors that grow for ever, what one more token adds (on average, where tokens are compressed).
        index_per_token: the part of `kv_per_token` that an indexer reads to choose among tokens or blocks.
        window_per_token: of tensors that stop growing, what a token adds before they do.
        window_tokens_kept: the tokens at which these stop growing; None without such tensors.
        fixed_recurrent: elements of recurrent states.
        fixed_conv: elements of convolution and token-shift states as allocated, mostly k columns where k-1 are needed.
        fixed_other: elements of further tensors of fixed size.
        conv_needed: the part of `fixed_conv` that the next token depends on.
        held: elements of all tensors after `UNFILLED` tokens.
        dtypes: the precision of each kind that is there: kv, index, window, recurrent, conv, other; `a+b` where mixed.
    """

    kv_per_token: Fraction
    index_per_token: Fraction
    window_per_token: int
    window_tokens_kept: int | None
    fixed_recurrent: int
    fixed_conv: int
    fixed_other: int
    conv_needed: int
    held: int
    dtypes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """One tiny model.

    Attributes:
        raw: its config.json as transformers 5 writes it, all fields.
        layers: one entry for each layer of the cache, which can be more than the model has.
    """

    raw: Mapping[str, Any]
    layers: tuple[LayerCount, ...]


def written(family: str) -> dict[str, Any]:
    """The config.json of a tiny model as its author would write it, with what differs from the class's defaults.

    Args:
        family: a key of `FAMILIES`: a model type, or one and a variant, `falcon:grouped`.
    """
    model_type = family.split(":")[0]
    declared = {field.name: field.default for field in fields(CONFIG_MAPPING[model_type])}
    sizes = {name: size for name, size in GENERIC.items() if type(declared.get(name)) is int}
    tokens = {name: 0 for name in ("bos_token_id", "eos_token_id", "pad_token_id") if name in declared}
    return {"model_type": model_type, **sizes, **tokens, **FAMILIES[family], "dtype": "bfloat16"}


def tiny_config(family: str) -> PretrainedConfig:
    """The configuration of a tiny model.

    Args:
        family: a key of `FAMILIES`.
    """
    arguments = written(family)
    config_class = CONFIG_MAPPING[arguments.pop("model_type")]
    with quiet():
        return config_class(**arguments)


def _build(config: PretrainedConfig) -> nn.Module:
    """A model with random weights; torch's global generator is left as it was."""
    causal = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(0)
        model = (AutoModelForCausalLM if causal else AutoModel).from_config(config, dtype=torch.bfloat16)
    return model.eval()


def _step(model: nn.Module, config: PretrainedConfig, tokens: Tensor, memory: Any = None) -> tuple[Tensor, Any]:
    """What the model says after some more tokens, and its memory then."""
    own = "state" if config.model_type == "rwkv" else "cache"
    if memory is None and config.model_type == "recurrent_gemma":  # which does not return the cache that it makes
        memory = DynamicCache(config=config)
    given = {} if memory is None else {own: memory}
    with torch.no_grad(), quiet():
        returned = model(tokens, use_cache=True, **given)
    return returned[0], memory if config.model_type == "recurrent_gemma" else returned[own]


def _tokens(length: int) -> Tensor:
    return 1 + torch.arange(length)[None] % 89


def _read(model: nn.Module, config: PretrainedConfig, length: int) -> list[dict[str, Tensor]]:
    """The tensors of each layer's cache after so many tokens, by name."""
    tokens = _tokens(length)
    _, memory = _step(model, config, tokens[:, :-1])
    _, memory = _step(model, config, tokens[:, -1:], memory)
    return _layers(config.model_type, model, memory)


Spoil = Callable[[list[dict[str, Tensor]]], None]
"""Changes the tensors of the layers where they are."""


def _says(model: nn.Module, config: PretrainedConfig, length: int, spoil: Spoil | None = None) -> Tensor:
    """What a model says after so many tokens, its memory changed before the last of them."""
    tokens = _tokens(length)
    _, memory = _step(model, config, tokens[:, :-1])
    if spoil is not None:
        spoil(_layers(config.model_type, model, memory))
    return _step(model, config, tokens[:, -1:], memory)[0]


def _needed_columns(model: nn.Module, config: PretrainedConfig, layer: int, name: str, kept: Tensor) -> int:
    """Elements of a convolution's state that the next token depends on: all but the oldest columns that do not matter.

    Its columns, from the oldest to the newest, are the last axis of `kept`, a token shift's only one left out.
    """
    width = kept.shape[-1] if kept.dim() > 2 else 1
    sound = _says(model, config, LENGTHS[1])

    def matters(column: int) -> bool:
        def spoil(layers: list[dict[str, Tensor]]) -> None:
            state = layers[layer][name]
            (state if state.dim() > 2 else state[..., None])[..., column] = torch.nan

        return not torch.equal(_says(model, config, LENGTHS[1], spoil), sound)

    unused = next((column for column in range(width) if matters(column)), width)
    return kept.numel() // width * (width - unused)


def _needed_by_layer(model: nn.Module, config: PretrainedConfig, held: list[dict[str, Tensor]]) -> list[int]:
    """The same for each layer; layers whose convolutions keep the same are alike, so that one of them is measured."""
    found: dict[tuple[tuple[str, torch.Size], ...], int] = {}
    needed = []
    for i, layer in enumerate(held):
        kept = tuple((name, state.shape) for name, state in layer.items() if name.startswith("conv") and state.numel())
        if kept not in found:
            found[kept] = sum(_needed_columns(model, config, i, name, layer[name]) for name, _ in kept)
        needed.append(found[kept])
    return needed


def _layers(model_type: str, model: nn.Module, memory: Any) -> list[dict[str, Tensor]]:
    """The tensors of each layer, wherever the family keeps them."""
    match model_type:
        case "rwkv":
            names = ("conv.ffn", "conv.att", "recurrent.num", "recurrent.den", "recurrent.max")
            depth = memory[0].shape[-1]
            return [{name: part[..., i] for name, part in zip(names, memory, strict=True)} for i in range(depth)]
        case "xlstm":
            return [dict(_tensors("recurrent", states)) for states in memory.rnn_state.values()]
        case "minimax":
            states = [{"recurrent": state} if isinstance(state, Tensor) else {} for state in memory.linear_cache]
            attention = [dict(_tensors("", vars(layer))) for layer in memory.layers]
            attention += [{}] * (len(states) - len(attention))
            return [one | other for one, other in zip(states, attention, strict=True)]
        case "recurrent_gemma":
            blocks = [
                module.temporal_block for module in model.modules() if isinstance(module, RecurrentGemmaDecoderLayer)
            ]
            return [
                dict(_tensors("", [vars(layer), _module_states(block)]))
                for layer, block in zip(memory.layers, blocks, strict=True)
            ]
    return [dict(_tensors("", vars(layer))) for layer in memory.layers]


def _module_states(block: nn.Module) -> dict[str, Tensor]:
    """What a recurrent block of RecurrentGemma keeps on itself; nothing for an attention block."""
    if not isinstance(block, RecurrentGemmaRecurrentBlock):
        return {}
    assert block.conv1d_state is not None
    assert block.rg_lru.recurrent_states is not None
    return {"conv": block.conv1d_state, "recurrent": block.rg_lru.recurrent_states}


def _tensors(name: str, held: Any) -> Iterator[tuple[str, Tensor]]:
    """All tensors of floating point in nested containers, each storage once."""
    seen: set[tuple[int, torch.Size]] = set()

    def walk(path: str, item: Any) -> Iterator[tuple[str, Tensor]]:
        if isinstance(item, Tensor) and item.is_floating_point():
            place = (item.data_ptr(), item.shape)
            if place not in seen or item.numel() == 0:
                seen.add(place)
                yield path, item
        elif isinstance(item, Mapping):
            for key, value in item.items():
                yield from walk(f"{path}.{key}".strip("."), value)
        elif isinstance(item, list | tuple):
            for key, value in enumerate(item):
                yield from walk(f"{path}.{key}" if path else "", value)

    yield from walk(name, held)


def _count(runs: list[dict[str, Tensor]], unfilled: dict[str, Tensor], conv_needed: int) -> LayerCount:
    """One layer's count from its tensors after each of `LENGTHS`, and after `UNFILLED` tokens."""
    growth, index, slope, kept = Fraction(0), Fraction(0), 0, 0
    fixed = {"recurrent": 0, "conv": 0, "other": 0}
    precisions: dict[str, set[str]] = {}
    for name, tensor in runs[-1].items():
        five, six, long, longer = (run[name].numel() if name in run else 0 for run in runs)
        if longer == 0:
            continue
        if longer > long:
            added = Fraction(longer - long, LENGTHS[3] - LENGTHS[2])
            kind = "index" if "idx" in name or "indexer" in name else "kv"
            growth += added
            index += added if kind == "index" else 0
        elif six > five:
            kind = "window"
            slope += six - five
            kept += longer
        else:
            kind = next((kind for kind in ("recurrent", "conv") if name.startswith(kind)), "other")
            fixed[kind] += longer
        precisions.setdefault(kind, set()).add(str(tensor.dtype).removeprefix("torch."))
    assert slope == 0 or kept % slope == 0
    return LayerCount(
        kv_per_token=growth,
        index_per_token=index,
        window_per_token=slope,
        window_tokens_kept=kept // slope if slope else None,
        fixed_recurrent=fixed["recurrent"],
        fixed_conv=fixed["conv"],
        fixed_other=fixed["other"],
        conv_needed=conv_needed,
        held=sum(tensor.numel() for tensor in unfilled.values()),
        dtypes={kind: "+".join(sorted(names)) for kind, names in precisions.items()},
    )


@functools.cache
def counted(family: str) -> Counted:
    """Builds, runs and counts one tiny model.

    Args:
        family: a key of `FAMILIES`: a model type, or one and a variant, `falcon:grouped`.
    """
    config = tiny_config(family)
    raw = saved(config)
    model = _build(config)
    runs = [_read(model, config, length) for length in LENGTHS]
    unfilled = _read(model, config, UNFILLED)
    needed = _needed_by_layer(model, config, unfilled)
    layers = zip(zip(*runs, strict=True), unfilled, needed, strict=True)
    return Counted(raw=raw, layers=tuple(_count(list(read), rest, columns) for read, rest, columns in layers))


def tensors(family: str, length: int) -> list[dict[str, Tensor]]:
    """The tensors of each layer's cache after so many tokens, by name.

    Args:
        family: a key of `FAMILIES`.
        length: at least two tokens.
    """
    config = tiny_config(family)
    return _read(_build(config), config, length)


def heeds(family: str, length: int, spoil: Spoil) -> bool:
    """Whether a tiny model says something else after so many tokens when its memory is changed before the last one.

    Args:
        family: a key of `FAMILIES`.
        length: at least two tokens.
        spoil: the change.
    """
    config = tiny_config(family)
    model = _build(config)
    return not torch.equal(_says(model, config, length, spoil), _says(model, config, length))
