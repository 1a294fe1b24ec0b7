r"""The delta rule (DeltaNet, arXiv 2406.06484): a write first takes away what its key holds.

    q_t = u/|u| with u = W_q x_t,  k_t likewise,  v_t = W_v x_t,  β_t = sigmoid(w_β · x_t)          (one β a head)
    S_t = S_{t-1} - β_t k_t (S_{t-1}ᵀ k_t - v_t)ᵀ ,    y_t = W_o [ S_tᵀ q_t ]

State: H d_k d_v numbers. A zero key stays zero under the normalisation and writes nothing.
"""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.mixer import accumulator, linear, merge_heads
from hopbound.mixers.recurrence import Recurrence


def delta_rule(
    queries: Float[Tensor, "batch heads time key_dim"],
    keys: Float[Tensor, "batch heads time key_dim"],
    values: Float[Tensor, "batch heads time value_dim"],
    strength: Float[Tensor, "batch heads time"],
    decay: Float[Tensor, "batch heads time"] | None,
    matrix: Float[Tensor, "batch heads key_dim value_dim"],
) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
    """The recurrence above, step by step; `decay` (None: 1) multiplies the state before the token is written."""
    decays = [None] * queries.shape[2] if decay is None else decay.unbind(2)
    steps = zip(queries.unbind(2), keys.unbind(2), values.unbind(2), strength.unbind(2), decays, strict=True)
    outputs = []
    for q, k, v, beta, alpha in steps:
        if alpha is not None:
            matrix = alpha[..., None, None] * matrix
        error = v - (k[..., None, :] @ matrix)[..., 0, :]
        matrix = matrix + k[..., :, None] * (beta[..., None] * error)[..., None, :]
        outputs.append((q[..., None, :] @ matrix)[..., 0, :])
    return torch.stack(outputs, dim=2), matrix


class DeltaRecurrence(Recurrence[Tensor]):
    """A recurrence by the delta rule, with unit queries and keys and a strength in (0, 1) for each head."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.strength = linear(width, spec.heads)

    @abstractmethod
    def decay(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time heads"] | None:
        """The factor of each head's state before a token is written; None: 1."""

    def forward(
        self, x: Float[Tensor, "batch time width"], state: Float[Tensor, "batch heads key_dim value_dim"] | None = None
    ) -> tuple[Float[Tensor, "batch time width"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """Decay, overwrite, then read."""
        queries, keys, values = self.projected(x)
        strength = self.strength(x).to(values.dtype).sigmoid().transpose(1, 2)
        decay = self.decay(x)
        output, state = delta_rule(
            normalize(queries, dim=-1),
            normalize(keys, dim=-1),
            values,
            strength,
            None if decay is None else decay.transpose(1, 2),
            self.empty_matrix(x) if state is None else state,
        )
        return self.out(merge_heads(output).to(x.dtype)), state

    def changes_state(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token leaves the state as it is if each head has a zero key or strength, and a decay of exactly 1."""
        keys = self.key(x).unflatten(-1, (self.spec.heads, self.spec.head_dim)).ne(0).any(dim=-1)
        changes = keys & self.strength(x).to(accumulator(x.dtype)).sigmoid().ne(0)
        decay = self.decay(x)
        return (changes if decay is None else changes | decay.ne(1)).any(dim=-1)

    def carried_elements(self, state: Float[Tensor, "batch heads key_dim value_dim"]) -> int:
        """The matrix S."""
        return state[0].numel()


class DeltaNet(DeltaRecurrence):
    """The delta rule as it is."""

    def decay(self, x: Float[Tensor, "batch time width"]) -> None:
        """None: what is written stays until its key is written again."""

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and strengths."""
        return self.key.weight, self.strength.weight
