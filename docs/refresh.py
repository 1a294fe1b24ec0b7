"""Make what the documents show of the program anew: outputs of commands, the figure, the table of mixers.

    python docs/refresh.py            rewrite README.md, the pages and the figures of docs/
    python docs/refresh.py --check    say what differs; exit code 1 if anything does
    python docs/refresh.py --tables   the tables alone, without running commands
    python docs/refresh.py --runs     the table of constructions alone, by building and running all of them (minutes)

A block after `<!-- output: NAME -->` starts with `$ command`; what follows is that command's output. All commands of
a page run in one empty folder, in order. A block of Python after `<!-- example: NAME -->` is run; the block behind it
is what it prints.
"""

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- output: (?P<name>\w+) -->\n```console\n\$ (?P<command>[^\n]*)\n)(?P<shown>.*?)(```)", re.S)
EXAMPLE = re.compile(
    r"(<!-- example: (?P<name>\w+) -->\n```python\n(?P<code>.*?)```\n```text\n)(?P<shown>.*?)(```)", re.S
)
TABLE = re.compile(r"(<!-- (?P<name>mixers|runs|facts|models|tasks) -->\n)(.*?)(<!-- end -->)", re.S)
FRONTIER = ("2*linear full", "--head-dim", "12", "--bits", "4", "--hops", "2", "--sizes", "paper", "--frontier")


def without_network(folder: Path) -> dict[str, str]:
    """The environment in which models are those that come with the package, whatever the machine has."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "no-models")}


def run(command: str, folder: Path) -> str:
    """Standard output of one command line."""
    words = shlex.split(command)
    program = [sys.executable, "-m", "hopbound", *words[1:]]
    return subprocess.run(
        program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, env=without_network(folder)
    ).stdout


def run_example(code: str, folder: Path) -> str:
    """What a program prints."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def mixers_table() -> str:
    """The table of mixers, from the specs."""
    from hopbound.architecture import ROWS

    states = {
        "Attention": "none | H (d_v + 2) | H_kv (d_k + d_v)",
        "LatentAttention": "none | H (d_v + 2) | latent + rotary part",
        "WindowAttention": "H_kv (d_k + d_v) (W - 1) | none | none",
        "ForgettingAttention": "none | H (d_v + 2) | H_kv (d_k + d_v) + H",
        "SelectiveLatentAttention": "none | k (1 + H (d_v + 2)) | latent + rotary part + d_I",
        "OpenState": "N + columns | none | none",
        "SearchRetrieval": "none | H (R d_v + 2) | H d_k + R d_v",
        "GlobalWindowAttention": "H_kv (d_k + d_v) (W - 1 + g) | none | none",
        "BlockSparseAttention": "none | H (d_v + 2) | H_kv (d_k + d_v)",
        "TransientGlobalAttention": "H_kv (d_k + d_v) W | H (d_v + 2) + H_kv (d_k + d_v) | H_kv (d_k + d_v) / b",
        "EvictingAttention": "H_kv budget (d_k + d_v + 1) | none | none",
        "GroupedState": "H d_head N | none | none",
        "Columns": "(k - 1) channels | none | none",
        "Pointwise": "none | none | none",
    }
    special = {
        "adakv": "H_kv budget (d_k + d_v + 1) + H_kv | none | none",
        "topk": "none | k (1 + H (d_v + 2)) | H_kv (d_k + d_v) + d_I",
        "moba": "none | k (H + H (d_v + 2)) | H_kv (d_k + d_v)",
        "indexed": "none | k (s + H (d_v + 2)) | H_kv (d_k + d_v) + d_I",
        "compressed": "d (W - 1) + 2 o (d + d_I) (b - 1) + 2 (o - 1) (d + d_I) b | H (d + 2) + k (1 + H (d + 2)) "
        "+ 3 o (d + d_I) | (d + d_I) / b",
        "nsa": "none | k (H + H (d_v + 2)) + H (3 d_v + 5) | H_kv (d_k + d_v)",
        "linear": "H (d_k d_v + d_k)",
        "rfa": "H (2 d_k d_v + 2 d_k)",
        "poly": "H (r d_v + r), r = 1 + d_k + d_k²",
        "mlstm": "H (d_k d_v + d_k + 1)",
        "loglinear": "levels H d_k d_v",
        "mamba": "channels N",
        "rglru": "channels",
        "rwkv4": "3 channels",
    }
    lines = ["| name | keys | state | summary | cache a token | what |", "|---|---|---|---|---|---|"]
    for name, row in ROWS.items():
        known = special.get(name) or states.get(row.family.__name__) or "H d_k d_v"
        sizes = known if "|" in known else f"{known} | none | none"
        keys = " ".join(row.keys)
        lines.append(f"| `{name}` | {keys} | {sizes} | {row.about} |")
    return "\n".join(lines) + "\n"


