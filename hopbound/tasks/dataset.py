"""Examples of a task as a file, JSONL or Parquet, with a card that says what they are and how to make them again.

A row has `tokens` and `labels`, lists of whole numbers of the same length; the label -1 says that nothing is asked at a
token. The hash of a data set is the sha256 of all rows in order, each its tokens and then its labels as little-endian
64-bit integers: it depends on the examples alone, not on the format, the batches or the program that wrote the file.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbound import __version__
from hopbound.errors import InputError
from hopbound.files import replacing, write_json, write_text
from hopbound.tasks.sequence import Labelled, SequenceTask
from hopbound.tasks.splits import APART, FEW, TRAIN, examples_of, has_split, overlap
from hopbound.tasks.text import format_task

SCHEMA = "hopbound/data/1"
MEASURED = 10_000
"""The shortcuts are measured on at most so many examples."""

Write = Callable[[Labelled], None]


@dataclass(frozen=True)
class DataSet:
    """What was written.

    Attributes:
        path: the file of examples.
        card: what the card says.
    """

    path: Path
    card: dict[str, Any]

    @property
    def card_paths(self) -> tuple[Path, Path]:
        """The card as JSON and as text."""
        return _beside(self.path, ".card.json"), _beside(self.path, ".card.md")


class ExamplesHash:
    """The sha256 of examples that come in parts."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def update(self, examples: Labelled) -> None:
        """Take in the next examples."""
        rows = np.concatenate([examples.tokens, examples.labels], axis=1)
        self._digest.update(np.ascontiguousarray(rows, dtype="<i8").tobytes())

    def hexdigest(self) -> str:
        """Of all so far."""
        return self._digest.hexdigest()


def write_dataset(task: SequenceTask, path: Path, count: int, split: str = TRAIN, seed: int = 0) -> DataSet:
    """Write the first examples of a split and their card; nothing is left half-written.

    Args:
        task: any task.
        path: of the file, ending in `.jsonl` or `.parquet`; the card stands beside it, ending in `.card.json` and
            `.card.md`.
        count: how many examples, at least 1.
        split: `train`, or any other name for examples that are held out (see `hopbound.tasks.splits`).
        seed: of the stream.

    Raises:
        InputError: the path has another ending or is a folder, or seed, split or count are not valid.
    """
    if path.suffix not in _FORMATS or path.is_dir():
        raise InputError("out", str(path), f"a file that ends in {' or '.join(_FORMATS)}")
    if type(count) is not int or count < 1:
        raise InputError("count", count, "a whole number of at least 1")
    digest, shortcuts = ExamplesHash(), _Shortcuts(task)
    asked = nothing_asked = 0
    seen: list[NDArray[np.int64]] = []
    with replacing(path) as temporary:
        with _FORMATS[path.suffix](temporary) as write:
            for part in examples_of(task, seed, split, count):
                write(part)
                digest.update(part)
                shortcuts.update(part)
                asked += int(part.asked.sum())
                nothing_asked += int((~part.asked.any(axis=1)).sum())
                if split != TRAIN and not has_split(task):
                    seen.append(part.tokens)
        card = {
            "schema": SCHEMA,
            "file": path.name,
            "format": path.suffix.removeprefix("."),
            "task": task.to_json(),
            "task_text": format_task(task),
            "split": _split_card(task, split, seed, seen),
            "examples": count,
            "asked": asked,
            "examples_that_ask_nothing": nothing_asked,
            "sequence_length": task.prompt_length,
            "vocabulary_size": task.vocabulary_size,
            "answers": task.answers,
            "log2_instances": task.log2_instances,
            "chance": task.chance,
            "shortcuts": shortcuts.accuracies(),
            "shortcuts_measured_on": shortcuts.examples,
            "sha256": digest.hexdigest(),
            "hopbound": __version__,
            "command": _command(task, split, seed, count, path.name),
        }
        made = DataSet(path, card)
        # The card of the file before goes first: a file never stands beside the card of another.
        for old in made.card_paths:
            old.unlink(missing_ok=True)
    write_json(made.card_paths[0], card)
    write_text(made.card_paths[1], card_text(card))
    return made


