"""What a field that a config.json leaves out means: the defaults that transformers' configuration classes declare.

`hopbound/catalog/defaults.json` is written from here, so that the catalogue knows the defaults without transformers:

    python -m tests.catalog.class_defaults

An entry stands for a model type. A text model's entry holds the declared defaults of all fields that can matter for its
layers, its cache or its state (what `__post_init__` would derive from them is *not* applied), and under `_aliases` the
other names that its class accepts: `{alias: name}`. A multimodal type's entry holds one pair, the key under which its
file nests the language model and the model type which that has unless the nested object says otherwise. The key
`_transformers` holds the version that the file was written from.

Three places declare a default: a field of the dataclass, a class constant, and `kwargs.pop(name, default)` in
`__post_init__`, by which a class reads the spelling of older files.

Source: transformers' `configuration_utils.PreTrainedConfig` and `models/*/configuration_*.py`.
"""

import ast
import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import transformers
from transformers import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
)

Default: TypeAlias = bool | int | float | str | list[int] | list[str] | dict[str, int] | None
Entry: TypeAlias = dict[str, Default | dict[str, str]]

FILE = Path(__file__).parents[2] / "hopbound" / "catalog" / "defaults.json"
VERSION_KEY = "_transformers"
ALIASES_KEY = "_aliases"

# Where a multimodal configuration nests the language model that generates its text.
_TEXT_KEYS = ("text_config", "thinker_config", "decoder")

# Fields that hold no size and choose no layer, by words of their names.
_IRRELEVANT = re.compile(
    r"""
      _tokens?(_ids?|_index)?$ | vocab | ^(bos|eos|pad|unk|mask|cls|sep)_ | langs?_ | ^lang
    | drop(out|_path)?($|_) | pdrop$ | droprate | noise | jitter | _eps | ^eps | epsilon | (^|_)norm
    | ^pre_norm | rms | layer_?norm | (^|_)init | initializer | rescale_prenorm | _std(_|$) | ^std | ^rope_
    | rope_(theta|scaling|parameters|interleave)$ | ^rotary | partial_rotary | position_bias
    | position_embedding_ | router | routed | expert | _moe_ | ^moe_(?!layer_freq) | topk_group | ^n_group$
    | ^(aux|z)_ | _loss | loss_ | topk_method | scoring
    | ^num_(mel|chroma|codebooks|channels|buckets|hashes|centroids|image|labels) | vision | audio | image
    | video | speech | spectrogram | scal(e|ing|er)(_|$) | ^scale | multiplier | factor$(?<!dim_factor)
    | softcap | soft_cap | clip | clamp | temperature
    | ^use_(cache|bias|conv_bias|cpu|mem_|mamba|falcon|associative|return|task|lang|prompt|learned|qk|qkv)
    | ^use_(post|parallel|sandwich)
    | bias($|_) | _act$ | activation | ^act_ | summary | ^(start|end)_n_top | classifier | ^tie_
    | pretraining_tp | output_(?!gate) | return_ | logits | ^time_step | ^dt_ | seed | kernel_dtype
    | _kernel$(?<!conv_kernel) | chunkwise | ^(fuse|reorder|upcast)_ | in_fp32$ | fp32 | ^hc_ | altup | laurel
    | ngram | patch | hash_ | ^mtp_(?!.*layer) | ^encoder_ | ^mask_ | apply_spec | adapter | prompt
    | pronunciation | shape_embed | ^alibi | swiglu | multiple_(of|size)
    | ^(forced|begin|suppress|decoder_start) | layerdrop | cross_attention | ^median | segment | _plan$
    | resampler | freeze | aligner | relative_attention | codec
    | ^(perceiver|dit|vq|vlm|depth_decoder|protein_encoder)_config$
    """,
    re.VERBOSE,
)
# Numbers that are no integers, and words, that enter a size or choose a layer.
_SIZE_FLOATS = re.compile(r"^(expand|expand_[kv]|qk_dim_factor|v_dim_factor|ffn_proj_factor|block_ffn_dim_multiplier)$")
_CHOICES = re.compile(r"^(mamba_d_head|mamba_ssm_cache_dtype|inference_state_dtype|recurrent_kv_cache_mode)$")
_LONGEST_LIST = 8
_BASE_FIELDS = frozenset(field.name for field in dataclasses.fields(PretrainedConfig))


