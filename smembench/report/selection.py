"""Which of many runs a report shows in full, and which runs those are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from smembench.model.measurement import moment
from smembench.store.run import Run
from smembench.studies.compare.comparability import fault
from smembench.studies.history.read import Device, Night, Timed, devices_of


def by_time(runs: Sequence[Run]) -> list[Run]:
    """Runs, oldest first."""
    return sorted(runs, key=lambda stored: (began(stored), stored.id))


def title(runs: Sequence[Run]) -> str:
    """The title of a report of these runs."""
    ids = [stored.id for stored in by_time(runs)]
    return f"smembench report: {' and '.join(ids) if len(ids) < 3 else f'{len(ids)} runs, {ids[0]} to {ids[-1]}'}"


def began(stored: Run) -> datetime:
    """When a run began; the earliest possible time if neither run.json nor a row records it."""
    text = stored.description.started_at_utc or min((row.started_at_utc for row in stored.rows), default="")
    try:
        return moment(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def whole(ordered: Sequence[Run]) -> list[tuple[Run, Run | None]]:
    """Of runs, oldest first, those that no newer one replaces, each with the newest run that it replaces, if any.

    A newer run on the same devices replaces one of the same configuration, and one whose cases it all has.
    """
    before: dict[int, Run | None] = {}
    for place, stored in enumerate(ordered):
        newer = [other for other in range(place + 1, len(ordered)) if _replaces(ordered[other], stored)]
        if newer:
            before[newer[-1]] = stored
        else:
            before.setdefault(place, None)
    return [(ordered[place], previous) for place, previous in sorted(before.items())]


def _replaces(newer: Run, older: Run) -> bool:
    models = ([device.model for device in run.description.devices] for run in (newer, older))
    if next(models) != next(models):
        return False
    name = newer.description.config.name
    if name and name == older.description.config.name:
        return True
    return {row.case_id for row in older.rows} <= {row.case_id for row in newer.rows}


def night(stored: Run) -> Night:
    """A run as an entry of a history."""
    devices = devices_of(stored.description)
    times, unusable = {}, {}
    for row in stored.rows:
        key = (row.case_id, devices.get(row.device) or Device(row.device, ""))
        if why := fault(row):
            unusable[key] = why
        elif row.elapsed_ms is not None:
            clock = "" if row.sm_clock_mhz is None else str(row.sm_clock_mhz)
            times[key] = Timed(row.elapsed_ms, clock, row.throttle_reasons or "")
    return Night(stored.path or Path(), stored.id, began(stored), stored.description, times, unusable)
