"""Candidates by gradient: which token, in place of which, should take away most of the right answer's margin.

The margin is the right answer's logit less the largest other. Its gradient with respect to the stream where token t of
the prompt enters, times the difference of two tokens' embeddings, is to first order what the change does to it
(as in arXiv 1712.06751). The model is then asked: what counts is the margin that comes out.
"""

from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from hopbound.decoder import Decoder
from hopbound.falsify.pair import prompts_of
from hopbound.tasks import Batch, Task

FLIPS = 8  # of each prompt that are tried, of those that promise most
MAX_SCORES = 2**22  # predicted changes of one prompt: tokens times values


class Differentiable(Protocol):
    """A model that says how its margin should change with each token, and what it is."""

    def predicted(self, batch: Batch, values: int) -> NDArray[np.float64]:
        """Change of the margin, to first order, if token t is v: [N, n, values]."""
        ...

    def margins(self, batch: Batch) -> NDArray[np.float64]:
        """The right answer's logit less the largest other, [N]."""
        ...


def margin(logits: Float[Tensor, "batch answers"], answers: NDArray[np.int64]) -> Float[Tensor, " batch"]:
    """The right answer's logit less the largest other; with one answer alone, its logit."""
    right = torch.from_numpy(answers)[:, None]
    wanted = logits.gather(1, right)[:, 0]
    if logits.shape[1] == 1:
        return wanted
    return wanted - logits.scatter(1, right, -torch.inf).amax(dim=1)


def first_order(
    gradient: Float[Tensor, "batch time width"],
    table: Float[Tensor, "values width"],
    prompts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Gradient times difference of embeddings, for each token and each value in its place."""
    products = (gradient.double() @ table.double().T).numpy()
    return products - np.take_along_axis(products, prompts[..., None], axis=2)


class DifferentiableDecoder:
    """A decoder, from its stream on."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    def fits(self, task: Task) -> bool:
        """Whether all predictions for a prompt are few enough to be held."""
        held = task.vocabulary_size * max(task.prompt_length, self.decoder.config.width)
        return held <= MAX_SCORES and task.answers > 1

    def predicted(self, batch: Batch, values: int) -> NDArray[np.float64]:
        """As `Differentiable.predicted`."""
        tokens = torch.from_numpy(batch.prompts)
        with torch.no_grad():
            stream = self.decoder.embed_tokens(tokens)
            stream = stream + self.decoder.embed_positions(torch.arange(tokens.shape[1]))
            table = self.decoder.embed_tokens(torch.arange(values)[None])[0]
        with torch.enable_grad():
            stream = stream.requires_grad_(True)
            x = stream
            for block in self.decoder.each_block():
                x, _ = block(x, None)
            total = margin(self.decoder.read_out(x[:, -1:])[:, 0], batch.answers).sum()
            if not total.requires_grad:  # nothing of the stream reaches the logits
                return np.zeros((*batch.prompts.shape, values))
            (gradient,) = torch.autograd.grad(total, stream)
        return first_order(gradient.nan_to_num(), table, batch.prompts)

    def margins(self, batch: Batch) -> NDArray[np.float64]:
        """As `Differentiable.margins`."""
        logits = torch.cat(list(self.decoder.logits_of(batch.prompts)))
        return margin(logits, batch.answers).nan_to_num(nan=-1e30).double().numpy()


def climbed(model: Differentiable, task: Task, batch: Batch) -> tuple[Batch, NDArray[np.int64], int]:
    """One step of making a batch harder.

    Args:
        model: whose margin is to fall.
        task: what is asked.
        batch: N instances.

    Returns:
        The batch, each instance with the token changed that leaves the smallest margin, where one does; the pairs
        [M, 2, n] of instances and changes tried that have another right answer; how many prompts the model was asked.
    """
    count, length = batch.prompts.shape
    values = task.vocabulary_size
    scores = model.predicted(batch, values)
    np.put_along_axis(scores, batch.prompts[..., None], np.inf, axis=2)  # the token that is there is no change
    best = np.argsort(scores.reshape(count, -1), axis=1, kind="stable")[:, :FLIPS]
    flipped = np.repeat(batch.prompts[:, None], best.shape[1], axis=1)
    rows, tries = np.indices(best.shape)
    flipped[rows, tries, best // values] = best % values
    flat = flipped.reshape(-1, length)
    owner = rows.reshape(-1)
    kept = prompts_of(task, flat) & (flat != batch.prompts[owner]).any(axis=1)
    flat, owner = flat[kept], owner[kept]
    if not len(flat):
        return batch, np.zeros((0, 2, length), dtype=np.int64), count
    answers = task.oracle(flat)
    found = np.concatenate([model.margins(batch), model.margins(Batch(flat, answers))])
    owners = np.concatenate([np.arange(count), owner])
    everything = Batch(np.concatenate([batch.prompts, flat]), np.concatenate([batch.answers, answers]))
    order = np.lexsort((np.arange(len(owners)), found, owners))
    first = order[np.searchsorted(owners[order], np.arange(count))]
    other = answers != batch.answers[owner]
    pairs = np.stack([batch.prompts[owner[other]], flat[other]], axis=1)
    return Batch(everything.prompts[first], everything.answers[first]), pairs, 2 * count + len(flat)
