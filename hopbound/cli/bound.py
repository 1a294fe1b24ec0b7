"""`hopbound bound`: the smallest prompt length from which a stack provably fails."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbound.cli import common

if TYPE_CHECKING:
    from hopbound.architecture import Architecture
    from hopbound.bounds import Certificate, Sizes, Verdict


def command(
    model: Annotated[
        str,
        typer.Argument(
            help='A schedule, as in "12*(3*gdn full)", or a config.json, its folder, a GGUF file, a hub name.'
        ),
    ],
    hops: Annotated[int, typer.Option("--hops", help="How many dependent look-ups are asked for.")],
    sizes: Annotated[
        common.SizesKind, typer.Option("--sizes", help="Value sizes: free, or the paper's (M_l = D_l).")
    ] = common.SizesKind.free,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    bits: common.BitsOption = None,
    kv_bits: common.KvBitsOption = None,
    state_bits: common.StateBitsOption = None,
    at: Annotated[
        int | None, typer.Option("--at", help="Also: how small it would have to be for this many tokens.")
    ] = None,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Also: which sizes are built, which impossible (1 or 2 hops).")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for certificates, and the frontier's figure.")
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Find a certificate that no weights whatever make this many hops, on prompts as short as the theorems allow.

    Worst case: some instance of the stated size is answered wrongly. Below the length nothing is claimed.

    Example: hopbound bound "linear full linear" --head-dim 4 --bits 4 --hops 2
    """
    from hopbound.architecture import Defaults
    from hopbound.bounds import limits, prove

    defaults = Defaults(heads=heads, head_dim=head_dim, window=window, kernel=kernel)
    read = common.read_model(model, defaults, bits, kv_bits, state_bits)
    architecture = read.architecture
    verdict = prove(architecture, hops, sizes=sizes.value)
    found = () if at is None else limits(architecture, hops, at, sizes=sizes.value)
    region = _frontier(architecture, verdict, sizes.value, out) if frontier else None
    certificate = verdict.certificate
    turned = [
        {
            "knob": limit.knob,
            "actual": limit.actual,
            "largest": limit.largest,
            "factor": limit.factor,
            "log2_prompt_length": limit.verdict.log2_prompt_length,
            "certificate": _kept(limit.verdict.certificate if limit.largest else None, f"at-{limit.knob}.json", out),
        }
        for limit in found
    ]
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
        "model": {"name": read.name, "model_type": read.model_type, "notes": list(read.notes)},
        "schedule": str(architecture),
        "hops": hops,
        "verdict": verdict.kind,
        "theorem": verdict.theorem,
        "source": verdict.source,
        "log2_prompt_length": verdict.log2_prompt_length,
        "prompt_length": verdict.prompt_length,
        "length_limit": verdict.length_limit,
        "sizes": shown_sizes,
        "certificate": _kept(certificate, "certificate.json", out),
        "paper_log2_prompt_length": verdict.paper_log2_prompt_length,
        "paper_source": verdict.paper_source,
        "statement": verdict.statement,
        "assumptions": list(verdict.assumptions) if verdict.kind == "impossible" else [],
        "reason": verdict.reason,
        "at": None if at is None else {"tokens": at, "limits": turned},
    }
    if region is not None:
        result["label"] = architecture.label
        result["frontier"] = region
        if out is not None and hops == 2:
            from hopbound.report.frontier import write_frontier

            write_frontier(result, out / "frontier.svg")
    if as_json:
        common.print_json(result)
    else:
        common.print_lines(_lines(result, out))


def _kept(certificate: "Certificate | None", name: str, out: Path | None) -> str | dict[str, Any] | None:
    """A certificate as the result holds it: written to the folder and named, or, without a folder, itself."""
    from hopbound.files import write_json

    if certificate is None or out is None:
        return None if certificate is None else certificate.document()
    write_json(out / name, certificate.document())
    return name


def _frontier(architecture: "Architecture", verdict: "Verdict", sizes: "Sizes", out: Path | None) -> dict[str, Any]:
    """The frontier's part of the result."""
    from hopbound.frontier import frontier

    region = frontier(architecture, verdict.hops, sizes=sizes, verdict=verdict)
    rows = [
        {
            "m": row.m,
            "values": row.values,
            "built": row.built,
            "construction": row.construction,
            "impossible": row.impossible,
            "theorem": None if row.certified is None else row.certified.theorem,
            "prompt_length": None if row.certified is None else row.certified.prompt_length,
            "certificate": _kept(row.certified, f"frontier-{'hop' if row.m is None else row.m}.json", out),
        }
        for row in region.rows
    ]
    return {"varying": region.varying, "sizes": region.sizes, "reason": region.reason, "rows": rows}


