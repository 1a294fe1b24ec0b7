r"""The matrix memory of xLSTM (mLSTM, arXiv 2405.04517): exponential gates, a normaliser, a running maximum.

    log i_t = w_i · x_t + b_i ,   log f_t = log sigmoid(w_f · x_t + b_f)                             (one each a head)
    C_t = f_t C_{t-1} + i_t k_t v_tᵀ ,   n_t = f_t n_{t-1} + i_t k_t
    y_t = W_o [ C_tᵀ q_t / (max(|n_t · q_t|, 1)) ] ,    q_t scaled by 1/√d_k

Kept so that nothing overflows, C and n divided by e^{m_t} with m_t = max(m_{t-1} + log f_t, log i_t): the 1 becomes
e^{-m_t}. As in the authors' code 1e-6 is added to the divided denominator. The output gate, norm and soft caps of the
published block stand outside; where it has a short convolution, values are made from what has not passed through it,
while `conv` is for all three. State: C, n and m for each head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.decayed import decayed_attention
from hopbound.mixers.mixer import accumulator, unmasked
from hopbound.mixers.recurrence import Recurrence
from hopbound.mixers.rwkv4 import running_maximum

EPSILON = 1e-6
LARGEST = 80.0  # e^80 is still finite in float32, and what is divided by it as good as 0


@dataclass(frozen=True)
class MatrixMemory:
    """Matrix and normaliser, divided by the exponential of the maximum."""

    matrix: Float[Tensor, "batch heads key_dim value_dim"]
    normaliser: Float[Tensor, "batch heads key_dim"]
    maximum: Float[Tensor, "batch heads"]


def matrix_memory(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    log_forget: Float[Tensor, "batch heads time"],
    log_input: Float[Tensor, "batch heads time"],
    memory: MatrixMemory,
    mask: Bool[Tensor, "batch time"] | None = None,
    *,
    chunk: int,
) -> tuple[Float[Tensor, "batch heads time value_dim"], MatrixMemory]:
    """The recurrence above, as decayed linear attention with one more column of values, for the normaliser."""
    losses, gains = unmasked(log_forget, mask), log_input
    if mask is not None:
        gains = gains.masked_fill(~mask[:, None], -torch.inf)
    maxima = running_maximum(memory.maximum.flatten(), losses.flatten(0, 1), gains.flatten(0, 1)).unflatten(
        0, losses.shape[:2]
    )
    before = torch.cat([memory.maximum[..., None], maxima[..., :-1]], dim=-1)
    written = keys * (gains - maxima).exp()[..., None]
    one = torch.ones_like(values[..., :1])
    read, matrix = decayed_attention(
        queries * queries.shape[-1] ** -0.5,
        written,
        torch.cat([values, one], dim=-1),
        before + losses - maxima,
        torch.cat([memory.matrix, memory.normaliser[..., None]], dim=-1),
        chunk=chunk,
    )
    least = (-maxima).clamp(max=LARGEST).exp()[..., None]
    output = read[..., :-1] / (torch.maximum(read[..., -1:].abs(), least) + EPSILON)
    return output, MatrixMemory(matrix[..., :-1], matrix[..., -1], maxima[..., -1].clone())


class MLstm(Recurrence[MatrixMemory]):
    """A matrix state for each head with exponential input gates."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.admit, self.forget = nn.Linear(width, spec.heads), nn.Linear(width, spec.heads)
        self.start()

    def constants(self) -> Mapping[str, Tensor | float]:
        """Forget gates that keep most, by head from 3 to 6 as in the published code."""
        return {"forget.bias": torch.linspace(3, 6, self.spec.heads, device="cpu")}

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: MatrixMemory | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], MatrixMemory]:
        """Fade, write, read."""
        wide = accumulator(x.dtype)
        gains, losses = (gate(x).to(wide).transpose(1, 2) for gate in (self.admit, self.forget))
        if state is None:
            matrix = self.empty_matrix(x)
            state = MatrixMemory(matrix, matrix[..., 0].clone(), matrix[..., 0, 0].clone())
        return matrix_memory(queries, keys, values, logsigmoid(losses), gains, state, mask, chunk=self.chunk)

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and both gates."""
        return self.key.weight, self.admit.weight, self.forget.weight
