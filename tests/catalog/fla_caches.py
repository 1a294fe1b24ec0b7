"""What the caches of flash-linear-attention hold: tiny models, run on CPU under Triton's interpreter.

`fla_caches.json` is written from here. It needs flash-linear-attention and triton, which the tests do not:

    TRITON_INTERPRET=1 python -m tests.catalog.fla_caches

An entry holds a file as the code base saves it, and for each layer of the cache: elements that a token adds (`kv`),
tokens at which a window stops growing and elements of one of them (`window`, `window_kv`), elements of recurrent
state and of columns as allocated (`state`, `columns`), and bits of the state. flash-attn and a driver are replaced by
stand-ins: what attention returns has no bearing on what is kept.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel

FILE = Path(__file__).parent / "fla_caches.json"
LENGTHS = (17, 33)  # both beyond the windows of 8

_SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 101, "max_position_embeddings": 128}
_PLAIN = {"fuse_norm": False, "fuse_swiglu": False, "fuse_cross_entropy": False, "fuse_linear_cross_entropy": False}
_ATTN = {"layers": [1], "num_heads": 4, "num_kv_heads": 2}
_HEADS = {"num_heads": 4, "num_kv_heads": 2}
_DELTA = {"num_heads": 2, "head_dim": 16, "num_v_heads": 4, "expand_v": 2.0, "conv_size": 3}
_MEMORIES = {"num_heads": 2, "head_dim": 16, "num_memories": 3, "topk": 2, "conv_size": 3}
_LATENT = {"num_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16}
_YOCO = {"num_hidden_layers": 4, "num_self_decoder_layers": 2, "cross_decoder_attn": _HEADS}

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "bitnet": _HEADS,
    "bitnet:window": {**_HEADS, "window_size": 8},
    "comba": _DELTA,
    "delta_net": {"num_heads": 2, "expand_v": 2.0, "conv_size": 3},
    "gated_deltanet": _DELTA,
    "gated_deltaproduct": {"num_heads": 2, "head_dim": 16, "expand_v": 2.0, "conv_size": 3, "num_householder": 3},
    "gated_deltaproduct:value heads": {**_DELTA, "num_householder": 1},
    "gla": {"num_heads": 2, "attn": _ATTN},
    "gla:convolutions": {**_HEADS, "expand_k": 1.0, "expand_v": 2.0, "use_short_conv": True, "conv_size": 3},
    "gla:window": {"num_heads": 2, "attn": {**_ATTN, "window_size": 8}},
    "gsa": {"num_heads": 2, "num_slots": 16},
    "hgrn": {"expand_ratio": 2},
    "hgrn:convolutions": {"use_short_conv": True, "conv_size": 3},
    "hgrn2": {"expand_ratio": 16, "num_heads": None},
    "hgrn2:convolutions": {"expand_ratio": 16, "num_heads": 4, "use_short_conv": True, "conv_size": 3},
    "kda": _DELTA,
    "linear_attn": {**_HEADS, "expand_k": 0.5},
    "mamba": {"state_size": 8, "conv_kernel": 3},
    "mla": {**_LATENT, "v_head_dim": 16, "qk_head_dim": 24},
    "mla:window": {**_LATENT, "v_head_dim": 16, "qk_head_dim": 24, "window_size": 8},
    "mom": _MEMORIES,
    "mom:not shared": {**_MEMORIES, "shared_mem": False, "expand_v": 2.0},
    "mom:one projection": {**_MEMORIES, "single_kv_proj": True},
    "nsa": {"num_heads": 16, "num_kv_heads": 1, "head_dim": 32, "block_size": 16, "block_counts": 2, "window_size": 8},
    "precond_gated_deltanet": _DELTA,
    "precond_kda": _DELTA,
    "raven": {"num_heads": 2, "num_slots": 16, "topk": 8},
    "retnet": {"num_heads": 2},
    "retnet:convolutions": {**_HEADS, "use_short_conv": True, "conv_size": 3},
    "rwkv6": {"num_heads": 2, "attn": _ATTN},
    "rwkv7": {"head_dim": 16, "num_heads": 32},
    "samba": {"state_size": 8, "attn": {**_ATTN, "window_size": 8}},
    "transformer": _HEADS,
    "transformer:window": {**_HEADS, "window_size": 8},
    "wall_transformer": _HEADS,
    "wall_transformer:window": {**_HEADS, "window_size": 8},
    "yoco": {**_YOCO, "self_decoder_attn": {"head_dim": 16, "num_heads": 2}},
    "yoco:retention": {**_YOCO, "self_decoder_attn": {"type": "gated_retention", "num_heads": 2}},
    "yoco:window": {
        **_YOCO,
        "self_decoder_attn": {"type": "swa", "num_heads": 4, "num_v_heads": 2, "window_size": 8},
    },
}
# Not here: abc, lightnet, mesa_net, parallax, rodimus (their kernels do not run in the interpreter), mamba3,
# log_linear_mamba2, path_attn, moba (CUDA only); stickbreaking_attn, deltaformer and cat keep no cache.


class _Driver:
    """Stands for the driver of a device, of which the interpreter asks little."""

    def get_current_target(self) -> Any:
        return import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        return lambda run, **_: [1.0, 1.0, 1.0]  # any of the tuner's choices is as good


def _no_attention(q: Tensor, k: Tensor, v: Tensor, **_: Any) -> Tensor:
    return q.new_zeros(*q.shape[:-1], v.shape[-1])


def _stand_ins() -> None:
    module = ModuleType("flash_attn")
    module.__spec__ = ModuleSpec("flash_attn", None)
    for name in ("flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"):
        setattr(module, name, _no_attention)
    sys.modules["flash_attn"] = module


def _tensors(path: str, held: Any) -> Iterator[tuple[str, Tensor]]:
    """All tensors in nested containers."""
    if isinstance(held, Tensor):
        yield path, held
    elif isinstance(held, Mapping):
        for key, item in held.items():
            yield from _tensors(f"{path}.{key}", item)
    elif isinstance(held, list | tuple):
        for key, item in enumerate(held):
            yield from _tensors(f"{path}.{key}", item)


def _count(short: Mapping[str, Tensor], long: Mapping[str, Tensor]) -> dict[str, int]:
    """One layer after each of `LENGTHS` tokens."""
    found: dict[str, int] = dict.fromkeys(("kv", "window", "window_kv", "state", "columns", "state_bits"), 0)
    for name, tensor in long.items():
        growth = tensor.numel() - short[name].numel()
        if growth:
            found["kv"] += growth // (LENGTHS[1] - LENGTHS[0])
        elif name.startswith(".attn_state"):
            found["window"] = tensor.shape[1]
            found["window_kv"] += tensor[:, 0].numel()
        elif name.startswith(".recurrent_state"):
            found["state"] += tensor.numel()
            found["state_bits"] = 8 * tensor.element_size()
        else:
            found["columns"] += tensor.numel()
    return found


def counted(name: str, classes: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of one family.

    Args:
        name: a key of `FAMILIES`.
        classes: the configuration classes by model type.
    """
    config = classes[name.split(":")[0]](**{**_SMALL, **_PLAIN, **FAMILIES[name]})
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = AutoModel.from_config(config, dtype=torch.bfloat16).eval()
        runs = []
        for length in LENGTHS:
            tokens = 1 + torch.arange(length)[None] % 89
            cache = model(tokens[:, :-1], use_cache=True).past_key_values
            cache = model(tokens[:, -1:], use_cache=True, past_key_values=cache).past_key_values
            runs.append([dict(_tensors("", cache[i])) for i in range(len(cache))])
    raw = json.loads(config.to_json_string(use_diff=True))
    return {"config": raw, "layers": [_count(*layer) for layer in zip(*runs, strict=True)]}


def main() -> None:
    """Write the file, one line a family."""
    _stand_ins()
    warnings.simplefilter("ignore")
    models = import_module("fla.models")
    import_module("triton.runtime").driver.set_active(_Driver())
    classes = {
        one.model_type: one
        for one in vars(models).values()
        if isinstance(one, type) and one.__name__.endswith("Config")
    }
    lines = (f"{json.dumps(name)}:{json.dumps(counted(name, classes), separators=(',', ':'))}" for name in FAMILIES)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
