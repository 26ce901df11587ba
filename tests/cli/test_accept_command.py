"""``smembench accept`` as a user runs it: what is accepted, listed and withdrawn, and what cannot be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import DOCUMENTS, Program

CASE = "transpose/copyGmem/cuda:0/numba/float32/4096x4096/b16x16/warm"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of two runs of one host."""
    for day in (1, 2):
        run_id = f"2026010{day}T020000Z-documents"
        folder = shutil.copytree(DOCUMENTS, tmp_path / "results" / run_id)
        run = json.loads((folder / "run.json").read_text())
        run |= {"run_id": run_id, "started_at_utc": f"2026-01-0{day}T02:00:00+00:00"}
        for device in run["devices"]:
            device["uuid"] = "CPU-1" if device["kind"] == "cpu" else "GPU-1"
        (folder / "run.json").write_text(json.dumps(run))
    return tmp_path / "results"


def test_a_change_is_accepted_listed_and_withdrawn(program: Program, results: Path) -> None:
    older, newer = sorted(results.iterdir())
    assert "nothing is accepted" in program("accept", results).stderr
    one = program("accept", older, "--case", CASE, "--reason", "new\n  driver")
    assert (one.returncode, one.stdout) == (0, "")
    assert one.stderr == f"accepted from {older.name} on: {CASE}\n"
    every = program("accept", results, "--all", "--reason", "locked clocks")
    assert every.stderr == f"accepted from {newer.name} on: 43 cases\n"
    listed = f"{older.name}\t{CASE}\tnew driver\n{newer.name}\t*\tlocked clocks\n"
    assert program("accept", results).stdout == program("accept", newer).stdout == listed
    stored = json.loads((results / "accepted.json").read_text())
    assert [sorted(one["devices"]) for one in stored["accepted"]] == [["CPU-1", "GPU-1"]] * 2
    assert program("accept", older, "--case", CASE, "--reason", "again").returncode == 0
    assert program("accept", results).stdout.splitlines()[1:] == [f"{older.name}\t{CASE}\tagain"]
    assert f"no longer accepted: {CASE}" in program("accept", results, "--withdraw", "--case", CASE).stderr
    assert program("accept", results, "--withdraw", "--case", CASE).returncode == 2
    assert program("accept", results, "--withdraw", "--all").returncode == 0
    assert "nothing is accepted" in program("accept", results).stderr


def test_last_is_the_newest_run_of_results_wherever_it_is_given(program: Program, results: Path) -> None:
    older, newer = sorted(results.iterdir())
    given = ("accept", "last", "--all", "--reason", "x")
    elsewhere = program(*given, cwd=results)
    assert (elsewhere.returncode, "last: results holds no run" in elsewhere.stderr) == (2, True)
    assert not (results / "accepted.json").exists()
    assert program(*given, cwd=results.parent).stderr == f"accepted from {newer.name} on: 43 cases\n"
    run = json.loads((newer / "run.json").read_text()) | {"started_at_utc": "2999-01-01T02:00:00+00:00"}
    (newer / "run.json").write_text(json.dumps(run))
    left_out, accepted = program(*given, cwd=results.parent).stderr.splitlines()
    assert left_out.startswith("smembench: left out")
    assert accepted == f"accepted from {older.name} on: 43 cases"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--case", "transpose/nothing", "--reason", "x"), "none of the 43 cases of 20260102T020000Z-documents"),
        (("--case", "*Gmem*"), "--reason is missing"),
        (("--case", "*Gmem*", "--reason", " "), "--reason '': say why"),
        (("--case", "*", "--all", "--reason", "x"), "give one of them"),
        (("--reason", "x"), "give --case or --all"),
        (("--withdraw",), "give --case"),
        (("--withdraw", "--all", "--reason", "x"), "--reason: goes with"),
    ],
    ids=str,
)
def test_what_cannot_be_accepted_is_refused(
    program: Program, results: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = program("accept", results, *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert not (results / "accepted.json").exists()


def test_a_run_that_names_no_device_and_a_folder_without_runs_are_refused(program: Program, tmp_path: Path) -> None:
    given = ("--all", "--reason", "x")
    unnamed = shutil.copytree(DOCUMENTS, tmp_path / "results" / DOCUMENTS.name)
    run = json.loads((unnamed / "run.json").read_text())
    for device in run["devices"]:
        del device["uuid"]
    (unnamed / "run.json").write_text(json.dumps(run))
    assert "does not say on which device" in program("accept", unnamed, *given).stderr
    assert "holds no complete run" in program("accept", tmp_path, *given).stderr
    assert "there is no such" in program("accept", tmp_path / "nowhere", *given).stderr
    assert "there is no such folder" in program("accept", tmp_path / "nowhere").stderr
    (unnamed / "run.json").unlink()
    assert "is not a run of smembench" in program("accept", unnamed, *given).stderr


def test_a_run_without_cases_is_neither_accepted_nor_pinned(program: Program, results: Path) -> None:
    _, newer = sorted(results.iterdir())
    heading, *_ = (newer / "cases.csv").read_text().splitlines(keepends=True)
    (newer / "cases.csv").write_text(heading)
    for command in (("accept", newer, "--all", "--reason", "x"), ("baseline", "set", newer)):
        ran = program(*command)
        assert (ran.returncode, "it has no rows" in ran.stderr) == (2, True)
    assert sorted(results.iterdir())[-1] == newer


@pytest.mark.parametrize("text", ["", '{"accepted": 3}', '{"accepted": [{"run": "../x"}]}'])
def test_a_damaged_file_is_named(program: Program, results: Path, text: str) -> None:
    (results / "accepted.json").write_text(text)
    for command in (("accept", results), ("history", results)):
        ran = program(*command)
        assert (ran.returncode, "accepted.json: damaged" in ran.stderr) == (2, True)
