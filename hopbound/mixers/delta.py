r"""The delta rule (DeltaNet, arXiv 2406.06484): a write first takes away what its key holds.

    q_t = u/|u| with u = W_q x_t,  k_t likewise,  v_t = W_v x_t,  β_t = b sigmoid(w_β · x_t)        (one β a head)
    S_t = S_{t-1} - β_t k_t (S_{t-1}ᵀ k_t - v_t)ᵀ ,    y_t = W_o [ S_tᵀ q_t ]

With `beta` b = 1 a write moves towards the new value; with b = 2 it can go beyond it, so that the state's factor has
eigenvalues down to -1 (arXiv 2411.12537). State: H d_k d_v numbers. A zero key stays zero under the normalisation and
writes nothing.
"""

from abc import abstractmethod
from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.chunks import Decays
from hopbound.mixers.delta_rule import delta_rule
from hopbound.mixers.mixer import accumulator, linear, unmasked
from hopbound.mixers.recurrence import Recurrence

SMALL_CHUNK = 32  # the triangular system of a chunk grows with its square


class DeltaRecurrence(Recurrence[Tensor]):
    """A recurrence by the delta rule, with unit queries and keys and a strength in (0, beta) for each head."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.chunk = SMALL_CHUNK
        self.strength = linear(width, spec.heads)

    @abstractmethod
    def log_decay(self, x: Float[Tensor, "batch time width"]) -> Decays:
        """Logarithm of the factor of each head's state, or of its rows, before a token is written; None: 1."""

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time key_dim"],
        values: Float[Tensor, "batch heads time value_dim"],
        state: Float[Tensor, "batch heads key_dim value_dim"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """Decay, overwrite, then read."""
        strength = self.spec.beta * self.strength(x).to(values.dtype).sigmoid().transpose(1, 2)
        decay = self.log_decay(x)
        return delta_rule(
            normalize(queries, dim=-1),
            normalize(keys, dim=-1),
            values,
            unmasked(strength, mask),
            None if decay is None else unmasked(decay, mask),
            self.empty_matrix(x) if state is None else state,
            chunk=self.chunk,
            dtype=x.dtype,
        )

    def writers(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token leaves the state as it is if each head has a zero key or strength, and a decay of exactly 1."""
        keys = self.key(x).unflatten(-1, (self.spec.key_heads, self.spec.head_dim)).ne(0).any(dim=-1)
        changes = self.of_each_head(keys, dim=-1) & self.strength(x).to(accumulator(x.dtype)).sigmoid().ne(0)
        decay = self.log_decay(x)
        if decay is not None:
            decays = decay.transpose(1, 2).exp().ne(1)
            changes = changes | (decays if decays.dim() == 3 else decays.any(dim=-1))
        return changes.any(dim=-1)


class DeltaNet(DeltaRecurrence):
    """The delta rule as it is."""

    def log_decay(self, x: Float[Tensor, "batch time width"]) -> None:
        """None: what is written stays until its key is written again."""

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and strengths."""
        return self.key.weight, self.strength.weight
