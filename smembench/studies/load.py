"""Stored runs, whole: rows, samples by round and description, from a folder, a cases.csv or a killed run's journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smembench.model.errors import UsageError
from smembench.model.measurement import Measurement, Status
from smembench.store.csv_files import Samples, read_rows, read_samples
from smembench.store.run_folder import CASES, JOURNAL, SAMPLES, read_run, rows_of
from smembench.store.schema import Row


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run as it was stored.

    ``samples`` are ms a launch by case id and round; empty where the run kept none, as beside a bare cases.csv.
    ``run`` is its run.json, empty where there is none. ``complete`` is False for a run that was cut off.
    """

    path: Path
    rows: Sequence[Row]
    run: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Samples] = field(default_factory=dict)
    complete: bool = True

    @property
    def id(self) -> str:
        """The run's id, which begins with its UTC time; the file's name where no row has one."""
        return next((row.run_id for row in self.rows if row.run_id), str(self.run.get("run_id", self.path.name)))

    def values(self, case_id: str) -> list[float]:
        """Samples of a case over all its rounds, in order."""
        return [value for values in self.samples.get(case_id, {}).values() for value in values]


def failed_rows(rows: Sequence[Row]) -> list[Row]:
    """The cases that should make the process exit with 1: neither ok nor skipped on purpose."""
    return [row for row in rows if row.status not in (Status.OK, Status.SKIPPED)]


def load(path: Path) -> StoredRun:
    """Read a run's folder, or a cases.csv with what lies beside it.

    Raises:
        UsageError: for a path that is neither, and for damaged files, with the line.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder; give a run's folder or a cases.csv")
    if path.is_dir() and not (path / CASES).exists():
        return _cut_off(path)
    folder = path if path.is_dir() else path.parent
    rows = read_rows(path / CASES if path.is_dir() else path)
    # Files beside a CSV that --csv wrote somewhere are another run's.
    own = path.is_dir() or path.name == CASES
    run = read_run(folder) if own else {}
    samples = read_samples(folder / SAMPLES) if own and (folder / SAMPLES).exists() else {}
    return StoredRun(path, rows, run, samples, complete=bool(run.get("complete", True)))


def _cut_off(folder: Path) -> StoredRun:
    """A run without its cases.csv, from its journal."""
    if not (folder / JOURNAL).exists():
        raise UsageError(f"{folder}: holds no {CASES}; give a run's folder")
    from smembench.studies.recover import recover  # imports Numba: only a run that was cut off needs it

    measurements, run = recover(folder / JOURNAL)
    return of_measurements(folder, run, measurements, complete=False)


def of_measurements(
    path: Path, run: Mapping[str, Any], measurements: Sequence[Measurement], *, complete: bool
) -> StoredRun:
    """A run from its measurements, as it is read back once it is stored."""
    by_round: dict[str, dict[int, list[float]]] = {}
    for measurement in measurements:
        for sample in measurement.samples:
            by_round.setdefault(measurement.case.id, {}).setdefault(sample.round, []).append(sample.elapsed_ms)
    return StoredRun(path, rows_of(run["run_id"], measurements), run, by_round, complete=complete)
