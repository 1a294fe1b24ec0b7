"""`hopbound break`: a fooling pair for given weights."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbound.cli import common

if TYPE_CHECKING:
    from hopbound.falsify import LanguageSubject, SearchResult, Subject
    from hopbound.tasks import Task

LINE_SECONDS = 10  # between lines of progress where there is no terminal


def command(
    model: Annotated[
        str,
        typer.Argument(
            help="A model folder, a folder of a Hugging Face causal LM, or a schedule (seeded random weights)."
        ),
    ],
    asked: Annotated[
        str | None, typer.Option("--task", help='Another task than hops, as "two_sum[n=64,modulus=100]".')
    ] = None,
    hops: Annotated[int | None, typer.Option("--hops", help="Default: the model's own task; 2 for a schedule.")] = None,
    m: Annotated[int | None, typer.Option("--m", help="Entries of the first function. Default 4.")] = None,
    n: Annotated[str | None, typer.Option("--n", help="Query sizes n_1,..,n_{L-1}. Default 2 each.")] = None,
    values: Annotated[str | None, typer.Option("--values", help="Value sizes. Default: the paper's.")] = None,
    heads: common.HeadsOption = common.DEFAULT_HEADS,
    head_dim: common.HeadDimOption = common.DEFAULT_HEAD_DIM,
    window: common.WindowOption = common.DEFAULT_WINDOW,
    kernel: common.KernelOption = common.DEFAULT_KERNEL,
    offset: Annotated[int, typer.Option("--offset", min=0, help="Causal LM: task token t is the id offset + t.")] = 0,
    answer_offset: Annotated[
        int | None, typer.Option("--answer-offset", min=0, help="Causal LM: the id of answer 0. Default: --offset.")
    ] = None,
    seed: common.SeedOption = 0,
    max_prompts: Annotated[int, typer.Option("--max-prompts", min=2, help="Give up after so many.")] = 100_000,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="File that keeps the search, so that a stopped one goes on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for pair.json and pair.html. Default: nothing is written.")
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Find two prompts with different right answers that the model answers alike, or wrongly both.

    Tried in turn: tokens beyond the reach of windows, adversarial examples, pasts that leave one state, random
    examples, examples made harder by gradients.

    Example: hopbound break "4*linear" --hops 2 --out broken
    """
    from hopbound.falsify import break_model

    subject = _subject(
        model,
        _task(asked, hops, m, n, values),
        {"heads": heads, "head_dim": head_dim, "window": window, "kernel": kernel},
        (offset, offset if answer_offset is None else answer_offset),
        seed,
    )
    with _progress(max_prompts) as progress:
        result = break_model(subject, out=out, seed=seed, max_prompts=max_prompts, progress=progress, resume=resume)
    page = _write_page(result, out) if out is not None and result.pair is not None else None
    if as_json:
        common.print_json(
            {
                "schema": "hopbound/break/1",
                "found": result.pair is not None,
                "prompts_tried": result.prompts_tried,
                "tried": dict(result.tried),
                "pair": None if result.pair is None else result.pair.to_json(),
                "path": "pair.json" if result.pair is not None and out is not None else None,
            }
        )
        return
    common.print_lines(_lines(result))
    if result.pair is not None and out is not None:
        print(f"written   {out / 'pair.json'}{'' if page is None else f', {page}'}")


def _task(asked: str | None, hops: int | None, m: int | None, n: str | None, values: str | None) -> "Task | None":
    """The task that is asked for: by its text, or function composition by its sizes; None if nothing is said.

    Raises:
        InputError: both.
    """
    from hopbound.errors import InputError
    from hopbound.tasks import FunctionComposition, parse_task

    sized = hops is not None or m is not None or n is not None or values is not None
    if asked is not None:
        if sized:
            raise InputError("task", asked, "this, or --hops with its sizes, not both")
        return parse_task(asked)
    if not sized:
        return None
    count = 2 if hops is None else hops
    return FunctionComposition(
        hops=count,
        m=4 if m is None else m,
        n=(2,) * (count - 1) if n is None else common.numbers("n", n) or (),
        values=common.numbers("values", values),
    )


def _subject(
    model: str, task: "Task | None", sizes: dict[str, int], offsets: tuple[int, int], seed: int
) -> "Subject | LanguageSubject":
    """What is put to the test.

    Raises:
        InputError: a task is missing, or the model cannot read it.
        RejectedError: the folder does not hold a model.
    """
    from hopbound.architecture import Defaults, parse_schedule
    from hopbound.errors import InputError
    from hopbound.falsify import Adapter, is_language_model, language_subject, model_subject, random_subject
    from hopbound.tasks import FunctionComposition

    folder = Path(model)
    if folder.is_dir() and is_language_model(folder):
        if task is None:
            raise InputError("task", None, "--task, or --hops, --m and --n: a language model names no task")
        return language_subject(folder, task, Adapter(*offsets))
    if folder.is_dir():
        return model_subject(folder, task)
    architecture = parse_schedule(model, Defaults(**sizes))
    return random_subject(architecture, task or FunctionComposition(hops=2, m=4, n=(2,)), seed)


@contextmanager
def _progress(of: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; elsewhere a line now and then, none for a search that is soon done; both on stderr."""
    if not sys.stderr.isatty():
        last = time.monotonic()

        def tell(tried: int) -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_SECONDS:
                last = time.monotonic()
                common.note(f"{tried:,} of {of:,} prompts tried")

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("prompts tried"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("", total=of)
        yield lambda tried: bar.update(job, completed=tried)


def _write_page(result: "SearchResult", out: Path) -> Path | None:
    """The page beside the pair's file; None where jinja2 is not installed."""
    from hopbound.files import read_json
    from hopbound.report.break_ import write_break

    assert result.pair is not None
    task, page = result.pair.task, out / "pair.html"
    places = [task.place(position) for position in range(task.prompt_length)]
    try:
        write_break(read_json(out / "pair.json"), places, page)
    except ModuleNotFoundError as error:
        common.note(f"no page: {error.name} is not installed (pip install 'hopbound[report]')")
        return None
    return page


def _lines(result: "SearchResult") -> list[str]:
    """The result in words: the prompts side by side, [changed] and (decisive) tokens marked."""
    from hopbound.report.break_ import changed_texts, pair_parts, tried_text, verdict_text

    tried = f"{result.prompts_tried:,} prompts"
    if result.pair is None:
        return [f"none found in {tried}: {tried_text(dict(result.tried))}"]
    pair: dict[str, Any] = result.pair.to_json()
    task = result.pair.task
    rows = [["", "prompt 1", "prompt 2"]]
    for part in pair_parts(pair, (task.place(position) for position in range(task.prompt_length))):
        rows.append([part.name, *(" ".join(map(str, cells)) for cells in part.cells)])
    if pair["hops"][0]:
        rows.append(["hops", *(" -> ".join(map(str, hops)) for hops in pair["hops"])])
    rows.append(["right", *map(str, pair["right_answers"])])
    said = zip(pair["model_answers"], pair["model_did"], strict=True)
    rows.append(["model", *(f"{answer}, {did}" for answer, did in said)])
    rows = [[name.ljust(8), *cells] for name, *cells in rows]
    changed = changed_texts(pair)
    return [
        f"broken    {tried} tried ({tried_text(dict(result.tried))}); {verdict_text(pair)}",
        *(f"{'changed' if not place else '':8}  {text}" for place, text in enumerate(changed)),
        *common.table(rows, right=()),
    ]