def card_text(card: dict[str, Any]) -> str:
    """The card for people, in Markdown."""
    split, sizes = card["split"], {key: value for key, value in card["task"].items() if key != "task"}
    lines = [
        f"# {card['file']}",
        "",
        f"{card['examples']:,} examples of `{card['task_text']}`, split `{split['name']}`, seed {split['seed']}.",
        "",
        "| | |",
        "|---|---|",
        f"| task | `{card['task']['task']}` |",
        *(f"| {key} | {value} |" for key, value in sizes.items()),
        f"| tokens a sequence | {card['sequence_length']:,} |",
        f"| vocabulary | {card['vocabulary_size']:,} |",
        f"| answers | {card['answers']:,} |",
        f"| tokens that are asked | {card['asked']:,} |",
        f"| examples that ask nothing | {card['examples_that_ask_nothing']:,} |",
        f"| different sequences | 2^{card['log2_instances']:.4g} |",
        f"| accuracy of chance | {card['chance']:.4f} |",
        *(
            f"| accuracy of the shortcut *{name}* | {'nothing asked' if share is None else f'{share:.4f}'} |"
            for name, share in card["shortcuts"].items()
        ),
        f"| sha256 of tokens and labels | `{card['sha256']}` |",
        f"| hopbound | {card['hopbound']} |",
        "",
        f"Shortcuts are what a model may do instead of solving the task, here over the first "
        f"{card['shortcuts_measured_on']:,} examples.",
        "",
        f"Split: {split['rule']}",
        "",
        "Rows have `tokens` and `labels`, as long as each other; the label -1 says that nothing is asked at a token.",
        "The sha256 is that of all rows in order, tokens and then labels as little-endian 64-bit integers.",
        "",
        "To make the file again:",
        "",
        f"    {card['command']}",
    ]
    return "\n".join(lines) + "\n"


def _split_card(task: SequenceTask, split: str, seed: int, tested: list[NDArray[np.int64]]) -> dict[str, Any]:
    card: dict[str, Any] = {"name": split, "seed": seed, "held_out": split != TRAIN, "one_in": APART}
    if has_split(task):
        which = "those that are not" if split == TRAIN else "those that are"
        rule = f"one sequence in {APART} is held out for tests, by a hash of its tokens; these are {which}."
        return {**card, "disjoint": True, "rule": rule}
    card["held_out"], card["disjoint"] = False, False
    rule = f"none: with fewer than {FEW:,} different sequences, training and tests use all of them."
    if split == TRAIN:
        return {**card, "rule": rule}
    tokens = np.concatenate(tested)
    shared = overlap(task, seed, 0, len(tokens), tokens)
    also = f" {shared:,} of these {len(tokens):,} examples are also among the first {len(tokens):,} of training."
    return {**card, "also_in_training": shared, "training_examples": len(tokens), "rule": rule + also}


def _command(task: SequenceTask, split: str, seed: int, count: int, name: str) -> str:
    return f"hopbound data '{format_task(task)}' --count {count} --split {split} --seed {seed} --out {name}"


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


class _Shortcuts:
    """How often shortcuts are right, over the first examples."""

    def __init__(self, task: SequenceTask) -> None:
        self._functions = task.shortcuts()
        self._right = dict.fromkeys(self._functions, 0)
        self._asked = 0
        self.examples = 0

    def update(self, examples: Labelled) -> None:
        left = MEASURED - self.examples
        if left <= 0:
            return
        tokens, labels, asked = examples.tokens[:left], examples.labels[:left], examples.asked[:left]
        self.examples += len(tokens)
        self._asked += int(asked.sum())
        for name, function in self._functions.items():
            self._right[name] += int((function(tokens)[asked] == labels[asked]).sum())

    def accuracies(self) -> dict[str, float | None]:
        """None where nothing was asked."""
        return {name: right / self._asked if self._asked else None for name, right in self._right.items()}


@contextmanager
def _jsonl(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(part: Labelled) -> None:
            rows = zip(part.tokens.tolist(), part.labels.tolist(), strict=True)
            file.writelines(
                json.dumps({"tokens": tokens, "labels": labels}, separators=(",", ":")) + "\n"
                for tokens, labels in rows
            )

        yield write


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([("tokens", pa.list_(pa.int64())), ("labels", pa.list_(pa.int64()))])
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:

        def write(part: Labelled) -> None:
            rows, length = part.tokens.shape
            ends = pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(length))
            columns = [pa.ListArray.from_arrays(ends, pa.array(one.ravel())) for one in (part.tokens, part.labels)]
            file.write_table(pa.Table.from_arrays(columns, schema=schema))

        yield write


_FORMATS = {".jsonl": _jsonl, ".parquet": _parquet}
