"""Three published files (openai, Qwen, LiquidAI), and by hand what they come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

CONTEXT = 131_072


@dataclass(frozen=True, kw_only=True)
class Published:
    """A config.json, and what its model keeps, in numbers: everything counted from the file with pencil and paper.

    Attributes:
        config: the file.
        kinds: the kind of each layer.
        kv: numbers that a token leaves in a layer, by kind.
        state: numbers of recurrent state of a layer.
        conv: columns of convolutions, needed and allocated.
        window: tokens in sight, the token itself included.
        summary: numbers that a query learns in a full layer, H (d_v + 2).
        first_run: bits of the bounded layers before the first full one.
        reach: tokens that windows and convolutions see back.
    """

    config: Mapping[str, Any]
    kinds: tuple[str, ...]
    kv: Mapping[str, int]
    state: int
    conv: tuple[int, int]
    window: int | None
    summary: int
    first_run: int
    reach: int | None

    def layers(self, kind: str) -> list[int]:
        return [i for i, own in enumerate(self.kinds) if own == kind]

    def kv_bytes(self, context: int) -> int:
        """Full layers keep every token, windows of W tokens the W - 1 before it; 16 bits a number."""
        full = len(self.layers("full")) * self.kv.get("full", 0) * context
        held = min(context, (self.window or 1) - 1)
        return 2 * (full + len(self.layers("window")) * self.kv.get("window", 0) * held)

    @property
    def state_bits(self) -> int:
        """What crosses a cut in the bounded layers: states at 32 bits, columns and windows at 16."""
        recurrent, conv = len(self.layers("recurrent")), len(self.layers("conv"))
        columns = (recurrent + conv) * self.conv[0]
        windows = len(self.layers("window")) * self.kv.get("window", 0) * ((self.window or 1) - 1)
        return 32 * recurrent * self.state + 16 * (columns + windows)

    @property
    def impossible(self) -> tuple[int, float]:
        """Corollary A': L = F + 1 hops from σ (40 L b)^((L - 1)(L + 2)/2) tokens on.

        At these sizes σ is the state before the first full layer: later ones may be 32 b^L times as large.
        """
        L = len(self.layers("full")) + 1
        return L, log2(self.first_run) + (L - 1) * (L + 2) / 2 * log2(40 * L * 32 * self.summary)


GPT_OSS = Published(
    config={
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_hidden_layers": 24,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072,
    },
    kinds=("window", "full") * 12,
    kv={"window": 8 * 2 * 64, "full": 8 * 2 * 64},
    state=0,
    conv=(0, 0),
    window=128,
    summary=64 * (64 + 2),
    first_run=16 * 127 * 8 * 2 * 64,
    reach=12 * 127,
)

# 32 value heads of 128 x 128; the convolution of width 4 runs over 16 queries, 16 keys and 32 values of 128 numbers.
QWEN = Published(
    config={
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "max_position_embeddings": 262144,
    },
    kinds=("recurrent", "recurrent", "recurrent", "full") * 12,
    kv={"full": 2 * 2 * 256},
    state=32 * 128 * 128,
    conv=(3 * (16 + 16 + 32) * 128, 4 * (16 + 16 + 32) * 128),
    window=None,
    summary=16 * (256 + 2),
    first_run=3 * (32 * 32 * 128 * 128 + 16 * 3 * 64 * 128),
    reach=None,
)

LFM2 = Published(
    config={
        "model_type": "lfm2",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "conv_L_cache": 3,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        "max_position_embeddings": 128000,
    },
    kinds=("conv", "conv", "full") * 3 + ("conv", "full") * 3 + ("conv",),
    kv={"full": 8 * 2 * 64},
    state=0,
    conv=(2 * 2048, 3 * 2048),
    window=None,
    summary=32 * (64 + 2),
    first_run=2 * 16 * 2 * 2048,
    reach=10 * 2,
)

PUBLISHED = {"gpt-oss-20b": GPT_OSS, "Qwen3-Next-80B-A3B": QWEN, "LFM2-1.2B": LFM2}
