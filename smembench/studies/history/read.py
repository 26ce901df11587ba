"""Many stored runs, read quickly: only the columns of each cases.csv that a series needs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from reprlib import repr as shortened
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from smembench.explain.prediction import predictor
from smembench.model.errors import UsageError
from smembench.model.measurement import moment
from smembench.model.progress import Step, unseen
from smembench.model.ranges import Milliseconds
from smembench.store.csv_files import CASES, edited, read_columns
from smembench.store.files import resolved, there
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import JOURNAL, read_description, resume_command
from smembench.store.run_json import Description, ahead
from smembench.store.schema import REQUIRED, flag
from smembench.studies.compare.comparability import OF_ROWS, distrust, fault

BISECTION = "bisect.json"
"""The file of a folder with runs of several commits (``studies.bisect``), which are in no history."""
_TIMES = TypeAdapter(list[Milliseconds])
_COLUMNS = (
    *("run_id", "case_id", "device", "started_at_utc", "elapsed_ms", "sm_clock_mhz"),
    *("status", "reason", "verified", "cpu_waiting", "throttle_reasons", *OF_ROWS),
)


class Device(NamedTuple):
    """The device of a series: its model, and its ``id`` (see ``Description.identity``), empty if the run has none."""

    model: str
    id: str


class Timed(NamedTuple):
    """A case in one run: its median in ms, and as text what was recorded beside it, empty if unknown.

    ``other`` are the columns ``comparability.OF_ROWS``.
    """

    elapsed_ms: float
    sm_clock_mhz: str
    throttle_reasons: str
    other: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Night:
    """A run: when it began, its run.json, the times that can be compared, and why others cannot.

    With a ``revision`` it represents all ``runs`` of one (``history.revisions``).
    """

    path: Path
    run_id: str
    started: datetime
    description: Description
    times: Mapping[tuple[str, Device], Timed]
    unusable: Mapping[tuple[str, Device], str]
    complete: bool = True
    revision: str = ""
    runs: Sequence[Night] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder that looks like a run and could not be used, and why."""

    path: Path
    reason: str


def read_nights(root: Path, since: datetime | None = None, step: Step = unseen) -> tuple[list[Night], list[Skipped]]:
    """Every run below a folder from ``since`` on, oldest first, and the runs that were left out.

    Columns are found by name, so files of other schema versions count if they have them. A run that was cut off counts
    with what its journal has. A run that is found twice counts once, one that claims to begin after now does not.
    ``step`` is called before each folder is read.

    Raises:
        UsageError: for a folder that does not exist.
    """
    if not there(root) or not root.is_dir():
        why = "is a file" if there(root) else "there is no such folder"
        raise UsageError(f"{root}: {why}; name the folder that holds the runs, such as results")
    nights: dict[tuple[str, int | None, frozenset[Device]], Night] = {}
    skipped = []
    folders = list(_run_folders(root))
    for number, path in enumerate(folders, 1):
        step(path.name, number, len(folders))
        try:
            night = _read(path, since)
            if night is not None and (why := ahead(night.started.isoformat())):
                raise UsageError(why)
        except (UsageError, ValueError, OSError) as error:
            skipped.append(Skipped(path, str(error).removeprefix(f"{path}{os.sep}")))
            continue
        if night is None or (since and night.started < since):
            continue
        key = (night.run_id, night.description.seed, frozenset(device for _, device in night.times))
        if key in nights:
            skipped.append(Skipped(path, f"the same run as {nights[key].path}"))
        else:
            nights[key] = night
    return sorted(nights.values(), key=lambda night: (night.started, night.run_id)), skipped


def devices_of(run: Description) -> dict[str, Device]:
    """The devices of a run by the names its rows use."""
    return {device.name: Device(device.model, run.identity(device.name)) for device in run.devices}


def night_of(stored: Run) -> Night:
    """A run that was read whole as an entry of a history."""
    devices = devices_of(stored.description)
    times, unusable = {}, {}
    for row in stored.rows:
        key = (row.case_id, devices.get(row.device) or Device(row.device, ""))
        if why := fault(row):
            unusable[key] = why
        elif row.elapsed_ms is not None:
            clock, throttled, *other = (
                "" if (value := getattr(row, name)) is None else str(value)
                for name in ("sm_clock_mhz", "throttle_reasons", *OF_ROWS)
            )
            times[key] = Timed(row.elapsed_ms, clock, throttled, tuple(other))
    path = stored.path or Path()
    return Night(path, stored.id, stored.began, stored.description, times, unusable, stored.complete)