def _lines(result: dict[str, Any], out: Path | None) -> list[str]:
    """The verdict for people."""
    from hopbound.report.numbers import exponent_text, length_text, theorem_text, threshold_text

    paper = threshold_text(result["paper_log2_prompt_length"], result["paper_source"])
    model = result["model"]
    lines = [f"model     {model['name']} ({model['model_type']})"] if model["model_type"] else []
    lines += [f"stack     {result['schedule']}"]
    lines += [f"note      {note}" for note in model["notes"]]
    if result["verdict"] == "no claim":
        lines = [*lines, f"verdict   no claim: {result['reason']}", f"paper     {paper}"]
        return [*lines, *_limit_lines(result["at"], result["hops"]), *_frontier_lines(result)]
    limit = "" if result["length_limit"] is None else f", up to {length_text(result['length_limit'])},"
    log2_length = result["log2_prompt_length"]
    exponent = f"{log2_length:.2f}" if log2_length < 10**6 else exponent_text(log2_length)
    lines += [
        f"verdict   {result['hops']} hop{'s' if result['hops'] != 1 else ''} impossible from n = "
        f"{length_text(result['prompt_length'], result['log2_prompt_length'])} tokens on{limit} "
        f"(log2 n = {exponent}), {theorem_text(result['theorem'])}, by {result['source']}",
    ]
    sizes = result["sizes"]
    if sizes is not None:
        parts = [f"D = {_listed(sizes['domains'])}", f"M = {_listed(sizes['values'])}"]
        parts += [f"n = {_listed(sizes['n'])}"] if sizes["n"] else []
        lines.append(f"sizes     {sizes['kind']}: {'; '.join(parts)}")
    else:
        lines.append(
            "sizes     integers too long to be written out: the logarithm is the closed form's, no certificate"
        )
    lines += [
        f"paper     {paper}",
        "worst     case: some instance of this size is answered wrongly, whatever the weights",
    ]
    lines += _limit_lines(result["at"], result["hops"]) + _frontier_lines(result)
    if out is not None and sizes is not None:
        lines.append(f"written   {out / 'certificate.json'}")
    return lines


_KNOBS = {"precision": "bits of every number", "state": "bits of state a bounded layer", "heads": "heads a mixer"}


def _limit_lines(at: dict[str, Any] | None, hops: int) -> list[str]:
    """The inverse for people."""
    if at is None:
        return []
    lines = [f"at        {at['tokens']:,} tokens; {hops} hop{'s' if hops != 1 else ''} certified impossible up to"]
    for limit in at["limits"]:
        knob, largest, own = _KNOBS[limit["knob"]], limit["largest"], f"the stack has {limit['actual']:,}"
        if largest:
            beyond = f"{limit['factor']:.3g} times as many" if limit["factor"] > 1 else "within"
            lines.append(f"          {knob}: {largest:,} ({own}, {beyond})")
        else:
            lines.append(f"          {knob}: none, 1 only from 2^{limit['log2_prompt_length']:.1f} tokens on ({own})")
    return lines if at["limits"] else [f"{lines[0]} nothing: the theorems do not speak of it"]


def _frontier_lines(result: dict[str, Any]) -> list[str]:
    """The frontier for people: what is built, from where on it is impossible, and the gap."""
    from hopbound.report.numbers import length_text

    if "frontier" not in result:
        return []
    region = result["frontier"]
    varying = region["varying"]
    heads = (f"built to {varying}", "impossible from", "n", "gap")
    lines = [f"{'frontier':9} {'m':>11} {'M_1':>11}  {heads[0]:>15}  {heads[1]:>16}  {heads[2]:>9}  {heads[3]}"]
    for row in region["rows"]:
        built, impossible = row["built"], row["impossible"]
        reached = "any" if built is None else f"{length_text(built)} {row['construction']}" if built else "-"
        wall = "-" if impossible is None else f"{length_text(impossible)} {row['theorem']}"
        gap = f"{impossible / built:.3g} times" if built and impossible else ""
        m, values = ("any" if row[key] is None else length_text(row[key]) for key in ("m", "values"))
        n = "" if row["prompt_length"] is None else length_text(row["prompt_length"])
        lines.append(f"{'':9} {m:>11} {values:>11}  {reached:>15}  {wall:>16}  {n:>9}  {gap}".rstrip())
    return lines


def _listed(values: list[int]) -> str:
    from hopbound.report.numbers import length_text

    return ", ".join(length_text(value) for value in values)
