"""``smembench compare`` as a user runs it: on committed runs, and on copies of one that were made slower."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import DOCUMENTS, NIGHTLY, ROOT, Program, records
from smembench.store.csv_files import table_text

NIGHTS = sorted((ROOT / "results/reference/slowdown").iterdir())
LIMITS = "20261201T004410Z-limits"
ACROSS = ("--across", "device")
"""The stored runs do not say which GPU they were measured on."""
CASE = "transpose/transposeSmem/cuda:0/numba/float32/4096x4096/b32x32/pad0/warm"


def slow_down(file: Path, factor: float) -> None:
    """Multiply the samples of ``CASE`` in a samples.csv."""
    rows = records(file.read_text())
    for row in rows:
        if row["case_id"] == CASE:
            row["elapsed_ms"] = repr(factor * float(row["elapsed_ms"]))
    file.write_text(table_text(list(rows[0]), [list(row.values()) for row in rows]))


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed run with one case 8 % slower and another Numba."""
    folder = tmp_path_factory.mktemp("slowed") / "run"
    shutil.copytree(NIGHTLY, folder)
    slow_down(folder / "samples.csv", 1.08)
    described = json.loads((folder / "run.json").read_text()) | {"checksums": {}}
    described["versions"]["numba"] = "0.69.0"
    (folder / "run.json").write_text(json.dumps(described))
    return folder


def test_a_regression_is_named_and_exits_3(program: Program, slowed: Path) -> None:
    result = program("compare", NIGHTLY, slowed)
    assert (result.returncode, result.stderr) == (3, "found: 1 slower\n")
    lines = result.stdout.splitlines()
    (difference,) = (line for line in lines if line.startswith("numba"))
    assert difference.split() == ["numba", "0.68.0", "0.69.0"]
    (slower,) = (line for line in lines if line.startswith("slower"))
    assert "transposeSmem 32x32 4096x4096 " in slower
    assert "1.080×" in slower
    assert lines.index(difference) < lines.index(slower)
    assert not any(line.startswith("same") for line in lines)


def test_what_is_not_slower_is_no_regression(program: Program, slowed: Path) -> None:
    for arguments in (
        (slowed, NIGHTLY),
        (NIGHTLY, slowed, "--fail-on", "never"),
        (NIGHTLY, slowed, "--threshold", 9),
    ):
        result = program("compare", *arguments)
        assert (result.returncode, result.stderr) == (0, ""), arguments


def test_a_run_compared_with_itself_is_no_success_wherever_its_files_are(program: Program, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(NIGHTS[0], tmp_path / "copy"))
    unsampled = Path(shutil.copytree(NIGHTS[0], tmp_path / "unsampled"))
    (unsampled / "samples.csv").unlink()
    (tmp_path / "link").symlink_to(NIGHTS[0])
    for again in (NIGHTS[0], NIGHTS[0] / "cases.csv", copy, unsampled, tmp_path / "link", f"{NIGHTS[1]},{copy}"):
        result = program("compare", NIGHTS[0], again)
        assert result.returncode == 5, result.stderr
        assert result.stderr.startswith(f"smembench: {NIGHTS[0].name} is on both sides: ")
    assert program("baseline", "set", copy).returncode == 0
    pinned = program("compare", "baseline", copy)
    assert (pinned.returncode, "is on both sides" in pinned.stderr) == (5, True)


def test_a_run_counts_once_on_a_side_wherever_its_files_are(program: Program, tmp_path: Path) -> None:
    copy = shutil.copytree(NIGHTS[0], tmp_path / "copy")
    for again in (copy, NIGHTS[0] / "cases.csv"):
        for arguments in ((f"{NIGHTS[0]},{again}", NIGHTS[1]), ("--aa", f"{NIGHTS[0]},{NIGHTS[1]},{again}")):
            result = program("compare", *arguments, *ACROSS)
            twice = f"smembench: {again}: is the same run as {NIGHTS[0]}, given on one side; give it once\n"
            assert (result.returncode, result.stderr) == (2, twice)


