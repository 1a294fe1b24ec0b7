"""`hopbound bound`: the smallest prompt length from which a stack provably fails."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hopbound.cli import common


def command(
    schedule: Annotated[str, typer.Argument(help='A schedule, as in "linear full linear" or "12*(3*gdn full)".')],
    hops: Annotated[int, typer.Option("--hops", help="How many dependent look-ups are asked for.")],
    sizes: Annotated[
        common.SizesKind, typer.Option("--sizes", help="Value sizes: free, or the paper's (M_l = D_l).")
    ] = common.SizesKind.free,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    bits: Annotated[
        int | None,
        typer.Option("--bits", help="Bits of every number. Default: 16 for activations and caches, 32 for sums."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for certificate.json.")] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Find a certificate that no weights whatever make this many hops, on prompts as short as the theorems allow.

    Worst case: some instance of the stated size is answered wrongly. Below the length nothing is claimed.

    Example: hopbound bound "linear full linear" --head-dim 4 --bits 4 --hops 2
    """
    from hopbound.architecture import Defaults, parse_schedule
    from hopbound.bounds import prove
    from hopbound.files import write_json

    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    architecture = parse_schedule(schedule, defaults, common.precisions(bits))
    verdict = prove(architecture, hops, sizes=sizes.value)
    certificate = verdict.certificate
    written: str | None = None
    if out is not None and certificate is not None:
        write_json(out / "certificate.json", certificate.document())
        written = "certificate.json"
    shown_sizes: dict[str, Any] | None = None
    if certificate is not None:
        shown_sizes = {
            "kind": certificate.sizes,
            "domains": list(certificate.domains),
            "values": list(certificate.values),
            "n": list(certificate.n),
        }
    result = {
        "schema": "hopbound/bound/1",
        "schedule": str(architecture),
        "hops": hops,
        "verdict": verdict.kind,
        "theorem": verdict.theorem,
        "source": verdict.source,
        "log2_prompt_length": verdict.log2_prompt_length,
        "prompt_length": verdict.prompt_length,
        "length_limit": verdict.length_limit,
        "sizes": shown_sizes,
        "certificate": written or (certificate.document() if certificate is not None else None),
        "paper_log2_prompt_length": verdict.paper_log2_prompt_length,
        "paper_source": verdict.paper_source,
        "statement": verdict.statement,
        "assumptions": list(verdict.assumptions) if verdict.kind == "impossible" else [],
        "reason": verdict.reason,
    }
    if as_json:
        common.print_json(result)
    else:
        common.print_lines(_lines(result, out))


def _lines(result: dict[str, Any], out: Path | None) -> list[str]:
    """The verdict for people."""
    from hopbound.report.numbers import length_text

    paper = f"log2 n >= {result['paper_log2_prompt_length']:,.0f} ({result['paper_source']}, constant taken as 1)"
    lines = [f"stack     {result['schedule']}"]
    if result["verdict"] == "no claim":
        return [*lines, f"verdict   no claim: {result['reason']}", f"paper     {paper}"]
    limit = "" if result["length_limit"] is None else f", up to {length_text(result['length_limit'])},"
    name = result["theorem"] if result["theorem"] == "counting" else f"Theorem {result['theorem']}"
    lines += [
        f"verdict   {result['hops']} hop{'s' if result['hops'] != 1 else ''} impossible from n = "
        f"{length_text(result['prompt_length'], result['log2_prompt_length'])} tokens on{limit} "
        f"(log2 n = {result['log2_prompt_length']:.2f}), {name}, by {result['source']}",
    ]
    sizes = result["sizes"]
    if sizes is not None:
        parts = [f"D = {_listed(sizes['domains'])}", f"M = {_listed(sizes['values'])}"]
        parts += [f"n = {_listed(sizes['n'])}"] if sizes["n"] else []
        lines.append(f"sizes     {sizes['kind']}: {'; '.join(parts)}")
    lines += [
        f"paper     {paper}",
        "worst     case: some instance of this size is answered wrongly, whatever the weights",
    ]
    if out is not None and sizes is not None:
        lines.append(f"written   {out / 'certificate.json'}")
    return lines


def _listed(values: list[int]) -> str:
    from hopbound.report.numbers import length_text

    return ", ".join(length_text(value) for value in values)
