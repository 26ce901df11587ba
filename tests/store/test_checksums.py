"""A run's files as it wrote them: an edit is named by whatever command reads it, and what was used."""

from __future__ import annotations

import csv
import json
import shutil
import warnings
from pathlib import Path

import pytest

from conftest import NIGHTLY, Program
from fleets import Special, made_gpus
from smembench.model.errors import Dropped, UsageError
from smembench.store.csv_files import CASES, SAMPLES, table_text
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import RUN, RunFolder, read_description
from smembench.store.schema import COLUMNS, SAMPLE_COLUMNS
from smembench.studies.history.read import read_nights

HEADER = ",".join(COLUMNS) + "\n"
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
    anew = f"times and what follows from them are computed anew from {SAMPLES}"
    used = {CASES: anew, SAMPLES: "the run is read without it"}
    assert warnings_of(runs[1]) == [f"{runs[1] / name}: was edited after the run; {used[name]}"]
    loaded = load_silently(runs[1])
    assert [row.elapsed_ms for row in loaded.rows] == [row.elapsed_ms for row in before]
    assert bool(loaded.samples) == (name == CASES)


def load_silently(folder: Path) -> Run:
    """A run, whatever reading it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Dropped)
        return load(folder)


def change(path: Path, which: str, **columns: str) -> None:
    """Change fields of a case in a table."""
    with path.open(newline="") as stream:
        reader = csv.DictReader(stream)
        rows = [row | (columns if row["case_id"] == which else {}) for row in reader]
    path.write_text(table_text(reader.fieldnames or (), (row.values() for row in rows)))


@pytest.mark.parametrize("column", ["elapsed_ms", "effective_gb_s", "percent_of_copy", "uncertainty"])
def test_figures_of_an_edited_table_follow_the_samples(tmp_path: Path, column: str) -> None:
    folder = Path(shutil.copytree(NIGHTLY, tmp_path / "run"))
    before = load(folder).rows
    row = next(one for one in before if one.ok and one.kernel == "transposeSmem")
    change(folder / CASES, row.case_id, **{column: "0.001"})
    for one, other in zip(load_silently(folder).rows, before, strict=True):
        for name in COLUMNS:
            value, was = getattr(one, name), getattr(other, name)
            assert value == (pytest.approx(was) if isinstance(was, float) else was), (one.case_id, name)


def test_an_edited_table_without_some_cases_says_how_many(runs: list[Path]) -> None:
    lines = (runs[1] / CASES).read_text().splitlines(keepends=True)
    (runs[1] / CASES).write_text("".join(lines[:-2]))
    (line,) = warnings_of(runs[1])
    assert line.endswith("; cases missing: 2")


def test_an_edited_table_may_invent_no_case(runs: list[Path]) -> None:
    case_id = load(runs[1]).rows[0].case_id
    change(runs[1] / CASES, case_id, case_id=f"{case_id}/again")
    row = load_silently(runs[1]).rows[0]
    assert (row.status, row.elapsed_ms) == ("failed", None)
    assert "has no samples of this case" in (row.reason or "")


def test_samples_that_were_removed_are_named(runs: list[Path]) -> None:
    (runs[0] / SAMPLES).unlink()
    assert warnings_of(runs[0]) == [f"{runs[0] / SAMPLES}: was removed after the run; the run is read without it"]


@pytest.mark.parametrize("text", ["", "schema_version\n", f"{','.join(SAMPLE_COLUMNS)}\n1,run"])
def test_a_run_is_read_without_samples_that_are_damaged(runs: list[Path], text: str) -> None:
    before = load(runs[0]).rows
    (runs[0] / SAMPLES).write_text(text)
    (line,) = warnings_of(runs[0])
    assert line.startswith(f"{runs[0] / SAMPLES}")
    assert line.endswith("; the run is read without it")
    assert load_silently(runs[0]).rows == before


@pytest.mark.parametrize("text", [None, "", "schema_version\n", HEADER, f"{HEADER}1,run"])
def test_a_table_that_is_damaged_or_removed_has_a_way_out(runs: list[Path], text: str | None) -> None:
    path = runs[0] / CASES
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(UsageError, match=r"cases.csv.*; restore it from a copy, or measure again$"):
        load(runs[0])


def test_history_has_the_times_of_the_samples_of_an_edited_table(runs: list[Path]) -> None:
    (before,), _ = read_nights(runs[1])
    row = load(runs[1]).rows[0]
    change(runs[1] / CASES, row.case_id, elapsed_ms="0.001")
    with pytest.warns(Dropped, match="computed anew"):
        (night,), _ = read_nights(runs[1])
    assert night.times == before.times


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
