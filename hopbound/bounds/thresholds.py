"""The prompt lengths that the asymptotic theorems ask for, to be printed beside ours.

- arXiv 2602.01763: `L - 1` full layers with linear ones between them cannot make `L` hops once
  `Hdp ≤ n^(2^-(4L+2))`, that is `log2 n ≥ 2^(4L+2) log2(Hdp)`.
- arXiv 2412.02975, Theorem 1.1: `L` full layers alone cannot once `Hdp ≤ n^(2^-4L)`, that is
  `log2 n ≥ 2^(4L) log2(Hdp)`.

Neither states the constant in front; it is taken as 1, to the literature's advantage.
"""

from collections.abc import Sequence
from math import inf, log2

from hopbound.architecture import LayerBits


def paper_threshold(layers: Sequence[LayerBits], hops: int, hdp: int) -> tuple[float, str]:
    """Return log2 of the prompt length and where it is from; infinite beyond floating point."""
    only_full = all(layer.kind == "full" for layer in layers)
    exponent = 4 * hops if only_full else 4 * hops + 2
    source = "arXiv 2412.02975, Theorem 1.1" if only_full else "arXiv 2602.01763"
    return (2.0**exponent * log2(max(1, hdp)) if exponent < 1000 else inf), source
