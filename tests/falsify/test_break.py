"""What is known to fail is found out, from the command line; what is exact is not; every pair holds by itself."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from hopbound.architecture import Defaults, parse_schedule
from hopbound.constructions import write_weights
from hopbound.decoder import Decoder
from hopbound.decoder.folder import save_model
from hopbound.report.break_ import write_break
from hopbound.tasks import FunctionComposition, parse_task, task_from_json
from hopbound.witness import verify_file

from ..cli.commands import contents, hopbound
from .alone import holds

# One step beyond a limit: entries beyond the key dimension, pairs beyond it, a token beyond the reach.
OVERFILLED = {
    "C3": ("2*linear full", "composition[hops=2,m=25,n=4/]"),
    "delta recall": ("shift[channels=6] delta[head_dim=4]", "recall[pairs=5,keys=5,values=4]"),
    "delta": ("2*delta[head_dim=4,value_dim=8] full", "composition[hops=2,m=5,n=2/]"),
    "window": ("2*window[w=5]", "composition[hops=1,m=4]"),
}
EXACT = {
    "C1": ("3*full", "composition[hops=2,m=4,n=2/]"),
    "C2": ("linear 2*full", "composition[hops=2,m=4,n=2/]"),
}
TRAINED = FunctionComposition(hops=2, m=4, n=(2,))


def broken(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The result of `break`, whose pair is written, accepted and true."""
    ended = hopbound(f"break {line} --out '{folder}' --json", capsys)
    assert ended.code == 0, ended.err
    assert ended.json["found"]
    assert ended.json["prompts_tried"] == sum(ended.json["tried"].values())
    judged = verify_file(folder / "pair.json")
    assert judged.accepted, judged.reason
    assert holds(folder / "pair.json")
    assert (folder / "pair.html").is_file()
    return ended.json


def write_model(folder: Path, schedule: str, asked: str) -> None:
    """The construction's weights, whether they do what they are for or not."""
    task = parse_task(asked)
    built = write_weights(parse_schedule(schedule, Defaults(head_dim=24)), task, overfill=True)
    save_model(folder, built.decoder, notes={}, task=task.to_json())


@pytest.mark.parametrize("name", OVERFILLED)
def test_what_is_built_beyond_its_limits(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "model", *OVERFILLED[name])
    broken(f"'{tmp_path / 'model'}'", tmp_path / "broken", capsys)


@pytest.mark.parametrize(
    "line",
    [
        '"4*linear" --hops 2',
        '"4*linear" --task "recall[pairs=3,keys=4,values=5]"',
        '"2*linear" --task "composition[hops=1,m=5]"',
        '"full" --task "recall[pairs=2,keys=2,values=2]"',
    ],
)
def test_random_weights(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken(line, tmp_path, capsys)


@pytest.mark.parametrize("w", [3, 4])
def test_a_window_one_token_beyond_its_reach(w: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two windows of w see 2 w - 2 back; of a prompt of 2 w tokens the first is one further."""
    result = broken(f'"2*window[w={w}]" --task "composition[hops=1,m={2 * w - 2}]"', tmp_path, capsys)
    assert result["found"]


def fitted(task: FunctionComposition, steps: int) -> Decoder:
    """`2*full`, fitted to the task; two full layers look up once, so that two hops stay out of reach."""
    decoder = Decoder.from_schedule(
        "2*full",
        vocabulary=task.vocabulary_size,
        answers=task.answers,
        width=32,
        heads=2,
        positions=task.prompt_length,
        seed=5,
    )
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=3e-3)
    for step in range(steps):
        batch = task.sample(1, "train", step * 64, 64)
        logits, _ = decoder(torch.from_numpy(batch.prompts))
        loss = cross_entropy(logits[:, -1], torch.from_numpy(batch.answers))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return decoder.eval().requires_grad_(False)


@pytest.mark.slow
def test_a_trained_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decoder = fitted(TRAINED, 400)
    fresh = TRAINED.sample(1, "test", 0, 1000)
    assert (decoder.answer(fresh.prompts) == fresh.answers).mean() > 1.5 * TRAINED.chance  # it has learned something
    save_model(tmp_path / "model", decoder, notes={}, task=TRAINED.to_json())
    result = broken(f"'{tmp_path / 'model'}'", tmp_path / "broken", capsys)
    assert result["pair"]["model_answers"][0] in range(TRAINED.answers)


def nothing_found(name: str, prompts: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(folder / "model", *EXACT[name])
    before = contents(folder)
    line = f"break '{folder / 'model'}' --max-prompts {prompts} --out '{folder / 'broken'}'"
    ended = hopbound(line, capsys)
    assert ended.code == 0
    said = re.fullmatch(r"none found in ([\d,]+) prompts: (.+)\n", ended.out)
    assert said is not None
    counts = {family: int(count.replace(",", "")) for family, count in re.findall(r"([a-z -]+) ([\d,]*\d)", said[2])}
    assert set(counts) >= {"adversarial examples", " random examples", " gradient-guided"}
    assert sum(counts.values()) == int(said[1].replace(",", ""))
    assert prompts - 200 < sum(counts.values()) <= prompts
    assert contents(folder) == before


@pytest.mark.parametrize("name", EXACT)
def test_none_in_what_is_exact(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing_found(name, 1_500, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_none_in_what_is_exact_in_many_prompts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing_found(name, 100_000, tmp_path, capsys)


def test_the_text_shows_both_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    ended = hopbound('break "4*linear" --hops 2', capsys)
    pair = hopbound('break "4*linear" --hops 2 --json', capsys).json["pair"]
    lines = {line[:8].strip(): line for line in ended.out.splitlines()}
    values = pair["changed"]["values"]
    assert f"[{values[0]}]" in lines[pair["changed"]["function"]]
    assert f"[{values[1]}]" in lines[pair["changed"]["function"]]
    assert lines["right"].split()[1:] == [str(answer) for answer in pair["right_answers"]]
    assert ended.err == ""


def test_a_task_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    ended = hopbound('break linear --hops 2 --task "recall[pairs=2,keys=2,values=2]"', capsys)
    assert ended.code == 2
    assert "not both" in ended.error


class Text(HTMLParser):
    """The words of a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def strings(value: Any) -> Iterator[tuple[Any, Any]]:
    """Containers and the keys in them at which strings stand."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        if isinstance(one, str):
            yield value, key
        else:
            yield from strings(one)


def test_the_page_escapes_whatever_a_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken('"4*linear" --hops 2', tmp_path, capsys)
    document = json.loads((tmp_path / "pair.json").read_text(encoding="utf-8"))
    task = task_from_json(document["task"])
    places = [task.place(position) for position in range(task.prompt_length)]
    plain = Text((tmp_path / "pair.html").read_text(encoding="utf-8"))
    assert {str(answer) for answer in document["right_answers"]} <= {word.strip() for word in plain.words}
    for container, key in strings(document):
        container[key] = "<script>alert('&\"')</script>"
    write_break(document, [("<b>", number) for _, number in places], tmp_path / "hostile.html")
    hostile = Text((tmp_path / "hostile.html").read_text(encoding="utf-8"))
    assert set(hostile.tags) == set(plain.tags)
    assert "<b>" in hostile.words
