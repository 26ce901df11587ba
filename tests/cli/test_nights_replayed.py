"""Nights as a user lives through them: told every night, accepted, and the verdict of any stored night once more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from nights.simulator import N0, Nights, write

from smembench.store.run import Run
from smembench.studies.nightly.finish import AGAIN, Plan, finish
from smembench.views.nightly import summarise

Program = Callable[..., subprocess.CompletedProcess[str]]

SLOWER = "transpose/transposeSmem/cuda:0/numba/float32/4096x4096/b32x32/pad0/warm"
BEFORE, AFTER = 8, 4


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight nights, then four in which one case is 5 % slower, and one in which every round is noisier."""
    root, nights = tmp_path_factory.mktemp("replayed") / "results", Nights(N0, 4)
    for _ in range(BEFORE):
        write(nights.next(), root)
    for _ in range(AFTER):
        write(nights.next({SLOWER: 0.05}), root)
    write(nights.next({SLOWER: 0.05}, noisier=0.02), root)
    return root


def night(results: Path, number: int) -> Path:
    """The folder of a night, the first being 1."""
    return sorted(path for path in results.iterdir() if path.is_dir())[number - 1]


def test_a_step_is_told_every_night_until_it_is_accepted(program: Program, results: Path) -> None:
    assert program("compare", "last:7", night(results, BEFORE)).returncode == 0
    for number in range(BEFORE + 1, BEFORE + 4):
        compared = program("compare", "last:7", night(results, number))
        assert compared.returncode == 3, compared.stdout
        (line,) = (line for line in compared.stdout.splitlines() if line.startswith("slower"))
        assert "transposeSmem 32x32 4096x4096" in line
        assert f"compared with 7 runs, {night(results, 2).name} to {night(results, BEFORE).name}" in compared.stdout
        assert "smembench accept" in compared.stderr
    assert program("history", results, "--fail-on-change").returncode == 3

    third = night(results, BEFORE + 3)
    assert program("accept", third, "--case", SLOWER, "--reason", "new driver").returncode == 0
    for number in (BEFORE + 3, BEFORE + 4):
        quiet = program("compare", "last:7", night(results, number), "--json")
        assert quiet.returncode == 0
        assert not any(result["counts"]["slower"] for result in json.loads(quiet.stdout)["compared"])
    assert program("compare", "last:7", night(results, BEFORE + 2)).returncode == 3  # it was, that night
    history = program("history", results, "--fail-on-change")
    assert (history.returncode, "accepted: new driver" in history.stdout) == (0, True)

    assert program("accept", results, "--withdraw", "--all").returncode == 0
    assert program("compare", "last:7", night(results, BEFORE + 4)).returncode == 3
    assert program("history", results, "--fail-on-change").returncode == 3


def test_a_noisy_night_is_no_regression(program: Program, results: Path) -> None:
    noisy = night(results, BEFORE + AFTER + 1)
    assert program("accept", night(results, BEFORE + 1), "--all", "--reason", "x").returncode == 0
    result = program("compare", "last:7", noisy)
    assert program("accept", results, "--withdraw", "--all").returncode == 0
    assert result.returncode == 0, result.stdout


