"""A run's files as it wrote them: an edit is named by whatever command reads it, and what was used."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

from conftest import NIGHTLY, Program
from fleets import Special, made_gpus
from smembench.model.errors import Dropped
from smembench.store.csv_files import CASES, SAMPLES
from smembench.store.load import load
from smembench.store.run_folder import RUN, RunFolder, read_description

COMMANDS = (
    *("show {run}", "show {run}/cases.csv --json", "compare {other} {run}", "compare last:7 {run}", "history {root}"),
    *("report {root} --output {root}/page.html --force", "fleet show {root}", "baseline set {run}"),
    *("explain transposeSmem --run {run}", "ladder transpose --diff transposeSmem,transposeSmemPad --run {run}"),
    "accept {run} --case * --reason known",
)


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two complete runs of the same kind."""
    return [gpu.write(tmp_path / "all" / "fleet") for gpu in made_gpus(2)]


def edit(path: Path) -> None:
    """Change the last digit of a file."""
    text = path.read_text()
    place = max(text.rfind(digit) for digit in "123456789")
    path.write_text(f"{text[:place]}{int(text[place]) - 1}{text[place + 1 :]}")


def warnings_of(folder: Path) -> list[str]:
    """What reading a run warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(folder)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("name", [CASES, SAMPLES])
def test_an_edited_file_is_named_with_what_was_used(runs: list[Path], name: str) -> None:
    assert [warnings_of(run) for run in runs] == [[], []]
    before = load(runs[1]).rows
    edit(runs[1] / name)
    assert warnings_of(runs[1]) == [f"{runs[1] / name}: was edited after the run; its figures are used as they are"]
    assert (load_silently(runs[1]) != before) == (name == CASES)


def load_silently(folder: Path) -> object:
    """The rows of a run, whatever reading it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Dropped)
        return load(folder).rows


def test_samples_that_were_removed_are_named(runs: list[Path]) -> None:
    (runs[0] / SAMPLES).unlink()
    assert warnings_of(runs[0]) == [f"{runs[0] / SAMPLES}: was removed after the run, which is read without samples"]


def test_a_run_that_is_resumed_has_checksums_of_what_it_wrote_last(tmp_path: Path) -> None:
    (cut,) = made_gpus(1, {0: Special(cut_off=True)})
    folder = cut.write(tmp_path)
    first = read_description(folder).checksums
    (whole,) = made_gpus(1)
    resumed = RunFolder.resume(folder)
    for trial in whole.trials[len(resumed.trials) :]:
        resumed.append(trial)
    resumed.finish(whole.measurements, complete=True)
    assert read_description(folder).checksums != first
    assert warnings_of(folder) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_an_edited_file_once(program: Program, runs: list[Path], command: str) -> None:
    if command.startswith("report"):
        pytest.importorskip("jinja2", reason="needs the extra report")
        pytest.importorskip("vl_convert", reason="needs the extra report")
    edit(runs[1] / CASES)
    ran = program(*command.format(root=runs[0].parents[1], other=runs[0], run=runs[1]).split())
    assert ran.stderr.count("cases.csv: was edited after the run") == 1, ran.stderr


def test_a_median_of_an_older_run_that_its_samples_contradict_is_named(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(NIGHTLY, tmp_path / "run"))
    described = json.loads((folder / RUN).read_text())
    del described["checksums"]
    (folder / RUN).write_text(json.dumps(described))
    assert warnings_of(folder) == []
    case, median = next((row.case_id, row.elapsed_ms) for row in load(folder).rows if row.elapsed_ms is not None)
    text = (folder / CASES).read_text()
    (folder / CASES).write_text(text.replace(f",{median!r},", f",{2 * median!r},", 1))
    (line,) = warnings_of(folder)
    assert f"1 of 139 medians differ from those of {SAMPLES}: {case} {2 * median:g} ms, its samples" in line
