"""Of many runs, which a report shows whole, and which each of those is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from smembench.studies.history.read import Device, Night, Timed, devices_of
from smembench.studies.load import StoredRun


def by_time(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Runs, oldest first."""
    return sorted(runs, key=lambda stored: (began(stored), stored.id))


def began(stored: StoredRun) -> datetime:
    """When a run began; the least moment where neither run.json nor a row tells."""
    text = str(stored.run.get("started_at_utc") or min((row.started_at_utc for row in stored.rows), default=""))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def whole(ordered: Sequence[StoredRun]) -> list[tuple[StoredRun, StoredRun | None]]:
    """The runs that no newer one replaces, each with the newest that it replaces, if any.

    A newer run on the same devices replaces one of the same configuration, and one whose cases it all has.

    Args:
        ordered: oldest first.
    """
    before: dict[int, StoredRun | None] = {}
    for place, stored in enumerate(ordered):
        newer = [other for other in range(place + 1, len(ordered)) if _replaces(ordered[other], stored)]
        if newer:
            before[newer[-1]] = stored
        else:
            before.setdefault(place, None)
    return [(ordered[place], previous) for place, previous in sorted(before.items())]


def _replaces(newer: StoredRun, older: StoredRun) -> bool:
    if [_model(device) for device in newer.run.get("devices", [])] != [
        _model(device) for device in older.run.get("devices", [])
    ]:
        return False
    configs = [stored.run.get("config", {}).get("name") for stored in (newer, older)]
    same = configs[0] is not None and configs[0] == configs[1]
    return same or {row.case_id for row in older.rows} <= {row.case_id for row in newer.rows}


def _model(device: dict[str, object]) -> str:
    return str(device.get("model", device.get("name")))


def night(stored: StoredRun) -> Night:
    """A run as histories take it."""
    devices = devices_of(stored.run)
    times, failed = {}, {}
    for row in stored.rows:
        key = (row.case_id, devices.get(row.device) or Device(row.device, ""))
        if row.ok and row.elapsed_ms is not None:
            clock = "" if row.sm_clock_mhz is None else str(row.sm_clock_mhz)
            times[key] = Timed(row.elapsed_ms, clock, row.throttle_reasons or "")
        else:
            failed[key] = row.status
    return Night(stored.path, stored.id, began(stored), stored.run, times, failed)
