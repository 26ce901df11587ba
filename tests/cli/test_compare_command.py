"""``smembench compare`` as a user runs it: on committed runs, and on copies of one that were made slower."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
RUN = ROOT / "results/reference/20261120T182903Z-nightly"
OTHER = ROOT / "results/reference/20261120T181658Z-documents"
NIGHTS = sorted((ROOT / "results/reference/slowdown").iterdir())
ACROSS = ("--across", "device")
"""The stored runs do not say which GPU they were measured on."""
CASE = "transpose/transposeSmem/cuda:0/numba/float32/4096x4096/b32x32/pad0/warm"


def scale(file: Path, columns: tuple[str, ...], factor: float) -> None:
    """Multiply columns of ``CASE`` in a file."""
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        names, records = list(reader.fieldnames or ()), list(reader)
    for record in (record for record in records if record["case_id"] == CASE):
        record.update({column: repr(factor * float(record[column])) for column in columns})
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed run with one case 3 % slower and another Numba."""
    folder = tmp_path_factory.mktemp("slowed") / "run"
    shutil.copytree(RUN, folder)
    scale(folder / "samples.csv", ("elapsed_ms",), 1.03)
    described = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    described["versions"]["numba"] = "0.69.0"
    (folder / "run.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


def test_a_regression_is_named_and_exits_3(program: Program, slowed: Path) -> None:
    found = program("compare", RUN, slowed)
    assert found.returncode == 3
    assert not found.stderr
    lines = found.stdout.splitlines()
    (difference,) = (line for line in lines if line.startswith("numba"))
    assert difference.split() == ["numba", "0.68.0", "0.69.0"]
    (slower,) = (line for line in lines if line.startswith("slower"))
    assert "transposeSmem 32x32 4096x4096 " in slower
    assert "1.030×" in slower
    assert lines.index(difference) < lines.index(slower)
    assert not any(line.startswith("same") for line in lines)


def test_the_same_run_is_no_regression(program: Program, slowed: Path) -> None:
    for arguments in ((RUN, RUN), (slowed, RUN), (RUN, slowed, "--fail-on", "never"), (RUN, slowed, "--threshold", 4)):
        found = program("compare", *arguments)
        assert (found.returncode, found.stderr) == (0, ""), arguments


def test_ambiguity_fails_where_it_is_asked_to(program: Program) -> None:
    first, second, _ = NIGHTS
    assert program("compare", first, second, *ACROSS).returncode == 0
    assert program("compare", first, second, *ACROSS, "--fail-on", "ambiguous").returncode == 3


def test_a_real_slowdown_on_a_gpu_is_seen_and_nothing_else(program: Program) -> None:
    """In the last of three nights ownTile had lost its padding."""
    first, second, slowed = NIGHTS
    assert program("compare", first, second, *ACROSS, "--fail-on", "slower").returncode == 0
    ran = program("compare", second, slowed, *ACROSS, "--json")
    assert ran.returncode == 3
    slower = [case["case_id"] for case in json.loads(ran.stdout)["cases"] if case["verdict"] == "slower"]
    assert len(slower) == 3
    assert all("/ownTile/" in case for case in slower)


def test_json_holds_every_case(program: Program, slowed: Path) -> None:
    found = program("compare", RUN, slowed, "--json")
    data = json.loads(found.stdout)
    assert (found.returncode, found.stderr) == (3, "")
    assert len(data["cases"]) == sum(data["counts"].values()) == 139
    assert data["cases"][0]["case_id"] == CASE
    assert data["cases"][0]["verdict"] == "slower"
    assert data["cases"][0]["low"] < 1.03 < data["cases"][0]["high"]


def test_markdown_is_a_table(program: Program, slowed: Path) -> None:
    lines = program("compare", RUN, slowed, "--markdown", "--all").stdout.splitlines()
    assert "| numba | 0.68.0 | 0.69.0 |" in lines
    assert sum(line.startswith("| same |") for line in lines) > 50


def test_several_runs_a_side_and_bare_csv_files(program: Program, slowed: Path, tmp_path: Path) -> None:
    again = shutil.copytree(RUN, tmp_path / "again")
    pooled = json.loads(program("compare", f"{RUN},{again}", slowed, "--json").stdout)
    assert pooled["base"] == [RUN.name, RUN.name]
    assert pooled["cases"][0]["base"]["units"] == 6
    shutil.copy(RUN / "cases.csv", tmp_path / "a.csv")
    bare = json.loads(program("compare", tmp_path / "a.csv", tmp_path / "a.csv", "--json").stdout)
    assert {case["verdict"] for case in bare["cases"]} == {"ambiguous"}
    assert "one time per side" in bare["cases"][0]["reason"]


def test_a_closed_pipe_is_no_error(slowed: Path) -> None:
    piped = subprocess.run(
        f"{sys.executable} -m smembench compare {RUN} {slowed} --all | head -1",
        shell=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    assert piped.stdout == f"{RUN.name}, then {RUN.name}\n"
    assert "Traceback" not in piped.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give BASE and NEW"),
        ((RUN,), "give BASE and NEW"),
        ((RUN, "nowhere"), "nowhere: there is no such file or folder"),
        ((RUN, ROOT / "README.md"), "README.md: not a cases.csv"),
        ((RUN, f"{OTHER},"), "there is no such file or folder"),
        ((RUN, ROOT / "results"), "results: holds no cases.csv"),
        ((RUN, f"{OTHER},{OTHER}"), "is given twice on one side"),
        ((RUN, OTHER, "--threshold", "nan"), "--threshold nan: give a percentage"),
        ((RUN, OTHER, "--fdr", "100"), "--fdr 100: give a percentage"),
        ((RUN, OTHER, "--across", "cuda"), "there are: device, driver, clocks"),
        ((RUN, OTHER, "--fail-on", "maybe"), "maybe"),
        ((RUN, OTHER, "--json", "--markdown"), "--json and --markdown: give one"),
        ((RUN, OTHER, "--runs", "3"), "--runs: belongs to --aa"),
        ((RUN, OTHER, "--anonymous"), "--anonymous: belongs to --aa"),
        ((RUN, "--aa", "configs/quick.toml"), "compares with itself"),
        (("--aa", "configs/quick.toml", "--runs", "1"), "--runs 1: give 2 or more"),
        (("--aa", "nowhere.toml", "--runs", "2"), "nowhere.toml: there is no such file"),
        (("--aa", RUN, "--runs", "2"), "--runs: belongs to --aa CONFIG.toml"),
        (("--aa", RUN), "--aa: give 2 or more runs"),
        (("--aa", RUN, "--fail-on", "never"), "--fail-on: belongs to BASE and NEW"),
        (("--aa", RUN, "--all"), "--all: belongs to BASE and NEW"),
    ],
)
def test_bad_input_is_one_line_and_exits_2(program: Program, arguments: tuple[object, ...], said: str) -> None:
    found = program("compare", *arguments)
    assert found.returncode == 2
    assert said in found.stderr
    assert found.stderr.count("\n") == 1
    assert not found.stdout


