"""How fast the mixers' engines are beside other projects' torch code, on a CPU, in one run.

    python -m benchmarks.mixers
    python -m benchmarks.mixers --lengths 4096 --only linear retnet

Forward and backward in float32, two threads, batch 8, 4 heads of 64 dimensions. Everybody is given the same tensors, in
the layout [batch, time, heads, dim] in which projections leave them. The calls of one row take turns, so that what
slows the machine slows them all; medians are printed, and the ratio peer / ours: above 1 we are faster.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

from hopbound.mixers.chunks import CHUNK
from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.delta import SMALL_CHUNK
from hopbound.mixers.delta_rule import delta_rule
from hopbound.mixers.dplr import dplr
from hopbound.mixers.linear import Memory, normalised_attention, positive
from tests.mixers.peers import fla

BATCH, HEADS, DIM = 8, 4, 64
SCALE = DIM**-0.5
Call = Callable[..., Tensor]


@dataclass(frozen=True)
class Row:
    """One engine and those it is compared with; all are called with the tensors named in `given`."""

    given: tuple[str, ...]
    ours: Call
    peers: Mapping[str, Call]


def tensors(length: int) -> dict[str, Tensor]:
    """Unit queries and keys, values, strengths, decays of heads and of channels: [batch, time, heads(, dim)]."""
    generator = torch.Generator().manual_seed(0)

    def normal(*more: int) -> Tensor:
        return torch.randn(BATCH, length, HEADS, *more, generator=generator)

    made = {
        "q": normalize(normal(DIM), dim=-1),
        "k": normalize(normal(DIM), dim=-1),
        "v": normal(DIM),
        "beta": normal().sigmoid(),
        "g": -0.1 * normal().abs(),
        "channels": -0.1 * normal(DIM).abs(),
        "b": 0.5 * normalize(normal(DIM), dim=-1),
    }
    return {key: value.requires_grad_() for key, value in made.items()}


def turned(x: Tensor) -> Tensor:
    """Heads before time."""
    return x.transpose(1, 2)


def empty() -> Tensor:
    """The state before the first token."""
    return torch.zeros(BATCH, HEADS, DIM, DIM)


def ours_delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor) -> Tensor:
    """The delta rule with a decay for each head or each channel."""
    q, k, v, beta, g = map(turned, (q, k, v, beta, g))
    return delta_rule(q * SCALE, k, v, beta, g, empty(), chunk=SMALL_CHUNK)[0]


def ours_dplr(q: Tensor, k: Tensor, v: Tensor, b: Tensor, g: Tensor) -> Tensor:
    """RWKV-7's form: what is taken away by -k is written back at b."""
    q, k, v, b, g = map(turned, (q, k, v, b, g))
    return dplr(q * SCALE, k, v, -k, b, g, empty(), chunk=SMALL_CHUNK, mild=True)[0]


def ours_decayed(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
    """Mamba-2's form."""
    q, k, v, g = map(turned, (q, k, v, g))
    return decayed_attention(q, k, v, g, empty(), chunk=CHUNK)[0]


def ours_linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Linear attention with its feature map and normaliser."""
    q, k, v = map(turned, (q, k, v))
    memory = Memory(empty(), torch.zeros(BATCH, HEADS, DIM))
    return normalised_attention(positive(q), positive(k), v, memory, chunk=CHUNK)[0]


def ours_retention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Retention with its fixed decays."""
    q, k, v = map(turned, (q, k, v))
    rates = torch.log1p(-torch.exp2(-5 - torch.arange(HEADS)))
    return decayed_attention(q * SCALE, k, v, rates[None, :, None].expand(1, *q.shape[1:3]), empty(), chunk=CHUNK)[0]


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What torch has for full attention."""
    return scaled_dot_product_attention(turned(q), turned(k), turned(v), is_causal=True)


def fla_dplr(q: Tensor, k: Tensor, v: Tensor, b: Tensor, g: Tensor) -> Tensor:
    """flash-linear-attention's chunked torch code; it takes heads first and scales queries itself."""
    q, k, v, b, g = map(turned, (q, k, v, b, g))
    return fla("generalized_delta_rule/dplr/naive", "dplr_chunkwise")(q, k, v, -k, b, g)[0]


def rows() -> dict[str, Row]:
    """The comparisons."""
    from transformers.models.kimi_linear import modeling_kimi_linear as kimi
    from transformers.models.mamba2 import modeling_mamba2 as mamba2
    from transformers.models.mamba2.configuration_mamba2 import Mamba2Config
    from transformers.models.qwen3_next import modeling_qwen3_next as qwen

    default = Mamba2Config().chunk_size
    rate, step = -torch.ones(HEADS), torch.ones(())

    def peer_ssd(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        # With the step Δ = -g and A = -1 the decay is exp(g); its inputs are Δ v, so that v / Δ is handed over.
        return mamba2.mamba2_chunk_scan(v / -g[..., None], -g, rate * step, k, q, default)

    gated, kda = ("q", "k", "v", "beta", "g"), ("q", "k", "v", "beta", "channels")

    def delta_peer(function: Callable[..., tuple[Tensor, Tensor | None]]) -> Call:
        return lambda q, k, v, beta, g: function(q, k, v, g, beta, initial_state=None, output_final_state=False)[0]

    return {
        "gdn": Row(gated, ours_delta, {"transformers, chunked": delta_peer(qwen.torch_chunk_gated_delta_rule)}),
        "kda": Row(
            kda,
            ours_delta,
            {
                "transformers, chunked": delta_peer(kimi.chunk_kimi_delta_attention),
                "transformers, recurrent": delta_peer(kimi.recurrent_kimi_delta_attention),
            },
        ),
        "rwkv7": Row(("q", "k", "v", "b", "channels"), ours_dplr, {"fla-core, chunked DPLR": fla_dplr}),
        "mamba2": Row(("q", "k", "v", "g"), ours_decayed, {f"transformers, chunk {default}": peer_ssd}),
        "linear": Row(("q", "k", "v"), ours_linear, {"torch, causal SDPA": softmax}),
        "retnet": Row(("q", "k", "v"), ours_retention, {"torch, causal SDPA": softmax}),
    }


def seconds(call: Call, given: list[Tensor]) -> float:
    """One forward and backward pass."""
    for tensor in given:
        tensor.grad = None
    begin = time.perf_counter()
    output = call(*given)
    output.backward(torch.ones_like(output))
    return time.perf_counter() - begin


def measure(row: Row, length: int, repeats: int) -> dict[str, float]:
    """Median seconds of ours ("") and of each peer, the calls taking turns, after one warm-up each."""
    made = tensors(length)
    given = [made[name] for name in row.given]
    calls = {"": row.ours, **row.peers}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(repeats + 1):
        for name, call in calls.items():
            taken = seconds(call, given)
            if round_:
                times[name].append(taken)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--only", nargs="+", default=None, metavar="MIXER")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    print("mixer   peer                        T   ours, ms   peer, ms  peer / ours", flush=True)
    for name, row in rows().items():
        if arguments.only and name not in arguments.only:
            continue
        for length in arguments.lengths:
            times = measure(row, length, arguments.repeats)
            ours = times.pop("")
            for peer, taken in times.items():
                print(
                    f"{name:7} {peer:24} {length:5} {1e3 * ours:10.1f} {1e3 * taken:10.1f} {taken / ours:12.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