@pytest.mark.parametrize("number", [9, 10, 11, 12])
def test_a_regression_that_comes_with_a_driver_is_told_every_night_and_names_it(
    program: Program, tmp_path: Path, number: int
) -> None:
    """As of night 9 of twelve a kernel is slower; here the driver changed with it."""
    results = Path(shutil.copytree(NIGHTS[0].parent, tmp_path / "results"))
    for place, night in enumerate(NIGHTS, 1):
        file = results / night.name / "run.json"
        described = json.loads(file.read_text())
        described["devices"][0]["driver"] = "580.1" if place < 9 else "590.2"
        file.write_text(json.dumps(described))
    new = results / NIGHTS[number - 1].name
    for base in ("last:7", results / NIGHTS[6].name):
        result = program("compare", base, new)
        assert result.returncode == 3, result.stderr
        causes = [line for line in result.stdout.splitlines() if line.startswith("possible cause of slower: ")]
        assert causes
        assert all("ownTile" in cause for cause in causes)
        assert "cuda:0 driver was 580.1, is 590.2" in " ".join(result.stdout.split())


def test_a_wrong_result_in_the_newer_run_is_no_success(program: Program, tmp_path: Path) -> None:
    rows = records((NIGHTS[0] / "cases.csv").read_text(encoding="utf-8"))
    rows[0] |= {"status": "wrong_result", "verified": "false", "elapsed_ms": "", "reason": "element 3 is 1.0, not 2.0"}
    wrong = tmp_path / "cases.csv"
    wrong.write_text(table_text(list(rows[0]), [list(row.values()) for row in rows]), encoding="utf-8")
    result = program("compare", NIGHTS[1], wrong, *ACROSS)
    assert result.returncode == 1, result.stderr
    assert "wrong_result: element 3 is 1.0, not 2.0" in " ".join(result.stdout.split())
    assert program("compare", wrong, NIGHTS[1], *ACROSS).returncode == 0  # mended since


def test_that_nothing_was_compared_is_no_success(program: Program) -> None:
    """Neither other cases nor another GPU: a gate must not pass for want of what it compares."""
    reduction, limits = (
        ROOT / f"results/reference/{name}" for name in ("20261129T121632Z-reduction", "20261129T181819Z-limits")
    )
    for new, why in ((reduction, "no case is in both"), (limits, "no case is comparable")):
        for option in ((), ("--fail-on", "ambiguous"), ("--json",)):
            result = program("compare", NIGHTLY, new, *option)
            assert result.returncode == 5, option
            assert result.stderr.startswith(f"smembench: nothing was compared: {why}"), option
        assert program("compare", NIGHTLY, new, "--fail-on", "never").returncode == 0


def test_gpus_that_differ_are_compared_if_that_is_asked_for(program: Program) -> None:
    h100, h200 = (ROOT / f"results/reference/{name}" for name in ("20261123T200119Z-limits", LIMITS))
    result = program("compare", h100, h200)
    assert (result.returncode, "--across device" in result.stderr) == (5, True)
    result = program("compare", h100, h200, "--across", "device", "--fail-on", "never")
    assert (result.returncode, result.stderr) == (0, "")


def test_ambiguity_fails_where_it_is_asked_to(program: Program) -> None:
    first, second = NIGHTS[:2]
    assert program("compare", first, second, *ACROSS).returncode == 0
    assert program("compare", first, second, *ACROSS, "--fail-on", "ambiguous").returncode == 3


def test_a_run_that_is_left_out_of_the_newest_is_named_once(program: Program, tmp_path: Path) -> None:
    results = Path(shutil.copytree(NIGHTS[0].parent, tmp_path / "results"))
    file = results / NIGHTS[3].name / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"started_at_utc": "2099-01-01T00:00:00+00:00"}))
    result = program("compare", "last:7", "results/last", cwd=tmp_path)
    assert result.returncode == 3
    assert result.stderr.count("smembench: left out") == 1


def test_a_real_slowdown_on_a_gpu_is_told_every_night_and_nothing_else(program: Program) -> None:
    """From the ninth of twelve nights on ownTile had lost its padding."""
    for number in (4, 8, 9, 10, 11, 12):
        night = NIGHTS[number - 1]
        ran = program("compare", "last:7", night, "--json")
        (result,) = json.loads(ran.stdout)["compared"]
        slower = [case["case_id"] for case in result["cases"] if case["verdict"] == "slower"]
        assert (ran.returncode, len(slower)) == ((3, 4) if number > 8 else (0, 0)), night
        assert all("/ownTile/" in case for case in slower)


