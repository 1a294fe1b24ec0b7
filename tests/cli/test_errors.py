"""Wrong input: exit code, one line on stderr that names field and value, nothing written; what would fit is said."""

import atexit
import json
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from ..report.results import small_results
from .commands import Files, contents, hopbound

BUILD = 'build "3*full" --hops 2 --m 3 --n 1'


@cache
def bad_files() -> Path:
    """Read-only: files that are no witnesses, and witnesses that were altered."""
    folder = Path(mkdtemp(prefix="hopbound-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "file").write_text("x")
    (folder / "text.json").write_text("hello")
    (folder / "list.json").write_text("[1]")
    (folder / "other.json").write_text('{"schema": "another/1"}')
    (folder / "empty").mkdir()
    (folder / "filled").mkdir()
    (folder / "filled" / "mine").write_text("keep me")
    results = small_results()

    certificate = json.loads((results / "certificates" / "full-1.json").read_text(encoding="utf-8"))
    certificate["claim"]["prompt_length"] = {"hex": "0x5", "dec": "5"}
    (folder / "certificate.json").write_text(json.dumps(certificate))

    shutil.copytree(results / "pairs", folder / "pairs")
    for file in (folder / "pairs").glob("*.json"):
        pair = json.loads(file.read_text(encoding="utf-8"))
        pair["model_answer"] += 1
        file.write_text(json.dumps(pair))

    shutil.copytree(results / "models" / "linear-full-1", folder / "weights")
    with (folder / "weights" / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\x01")
    shutil.copytree(results / "models" / "linear-full-1", folder / "claim")
    model = json.loads((folder / "claim" / "model.json").read_text(encoding="utf-8"))
    model["claim"]["instances"] += 1
    (folder / "claim" / "model.json").write_text(json.dumps(model))
    return folder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(bad_files(), tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("line", "field", "given"),
    [
        # tasks
        ('build "3*full" --hops 2 --m 1 --n 4', "m", "1"),
        ('build "3*full" --hops 2 --m -5 --n 4', "m", "-5"),
        ('build "3*full" --hops 2 --m 8', "n", "()"),
        ('build "3*full" --hops 2 --m 8 --n 4,5', "n", "(4, 5)"),
        ('build "3*full" --hops 2 --m 8 --n 4,x', "n", "'4,x'"),
        ('build "3*full" --hops 2 --m 8 --n 0', "n", "0"),
        ('build "3*full" --hops 2 --m 8 --n 4 --values 1', "values", "1"),
        ('build "3*full" --hops 2 --m 8 --n 4 --values 3,4', "values", "(3, 4)"),
        ('build "3*full" --hops 2 --m 8 --n 4 --values a', "values", "'a'"),
        ('build "3*full" --hops 0 --m 8', "hops", "0"),
        ('build "3*full" --hops 1 --m 99999999999999999999', "vocabulary", "99999999999999999999"),
        ('break "4*linear" --hops 0', "hops", "0"),
        ('break "4*linear" --m 1', "m", "1"),
        ('break "4*linear" --hops 3 --n 2', "n", "(2,)"),
        # what the stack cannot be built for
        ('build "3*mla" --hops 3 --m 8 --n 4,4', "hops", "3"),
        ('build "2*full" --hops 3 --m 8 --n 4,4', "hops", "3"),
        ('build "2*full" --hops 2 --m 8 --n 4', "sizes", "D=(8, 32) M=(8, 32)"),
        ("build full --hops 1 --m 8", "hops", "1"),
        ('build "linear full linear" --hops 2 --m 8 --n 4', "hops", "2"),
        ('build "linear 2*full" --hops 2 --m 64 --n 8 --head-dim 4', "sizes", "D=(64, 512) M=(64, 512)"),
        ('build "3*full" --hops 2 --m 9 --n 1 --head-dim 3', "sizes", "D=(9, 9) M=(9, 9)"),
        ('build "2*linear full" --hops 2 --m 313 --n 4', "sizes", "D=(313, 1252) M=(313, 1252)"),
        ('break "mamba full"', "mixer", "'mamba'"),
        # schedules
        ('bound "linear 2*ful" --hops 2', "schedule", "'linear 2*ful'"),
        ('bound "full[size=1]" --hops 2', "schedule", "'full[size=1]'"),
        ('bound "full[heads=0]" --hops 2', "schedule", "'full[heads=0]'"),
        ('bound "full[heads=2" --hops 2', "schedule", "'full[heads=2'"),
        ('bound "2*(full linear" --hops 2', "schedule", "'2*(full linear'"),
        ('bound "full)" --hops 2', "schedule", "'full)'"),
        ('bound "0*full" --hops 2', "schedule", "'0*full'"),
        ('bound "2*()" --hops 2', "schedule", "'2*()'"),
        ('bound "100000*full" --hops 2', "schedule", "'100000*full'"),
        ('bound "" --hops 2', "schedule", "''"),
        ("break nowhere", "schedule", "'nowhere'"),
        ("hierarchy --stack full --stack fulll", "schedule", "'fulll'"),
        # designs
        ("design --hops 0 --context 64", "hops", "0"),
        ("design --hops 17 --context 64", "hops", "17"),
        ("design --hops 3 --context 7", "context", "7"),
        ("design --hops 3 --context 2000000000000", "context", "2000000000000"),
        ("design --hops 3 --context 64 --mixers ful", "mixers", "'ful'"),
        ("design --hops 3 --context 64 --mixers ''", "mixers", "''"),
        ("design --hops 3 --context 64 --mixers gdn", "mixers", "'gdn'"),
        ("design --hops 3 --context 64 --layers 3", "layers", "3"),
        ("design --hops 3 --context 64 --layers 999", "layers", "999"),
        ("design --hops 3 --context 64 --budget much", "budget", "'much'"),
        ("design --hops 3 --context 64 --budget 9", "budget", "9"),
        ("design --hops 3 --context 64 --limit 0", "--limit", "got 0"),
        ("design --hops 3 --context 64 --bits 0", "bits", "0"),
        ("design --hops 1 --context 64 --out file", "out", "file"),
        # numbers of the command line
        ("bound full --hops 0", "hops", "0"),
        ("bound full --hops -1", "hops", "-1"),
        ("bound full --hops 65", "hops", "65"),
        ("bound full --hops 2 --bits 0", "bits", "0"),
        ("bound full --hops 2 --bits 5000", "bits", "5000"),
        ("bound full --hops 2 --heads 0", "heads", "0"),
        ("bound full --hops 2 --head-dim -1", "head_dim", "-1"),
        ("bound full --hops 2 --window 0", "window", "0"),
        ("bound full --hops 2 --kernel 0", "kernel", "0"),
        ("hierarchy --bits 0", "bits", "0"),
        ("bound full --hops 2 --sizes big", "--sizes", "'big'"),
        (f"{BUILD} --dtype float8", "--dtype", "'float8'"),
        ("bound full --hops 1.5", "--hops", "1.5"),
        ('build "3*full" --hops 2 --m two --n 4', "--m", "two"),
        ('break "4*linear" --max-prompts 1', "--max-prompts", "got 1"),
        ("hierarchy --hops 9", "--hops", "got 9"),
        # what is missing or unknown
        ("bound full", "--hops", ""),
        ("bound", "model", ""),
        ("verify", "files", ""),
        ("bound full --hops 2 --colour red", "--colour", ""),
        ("bound full linear --hops 2", "linear", ""),
        ("nothing", "'nothing'", ""),
        ("--nothing", "--nothing", ""),
        # places
        (f"{BUILD} --out file", "out", "'file'"),
        (f"{BUILD} --out filled", "out", "'filled'"),
        (f"{BUILD} --out file/deep", "out", "file"),
        ("bound linear --hops 1 --out file", "out", "file"),
        ('break "2*linear" --m 2 --out file', "out", "file"),
        ("hierarchy --stack full --hops 1 --out file", "out", "file"),
    ],
)
@pytest.mark.parametrize("json_", [False, True], ids=["text", "json"])
@pytest.mark.usefixtures("without_mamba")
def test_wrong_input(
    line: str, field: str, given: str, json_: bool, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(work)
    ended = hopbound(f"{line} --json" if json_ else line, capsys)
    assert ended.code == 2
    said = ended.error
    named = said.startswith(f"{field}: got ") if given and not field.startswith("--") else field in said
    assert named, said
    assert given in said
    assert contents(work) == before


@pytest.mark.parametrize("line", ["bound linear --hops 1", BUILD, 'break "2*linear" --m 2', "hierarchy --stack full"])
@pytest.mark.parametrize("place", ["file", "file/deep"])
def test_a_file_in_the_way_stays(line: str, place: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(work)
    ended = hopbound(f"{line} --out {place}", capsys)
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]*\bfile\b[^\n]*", ended.err.splitlines()[-1])
    assert "Traceback" not in ended.err
    assert contents(work) == before


@pytest.mark.parametrize("seed", [-1, 0, 2**63, 10**30])
def test_any_whole_number_is_a_seed(seed: int, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ('break "2*linear" --m 2', 'build "linear full" --hops 1 --m 2'):
        assert hopbound(f"{line} --head-dim 4 --seed {seed}", capsys).code == 0


# Evidence that does not hold: a verdict, so it stands on stdout.


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("missing", "unknown", "cannot be read"),
        ("missing.json", "unknown", "cannot be read"),
        ("file", "unknown", "not JSON"),
        ("text.json", "unknown", "not JSON"),
        ("list.json", "unknown", "expected an object"),
        ("other.json", "unknown", "'another/1'"),
        ("empty", "unknown", "no witness files"),
        ("certificate.json", "certificate", "prompt_length"),
        ("pairs/full-1.json", "pair", "model_answer"),
        ("weights", "model", "sha256"),
        ("claim", "model", "instances"),
        ("claim/model.json", "model", "instances"),
    ],
)
def test_a_rejection(name: str, kind: str, reason: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(work)
    ended = hopbound(f"verify {name}", capsys)
    assert (ended.code, ended.err) == (1, "")
    line, total = ended.out.splitlines()
    assert re.fullmatch(rf"REJECTED  {kind} +{re.escape(name)}: .*{re.escape(reason)}.*", line)
    assert total == "1 checked, 1 rejected"
    told = hopbound(f"verify {name} --json", capsys)
    assert (told.code, told.err) == (1, "")
    assert told.json["accepted"] is False
    (file,) = told.json["files"]
    assert (file["path"], file["kind"], file["accepted"]) == (name, kind, False)
    assert reason in file["reason"]
    assert contents(work) == before


def test_breaking_an_altered_model_is_a_no(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(work)
    for name, reason in (("weights", "sha256"), ("empty", "model.json")):
        ended = hopbound(f"break {name} --out broken", capsys)
        assert ended.code == 1
        assert reason in ended.error
    assert contents(work) == before


# A refused build says what would fit, and that is so.


def built(line: str, capsys: pytest.CaptureFixture[str]) -> bool:
    ended = hopbound(f"build {line}", capsys)
    assert ended.code in (0, 2)
    return ended.code == 0


def at_least_sizes(hops: int) -> str:
    return f"--hops {hops} --m 2 --n {','.join(['1'] * (hops - 1))}" if hops > 1 else "--hops 1 --m 2"


@pytest.mark.parametrize(
    "stack",
    [
        "full",
        "2*full",
        "3*full",
        "linear full",
        "linear full linear",
        "linear 2*full",
        "full linear full",
        "conv 2*full",
        "mlp 2*full",
        "full|linear",
        "2*linear",
        "2*linear full",
    ],
)
def test_hops_that_fit(stack: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = hopbound(f'build "{stack}" {at_least_sizes(6)}', capsys).error
    match = re.match(r"hops: got 6, expected (?:at most (\d+)|none) for ", said)
    assert match is not None, said
    most = int(match[1] or 0)
    assert [built(f'"{stack}" {at_least_sizes(hops)}', capsys) for hops in range(1, most + 2)] == [True] * most + [
        False
    ]


REMEDIES: dict[str, tuple[str, str]] = {
    r"an address code of (\d+) bits is wider than head_dim (\d+)": ("--head-dim", "first"),
    r"a function code of (\d+) bits is wider than head_dim (\d+)": ("--head-dim", "first"),
    r"a value code of (\d+) bits is wider than the (\d+) value channels": ("--head-dim", "first"),
    r"z_1 has m = (\d+) addresses, the state holds (\d+) of them": ("--m", "second"),
}


@pytest.mark.parametrize(
    ("stack", "given"),
    [
        ("2*full", {"--hops": 1, "--m": 4, "--head-dim": 1}),
        ("3*full", {"--hops": 2, "--m": 9, "--n": 1, "--values": 2, "--head-dim": 2}),
        ("linear 2*full", {"--hops": 2, "--m": 5, "--n": 1, "--values": 2, "--head-dim": 2}),
        ("window full", {"--hops": 1, "--m": 4, "--head-dim": 1}),
        ("2*linear", {"--hops": 1, "--m": 7, "--head-dim": 3}),
        ("2*delta full", {"--hops": 2, "--m": 6, "--n": 1, "--values": 2, "--head-dim": 5}),
    ],
)
def test_sizes_that_fit(stack: str, given: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    """What is too large is named with the size that fits; with it the build goes on, and at last it is done."""
    for _ in range(6):
        line = f'build "{stack}" {" ".join(f"{option} {value}" for option, value in given.items())}'
        ended = hopbound(line, capsys)
        if ended.code == 0:
            return
        assert ended.code == 2
        assert ended.error.startswith("sizes: got 'D=(")
        found = [(re.search(pattern, ended.error), remedy) for pattern, remedy in REMEDIES.items()]
        ((match, (option, which)),) = [(match, remedy) for match, remedy in found if match]
        wanted, held = int(match[1]), int(match[2])
        assert wanted > held
        assert given[option] == (held if which == "first" else wanted)
        given = {**given, option: wanted if which == "first" else held}
    pytest.fail("refused again and again")


def test_layers_are_counted_alike(capsys: pytest.CaptureFixture[str]) -> None:
    line = 'build "linear[head_dim=2] full" --hops 1'
    accepted = hopbound(f"{line} --m 4", capsys).out
    refused = hopbound(f"{line} --m 5", capsys).error
    layer = re.search(r"layer (\d+) carry", accepted)
    assert layer is not None
    assert f"layer {layer[1]}, carry" in refused


@pytest.mark.usefixtures("without_mamba")
def test_a_mixer_without_weights_is_said_to_have_none(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before: Files = contents(work)
    said = hopbound('build "mamba full" --hops 1 --m 2 --out model', capsys).error
    assert "mamba" in said
    assert contents(work) == before