def matters(name: str) -> bool:
    """Whether a field of this name can matter for the layers, the cache or the state of a model."""
    return name not in _BASE_FIELDS and not name.startswith("_") and _IRRELEVANT.search(name) is None


def _plain(name: str, value: object) -> tuple[Default] | None:
    """The value as JSON holds it, or None where it is nothing that the catalogue could use."""
    match value:
        case None | bool() | int():
            return (value,)
        case float() if _SIZE_FLOATS.match(name):
            return (value,)
        case str() if _CHOICES.match(name):
            return (value,)
        case list() | tuple() if len(value) <= _LONGEST_LIST and all(type(item) in (int, str) for item in value):
            return (list(value),)
        case dict() if all(type(item) is int for item in value.values()):
            return (dict(value),)
    return None


def _legacy(config_class: type[PretrainedConfig]) -> Iterator[tuple[str, object]]:
    """Names that `__post_init__` reads from further keywords, with the literal that stands for a missing one."""
    for parent in config_class.__mro__:
        function = vars(parent).get("__post_init__")
        if parent is PretrainedConfig or function is None:
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="kwargs"), attr="pop" | "get"),
                    args=[ast.Constant(value=str(name)), *rest],
                ):
                    try:
                        yield name, ast.literal_eval(rest[0]) if rest else None
                    except ValueError:  # an expression in other fields: derived, not declared
                        continue


def _declared(config_class: type[PretrainedConfig]) -> Iterator[tuple[str, object]]:
    """All declared defaults, those that win first."""
    for field in dataclasses.fields(config_class):
        if field.default is not dataclasses.MISSING:
            yield field.name, field.default
        elif field.default_factory is not dataclasses.MISSING:
            yield field.name, field.default_factory()
    for parent in config_class.__mro__:
        if parent is PretrainedConfig:
            break
        yield from vars(parent).items()
    yield from _legacy(config_class)


def entry(config_class: type[PretrainedConfig]) -> Entry:
    """The declared defaults of one class, sorted by name, and the aliases of its fields.

    Args:
        config_class: a configuration class of transformers.
    """
    found: Entry = {}
    not_sizes = {"model_type", "base_config_key", "keys_to_ignore_at_inference", "default_theta", "attribute_map"}
    for name, value in _declared(config_class):
        if not matters(name) or name in not_sizes or name in found:
            continue
        plain = _plain(name, value)
        if plain is not None:
            found[name] = plain[0]
    found = dict(sorted(found.items()))
    aliases = {alias: name for alias, name in sorted(config_class.attribute_map.items()) if matters(name)}
    return {**found, **({ALIASES_KEY: aliases} if aliases else {})}


def _text_part(config_class: type[PretrainedConfig]) -> tuple[str, str, type[PretrainedConfig]] | None:
    """Where a multimodal class nests its language model: key, model type, class."""
    for key in _TEXT_KEYS:
        spec = config_class.sub_configs_defaults.get(key)
        if spec is not None:
            own = isinstance(spec.config_class, type) and issubclass(spec.config_class, PretrainedConfig)
            return key, spec.model_type, spec.config_class if own else CONFIG_MAPPING[spec.model_type]
    return None


def class_defaults() -> dict[str, Entry]:
    """The entries of all causal language models of transformers and of the text parts of all multimodal ones."""
    entries: dict[str, Entry] = {}

    def add(model_type: str, config_class: type[PretrainedConfig]) -> None:
        if model_type in entries:
            return
        part = _text_part(config_class)
        if part is None:
            entries[model_type] = entry(config_class)
            return
        key, inner_type, inner_class = part
        entries[model_type] = {key: inner_type}
        add(inner_type, inner_class)

    for model_type in (*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES):
        add(model_type, CONFIG_MAPPING[model_type])
    return dict(sorted(entries.items()))


def minor_version() -> str:
    """The installed version of transformers without its last number."""
    return ".".join(transformers.__version__.split(".")[:2])


def text(entries: Mapping[str, Entry], version: str) -> str:
    """The file: JSON with one line a model type.

    Args:
        entries: what `class_defaults` returns.
        version: the version of transformers that they come from.
    """
    lines = [f'"{VERSION_KEY}":"{version}"']
    lines += [f"{json.dumps(name)}:{json.dumps(found, separators=(',', ':'))}" for name, found in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(class_defaults(), minor_version()))
