"""How many parameters a mixer has on a residual stream: what its projections, gates, taps and constants add up to.

Counts are those of the mixers of `hopbound.mixers`, without the norms, gates and thin factors of published blocks that
stand outside there; a test compares them with the tensors. `mlp` has none: a position-wise map is counted by the model.
"""

from collections.abc import Callable

from hopbound.architecture.mixer import MixerSpec
from hopbound.architecture.sizes import (
    ChannelState,
    Columns,
    EvictingAttention,
    GatedHeads,
    GroupedHeads,
    GroupedState,
    LatentAttention,
    MatrixState,
    NativeSparseAttention,
    Pointwise,
    SearchRetrieval,
    SelectiveAttention,
)
from hopbound.errors import InputError

Extra = Callable[[MatrixState, int], int]


def _keys(spec: MatrixState) -> int:
    return spec.heads * spec.head_dim


# Beside the projections of queries, keys, values and output.
_MATRIX: dict[str, Extra] = {
    "linear": lambda spec, width: 0,
    "rfa": lambda spec, width: 0,
    "poly": lambda spec, width: 0,
    "retnet": lambda spec, width: 0,
    "lightning": lambda spec, width: 0,
    "hgrn2": lambda spec, width: 0,
    "gla": lambda spec, width: (width + 1) * _keys(spec),
    "rwkv6": lambda spec, width: (width + 2) * _keys(spec),
    "rwkv7": lambda spec, width: (2 * width + 4) * _keys(spec),
    "delta": lambda spec, width: width * spec.heads,
    "deltaproduct": lambda spec, width: width * spec.heads * spec.steps,
    "gdn": lambda spec, width: (2 * width + 2) * spec.heads,
    "kda": lambda spec, width: width * spec.heads + (width + 1) * _keys(spec) + spec.heads,
    "mlstm": lambda spec, width: 2 * (width + 1) * spec.heads,
    "loglinear": lambda spec, width: (width + 2) * spec.heads + (width + 1) * spec.heads * spec.levels,
}


def _grouped(spec: GroupedHeads, width: int) -> int:
    queries, read = spec.heads * spec.head_dim, spec.heads * spec.value_dim
    return width * (queries + spec.one_token + read)


def mixer_parameters(spec: MixerSpec, width: int) -> int:
    """Parameters of the mixer of a spec on a residual stream of `width`.

    Raises:
        InputError: nothing is known of this mixer.
    """
    match spec:
        case Pointwise():
            return 0
        case GatedHeads():
            return _grouped(spec, width) + spec.gate * width * spec.heads * spec.value_dim
        case NativeSparseAttention():
            return _grouped(spec, width) + 3 * width * spec.heads
        case SelectiveAttention() if spec.name in ("topk", "moba"):
            index = spec.index_heads * spec.index_dim + spec.index_dim + spec.index_heads
            return _grouped(spec, width) + width * index
        case EvictingAttention():
            return _grouped(spec, width)
        case LatentAttention():
            queries, read = spec.heads * (spec.rope_dim + spec.value_dim), spec.heads * spec.value_dim
            return width * (queries + spec.rope_dim + spec.latent + read) + 2 * spec.latent * read
        case SearchRetrieval():
            searched = spec.heads * (2 * spec.head_dim + spec.select_dim)
            retrieved = (spec.retrievals + spec.heads) * spec.value_dim
            return width * (searched + retrieved) + spec.value_dim * spec.select_dim
        case MatrixState() if spec.name in _MATRIX:
            values = spec.heads * spec.value_dim
            projected = spec.key_heads * spec.head_dim
            convolved = projected + spec.steps * (projected + values)
            return width * (convolved + values) + spec.conv * convolved + _MATRIX[spec.name](spec, width)
        case GroupedState():
            channels = spec.heads * spec.head_dim
            convolved = channels + 2 * spec.groups * spec.state
            return width * (convolved + spec.heads + channels) + 3 * spec.heads + spec.conv * convolved
        case ChannelState(name="rwkv4"):
            return (4 * width + 2) * spec.channels
        case ChannelState(name="mamba"):
            own = 2 * spec.state + spec.channels + 1 + spec.state + 1
            return (2 * width + spec.conv + own) * spec.channels
        case ChannelState(name="rglru"):
            return (2 * width + spec.conv + 2 * (spec.channels + 1) + 1) * spec.channels
        case Columns():
            return (2 * width + (1 if spec.name == "shift" else spec.kernel)) * spec.channels
        case _:
            raise InputError("mixer", spec.name, "one whose parameters are counted in architecture/parameters.py")