def mixers_that_run() -> str:
    """The names of the registry, in the order of the table."""
    from hopbound.architecture import ROWS
    from hopbound.mixers import REGISTRY

    names = ", ".join(f"`{name}`" for name in ROWS if name in REGISTRY)
    return textwrap.fill(f"Which mixers run: {names}.", 120) + "\n"


def facts_table() -> str:
    """The facts about mixers and languages."""
    from hopbound.bounds.languages import FACTS

    lines = ["| models | mixers | languages | | if | source |", "|---|---|---|---|---|---|"]
    for fact in FACTS:
        mixers = " ".join(f"`{name}`" for name in fact.mixers)
        verdict = "excluded" if fact.excluded else "reached"
        cells = (fact.families, mixers, fact.language, verdict, fact.conditional, fact.source)
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def tasks_table() -> str:
    """The tasks with their sizes, from the registry."""
    import inspect

    from hopbound.tasks import SEQUENCE_TASKS

    lines = ["| task | sizes | what is asked |", "|---|---|---|"]
    for name, kind in sorted(SEQUENCE_TASKS.items()):
        parameters = inspect.signature(kind).parameters.values()
        sizes = (one.name if one.default is one.empty else f"{one.name}={one.default}" for one in parameters)
        about = (sys.modules[kind.__module__].__doc__ or "").partition("\n\n")[0]
        lines.append(f"| `{name}` | {', '.join(f'`{size}`' for size in sizes)} | {' '.join(about.split())} |")
    return "\n".join(lines) + "\n"


def constructions_table() -> str:
    """The constructions on the examples that they name, built and run."""
    from hopbound.architecture import parse_schedule
    from hopbound.constructions import EXAMPLES, build
    from hopbound.tasks import parse_task

    heads = ("construction", "task", "stack", "layers", "width", "tokens", "asked", "accuracy", "margin", "bits")
    heads += ("theorem",)
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|" + "--:|" * (len(heads) - 4) + "---|"]
    for name, source, example in EXAMPLES:
        if not example.fits:
            continue
        architecture, task = parse_schedule(example.schedule), parse_task(example.task)
        short = task.prompt_length <= PRECISION_TOKENS
        result = build(architecture, task, precision=short, **example.options)
        found, built = result.verification, result.built
        report = result.precision
        cells = (
            name,
            f"`{example.task}`",
            f"`{example.schedule}`",
            str(len(architecture.layers)),
            str(built.directions.width),
            f"{task.prompt_length:,}",
            f"{found.instances:,}" + (" (all)" if found.exhaustive else ""),
            f"{found.accuracy:.6g}",
            f"{found.smallest_margin:.3g}",
            "" if report is None else str(report.significand_bits or "-"),
            source,
        )
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def models_table() -> str:
    """The published configurations with what `hopbound analyze` says of each."""
    from hopbound.analysis import analyze, document
    from hopbound.catalog import published_models, read_config
    from hopbound.report.numbers import bytes_text

    heads = ("model", "type", "layers", "full", "sparse", "local", "linear", "context")
    heads += ("KV at 128k", "state", "hops", "impossible")
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "--:|" * (len(heads) - 2)]
    for entry in sorted(published_models(), key=lambda one: one["name"].lower()):
        one = document(analyze(read_config(entry["config"], entry["name"]), context=131072))
        local = len(one["window_layers"]) + len(one["chunked_layers"]) + len(one["conv_layers"])
        counts = (len(one["layers"]), len(one["full_layers"]), len(one["sparse_layers"]), local)
        impossible = one["hops_impossible"]
        cells = (
            entry["name"] + ("" if entry["verified"] else " †"),
            f"`{one['model_type']}`",
            *(str(count or "") for count in (*counts, len(one["recurrent_layers"]))),
            f"{one['context_limit']:,}" if one["context_limit"] else "-",
            bytes_text(one["kv_bytes"]),
            bytes_text(one["state_bytes"] + one["conv_bytes"]),
            str(one["hops_possible"]["hops"]) if one["hops_possible"]["construction"] else "-",
            f"{impossible['hops']} from 2^{impossible['log2_prompt_length']:,.0f}" if impossible["hops"] else "-",
        )
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