def read_runs(paths: Collection[Path], step: Step = unseen) -> tuple[list[Run], list[str]]:
    """Every run at these paths once, of a folder of runs all below it; and a line for each below that is left out.

    That is one that cannot be read or claims to begin after now; a run that is given by its own path counts. Of several
    paths, as ``*`` gives them, what is no run is left out, too.

    Args:
        paths: runs' folders, folders of runs, and files.
        step: called before each run is read.

    Raises:
        UsageError: for a path that was given and cannot be read.
    """
    places: dict[Path, tuple[Path, bool]] = {}
    for path in paths:
        inside = list(_run_folders(path)) if there(path) and path.is_dir() else []
        below = bool(inside) and path not in inside
        beside = len(paths) > 1 and not inside and there(path)
        places |= {resolved(one): (one, below or beside) for one in (inside if below else [path])}
    runs: list[Run] = []
    skipped: list[str] = []
    for number, (path, several) in enumerate(places.values(), 1):
        step(path.name, number, len(places))
        try:
            run = load(path, predictor)
        except UsageError as error:
            if not several:
                raise
            skipped.append(f"skipped {error}")
            continue
        same = next((other for other in runs if (other.id, other.rows) == (run.id, run.rows)), None)
        if several and (why := ahead(run.description.started_at_utc)):
            skipped.append(f"skipped {path}: {why}")
        elif same and run.rows:
            skipped.append(f"skipped {path}: the same run as {same.path}")
        else:
            runs.append(run)
    return runs, skipped


def _run_folders(root: Path) -> Iterator[Path]:
    for folder, below, files in os.walk(root):
        below[:] = [] if BISECTION in files else sorted(below)  # those are runs of other commits
        if CASES in files or JOURNAL in files:
            yield Path(folder)


def _read(path: Path, since: datetime | None) -> Night | None:
    """Read one run; None for one whose run.json says that it began before ``since``.

    Raises:
        UsageError: for one that is damaged or has no cases.
        ValueError: for a field that is not what it should be.
        OSError: for a file that cannot be read.
    """
    run = read_description(path)
    if (path / JOURNAL).exists() and not (run.complete and (path / CASES).exists()):
        stored = load(path, shown=False)
        if not stored.rows:
            raise UsageError(f"nothing is measured yet; continue with: {resume_command(path)}")
        return night_of(stored)
    devices = devices_of(run)
    usable: dict[tuple[str, Device], tuple[str, tuple[str, str, tuple[str, ...]]]] = {}
    unusable: dict[tuple[str, Device], str] = {}
    run_id, begun = run.run_id, run.started_at_utc
    if since is not None and begun and _moment(begun) < since:
        return None
    if edited(path / CASES, run.checksums.get(CASES, "")):
        return night_of(load(path, shown=False))
    for _, record in read_columns(path / CASES, _COLUMNS, REQUIRED, kind=CASES):
        row_id, case_id, name, tried_at, elapsed, clock, status, reason, verified, waiting, throttled, *other = record
        key = (case_id, devices.get(name) or Device(name, ""))
        waited = float(waiting) if waiting else None
        if why := distrust(status, reason, throttled or None, waited, verified=flag(verified)):
            unusable[key] = why
        else:
            usable[key] = (elapsed, (clock, throttled, tuple(other)))
        run_id, begun = run_id or row_id, begun or tried_at
    if not usable and not unusable:
        raise UsageError(f"{CASES} has no rows")
    started = _moment(begun)
    elapsed_ms = _elapsed([text for text, _ in usable.values()])
    times = {key: Timed(ms, *beside) for (key, (_, beside)), ms in zip(usable.items(), elapsed_ms, strict=True)}
    return Night(path, run_id or path.name, started, run, times, unusable, run.complete is not False)


def _elapsed(texts: Sequence[str]) -> list[float]:
    """The times of a file at once, which is quicker than one by one."""
    try:
        return _TIMES.validate_python(texts)
    except ValidationError as error:
        (place, *_) = error.errors(include_url=False)[0]["loc"]
        raise UsageError(f"{CASES}: an ok case has the elapsed_ms {shortened(texts[int(place)])}") from None


def _moment(text: str) -> datetime:
    try:
        return moment(text)
    except ValueError:
        raise UsageError(f"it does not say when it began ({text!r})") from None
