"""Compile a decoder of each mixer that is named, whole; print those that cannot be, or come out otherwise.

    python -m tests.decoder.compiling NAME...

In a process of its own: the checks of shapes that the tests switch on cannot be traced.
"""

import sys

import torch
from torch._dynamo.exc import TorchDynamoException

from hopbound.architecture import spec_text
from hopbound.decoder import Decoder
from tests.mixers.examples import encoding_of, example_spec


def wrong(name: str) -> str:
    """What is wrong; nothing if nothing is."""
    encoding = encoding_of(name)
    positions = "none" if encoding is None else type(encoding).__name__.lower()
    decoder = Decoder.from_schedule(
        spec_text(example_spec(name)),
        vocabulary=11,
        width=6,
        hidden=8,
        positions=positions,  # pyright: ignore[reportArgumentType]
    ).double()
    prompt = torch.randint(11, (2, 20), generator=torch.Generator().manual_seed(0))
    torch.compiler.reset()
    try:
        logits, _ = torch.compile(decoder, backend="eager", fullgraph=True)(prompt)
    except TorchDynamoException as error:
        return str(error).splitlines()[0]
    apart = float((logits - decoder(prompt)[0]).detach().abs().max())
    return "" if apart < 1e-10 else f"differs by {apart}"


if __name__ == "__main__":
    for given in sys.argv[1:]:
        found = wrong(given)
        print(f"{given}: {found or 'ok'}", flush=True)
