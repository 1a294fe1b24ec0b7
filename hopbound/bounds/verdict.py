"""The answer of a bound: impossible with its evidence, or no claim with the reason."""

from dataclasses import dataclass
from typing import Literal

from hopbound.bounds.certificate import Certificate

ASSUMPTIONS = (
    "worst case: whatever the weights, some instance of this size is answered wrongly; of most nothing is said",
    "causal deterministic stack; maps between the mixers act on each position alone and may be arbitrary",
    "a full layer's past reaches a query only through the summary of the stated bits, accumulated left to right",
    "a bounded layer's past reaches later positions only through the state of the stated bits",
    "the functions stand in the prompt from the last to the first, then the start, then the query in one token",
)


@dataclass(frozen=True)
class Verdict:
    """What is proved of a stack and a number of hops.

    Attributes:
        kind: `impossible` (proved from `prompt_length` on, see `statement`) or `no claim`.
        hops: the number of hops asked for.
        theorem: `counting`, `A` or `B`; `A'`, `B'`, `A''` or `B''` where the sizes are a closed form's and not
            searched; empty without a claim.
        certificate: the evidence, accepted by the checker; None where the integers of a closed form are too long to be
            written out and only its logarithm is given.
        prompt_length: tokens of the certified prompt.
        log2_prompt_length: its logarithm.
        length_limit: the longest prompt for which the sizes of the stack hold; None for every length.
        statement: the claim in one sentence; it is about the worst case.
        assumptions: what the model class of the theorems asks of the stack.
        reason: why there is no claim, in one line; empty otherwise.
        paper_log2_prompt_length: log2 of the length that the literature's asymptotic theorem asks for, its constant
            taken as 1; infinite beyond floating point.
        paper_source: which theorem that is.
        source: how the size was found: `search`, or the closed form by its name.
    """

    kind: Literal["impossible", "no claim"]
    hops: int
    paper_log2_prompt_length: float
    paper_source: str
    theorem: str = ""
    certificate: Certificate | None = None
    prompt_length: int | None = None
    log2_prompt_length: float | None = None
    length_limit: int | None = None
    statement: str = ""
    assumptions: tuple[str, ...] = ASSUMPTIONS
    reason: str = ""
    source: str = ""