def test_a_configuration_is_measured_and_compared_with_itself(program: Program, tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    sweep = '[[sweep]]\nproblem = "transpose"\ndevice = "cpu"\nn = 16\nkernel = "memcpy"\n'
    config.write_text(f"max_seconds = 0.1\nprecision = 90\n{sweep}", encoding="utf-8")
    found = program("compare", "--aa", config, "--runs", 2, "--output", tmp_path / "out", "--anonymous", "--json")
    assert found.returncode == 0
    data = json.loads(found.stdout)
    assert (len(data["runs"]), data["pairs"]) == (2, 1)
    assert [case["case_id"] for case in data["cases"]] == ["transpose/memcpy/cpu/numba/float32/16x16/warm"]
    (folder,) = (tmp_path / "out").iterdir()
    assert [path.name.rpartition("-")[2] for path in sorted(folder.iterdir())] == ["1", "2"]
    assert not any("host" in json.loads((path / "run.json").read_text(encoding="utf-8")) for path in folder.iterdir())
    again = program("compare", "--aa", folder, "--json")
    assert json.loads(again.stdout) == data
    assert "False verdicts: 0 of" in program("compare", "--aa", f"{RUN},{OTHER}", *ACROSS).stdout
    assert "does not say which GPU" in program("compare", "--aa", f"{RUN},{OTHER}").stdout


@pytest.mark.slow
def test_a_real_slowdown_is_seen(program: Program, tmp_path: Path) -> None:
    """Four passes instead of one, under a threshold that a busy machine's noise does not reach."""
    config = tmp_path / "nights.toml"
    sweep = '[[sweep]]\nproblem = "transpose"\ndevice = "cpu"\nn = 1024\nkernel = "passes"\n'
    config.write_text(f"max_seconds = 2\n{sweep}", encoding="utf-8")
    kernel = str(Path(__file__).parent / "kernels" / "cpu_passes.py")
    for passes in (1, 4):
        output = tmp_path / str(passes)
        run = program("run", config, "--output", output, SMEMBENCH_KERNELS=kernel, PASSES=str(passes))
        assert run.returncode == 0, run.stderr
    before, after = (next((tmp_path / str(passes)).iterdir()) for passes in (1, 4))
    found = program("compare", before, after, "--threshold", 50)
    if "busy host" in " ".join(found.stdout.split()):
        pytest.skip("other processes held the cores, and what was measured then is rightly not compared")
    assert found.returncode == 3, found.stdout
    assert program("compare", after, before, "--threshold", 50).returncode == 0
