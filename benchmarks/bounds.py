"""How long a bound takes, and its check: medians over stacks, process start excluded.

    python benchmarks/bounds.py

The peer is the closed form on the same stack in the same run: what the search costs is the ratio. A stack of 94 layers
of which 24 are full, each with sizes of its own, stands for real models.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

from hopbound.architecture import Architecture, Defaults, Precisions, parse_schedule, runs
from hopbound.bounds import check, closed_forms, prove, theorem_a, theorem_b

SIZES = [(1, 4, 4), (1, 8, 8), (1, 16, 16), (4, 16, 16), (16, 128, 16)]
STACKS = {
    2: ["linear full linear", "2*full"],
    3: ["linear full linear full linear", "3*full", "linear 2*full"],
    4: ["linear full linear full linear full linear", "4*full"],
}
REPEATS = 3


def heterogeneous() -> Architecture:
    """94 layers, every fourth or so full, no two alike."""
    names = []
    for layer in range(94):
        if layer % 4 == 3 or layer == 93:
            names.append(f"full[heads={8 + layer % 5},kv_heads=1,head_dim={64 + layer}]")
        else:
            names.append(f"gdn[heads={4 + layer % 3},head_dim={96 + layer},conv=4]")
    return parse_schedule(" ".join(names))


def seconds(call: Callable[[], object]) -> float:
    """Median time of a call."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def closed(architecture: Architecture, hops: int) -> None:
    """The closed forms of every theorem that speaks."""
    stack = runs(architecture.layer_bits()[0])
    for theorem in (theorem_a, theorem_b):
        for problem, _ in theorem.problems(stack, hops, False):
            closed_forms.instance(problem)


def main() -> None:
    """Print a table."""
    prove(parse_schedule("linear full"), 2)  # imports scipy
    print("hops  stacks  search, median s  largest s  / closed form  check, median s")
    for hops, stacks in STACKS.items():
        searched, ratios, checked = [], [], []
        for schedule in stacks:
            for heads, head_dim, bits in SIZES:
                stack = parse_schedule(schedule, Defaults(heads=heads, head_dim=head_dim), Precisions.uniform(bits))
                verdict = prove(stack, hops)
                assert verdict.certificate is not None, (schedule, hops)
                document = verdict.certificate.document()
                searched.append(seconds(partial(prove, stack, hops)))
                ratios.append(searched[-1] / seconds(partial(closed, stack, hops)))
                checked.append(seconds(partial(check, document)))
        print(
            f"{hops:4}  {len(searched):6}  {statistics.median(searched):16.3f}  {max(searched):9.3f}"
            f"  {statistics.median(ratios):13.0f}  {statistics.median(checked):15.4f}"
        )
    stack = heterogeneous()
    full = len(stack.full_layers)
    print(f"94 layers, {full} of them full, {full + 1} hops: {seconds(partial(prove, stack, full + 1)):.3f} s")


if __name__ == "__main__":
    main()
