"""Chain of thought: a decoder appends tokens of its own to the prompt, each its answer so far, and then answers.

Where the last token depends on the layers at few positions, as in built models, each token is evaluated on demand: that
costs one pass over the embedding. Elsewhere the prompt goes through the layers once, and the tokens after it one at a
time, with the state.
"""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopbound.decoder.demand import is_local

if TYPE_CHECKING:
    from hopbound.decoder.model import Decoder


@torch.no_grad()
def think(
    decoder: "Decoder", prompts: Int[Tensor, "batch time"]
) -> tuple[Int[Tensor, "batch thoughts"], Float[Tensor, "batch answers"]]:
    """The tokens that a decoder generates after these prompts, and the logits at the last of them.

    Without thoughts (`DecoderConfig.thoughts` = 0) there are none, and the logits are those at the prompt's last token.
    """
    count = decoder.config.thoughts
    if not count:
        return prompts[:, :0], decoder.final_logits(prompts)
    if is_local(decoder, prompts[:1]):
        return _on_demand(decoder, prompts, count)
    return _with_state(decoder, prompts, count)


def _on_demand(decoder: "Decoder", prompts: Tensor, count: int) -> tuple[Tensor, Tensor]:
    tokens, logits = prompts, decoder.final_logits(prompts)
    for _ in range(count):
        tokens = torch.cat([tokens, logits.argmax(dim=-1, keepdim=True)], dim=1)
        logits = decoder.final_logits(tokens)
    return tokens[:, prompts.shape[1] :], logits


def _with_state(decoder: "Decoder", prompts: Tensor, count: int) -> tuple[Tensor, Tensor]:
    x, state = decoder.stream(prompts)
    logits, thoughts = decoder.read_out(x[:, -1:])[:, 0], []
    for _ in range(count):
        thoughts.append(logits.argmax(dim=-1, keepdim=True))
        x, state = decoder.stream(thoughts[-1], state)
        logits = decoder.read_out(x)[:, 0]
    return torch.cat(thoughts, dim=1), logits
