"""Altered evidence is refused, or what it says is still true; whatever a file holds, it is judged in one line."""

import atexit
import copy
import hashlib
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hopbound.architecture import Defaults, Precisions, parse_schedule
from hopbound.bounds import prove
from hopbound.constructions import build
from hopbound.decoder.folder import load_model
from hopbound.decoder.model import LATER_FIELDS
from hopbound.falsify import break_model, random_subject
from hopbound.files import write_json
from hopbound.tasks import FunctionComposition
from hopbound.witness import FileResult, verify_file, verify_files

from .bounds.recompute import confirms
from .falsify.plain import plain_answers, right_answer
from .places import Place, altered, get, places

TASK = FunctionComposition(hops=2, m=3, n=(1,), values=(2,))
FITTING = Defaults(head_dim=5)
SCHEDULE = "linear 2*full"
CERTIFICATES = {"counting": ("linear", 1), "A": ("linear full linear", 2), "B": ("2*full", 3)}
NUMBERS_CLAIMED = ("prompt_length", "instances", "adversarial", "accuracy", "smallest_margin")


@cache
def evidence() -> Path:
    """Read-only: `counting.json`, `A.json`, `B.json`, `model/`, `pair.json` and its `pair-model/`."""
    folder = Path(mkdtemp(prefix="hopbound-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, (schedule, hops) in CERTIFICATES.items():
        architecture = parse_schedule(schedule, Defaults(head_dim=4), Precisions.uniform(4))
        certificate = prove(architecture, hops).certificate
        assert certificate is not None
        assert certificate.theorem == name
        write_json(folder / f"{name}.json", certificate.document())
    assert build(parse_schedule(SCHEDULE, FITTING), TASK, out=folder / "model").verification.exhaustive
    random = random_subject(parse_schedule("2*linear", FITTING), TASK, 0)
    assert break_model(random, out=folder).pair is not None
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(evidence(), tmp_path / "evidence")
    return tmp_path / "evidence"


def judge(path: Path) -> FileResult:
    """The verdict on one witness, which touches nothing."""
    before = {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()}
    result = verify_file(path)
    assert {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()} == before
    assert result.path == path
    assert result.reason
    assert "\n" not in result.reason
    return result


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def rehash(model: Path) -> None:
    """As who alters weights and hides it would do."""
    document = read(model / "model.json")
    document["weights"]["sha256"] = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    (model / "model.json").write_text(json.dumps(document))


def claim_holds(model: Path) -> bool:
    """The claim of a model folder about all instances of a small task: enumerated and run as plainly as can be."""
    document, read_model = read(model / "model.json"), load_model(model)
    task, claim = document["task"], document["claim"]
    if task is None or claim is None:
        return True
    values, n = task["values"], task["n"]
    domains = [task["m"], *(fan * size for fan, size in zip(n, values[:-1], strict=True))]
    assert values[-1] == domains[-1]
    ranges = [range(M) for M, D in zip(values[::-1], domains[::-1], strict=True) for _ in range(D)]
    prompts = torch.tensor(list(itertools.product(*ranges, range(task["m"]), range(math.prod(n)))))
    asked = FunctionComposition(task["hops"], task["m"], task["n"], task["values"])
    right = torch.tensor([right_answer(asked, prompt) for prompt in prompts.tolist()])
    logits = read_model.decoder(prompts)[0][:, -1]
    others = logits.scatter(1, right[:, None], -torch.inf).amax(dim=1)
    margins = logits.gather(1, right[:, None])[:, 0] - others
    said = dict(claim)
    return (
        abs(said.pop("smallest_margin") - float(margins.min())) < 2e-3
        and said.pop("accuracy") == float((margins > 0).double().mean())
        and isinstance(said.pop("seed"), int)
        and said
        == {
            "task": "composition",
            "prompt_length": sum(domains) + 2,
            "instances": len(prompts),
            "adversarial": 0,
            "exhaustive": True,
            "dtype": document["weights"]["dtype"],
        }
    )


def pair_holds(path: Path) -> bool:
    """What a pair says of its model, recomputed from the definition and the whole forward pass."""
    document = read(path)
    task = document["task"]
    asked = FunctionComposition(task["hops"], task["m"], task["n"], task["values"])
    decoder = load_model(path.parent / document["model"]["path"]).decoder
    prompts = np.array(document["prompts"], dtype=np.int64)
    assert prompts.tolist() == document["prompts"]
    right = [right_answer(asked, prompt) for prompt in prompts.tolist()]
    answers = plain_answers(decoder, prompts)
    return right == document["right_answers"] and answers == [document["model_answer"]] * 2 and right[0] != right[1]


HOLDS: dict[str, Callable[[Path], bool]] = {
    "model": claim_holds,
    "pair.json": pair_holds,
    **{f"{name}.json": lambda path: confirms(read(path)) for name in CERTIFICATES},
}


def file_of(witness: str) -> str:
    return "model/model.json" if witness == "model" else witness


@pytest.mark.parametrize("witness", HOLDS)
def test_unaltered_it_is_accepted_and_true(witness: str) -> None:
    assert judge(evidence() / witness).accepted
    assert HOLDS[witness](evidence() / witness)


# Numbers


CHANGES: list[Callable[[Any], Any]] = [lambda x: x + 1, lambda x: x - 1, lambda x: 2 * x + 3, lambda x: 0]


def check_numbers(witness: str, folder: Path, changes: Callable[[int], list[Callable[[Any], Any]]]) -> None:
    """Change each number as `changes` of its place in the file says."""
    file = folder / file_of(witness)
    before = read(file)
    numbers = [at for at in places(before) if type(get(before, at)) in (int, float)]
    tried = [(at, change(get(before, at))) for place, at in enumerate(numbers) for change in changes(place)]
    tried = [(at, new) for at, new in tried if new != get(before, at)]
    assert len(tried) > 10
    for at, new in tried:
        file.write_text(json.dumps(altered(before, at, new)))
        if judge(folder / witness).accepted:
            assert HOLDS[witness](folder / witness), (at, new)
            # What the evidence is about is never open: all numbers of the task, of the claim, of the pair.
            assert at[0] in ("config", "notes", "search") or at == ("claim", "seed"), (at, new)


@pytest.mark.parametrize("witness", ["model", "pair.json"])
def test_no_number_can_be_changed(witness: str, folder: Path) -> None:
    step = 4 if witness == "model" else 1
    check_numbers(witness, folder, lambda place: [CHANGES[place // step % 4]] if place % step == 0 else [])


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids="+-*0")
@pytest.mark.parametrize("witness", ["model", "pair.json"])
def test_no_number_can_be_changed_in_any_way(witness: str, change: Callable[[Any], Any], folder: Path) -> None:
    check_numbers(witness, folder, lambda place: [change])


@pytest.mark.parametrize("at", [("task", "m"), ("task", "n", 0), *(("claim", key) for key in NUMBERS_CLAIMED)], ids=str)
def test_no_number_of_the_claim_can_be_changed(at: Place, folder: Path) -> None:
    before = read(folder / "model" / "model.json")
    for change in (1, -1, 0.01, -0.01):
        changed = altered(before, at, get(before, at) + change)
        (folder / "model" / "model.json").write_text(json.dumps(changed))
        assert not judge(folder / "model").accepted


@pytest.mark.parametrize("witness", [f"{name}.json" for name in CERTIFICATES])
def test_no_number_of_a_certificate_can_be_changed(witness: str, folder: Path) -> None:
    before = read(folder / witness)
    numbers = [at[:-1] for at in places(before) if at[-1] == "hex"]
    refused = 0
    for at, change in itertools.product(numbers, (-40, -1, 1, 1000)):
        number = int(get(before, at)["hex"], 16) + change
        (folder / witness).write_text(json.dumps(altered(before, at, {"hex": hex(number), "dec": str(number)})))
        accepted = judge(folder / witness).accepted
        assert not accepted or confirms(read(folder / witness)), (at, change)
        refused += not accepted
    assert refused > 3 * len(numbers)


@pytest.mark.parametrize("bits", [1, 40, 79])
def test_a_certificate_is_for_its_own_schedule(bits: int, folder: Path) -> None:
    """With fewer bits the count still comes out, but they are not those of the schedule."""
    document = read(folder / "counting.json")
    document["stack"]["layers"][0]["bits"] = {"hex": hex(bits), "dec": str(bits)}
    (folder / "counting.json").write_text(json.dumps(document))
    assert not judge(folder / "counting.json").accepted


@pytest.mark.parametrize("schedule", ["linear[heads=1,head_dim=3]", "linear", "full[heads=1,head_dim=4]", "", "?"])
def test_the_schedule_of_a_certificate_cannot_be_changed(schedule: str, folder: Path) -> None:
    document = read(folder / "counting.json")
    document["stack"]["schedule"] = schedule
    (folder / "counting.json").write_text(json.dumps(document))
    assert not judge(folder / "counting.json").accepted


# Weights


def test_no_byte_of_the_weights_can_be_changed(folder: Path) -> None:
    file = folder / "model" / "model.safetensors"
    before = file.read_bytes()
    for at in {*range(0, len(before), 97), len(before) - 1}:
        file.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        result = judge(folder / "model")
        assert not result.accepted
        assert "sha256" in result.reason
    for cut in (before[:-1], before + b"\0", b""):
        file.write_bytes(cut)
        assert not judge(folder / "model").accepted


def test_bytes_with_their_own_hash_are_refused_or_the_claim_is_true(folder: Path) -> None:
    file = folder / "model" / "model.safetensors"
    before = file.read_bytes()
    header = 8 + int.from_bytes(before[:8], "little")
    refused = 0
    tried = [*range(0, header, max(1, header // 15)), *range(header, len(before), max(1, (len(before) - header) // 25))]
    for number, at in enumerate(tried):
        file.write_bytes(before[:at] + bytes([before[at] ^ (0xFF, 0x40, 0x01)[number % 3]]) + before[at + 1 :])
        rehash(folder / "model")
        if judge(folder / "model").accepted:
            assert claim_holds(folder / "model"), at
        else:
            refused += 1
    assert refused > 10


def test_every_weight_that_matters_matters_to_the_verdict(folder: Path) -> None:
    """The largest number of each tensor with the other sign, and the hash with it."""
    file = folder / "model" / "model.safetensors"
    before = load_file(file)
    refused = 0
    for name, tensor in before.items():
        if not tensor.any():
            continue
        changed = tensor.clone().flatten()
        changed[changed.abs().argmax()] *= -1
        save_file({**before, name: changed.reshape(tensor.shape)}, file)
        rehash(folder / "model")
        if judge(folder / "model").accepted:
            assert claim_holds(folder / "model"), name
        else:
            refused += 1
    assert refused >= 5


@pytest.mark.slow
def test_almost_always_right_is_not_always_right(tmp_path: Path) -> None:
    task = FunctionComposition(hops=1, m=3000)
    model = tmp_path / "model"
    build(parse_schedule("2*full"), task, out=model)
    document = read(model / "model.json")
    segments = document["config"]["positions"]["segments"]
    table = next(i for i, segment in enumerate(segments) if segment["length"] == 3000)
    segments[table]["length"] = 2999  # the last address loses its code
    segments.insert(table + 1, {"name": "hole", "length": 1, "fields": [], "constants": []})
    (model / "model.json").write_text(json.dumps(document))
    refused = judge(model)
    assert not refused.accepted
    assert "accuracy is 1.0" in refused.reason


# Folders


def test_a_folder_of_everything(folder: Path) -> None:
    """Witnesses are found wherever they are; what is something else, or hidden, is passed over."""
    (folder / "certificates" / "old").mkdir(parents=True)
    (folder / "A.json").rename(folder / "certificates" / "old" / "A.json")
    (folder / "notes.json").write_text('{"name": "mine", "numbers": [1, 2]}')
    (folder / "hierarchy.json").write_text('{"schema": "hopbound/hierarchy/1"}')
    (folder / "README.txt").write_text("hopbound/certificate/1")
    (folder / "model.safetensors").write_bytes(b"no model here")
    (folder / ".half.json").write_text('{"schema": "hopbound/cert')
    (folder / "empty").mkdir()
    shutil.copytree(folder / "model", folder / ".hidden")
    shutil.copytree(folder / "model", folder / "model" / "inner")  # part of a model, no witness of its own
    expected = ["B.json", "certificates/old/A.json", "counting.json", "model", "pair-model", "pair.json"]
    results = sorted(verify_files([folder]), key=lambda result: result.path.relative_to(folder).as_posix())
    assert [(result.path, result.accepted) for result in results] == [(folder / name, True) for name in expected]
    kinds = {"A.json": "certificate", "B.json": "certificate", "counting.json": "certificate", "pair.json": "pair"}
    assert [result.kind for result in results] == [kinds.get(result.path.name, "model") for result in results]


@pytest.mark.parametrize("text", ["", '{"schema": "hopbound/cert', "\x00", '{"schema": ' * 100_000])
def test_what_cannot_be_read_is_not_passed_over(text: str, folder: Path) -> None:
    (folder / "A.json").write_text(text)
    results = {result.path.name: result.accepted for result in verify_files([folder])}
    assert results == {name: name != "A.json" for name in results}
    assert "A.json" in results


@pytest.mark.parametrize("inside", [[], [".hidden.json"], ["notes.txt"], ["a/b/c/"], ["model.safetensors"]], ids=str)
def test_a_folder_of_nothing(inside: list[str], tmp_path: Path) -> None:
    for name in inside:
        path = tmp_path / name
        path.mkdir(parents=True) if name.endswith("/") else path.write_text("{")
    (result,) = verify_files([tmp_path])
    assert (result.path, result.kind, result.accepted) == (tmp_path, "unknown", False)


def test_nothing_at_all(tmp_path: Path) -> None:
    assert list(verify_files([])) == []
    (result,) = verify_files([tmp_path / "none"])
    assert (result.kind, result.accepted) == ("unknown", False)


def test_a_folder_that_holds_itself(tmp_path: Path) -> None:
    shutil.copy(evidence() / "counting.json", tmp_path)
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert [(result.path, result.accepted) for result in verify_files([tmp_path])] == [
        (tmp_path / "counting.json", True)
    ]


def test_a_folder_that_is_very_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.chdir(tmp_path)
        for _ in range(1200):
            os.mkdir("a")
            os.chdir("a")
        shutil.copy(evidence() / "counting.json", "c.json")
        os.chdir(tmp_path)
        assert [result.accepted for result in verify_files([Path()])] == [True]
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "a"], check=True)  # Python's own removal is recursive


# Pairs and their models


@pytest.mark.parametrize("missing", ["", "model.json", "model.safetensors"])
def test_a_pair_without_its_model(missing: str, folder: Path) -> None:
    path = folder / "pair-model" / missing
    path.unlink() if missing else shutil.rmtree(path)
    assert not judge(folder / "pair.json").accepted


def test_a_pair_with_the_weights_of_another_model(folder: Path) -> None:
    shutil.rmtree(folder / "pair-model")
    shutil.copytree(folder / "model", folder / "pair-model")
    result = judge(folder / "pair.json")
    assert not result.accepted
    assert "other weights" in result.reason
    document = read(folder / "pair.json")
    document["model"]["sha256"] = read(folder / "model" / "model.json")["weights"]["sha256"]
    (folder / "pair.json").write_text(json.dumps(document))
    result = judge(folder / "pair.json")
    assert not result.accepted
    assert "not a fooling pair" in result.reason


def test_a_pair_may_stand_elsewhere_than_its_model(folder: Path) -> None:
    (folder / "pairs").mkdir()
    (folder / "pair.json").rename(folder / "pairs" / "pair.json")
    document = read(folder / "pairs" / "pair.json")
    document["model"]["path"] = "../pair-model"
    (folder / "pairs" / "pair.json").write_text(json.dumps(document))
    assert judge(folder / "pairs" / "pair.json").accepted


@pytest.mark.parametrize(
    "path",
    [
        "{folder}/pair-model",
        "../pair-model",
        "../../../../../../../../etc",
        "pair.json",
        "pair-model/model.json",
        "",
        "pair-model\0",
        "pair-model\n",
        "\ud800",
        "a" * 100_000,
        "a/" * 100_000,
        None,
        7,
        True,
        ["pair-model"],
        {"path": "pair-model"},
    ],
    ids=lambda path: repr(path)[:20],
)
def test_where_a_pair_looks_for_its_model(path: Any, folder: Path) -> None:
    document = read(folder / "pair.json")
    document["model"]["path"] = path.format(folder=folder) if isinstance(path, str) else path
    (folder / "pair.json").write_text(json.dumps(document))
    assert not judge(folder / "pair.json").accepted


@pytest.mark.parametrize("name", ["../pair-model/model.safetensors", "{folder}/pair-model/model.safetensors"])
def test_a_model_takes_no_weights_from_elsewhere(name: str, folder: Path) -> None:
    shutil.rmtree(folder / "model")
    shutil.copytree(folder / "pair-model", folder / "model")
    (folder / "model" / "model.safetensors").unlink()
    document = read(folder / "model" / "model.json")
    document["weights"]["file"] = name.format(folder=folder)
    (folder / "model" / "model.json").write_text(json.dumps(document))
    assert not judge(folder / "model").accepted


@pytest.mark.parametrize("key", ["file", "sha256", "dtype"])
def test_a_file_cannot_write_lines_of_the_output(key: str, folder: Path) -> None:
    document = read(folder / "model" / "model.json")
    document["weights"][key] = "x\naccepted"
    (folder / "model" / "model.json").write_text(json.dumps(document))
    assert not judge(folder / "model").accepted


# Whatever stands in a file

INFINITE = float("inf")
NESTED: Any = 7
for _ in range(200):
    NESTED = [NESTED]
ODD: list[Any] = [
    *(None, True, False, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e308, -0.0),
    *(float("nan"), INFINITE, -INFINITE, "", "0x", "1", "composition", "…", [], {}, [[]], [0] * 5, {"": None}),
    NESTED,
]


def has_a_test_of_its_own(witness: str, at: Place, value: Any) -> bool:
    """What goes wrong with a model, see below."""
    large = at in (("config", "vocabulary"), ("config", "answers")) and value == 2**31
    return witness == "model" and (large or value in (INFINITE, -INFINITE, 10**400))


def check_odd(witness: str, folder: Path, part: int, of: int) -> None:
    """Every place of a document takes one odd value in `of`."""
    file = folder / file_of(witness)
    before = read(file)
    for number, (at, value) in enumerate(itertools.product(places(before), ODD)):
        if number % of != part or has_a_test_of_its_own(witness, at, value):
            continue
        file.write_text(json.dumps(altered(before, at, value)))
        if judge(folder / witness).accepted:
            assert at[0] == "notes" or HOLDS[witness](folder / witness), (at, value)


@pytest.mark.parametrize("witness", HOLDS)
def test_any_value_in_any_place(witness: str, folder: Path) -> None:
    check_odd(witness, folder, 5, 61 if witness == "model" else 43 if witness == "pair.json" else 13)


@pytest.mark.slow
@pytest.mark.parametrize("witness", HOLDS)
def test_every_value_in_every_place(witness: str, folder: Path) -> None:
    check_odd(witness, folder, 0, 1)


@pytest.mark.parametrize(
    "value",
    [
        INFINITE,
        10**400,
    ],
    ids=["infinite", "10^400"],
)
def test_a_constant_beyond_floats(value: float, folder: Path) -> None:
    document = read(folder / "model" / "model.json")
    document["config"]["positions"]["segments"][0]["constants"][0][1] = value
    (folder / "model" / "model.json").write_text(json.dumps(document))
    assert not judge(folder / "model").accepted or claim_holds(folder / "model")


LIMITED = """
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
from hopbound.witness import verify_file
result = verify_file(pathlib.Path(sys.argv[1]))
print(result.accepted, result.reason)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
@pytest.mark.parametrize("key", ["vocabulary", "answers"])
def test_a_small_file_cannot_ask_for_all_memory(key: str, folder: Path) -> None:
    document = read(folder / "model" / "model.json")
    document["config"][key] = 2**31
    (folder / "model" / "model.json").write_text(json.dumps(document))
    command = [sys.executable, "-c", LIMITED, str(folder / "model")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "memory" not in ended.stdout


@pytest.mark.parametrize(
    "bad",
    [
        INFINITE,
        pytest.param(float("nan"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_weights_that_are_no_numbers(bad: float, folder: Path) -> None:
    """One of a few entries of each tensor; refused, or else the claim is true of the forward pass as it is written."""
    file = folder / "model" / "model.safetensors"
    before = load_file(file)
    for name, tensor in before.items():
        for at in range(0, tensor.numel(), max(1, tensor.numel() // 4)):
            changed = tensor.clone().flatten()
            changed[at] = bad
            save_file({**before, name: changed.reshape(tensor.shape)}, file)
            rehash(folder / "model")
            assert not judge(folder / "model").accepted or claim_holds(folder / "model"), (name, at)


@pytest.mark.parametrize("witness", HOLDS)
def test_no_key_can_be_missing(witness: str, folder: Path) -> None:
    file = folder / file_of(witness)
    before = read(file)
    for at in places(before):
        if (at[0] in ("notes", "search") and at != ("notes",)) or not isinstance(at[-1], str):
            continue
        document = copy.deepcopy(before)
        del get(document, at[:-1])[at[-1]]
        file.write_text(json.dumps(document))
        # Without a field that earlier files had not it is such a file, and says the same as before.
        meant_before = at[:-1] == ("config",) and LATER_FIELDS.get(at[-1], ...) == get(before, at)
        assert judge(folder / witness).accepted == meant_before, at


@pytest.mark.parametrize("witness", [name for name in HOLDS if name != "pair.json"])
def test_no_key_can_be_added(witness: str, folder: Path) -> None:
    file = folder / file_of(witness)
    before = read(file)
    objects = [at for at in places(before) if isinstance(get(before, at), dict)]
    for at in ((), *(at for at in objects if at[0] not in ("notes", "weights"))):
        document = copy.deepcopy(before)
        get(document, at)["more"] = 1
        file.write_text(json.dumps(document))
        assert not judge(folder / witness).accepted, at