def test_json_holds_every_case(program: Program, slowed: Path) -> None:
    result = program("compare", NIGHTLY, slowed, "--json")
    data = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (3, "found: 1 slower\n")
    assert len(data["cases"]) == sum(data["counts"].values()) == 139
    assert data["cases"][0]["case_id"] == CASE
    assert data["cases"][0]["verdict"] == "slower"
    assert data["cases"][0]["low"] < 1.08 < data["cases"][0]["high"]


def test_markdown_is_a_table(program: Program, slowed: Path) -> None:
    lines = program("compare", NIGHTLY, slowed, "--markdown", "--all").stdout.splitlines()
    assert "| numba | 0.68.0 | 0.69.0 |" in lines
    assert sum(line.startswith("| same |") for line in lines) > 50


def test_several_runs_a_side_and_bare_csv_files(program: Program, slowed: Path, tmp_path: Path) -> None:
    again = Path(shutil.copytree(slowed, tmp_path / "again"))
    slow_down(again / "samples.csv", 0.99)
    pooled = json.loads(program("compare", f"{NIGHTLY},{again}", slowed, "--json").stdout)
    assert pooled["base"] == [NIGHTLY.name, NIGHTLY.name]
    assert pooled["cases"][0]["base"]["units"] == 2
    shutil.copy(NIGHTLY / "cases.csv", tmp_path / "a.csv")
    bare = json.loads(program("compare", tmp_path / "a.csv", tmp_path / "a.csv", "--json").stdout)
    assert {case["verdict"] for case in bare["cases"]} == {"ambiguous"}
    assert "one time per side" in bare["cases"][0]["reason"]


def test_a_closed_pipe_is_no_error(slowed: Path) -> None:
    piped = subprocess.run(
        f"{sys.executable} -m smembench compare {NIGHTLY} {slowed} --all | head -1",
        shell=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    assert piped.stdout == f"{NIGHTLY.name}, then {NIGHTLY.name}\n"
    assert "Traceback" not in piped.stderr


def test_a_configuration_is_measured_and_compared_with_itself(program: Program, tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    sweep = '[[sweep]]\nproblem = "transpose"\ndevice = "cpu"\nn = 16\nkernel = "memcpy"\n'
    config.write_text(f"max_seconds = 0.1\nprecision = 90\n{sweep}")
    result = program("compare", "--aa", config, "--runs", 2, "--output", tmp_path / "out", "--anonymous", "--json")
    data = json.loads(result.stdout)
    assert result.returncode == (0 if data["judged"] else 5)  # on a busy host no time is comparable
    assert (len(data["runs"]), data["pairs"]) == (2, 1)
    assert [case["case_id"] for case in data["cases"]] == ["transpose/memcpy/cpu/numba/float32/16x16/warm"]
    (folder,) = (tmp_path / "out").iterdir()
    assert [path.name.rpartition("-")[2] for path in sorted(folder.iterdir())] == ["1", "2"]
    for path in folder.iterdir():
        run = json.loads((path / "run.json").read_text())
        assert run.keys().isdisjoint({"host", "argv"})
    again = program("compare", "--aa", folder, "--json")
    assert json.loads(again.stdout) == data
    pair = f"{NIGHTLY},{DOCUMENTS}"
    assert "False verdicts: 0 of" in program("compare", "--aa", pair, *ACROSS).stdout


def test_runs_that_cannot_be_compared_with_each_other_are_no_success(program: Program, tmp_path: Path) -> None:
    """The first of the two does not name its GPU."""
    unnamed = shutil.copytree(NIGHTLY, tmp_path / "unnamed")
    described = json.loads((unnamed / "run.json").read_text())
    for device in described["devices"]:
        device["uuid"] = None
    (unnamed / "run.json").write_text(json.dumps(described))
    result = program("compare", "--aa", f"{unnamed},{DOCUMENTS}")
    assert (result.returncode, "nothing was compared: no case is comparable" in result.stderr) == (5, True)
    assert "does not say which GPU" in result.stdout
