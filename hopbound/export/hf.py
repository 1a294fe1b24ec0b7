r"""A plain stack in a class of transformers: `config.json` and `model.safetensors`, no code of ours.

Each class is used as it is; what it has and the stack has not is made to do nothing:

*Norms.* GPT-2 and Llama take the ε of their norms from the config. With ε = 2^60 the denominator √(var + ε) is 2^30
exactly, as var < 2^35 is lost in the sum, and norm weights of 2^30 give the stream back to the bit. OPT's ε is fixed.
There two coordinates hold +K and -K, the denominator is √(2 K² / width) (1 + r / 4 K²) for r = Σ x² of the rest, and
norm weights of √(2 K² / width) leave an error of r / 4 K², 2^-20 for r = 64 and K = 2^12.

*Mean.* LayerNorm takes the mean away: a coordinate holds minus the sum of all others, so that it is 0. Whatever writes
to the stream writes there too.

*Scores.* GPT-2 can leave them unscaled; else a head gets 4^j coordinates and queries 2^j times as large: exact.

*Rotary positions* (Llama). Linear interpolation by 2^100 turns keys and queries by less than 2^-80: cos = 1, and what
the sines add is lost beside any digit.

*No table of positions* (Llama). A token of its own stands before the prompt, as `<s>` does. In one more layer in front
every token averages a 1 at that token over all that it sees: u = 1/(t + 2) at position t. The map adds up the rows of
the position table, each less the one before, by steps of u: s (m - u) clipped between ∓1/2, with m in the middle
between 1/(t + 2) and 1/(t + 1), and s (1/(t + 1) - 1/(t + 2)) = 2. Where a step is 0 it is so exactly; where it is 1
its terms are about 2t, off by 2^-23 t in float32. `position_error` computes what that comes to; codes that are off by
more than 1/64 are refused. The other layers do not see the token: one coordinate of the keys puts its score at -2^14.

*Answers* are the tokens 0 .. A - 1 of the language head; all others have the logit -2^20, read from a coordinate that
is 1.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.errors import InputError
from hopbound.export.plain import PlainStack

NORM = 2.0**30
PAIR = 2.0**12
HIDDEN_SCORE = 2.0**14
NEVER = -(2.0**20)
ROTARY_FACTOR = 2.0**100
POSITION_TOLERANCE = 1 / 64
MAX_STEPS = 2**14


@dataclass(frozen=True, kw_only=True)
class HuggingFaceModel:
    """What goes into the folder.

    Attributes:
        config: of `config.json`.
        tensors: of `model.safetensors`.
        start: the token that stands before every prompt; None: there is none.
    """

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    start: int | None = None


def gpt2(stack: PlainStack) -> HuggingFaceModel:
    """As `GPT2LMHeadModel`: learned positions, ε of the config, scores not scaled."""
    head_dim = max(stack.head_dim, -(-(stack.width + 2) // stack.heads))
    stream = _Stream(stack, stack.heads * head_dim, balanced=True)
    tensors = {
        "transformer.wte.weight": stream.tokens(stream.vocabulary),
        "transformer.wpe.weight": stream.positions(),
        "lm_head.weight": stream.readout(stream.vocabulary),
    }
    for index, layer in enumerate(stack.layers):
        at = f"transformer.h.{index}."
        joined = [stream.read(stream.inner(part)) for part in (layer.query, layer.key, layer.value)]
        tensors |= {
            at + "attn.c_attn.weight": torch.cat(joined).T,
            at + "attn.c_attn.bias": torch.zeros(3 * stream.width),
            at + "attn.c_proj.weight": stream.write(stream.inner(layer.out.T).T).T,
            at + "attn.c_proj.bias": torch.zeros(stream.width),
            at + "mlp.c_fc.weight": stream.read(layer.rise).T,
            at + "mlp.c_fc.bias": layer.rise_bias,
            at + "mlp.c_proj.weight": stream.write(layer.fall).T,
            at + "mlp.c_proj.bias": stream.bias(layer.fall_bias),
        }
    norms = [f"transformer.h.{i}.ln_{j}" for i in range(len(stack.layers)) for j in (1, 2)]
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": stream.vocabulary,
        "n_positions": len(stack.position_table),
        "n_embd": stream.width,
        "n_layer": len(stack.layers),
        "n_head": stack.heads,
        "n_inner": stack.hidden,
        "activation_function": "relu",
        "layer_norm_epsilon": NORM**2,
        "scale_attn_weights": False,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }
    return _finished(config, tensors | _norms([*norms, "transformer.ln_f"], stream.width, NORM, bias=True))


def opt(stack: PlainStack) -> HuggingFaceModel:
    """As `OPTForCausalLM`: learned positions; its norms are left all but nothing to do by a pair of constants."""
    head_dim = _power_of_four(max(stack.head_dim, -(-(stack.width + 4) // stack.heads)))
    stream = _Stream(stack, stack.heads * head_dim, balanced=True, pair=PAIR)
    tensors = {
        "model.decoder.embed_tokens.weight": stream.tokens(stream.vocabulary),
        "model.decoder.embed_positions.weight": torch.cat([torch.zeros(2, stream.width), stream.positions()]),
        "lm_head.weight": stream.readout(stream.vocabulary),
    }
    for index, layer in enumerate(stack.layers):
        at = f"model.decoder.layers.{index}."
        query = layer.query * math.sqrt(head_dim)
        for name, weight in (("q_proj", query), ("k_proj", layer.key), ("v_proj", layer.value)):
            tensors[f"{at}self_attn.{name}.weight"] = stream.read(stream.inner(weight))
        tensors |= {
            at + "self_attn.out_proj.weight": stream.write(stream.inner(layer.out.T).T),
            at + "fc1.weight": stream.read(layer.rise),
            at + "fc1.bias": layer.rise_bias,
            at + "fc2.weight": stream.write(layer.fall),
            at + "fc2.bias": stream.bias(layer.fall_bias),
        }
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            tensors[f"{at}self_attn.{name}.bias"] = torch.zeros(stream.width)
    norms = [
        f"layers.{i}.{name}" for i in range(len(stack.layers)) for name in ("self_attn_layer_norm", "final_layer_norm")
    ]
    config = {
        "architectures": ["OPTForCausalLM"],
        "model_type": "opt",
        "vocab_size": stream.vocabulary,
        "max_position_embeddings": len(stack.position_table),
        "hidden_size": stream.width,
        "word_embed_proj_dim": stream.width,
        "num_hidden_layers": len(stack.layers),
        "num_attention_heads": stack.heads,
        "ffn_dim": stack.hidden,
        "activation_function": "relu",
        "do_layer_norm_before": True,
        "enable_bias": True,
        "layer_norm_elementwise_affine": True,
        "dropout": 0.0,
    }
    scale = PAIR * math.sqrt(2 / stream.width)
    named = [f"model.decoder.{name}" for name in (*norms, "final_layer_norm")]
    return _finished(config, tensors | _norms(named, stream.width, scale, bias=True))


def llama(stack: PlainStack) -> HuggingFaceModel:
    """As `LlamaForCausalLM`: a token before the prompt and one more layer in front make the positions.

    Raises:
        InputError: float32 cannot tell so many positions apart.
    """
    steps = Steps.of(stack.position_table)
    head_dim = _power_of_four(stack.head_dim + 1)
    stream = _Stream(stack, -(-(stack.width + 4) // stack.heads) * stack.heads, balanced=False)
    start = stream.vocabulary
    tokens = stream.tokens(start + 1)
    tokens[:, stream.one] = 1.0
    tokens[start] = 0.0
    tokens[start, [stream.one, stream.start]] = 1.0
    inner, hidden = stack.heads * head_dim, max(stack.hidden, len(steps.bias))
    tensors = {
        "model.embed_tokens.weight": tokens,
        "lm_head.weight": stream.readout(start + 1),
    }
    average, spread = torch.zeros(inner, stream.width), torch.zeros(stream.width, inner)
    average[0, stream.start], spread[stream.average, 0] = 1.0, 1.0
    rise = torch.zeros(len(steps.bias), stream.width)
    rise[:, stream.average] = steps.slope
    first = (torch.zeros_like(average), torch.zeros_like(average), average, spread)
    maps = [(rise, steps.bias, stream.write(steps.fall), torch.zeros(stream.width))]
    attention = [first]
    for layer in stack.layers:
        query, key, value = (
            stream.read(_room(weight, stack.heads, head_dim)) for weight in (layer.query, layer.key, layer.value)
        )
        query[stack.head_dim :: head_dim, stream.one] = HIDDEN_SCORE
        key[stack.head_dim :: head_dim, stream.start] = -1.0
        out = stream.write(_room(layer.out.T, stack.heads, head_dim).T)
        attention.append((query * math.sqrt(head_dim), key, value, out))
        fall = stream.write(layer.fall)
        maps.append((stream.read(layer.rise), layer.rise_bias, fall, stream.bias(layer.fall_bias)))
    for index, (projections, (rise, rise_bias, fall, fall_bias)) in enumerate(zip(attention, maps, strict=True)):
        at = f"model.layers.{index}."
        for name, weight in zip(("q_proj", "k_proj", "v_proj", "o_proj"), projections, strict=True):
            tensors[f"{at}self_attn.{name}.weight"] = weight
        tensors |= {
            at + "mlp.gate_proj.weight": _filled(rise, hidden),
            at + "mlp.gate_proj.bias": _filled(rise_bias, hidden),
            at + "mlp.up_proj.weight": torch.zeros(hidden, stream.width),
            at + "mlp.up_proj.bias": torch.ones(hidden),
            at + "mlp.down_proj.weight": _filled(fall.T, hidden).T,
            at + "mlp.down_proj.bias": fall_bias,
        }
    norms = [f"layers.{i}.{n}" for i in range(len(maps)) for n in ("input_layernorm", "post_attention_layernorm")]
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": start + 1,
        "max_position_embeddings": len(stack.position_table) + 1,
        "hidden_size": stream.width,
        "intermediate_size": hidden,
        "num_hidden_layers": len(maps),
        "num_attention_heads": stack.heads,
        "num_key_value_heads": stack.heads,
        "head_dim": head_dim,
        "hidden_act": "relu",
        "rms_norm_eps": NORM**2,
        "attention_bias": False,
        "mlp_bias": True,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": ROTARY_FACTOR},
    }
    named = [f"model.{name}" for name in (*norms, "norm")]
    return _finished(config, tensors | _norms(named, stream.width, NORM, bias=False), start)


CLASSES: Mapping[str, Callable[[PlainStack], HuggingFaceModel]] = {"gpt2": gpt2, "opt": opt, "llama": llama}


class _Stream:
    """A wider residual stream: the stack's coordinates, then a one, then two or three for what a class needs."""

    def __init__(self, stack: PlainStack, width: int, *, balanced: bool, pair: float = 0.0) -> None:
        self.stack, self.width, self.balanced, self.pair = stack, width, balanced, pair
        self.one, self.balance, self.constants = stack.width, stack.width + 1, stack.width + 2
        self.start, self.average = self.balance, self.constants  # where the mean is not taken away
        self.vocabulary = max(len(stack.token_table), len(stack.readout))

    def read(self, weight: Float[Tensor, "rows narrow"]) -> Float[Tensor, "rows wide"]:
        """A projection that reads none of the new coordinates."""
        return torch.nn.functional.pad(weight, (0, self.width - weight.shape[1]))

    def write(self, weight: Float[Tensor, "narrow columns"]) -> Float[Tensor, "wide columns"]:
        """A projection to the stream; where the mean matters it keeps the sum at 0."""
        wide = weight.new_zeros(self.width, weight.shape[1])
        wide[: len(weight)] = weight
        if self.balanced:
            wide[self.balance] = -weight.sum(dim=0)
        return wide

    def bias(self, bias: Float[Tensor, " narrow"]) -> Float[Tensor, " wide"]:
        """The same for what is written always."""
        return self.write(bias[:, None])[:, 0]

    def inner(self, weight: Float[Tensor, "inner columns"]) -> Float[Tensor, "width columns"]:
        """Heads as wide as the stream's part of a head."""
        return _room(weight, self.stack.heads, self.width // self.stack.heads)

    def tokens(self, rows: int) -> Float[Tensor, "rows wide"]:
        """The token table; tokens that only stand for answers are zero."""
        return _filled(self.write(self.stack.token_table.T).T, rows)

    def positions(self) -> Float[Tensor, "positions wide"]:
        """The position table, with the one and the pair of constants."""
        table = self.write(self.stack.position_table.T).T.clone()
        table[:, self.one] = 1.0
        table[:, self.balance] -= 1.0
        if self.pair:
            table[:, self.constants], table[:, self.constants + 1] = self.pair, -self.pair
        return table

    def readout(self, rows: int) -> Float[Tensor, "rows wide"]:
        """The language head: answers are the first tokens, the others never win."""
        head = _filled(self.read(self.stack.readout), rows)
        head[len(self.stack.readout) :, self.one] = NEVER
        return head


@dataclass(frozen=True)
class Steps:
    """Two ReLU units a step: of u = 1/(t + 2) to rows of the position table."""

    slope: Float[Tensor, " units"]
    bias: Float[Tensor, " units"]
    fall: Float[Tensor, "width units"]

    @classmethod
    def of(cls, table: Float[Tensor, "positions width"]) -> "Steps":
        """The steps of a table.

        Raises:
            InputError: there are too many, or float32 cannot tell the positions apart.
        """
        rise = table.double().diff(dim=0, prepend=torch.zeros(1, table.shape[1], dtype=torch.float64))
        t = rise.ne(0).any(dim=1).nonzero()[:, 0]
        if len(t) > MAX_STEPS:
            raise InputError("positions", len(table), f"at most {MAX_STEPS} different ones in a row for this class")
        slope = 2.0 * (t + 1) * (t + 2)
        middle = (1.0 / (t + 1).double() + 1.0 / (t + 2).double()) / 2
        bias = torch.stack([slope * middle + 0.5, slope * middle - 0.5], dim=1).flatten()
        fall = torch.stack([rise[t], -rise[t]], dim=1).flatten(0, 1).T
        steps = cls(-slope.repeat_interleave(2).float(), bias.float(), fall.float())
        if (error := position_error(steps, table)) > POSITION_TOLERANCE:
            raise InputError("positions", len(table), f"fewer: in float32 their codes would be off by {error:.2g}")
        return steps


def position_error(steps: Steps, table: Float[Tensor, "positions width"]) -> float:
    """How far the rows that the steps add up to are from those of the table, in float32."""
    worst = 0.0
    for start in range(0, len(table), 1024):
        rows = table[start : start + 1024]
        u = 1 / torch.arange(start + 2, start + 2 + len(rows)).float()
        made = torch.relu(u[:, None] * steps.slope + steps.bias) @ steps.fall.T
        worst = max(worst, float((made - rows).abs().max()))
    return worst


def _room(weight: Float[Tensor, "inner columns"], heads: int, head_dim: int) -> Float[Tensor, "wide columns"]:
    """Rows of heads, each filled up to `head_dim`."""
    rows = weight.unflatten(0, (heads, -1))
    return torch.nn.functional.pad(rows, (0, 0, 0, head_dim - rows.shape[1])).flatten(0, 1)


def _filled(rows: Tensor, count: int) -> Tensor:
    """Filled up with rows of zeros."""
    return torch.cat([rows, rows.new_zeros(count - len(rows), *rows.shape[1:])])


def _power_of_four(least: int) -> int:
    """The least power of four from `least` on; its root is a power of two."""
    return 4 ** math.ceil(((least - 1).bit_length()) / 2)


def _norms(names: list[str], width: int, weight: float, *, bias: bool) -> dict[str, Tensor]:
    """Norms with one weight for all coordinates."""
    made = {f"{name}.weight": torch.full((width,), weight) for name in names}
    return made | ({f"{name}.bias": torch.zeros(width) for name in names} if bias else {})


def _finished(config: dict[str, Any], tensors: dict[str, Tensor], start: int | None = None) -> HuggingFaceModel:
    """With what all classes have in common."""
    common = {
        "torch_dtype": "float32",
        "tie_word_embeddings": False,
        "use_cache": True,
        "bos_token_id": start,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return HuggingFaceModel(
        config=config | common,
        tensors={name: value.detach().clone().contiguous() for name, value in tensors.items()},
        start=start,
    )
