"""Load a stored run: from its folder, from a cases.csv, or from the journal of a run that was killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from statistics import median
from typing import TypeVar
from warnings import warn

from smembench.model.case import Case
from smembench.model.errors import Dropped, UsageError
from smembench.model.text import number_of
from smembench.stats.summary import uncertainty
from smembench.store import journal
from smembench.store.assemble import Predict, assemble, ci_widths
from smembench.store.csv_files import (
    CASES,
    SAMPLES,
    SUSTAINED,
    Samples,
    edited,
    read_columns,
    read_moments,
    read_rows,
    read_samples,
)
from smembench.store.files import there
from smembench.store.fleet_json import FLEET
from smembench.store.from_samples import from_samples
from smembench.store.nvbench import read_nvbench
from smembench.store.run import Run
from smembench.store.run_folder import JOURNAL, RUN, read_description
from smembench.store.run_json import StoredConfig, ahead
from smembench.store.schema import Row

T = TypeVar("T")
_WAY_OUT = "restore it from a copy, or measure again"
LAST = "last"
"""The name of the newest run."""

Predictor = Callable[[Sequence[Case]], Predict]
"""Prepares the predictions of many cases at once."""


def load(path: Path, predictor: Predictor | None = None, *, shown: bool = True) -> Run:
    """Read a run's folder, a cases.csv with what lies beside it, NVBench's JSON, or the run that ``last`` names.

    A journal has every trial, so where there is one it is read. What it has of damages is a ``Dropped`` warning.

    Args:
        predictor: makes the predictions of a journal's cases, for which kernels are imported; without it they and the
            shared memory are left out.
        shown: also what only tables show of files of older versions: ``uncertainty``, and whether medians are those of
            the samples, by which runs are compared.

    Raises:
        UsageError: for a path that is neither, and for damaged files, with the line.
    """
    path = named(path)
    if not there(path):
        raise UsageError(f"{path}: there is no such file or folder; give a run's folder or a cases.csv")
    if not path.is_dir() and path.name != CASES:
        json = path.suffix.lower() == ".json"
        # Files beside a CSV written by --csv belong to another run.
        return read_nvbench(path) if json else Run(read_rows(path), path=path)
    folder = path if path.is_dir() else path.parent
    if there(folder / JOURNAL):
        return _from_journal(folder, predictor)
    return _from_tables(path, folder, shown=shown)


def _from_tables(path: Path, folder: Path, *, shown: bool) -> Run:
    """A run from its CSV files, for ``load``."""
    if not there(folder / CASES):
        fleet = "; smembench fleet show compares a fleet with earlier ones" if there(folder / FLEET) else ""
        if there(folder / RUN):
            raise UsageError(f"{folder}: its {CASES} was removed; {_WAY_OUT}")
        raise UsageError(f"{folder}: holds no {CASES}; give a run's folder{fleet}")
    description = read_description(folder)
    checksums = description.checksums
    samples = _beside(folder / SAMPLES, read_samples, checksums)
    moments = _beside(folder / SUSTAINED, read_moments, checksums)
    try:
        rows = read_rows(folder / CASES)
    except UsageError as error:
        raise UsageError(f"{error}; {_WAY_OUT}" if there(folder / RUN) else str(error)) from None
    if edited(folder / CASES, checksums.get(CASES, "")):
        if not rows:
            raise UsageError(f"{folder / CASES}: damaged: it has no rows; {_WAY_OUT}")
        used = "its figures are used as they are"
        if samples and SAMPLES in checksums:
            rows = from_samples(rows, description, samples, moments)
            used = f"times and what follows from them are computed anew from {SAMPLES}"
            if missing := len(samples.keys() - {row.case_id for row in rows}):
                used += f"; cases missing: {missing}"
        warn(f"{folder / CASES}: was edited after the run; {used}", Dropped, stacklevel=3)
    if shown:
        if not checksums:
            _check_medians(folder / CASES, rows, samples)
        rows = [_with_uncertainty(row, samples) for row in rows]
    return Run(rows, description, samples, path, description.complete is not False, moments)


def _beside(path: Path, read: Callable[[Path], dict[str, T]], checksums: Mapping[str, str]) -> dict[str, T]:
    """The content of a file beside cases.csv; nothing, with a warning, of one that is damaged, edited or removed."""
    checksum = checksums.get(path.name, "")
    try:
        if not (is_there := there(path)) and not checksum:
            return {}
        content = read(path) if is_there else {}
        if is_there and not edited(path, checksum):
            return content
        why = f"{path}: was {'edited' if is_there else 'removed'} after the run"
    except UsageError as error:
        why = str(error)
    warn(f"{why}; the run is read without it", Dropped, stacklevel=3)
    return {}


def _check_medians(path: Path, rows: Sequence[Row], samples: Mapping[str, Samples]) -> None:
    """Warn of medians that are not those of their samples: one of the files was edited."""
    others = []
    for row in rows:
        values = [value for times in samples.get(row.case_id, {}).values() for value in times]
        if row.elapsed_ms is not None and values and not isclose(row.elapsed_ms, median(values)):
            others.append(f"{row.case_id} {row.elapsed_ms:g} ms, its samples {median(values):g}")
    if others:
        what = f"{len(others)} of {number_of(len(rows), 'median')} differ from those of {SAMPLES}: {others[0]}"
        warn(f"{path}: {what}; one of the files was edited, and figures are used as they are", Dropped, stacklevel=3)


def _with_uncertainty(row: Row, samples: Mapping[str, Samples]) -> Row:
    """The row with ``uncertainty``, which files from before the column leave to their samples."""
    rounds = samples.get(row.case_id) if row.ok and row.uncertainty is None else None
    return replace(row, uncertainty=uncertainty(rounds.values())) if rounds else row


def named(path: Path) -> Path:
    """The newest run of a folder for ``DIR/last``, of results for ``last``; any other path as it is.

    Raises:
        UsageError: for a folder without runs.
    """
    if path.name != LAST or there(path):
        return path
    folder = path.parent if len(path.parts) > 1 else Path("results")
    if (newest_run := newest(folder)) is None:
        raise UsageError(f"{path}: {folder} holds no run; name a run's folder")
    return newest_run


def newest(folder: Path, *, complete: bool = False) -> Path | None:
    """The run directly in a folder that began last, or the ``complete`` one; None if there is none.

    A run that cannot be read or claims to begin after now is none: a ``Dropped`` warning names it.
    """
    runs: list[tuple[str, str, Path]] = []
    for path in sorted(file.parent for file in folder.glob(f"*/{RUN}")):
        try:
            described = read_description(path)
        except UsageError as error:
            warn(f"left out {error}", Dropped, stacklevel=2)
            continue
        if why := ahead(described.started_at_utc):
            warn(f"left out {path}: {why}", Dropped, stacklevel=2)
        elif not complete or (described.complete and there(path / CASES)):
            runs.append((described.started_at_utc, path.name, path))
    return max(runs)[-1] if runs else None


def root_of(path: Path) -> Path:
    """The folder of runs that a path means: itself, or the one that holds the run.

    Raises:
        UsageError: for a path that is no folder.
    """
    path = named(path)
    if not (there(path) and path.is_dir()):
        why = "is a file" if there(path) else "there is no such folder"
        raise UsageError(f"{path}: {why}; name a run's folder, or the one that holds the runs")
    return path.resolve().parent if (path / CASES).exists() else path


def _from_journal(folder: Path, predictor: Predictor | None) -> Run:
    """A run from its journal: every case in it, in the plan's order where cases.csv has it, else in one like it.

    Raises:
        UsageError: for a journal that cannot be read, and cases that this version of smembench does not know.
    """
    path = folder / JOURNAL
    contents = journal.read(path)
    infos = {device.name: device for device in contents.description.devices}
    precision = contents.description.config.data.get("precision")
    targets = ci_widths(precision if isinstance(precision, (int, float)) else None)
    try:
        places = _places(folder / CASES)
        begun = dict.fromkeys(trial.case for trial in contents.trials)
        like_plan = _like_plan(contents.description.config)
        cases = sorted(begun, key=lambda case: (places.get(case.id, len(places)), *like_plan(case)))
        predict = predictor(cases) if predictor else None
        measurements = assemble(cases, contents.trials, infos, targets, predict)
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: holds a trial that cannot be read here ({type(error).__name__}: {error})") from None
    # A run that was killed at its very end is complete and has its journal still.
    try:
        complete = read_description(folder).complete is True
    except UsageError:
        complete = False
    return Run.of(contents.description, measurements, folder, complete=complete)


def _like_plan(config: StoredConfig) -> Callable[[Case], tuple[object, ...]]:
    """Sort key: device, problem, type, size, kernel as the config names them, and block; a round shuffles all cases."""
    named = [name for sweep in config.sweep if isinstance(names := sweep.get("kernel"), list) for name in names]

    def key(case: Case) -> tuple[object, ...]:
        place = named.index(case.kernel) if case.kernel in named else len(named)
        block = (case.block.x * case.block.y, case.block.x) if case.block else ()
        return case.device, case.problem, case.dtype, case.m, case.n, case.k or 0, place, block

    return key


def _places(path: Path) -> dict[str, int]:
    """The place of each case in the cases.csv of an interrupted run, which follows the plan; none of a killed one."""
    try:
        ids = [case_id for _, (case_id, _) in read_columns(path, ("case_id", "run_id"), ("case_id",), kind=CASES)]
    except UsageError:
        return {}
    return {case_id: place for place, case_id in enumerate(ids)}
