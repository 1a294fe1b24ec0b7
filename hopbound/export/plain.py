r"""A decoder as plain tables and matrices: what classes of other libraries can hold.

    x_t = token_table[w_t] + position_table[t]
    x  += out · attention(query · x, key · x, value · x)       full causal softmax, scores not scaled
    x  += fall · relu(rise · x + rise_bias) + fall_bias
    logits_t = readout · x_t

Codes by rule become tables. Every layer gets as many heads, coordinates a head and hidden units as the largest has, and
keys that heads share are repeated: what is added is zero, and the scale of the scores goes into the queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from hopbound.decoder import Decoder
from hopbound.decoder.model import Block, PointwiseMap
from hopbound.errors import InputError
from hopbound.mixers import SoftmaxAttention

MAX_ELEMENTS = 2**27  # of one table: half a GiB


@dataclass(frozen=True, kw_only=True)
class PlainLayer:
    """Full attention and a map.

    Attributes:
        query: of all heads, one after the other.
        key: the same.
        value: the same.
        out: from the heads to the stream.
        rise: to the hidden units.
        rise_bias: of the hidden units.
        fall: from the hidden units.
        fall_bias: in the stream.
    """

    query: Float[Tensor, "inner width"]
    key: Float[Tensor, "inner width"]
    value: Float[Tensor, "inner width"]
    out: Float[Tensor, "width inner"]
    rise: Float[Tensor, "hidden width"]
    rise_bias: Float[Tensor, " hidden"]
    fall: Float[Tensor, "width hidden"]
    fall_bias: Float[Tensor, " width"]


@dataclass(frozen=True, kw_only=True)
class PlainStack:
    """A whole model.

    Attributes:
        heads: of every layer.
        head_dim: of keys and of values.
        token_table: a row a token.
        position_table: a row a position.
        layers: in order.
        readout: a row an answer.
    """

    heads: int
    head_dim: int
    token_table: Float[Tensor, "vocabulary width"]
    position_table: Float[Tensor, "positions width"]
    layers: Sequence[PlainLayer]
    readout: Float[Tensor, "answers width"]

    @property
    def width(self) -> int:
        """Of the stream."""
        return self.token_table.shape[1]

    @property
    def hidden(self) -> int:
        """Units of every map."""
        return self.layers[0].rise.shape[0]


def plain_stack(decoder: Decoder) -> PlainStack:
    """A decoder as plain tables and matrices, in float32.

    Raises:
        InputError: it has something else than full attention, ReLU maps and coded positions; its tables are too large.
    """
    attention = _only_attention(decoder)
    config, width = decoder.config, decoder.config.width
    heads = max(mixer.spec.heads for mixer in attention)
    head_dim = max(max(mixer.spec.head_dim, mixer.spec.value_dim) for mixer in attention)
    hidden = max(1, *config.hidden)
    layers = []
    for block, mixer in zip(decoder.each_block(), attention, strict=True):
        spec, kv_heads = mixer.spec, mixer.spec.kv_heads
        layers.append(
            PlainLayer(
                query=_heads(mixer.query.weight * mixer.scale, spec.heads, spec.heads, (heads, head_dim)),
                key=_heads(mixer.key.weight, kv_heads, spec.heads, (heads, head_dim)),
                value=_heads(mixer.value.weight, kv_heads, spec.heads, (heads, head_dim)),
                out=_heads(mixer.out.weight.T, spec.heads, spec.heads, (heads, head_dim)).T,
                **_map(block, width, hidden),
            )
        )
    return PlainStack(
        heads=heads,
        head_dim=head_dim,
        token_table=decoder.embed_tokens(torch.arange(config.vocabulary)[None])[0].float(),
        position_table=decoder.embed_positions(torch.arange(int(decoder.prompt_limit))).float(),
        layers=layers,
        readout=decoder.read_out(torch.eye(width, dtype=decoder.dtype)[None])[0].T.float().contiguous(),
    )


def _only_attention(decoder: Decoder) -> list[SoftmaxAttention]:
    """The mixer of each layer; refuses whatever tables and matrices cannot hold."""
    config = decoder.config
    wanted = (("norm", "none"), ("maps", "plain"), ("activation", "relu"), ("encoding", None), ("causal", True))
    for name, value in wanted:
        if getattr(config, name) != value:
            raise InputError(name, getattr(config, name), f"{value or 'none'}: others are not exported in this format")
    if config.positions is None:
        raise InputError("positions", "none", "positions by rule or from a table")
    attention = []
    for index, block in enumerate(decoder.each_block(), start=1):
        mixers = block.each_mixer()
        only = mixers[0] if len(mixers) == 1 else None
        if not isinstance(only, SoftmaxAttention) or only.window is not None or only.gate is not None:
            what = " | ".join(str(mixer.spec) for mixer in mixers) or "no mixer"
            raise InputError(f"layer {index}", what, "full attention without a gate (ONNX has the other mixers)")
        attention.append(only)
    rows = max(config.vocabulary, config.answers, int(decoder.prompt_limit))
    if rows * config.width > MAX_ELEMENTS:
        raise InputError("table", f"{rows} rows of {config.width} numbers", f"at most {MAX_ELEMENTS} numbers")
    return attention


def _heads(weight: Tensor, stored: int, heads: int, room: tuple[int, int]) -> Tensor:
    """Rows of `stored` heads, each repeated for the query heads that share it, in a room of (heads, dimensions)."""
    rows = weight.float().unflatten(0, (stored, -1)).repeat_interleave(heads // stored, dim=0)
    wide = rows.new_zeros(*room, weight.shape[1])
    wide[:heads, : rows.shape[1]] = rows
    return wide.flatten(0, 1)


def _map(block: Block, width: int, hidden: int) -> dict[str, Tensor]:
    """The map of a layer, filled up with units that do nothing."""
    made = {
        "rise": torch.zeros(hidden, width),
        "rise_bias": torch.zeros(hidden),
        "fall": torch.zeros(width, hidden),
        "fall_bias": torch.zeros(width),
    }
    if isinstance(block.pointwise, PointwiseMap):
        rise, fall = block.pointwise.rise, block.pointwise.fall
        made["rise"][: len(rise.weight)] = rise.weight.float()
        made["rise_bias"][: len(rise.weight)] = rise.bias.float()
        made["fall"][:, : fall.weight.shape[1]] = fall.weight.float()
        made["fall_bias"][:] = fall.bias.float()
    return made


def tensors_of(stack: PlainStack) -> dict[str, Tensor]:
    """Everything by name, as it is written to a file."""
    named = {"token_table": stack.token_table, "position_table": stack.position_table, "readout": stack.readout}
    for index, layer in enumerate(stack.layers):
        named |= {f"layers.{index}.{name}": value for name, value in vars(layer).items()}
    return {name: value.detach().clone().contiguous() for name, value in named.items()}
