r"""DeltaProduct (arXiv 2502.10297): n steps of the delta rule a token, whose factor is a product of n reflections.

    S_{t,0} = S_{t-1} ,   S_{t,j} = S_{t,j-1} - β_tj k_tj (S_{t,j-1}ᵀ k_tj - v_tj)ᵀ   for j = 1..n ,   S_t = S_{t,n}
    y_t = W_o [ S_tᵀ q_t ] ,   unit q_t and k_tj,  v_tj and β_tj as in the delta rule

`steps` is n; with `conv` taps the convolution runs over the queries and all keys and values. With β in (0, 2) and n
steps a token can apply any permutation of n + 1 points. State: H d_k d_v numbers.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from hopbound.architecture.sizes import MatrixState
from hopbound.mixers.delta import SMALL_CHUNK
from hopbound.mixers.delta_rule import delta_rule
from hopbound.mixers.mixer import accumulator, linear, split_heads, unmasked
from hopbound.mixers.recurrence import Recurrence


class DeltaProduct(Recurrence[Tensor]):
    """The delta rule with several keys, values and strengths a token, written one after the other."""

    def __init__(self, spec: MatrixState, width: int) -> None:
        super().__init__(spec, width)
        self.chunk = SMALL_CHUNK
        self.strength = linear(width, spec.heads * spec.steps)

    def recur(
        self,
        x: Float[Tensor, "batch time width"],
        queries: Float[Tensor, "batch heads time key_dim"],
        keys: Float[Tensor, "batch heads time all_keys"],
        values: Float[Tensor, "batch heads time all_values"],
        state: Float[Tensor, "batch heads key_dim value_dim"] | None,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch heads time value_dim"], Float[Tensor, "batch heads key_dim value_dim"]]:
        """The delta rule over time · steps writes, read after the last one of each token."""
        steps = self.spec.steps
        strength = self.spec.beta * split_heads(self.strength(x).to(values.dtype), self.spec.heads).sigmoid()

        def each_step(part: Tensor) -> Tensor:
            return part.unflatten(-1, (steps, -1)).flatten(2, 3)

        read = torch.zeros_like(queries)[..., None, :].expand(-1, -1, -1, steps - 1, -1)
        asked = torch.cat([read, normalize(queries, dim=-1)[..., None, :]], dim=3).flatten(2, 3)
        output, state = delta_rule(
            asked,
            normalize(each_step(keys), dim=-1),
            each_step(values),
            unmasked(strength, mask).flatten(2),
            None,
            self.empty_matrix(x) if state is None else state,
            chunk=self.chunk,
            dtype=x.dtype,
        )
        return output.unflatten(2, (-1, steps))[:, :, :, -1], state

    def gate_weights(self) -> Sequence[Float[Tensor, "out width"]]:
        """Keys and strengths."""
        return self.key.weight, self.strength.weight

    def writers(self, x: Float[Tensor, "batch time width"]) -> Bool[Tensor, "batch time"]:
        """A token leaves the state as it is if each head has zero keys or strengths at all steps."""
        heads, steps = self.spec.heads, self.spec.steps
        keys = self.key(x).unflatten(-1, (self.spec.key_heads, steps, self.spec.head_dim)).ne(0).any(dim=-1)
        strengths = self.strength(x).to(accumulator(x.dtype)).unflatten(-1, (heads, steps)).sigmoid().ne(0)
        return (self.of_each_head(keys, dim=-2) & strengths).any(dim=-1).any(dim=-1)
