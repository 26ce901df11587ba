"""Read a fleet from a folder of runs, whoever started them: ``fleet run``, or ``smembench run`` on every host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.store.fleet_json import FLEET, read_fleet_file
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import RUN
from smembench.store.run_json import ahead
from smembench.studies.fleet.members import Fleet, Member


def read_fleet(folder: Path) -> Fleet:
    """The devices of all runs below a folder; what counts of a device is the newest fleet or run.

    A fleet.json also lists devices on which nothing was measured. A device has the cases of all its runs in a fleet.

    Raises:
        UsageError: for a folder without runs, and for damaged files.
    """
    fleets = dict.fromkeys(path.parent for path in sorted(folder.glob(f"**/{FLEET}")))
    alone = [path.parent for path in sorted(folder.glob(f"**/{RUN}")) if fleets.keys().isdisjoint(path.parents)]
    runs = [load(path, shown=False) for path in alone]
    dated = [(run.description.started_at_utc, member) for run in runs for member in _members(run)]
    dated += [pair for fleet in fleets for pair in _planned(fleet)]
    members = {member.identity: member for _, member in sorted(dated, key=lambda pair: began_by_now(pair[0]))}
    if not members:
        raise UsageError(f"{folder}: holds no run; give the folder of a fleet")
    return Fleet(folder, sorted(members.values(), key=_place))


def began_by_now(started: str) -> str:
    """Start of a fleet or a run as a sort key; before all others if it claims to begin after now."""
    return "" if ahead(started) else started


def _members(run: Run) -> Iterator[Member]:
    host = run.description.host.name if run.description.host else ""
    reason = "" if run.complete else "the run was cut off"
    for info in run.description.devices:
        yield Member(host, info.name, info, _of_device(run, info.name), reason)


def _planned(folder: Path) -> Iterator[tuple[str, Member]]:
    """The members of a fleet.json, each with the time at which the fleet began."""
    content = read_fleet_file(folder)
    for entry in content.devices:
        run, damage = _runs(folder / entry.folder, entry.device)
        info = run.description.device(entry.device) if run else None
        if info is None and entry.device:
            info = DeviceInfo(name=entry.device, model=entry.model or entry.device, uuid=entry.uuid)
        cut = "the run was cut off" if run else "it was not begun"
        reason = damage or ("" if entry.state == "complete" else entry.reason or cut)
        yield content.started_at_utc, Member(entry.host, entry.device, info, run, reason, entry.number)


def _runs(folder: Path, device: str) -> tuple[Run | None, str]:
    """The runs of a device as one, and why they cannot be read: that hides no other device of the fleet."""
    try:
        runs = [load(path.parent, shown=False) for path in sorted(folder.glob(f"*/{RUN}"))]
    except UsageError as error:
        return None, str(error)
    return _together([_of_device(run, device) for run in runs]), ""


def _of_device(run: Run, device: str) -> Run:
    return run.only([row for row in run.rows if row.device == device])


def _together(runs: list[Run]) -> Run | None:
    """The runs of a device as one: the first, with the cases of all."""
    if not runs:
        return None
    rows = [row for run in runs for row in run.rows]
    samples = {case: values for run in runs for case, values in run.samples.items()}
    return replace(runs[0], rows=rows, samples=samples, complete=all(run.complete for run in runs))


def _place(member: Member) -> tuple[str, str, int, int]:
    kind, _, index = member.device.partition(":")
    return member.host, kind, int(index or 0), member.number or 0
