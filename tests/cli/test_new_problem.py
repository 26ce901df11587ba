"""A folder beside the others is all that a new problem takes: its command, keys, tables and files follow from it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import smembench
from conftest import QUICK, Program, records
from smembench.store.schema import COLUMNS
from warm import WarmPython

RUNSUMS = Path(__file__).with_name("runsums")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one folder more."""
    place = tmp_path_factory.mktemp("package")
    source = Path(smembench.__file__).parent
    shutil.copytree(source, place / "smembench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(RUNSUMS, place / "smembench/kernels/runsums", ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture(scope="module")
def ran(place: Path) -> Generator[Program]:
    """Run that copy."""
    env = {**os.environ, "PYTHONPATH": str(place), "COLUMNS": "120"}
    warm = WarmPython(env)

    def run(*arguments: object) -> CompletedProcess[str]:
        return warm.run(list(map(str, arguments)), place, env)

    yield run
    warm.close()


def test_it_has_a_command_with_its_axes_and_words(ran: Program) -> None:
    shown = ran("runsums", "--help").stdout
    assert "Time sums of runs of elements." in shown
    assert "Elements per sum. (default: 4,8)" in shown
    assert "Element types. (default: int32)" in shown
    assert "--pad" not in shown
    listed = ran("list").stdout
    assert "runsums: sums of runs, int32, int64\n  cpu   sums " in listed


def test_its_parameter_multiplies_and_is_in_the_id(ran: Program) -> None:
    planned = ran("runsums", "--n", "64,96", "--kernel", "sums", "--device", "cpu", "--dry-run")
    assert planned.stdout.splitlines() == [
        f"runsums/sums/cpu/numba/int32/1x{n}/items={items}/warm" for n in (64, 96) for items in (4, 8)
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("runsums", "--items", "0"), "--items '0': 0 is below the least allowed value 1"),
        (("runsums", "--n", "10", "--device", "cpu"), "runsums sums 1x10 int32 on cpu: items 4: do not divide 10"),
        (("transpose", "--items", "4"), "No such option: --items"),
        (("run", "wrong.toml"), "transpose has no size items; it has n, nx, ny"),
        (("run", "wrong.toml", "--set", "itmes=4"), "no such key; did you mean items?"),
    ],
)
def test_its_mistakes_are_one_line(ran: Program, place: Path, arguments: tuple[str, ...], words: str) -> None:
    (place / "wrong.toml").write_text('[[sweep]]\nproblem = "transpose"\nitems = 4\n')
    failed = ran(*arguments)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert words in failed.stderr.splitlines()[-1]


@pytest.mark.slow
def test_it_is_measured_stored_and_shown(ran: Program, place: Path) -> None:
    (place / "sums.toml").write_text('[[sweep]]\nproblem = "runsums"\nn = 96\nitems = "4:8:*2"\n')
    measured = ran("run", "sums.toml", "--set", "device=cpu", *QUICK, "--output", "runs")
    assert measured.returncode == 0, measured.stderr
    (folder,) = (place / "runs").iterdir()
    rows = records((folder / "cases.csv").read_text())
    assert tuple(rows[0]) == COLUMNS
    assert {row["case_id"].split("/")[-2] for row in rows} == {"items=4", "items=8"}
    assert {(row["status"], row["verified"], row["n"]) for row in rows} == {("ok", "true", "96")}
    assert json.loads((folder / "run.json").read_text())["config"]["sweep"][0]["items"] == [4, 8]
    shown = " ".join(ran("show", folder).stdout.split())
    assert "sums of runs 96 int32, items 4 · warm cache" in shown
    assert "sums of runs 96 int32, items 8 · warm cache" in shown
    compared = ran("compare", folder, folder, "--all")
    assert compared.returncode == 5, compared.stderr  # a run compared with itself
    assert "unrolledSums 96 items 8" in compared.stdout
