"""Read a fleet from a folder of runs, whoever started them: ``fleet run``, or ``smembench run`` on every host."""

from __future__ import annotations

from pathlib import Path

from smembench.model.errors import UsageError
from smembench.store.run import Run
from smembench.store.run_folder import RUN
from smembench.studies.fleet.members import Fleet, Member
from smembench.studies.load import load


def read_fleet(folder: Path) -> Fleet:
    """The devices of all runs below a folder; of several runs on a device the newest counts.

    Raises:
        UsageError: for a folder without runs, and for damaged files.
    """
    runs = [load(path.parent, predicted=False) for path in sorted(folder.glob(f"**/{RUN}"))]
    members = {
        member.identity: member
        for run in sorted(runs, key=lambda run: run.description.started_at_utc)
        for member in _members(run)
    }
    if not members:
        raise UsageError(f"{folder}: holds no run; give the folder of a fleet")
    return Fleet(folder, sorted(members.values(), key=lambda member: (member.host, _index(member.device))))


def _members(run: Run) -> list[Member]:
    host = run.description.host.name if run.description.host else ""
    reason = "" if run.complete else "the run was cut off"
    return [
        Member(host, info.name, info, run.only([row for row in run.rows if row.device == info.name]), reason)
        for info in run.description.devices
    ]


def _index(device: str) -> tuple[str, int]:
    kind, _, index = device.partition(":")
    return kind, int(index or 0)
