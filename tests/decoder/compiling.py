"""Compile a decoder of each mixer that is named, whole; print those that cannot be, or come out otherwise.

    python -m tests.decoder.compiling NAME...        (`codes`: a built model, whose positions are by rule)

In a process of its own: the checks of shapes that the tests switch on cannot be traced.
"""

import sys

import torch
from torch import Tensor
from torch._dynamo.exc import TorchDynamoException

from hopbound.architecture import Defaults, parse_schedule, spec_text
from hopbound.constructions.composition import build_composition
from hopbound.decoder import Decoder, DecoderState
from hopbound.tasks import FunctionComposition
from tests.mixers.examples import encoding_of, example_spec


def wrong(name: str) -> str:
    """What is wrong; nothing if nothing is."""
    encoding = encoding_of(name)
    decoder = Decoder.from_schedule(
        spec_text(example_spec(name)),
        vocabulary=11,
        width=6,
        hidden=8,
        positions=64 if encoding is None else type(encoding).__name__.lower(),
    ).double()
    prompt = torch.randint(11, (2, 20), generator=torch.Generator().manual_seed(0))
    _, state = decoder(prompt)
    mask = torch.ones_like(prompt, dtype=torch.bool)
    mask[0, :3] = False
    return (
        differs(decoder, prompt)
        or differs(decoder, prompt[:, :1], state)
        or differs(decoder, prompt, None, mask)
        or differs(decoder, prompt, state, mask)
    )


def differs(decoder: Decoder, prompt: Tensor, state: DecoderState | None = None, mask: Tensor | None = None) -> str:
    """What is wrong with the compiled decoder."""
    torch.compiler.reset()
    try:
        logits, _ = torch.compile(decoder, backend="eager", fullgraph=True)(prompt, state, mask)
    except (TorchDynamoException, IndexError) as error:
        return str(error).splitlines()[0]
    apart = (logits - decoder(prompt, state, mask)[0]).detach().abs()
    apart = float((apart if mask is None else apart[mask]).max())
    return "" if apart < 1e-10 else f"differs by {apart}"


def coded() -> str:
    """The same of positions and tokens by rule."""
    task = FunctionComposition(2, 5, (3,), values=(4,))
    decoder = build_composition(parse_schedule("linear 2*full", Defaults(head_dim=16)), task).decoder
    return differs(decoder, torch.from_numpy(task.sample(0, "test", 0, 20).prompts))


if __name__ == "__main__":
    for given in sys.argv[1:]:
        found = coded() if given == "codes" else wrong(given)
        print(f"{given}: {found or 'ok'}", flush=True)