PRECISION_TOKENS = 64  # longer prompts are not run again in fewer and fewer bits
RUNS = re.compile(r"(<!-- constructions -->\n)(.*?)(<!-- end -->)", re.S)


def with_runs(text: str, table: str) -> str:
    """The page of constructions with another table."""
    return RUNS.sub(lambda match: match[1] + table + match[3], text)


def pages() -> list[Path]:
    """The documents in which something is made anew."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def refreshed(folder: Path, only: set[str] | None = None) -> dict[Path, str]:
    """The documents as they should be; `only` limits which blocks are run again."""
    tables = {
        "mixers": mixers_table,
        "runs": mixers_that_run,
        "facts": facts_table,
        "models": models_table,
        "tasks": tasks_table,
    }

    def replace(match: re.Match[str]) -> str:
        if only is not None and match["name"] not in only:
            return match[0]
        made = match.groupdict()
        shown = run_example(made["code"], folder) if "code" in made else run(made["command"], folder)
        return match[1] + shown + match[5]

    texts = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        text = EXAMPLE.sub(replace, BLOCK.sub(replace, text))
        texts[page] = TABLE.sub(lambda match: match[1] + tables[match["name"]]() + match[4], text)
    if only is None or "frontier" in only:
        run(shlex.join(["hopbound", "bound", *FRONTIER, "--out", "frontier"]), folder)
    for name in ("hierarchy", "frontier", "design", "analyze", "overfill"):
        figure = folder / name / f"{name}.svg"
        if figure.is_file():
            texts[ROOT / "docs" / f"{name}.svg"] = figure.read_text(encoding="utf-8")
    return texts


def main() -> int:
    """Rewrite, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="say what differs, write nothing")
    parser.add_argument("--runs", action="store_true", help="build and run all constructions, for their table")
    parser.add_argument("--tables", action="store_true", help="make only the tables anew")
    arguments = parser.parse_args()
    differs = False
    if arguments.runs:
        page = ROOT / "docs" / "constructions.md"
        made = with_runs(page.read_text(encoding="utf-8"), constructions_table())
        page.write_text(made, encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as name:
        for path, text in refreshed(Path(name), set() if arguments.tables else None).items():
            old = path.read_text(encoding="utf-8") if path.is_file() else ""
            if old == text:
                continue
            differs = True
            if arguments.check:
                lines = difflib.unified_diff(old.splitlines(), text.splitlines(), path.name, "refreshed", lineterm="")
                print("\n".join(lines))
            else:
                path.write_text(text, encoding="utf-8")
                print(f"rewritten: {path.relative_to(ROOT)}")
    return int(differs and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