def test_the_verdict_needs_no_baseline_and_says_so(program: Program, results: Path) -> None:
    first = night(results, 1)
    result = program("compare", "last:7", first)
    assert (result.returncode, "no run before it" in result.stderr) == (0, True)
    unpinned = program("compare", "baseline", first)
    assert (unpinned.returncode, "no run is pinned for nightly" in unpinned.stderr) == (2, True)
    assert program("baseline", "set", first).returncode == 0
    both = json.loads(program("compare", "last:7", night(results, BEFORE + 2), "--json").stdout)
    assert [one["with"] for one in both["compared"]] == ["last:7", "baseline"]
    assert both["exit_code"] == 3
    assert program("baseline", "clear", results).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("last:0", "RUN"), "last:0: give a number of runs"),
        (("last:7", "nowhere"), "there is no such file or folder"),
        (("last:7", "RUN", "--across", "device"), "--across: belongs to two runs' folders"),
        (("last:7",), "last:7: give NEW, too"),
    ],
    ids=str,
)
def test_what_cannot_be_judged_is_refused(
    program: Program, results: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = program("compare", *(night(results, 2) if word == "RUN" else word for word in arguments))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr


def test_one_run_is_held_against_the_run_before_it_and_the_newest_has_a_name(program: Program, results: Path) -> None:
    newest = night(results, BEFORE + AFTER + 1)
    alone, named = program("compare", results / "last", "--json"), program("compare", "last", newest, "--json")
    assert (alone.returncode, alone.stdout) == (named.returncode, named.stdout)
    assert json.loads(program("show", results / "last", "--json").stdout)["run"]["run_id"] == newest.name


def with_causes(run: Run, driver: str, registers: int, clock: dict[str, int]) -> Run:
    """A night with this driver, these registers, and SM clocks by the kernel's name."""
    gpu, *others = run.description.devices
    devices = [gpu.model_copy(update={"driver": driver}), *others]
    rows = [
        replace(row, registers=registers, sm_clock_mhz=clock.get(row.kernel, 1980)) if row.device == gpu.name else row
        for row in run.rows
    ]
    return replace(run, rows=rows, description=run.description.model_copy(update={"devices": devices}))


def test_a_night_with_sixty_slower_cases_is_told_on_forty_lines_by_cause(program: Program, tmp_path: Path) -> None:
    nights = Nights(N0, 7)
    for _ in range(4):
        before = write(with_causes(nights.next(), "580", 32, {}), tmp_path / "results")
    assert program("baseline", "set", before).returncode == 0
    slow = [case for case in nights.cases if "/cpu/" not in case][:60]
    night = with_causes(nights.next(dict.fromkeys(slow, 0.3)), "590", 32, {"transposeSmem": 1755, "copyGmem": 1740})
    folder = write(night, tmp_path / "results")
    result = finish(Plan("last:3"), tmp_path / "results", folder)
    page = summarise(result, folder).markdown().splitlines()
    assert len(page) <= 40
    assert page[0].startswith("# nightly: 139 cases measured, 60 slower than the last 3 runs")
    slower = [place for place, line in enumerate(page) if line.startswith("- slower, ")]
    steps = [place for place, line in enumerate(page) if line.startswith("- next: ")]
    assert len(slower) <= 8
    assert max(slower) < min(steps)
    assert "driver was 580, is 590" in page[slower[0]]
    of_clock = [page[place] for place in slower if "SM clock in MHz was 1980, is 17" in page[place]]
    assert len(of_clock) == 1  # though there are two clocks


def test_whatever_a_night_has_to_tell_is_told_on_forty_lines(tmp_path: Path) -> None:
    """Two comparisons and one of cases measured again, each with causes of their own for every case."""
    nights = Nights(N0, 6)
    for _ in range(4):
        write(with_causes(nights.next(), "580", 32, {}), tmp_path)
    slow = dict.fromkeys(nights.cases[:60], 0.3) | dict.fromkeys(nights.cases[60:70], -0.3)
    night = with_causes(nights.next(slow), "590", 32, {})
    rows = [replace(row, registers=place) for place, row in enumerate(night.rows)]
    rows[80:100] = [
        replace(row, status="failed", reason=f"reason {row.case_id}", elapsed_ms=None) for row in rows[80:100]
    ]
    rows[100:110] = [replace(row, throttle_reasons=f"sw_{row.case_id}") for row in rows[100:110]]
    folder = write(replace(night, rows=rows), tmp_path)
    result = finish(Plan("last:3"), tmp_path, folder)
    result.review.compared.extend([("baseline", result.compared[0][1]), (AGAIN, result.compared[0][1])])
    result.review.notes.extend(f"note {number}" for number in range(20))
    result.review.problems.extend(f"problem {number}" for number in range(20))
    page = summarise(result, folder).markdown().splitlines()
    assert len(page) <= 40
    assert "60 slower than the last 3 runs" in page[0]
    assert sum(line.startswith("- next: ") for line in page) >= 5
