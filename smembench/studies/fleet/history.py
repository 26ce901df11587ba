"""A device against its own earlier runs, by the rules of nightly runs; and where those runs are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from warnings import catch_warnings, simplefilter, warn

from smembench.model.errors import Dropped, UsageError
from smembench.store.fleet_json import FLEET, read_fleet_file
from smembench.store.run import Run
from smembench.store.run_folder import RUN, read_description
from smembench.studies.compare import Difference
from smembench.studies.compare import Rules as CaseRules
from smembench.studies.fleet.members import Fleet, Member, metric
from smembench.studies.fleet.read import began_by_now, read_fleet
from smembench.studies.fleet.verdict import Distance, Rules
from smembench.studies.nightly.last import compare_with_last

_LEVEL = 7
"""Runs that make a device's level."""
_READ = 15
"""Newest earlier runs of a device that are read."""
_DEPTHS = ("*/", "*/*/", "*/*/*/")
"""Depths of runs below the folder above the fleet's: beside it, in it, and in a folder per host or device."""


@dataclass(frozen=True, slots=True)
class History:
    """A device's distance to its earlier runs.

    Attributes:
        distances: by metric, to the level of its earlier runs; ``p`` is of this question alone.
        causes: by metric, what may be why it changed; only of those that changed.
        left_out: why there are none though there are runs; "" otherwise.
    """

    distances: Mapping[str, Distance] = field(default_factory=dict)
    causes: Mapping[str, Sequence[Difference]] = field(default_factory=dict)
    left_out: str = ""

    def __bool__(self) -> bool:
        return bool(self.distances)


def history(member: Member, before: Sequence[Member], rules: Rules) -> History:
    """Compare a device with its earlier runs, oldest first."""
    new = _only(member, member.device)
    runs = [run for one in before if (run := _only(one, member.device))]
    if new is None or not runs:
        return History()
    # A device that throttles is slow, whatever a comparison of kernels would make of it.
    awake = new.only([replace(row, throttle_reasons=None) for row in new.rows])
    names = {row.case_id: metric(row) for row in new.rows}
    distances, causes = {}, {}
    for case in compare_with_last(runs, awake, _LEVEL, CaseRules(rules.threshold)).cases:
        if case.ratio and case.low and case.high and case.p is not None:
            # The q-value of what has come and gone before is 1, whatever its p-value.
            p = case.p if case.ratio > 1 and case.q != 1 else 1.0
            distances[names[case.case.id]] = Distance(case.ratio - 1, case.low - 1, case.high - 1, p)
            causes[names[case.case.id]] = case.causes
    return History(distances, causes, "" if distances else "none of its cases is comparable with its earlier runs")


def _only(member: Member, name: str) -> Run | None:
    """A member's run with nothing of other devices, as if the device had always had that name."""
    if member.run is None:
        return None
    there = f"/{member.device}/", f"/{name}/"
    rows = [replace(row, device=name, case_id=row.case_id.replace(*there, 1)) for row in member.run.rows]
    samples = {
        row.case_id.replace(*there, 1): values
        for row in member.run.rows
        if (values := member.run.samples.get(row.case_id)) is not None
    }
    devices = [member.info.model_copy(update={"name": name})] if member.info else []
    description = member.run.description.model_copy(update={"devices": devices})
    return replace(member.run, rows=rows, samples=samples, description=description)


def earlier(fleet: Fleet) -> Mapping[str, Sequence[Member]]:
    """By identity what the fleet's devices were in complete earlier runs of the same config, oldest first.

    They are looked for in the fleet's folder and in those beside it. What cannot be read is left out, and files are
    warned of only if their runs count.
    """
    newest = {member.identity: member.run for member in fleet.members if member.run}
    by_identity: dict[str, list[Member]] = {identity: [] for identity in newest}
    path = fleet.path.resolve()
    for folder in _folders(path, newest):
        try:
            with catch_warnings(record=True) as dropped:
                simplefilter("always", Dropped)
                members = read_fleet(folder).members
        except UsageError:
            continue
        counted = [
            member
            for member in members
            if (now := newest.get(member.identity))
            and (member.run and member.run.complete and member.run.began < now.began)
        ]
        for member in counted:
            by_identity[member.identity].append(member)
        for one in dropped if counted and path not in folder.parents else ():  # those below were read with the fleet
            warn(f"{one.message} (an earlier run of {counted[0].label})", Dropped, stacklevel=2)
    return {identity: sorted(members, key=_started) for identity, members in by_identity.items() if members}


def _started(member: Member) -> datetime:
    return member.run.began if member.run else datetime.min.replace(tzinfo=UTC)


def _folders(path: Path, newest: Mapping[str, Run]) -> list[Path]:
    """The fleets and runs with the newest ``_READ`` runs of each device before its last, in no order."""
    fleets = {file.parent for depth in _DEPTHS for file in path.parent.glob(f"{depth}{FLEET}")}
    runs = [file.parent for depth in _DEPTHS for file in path.parent.glob(f"{depth}{RUN}")]
    alone = [folder for folder in runs if fleets.isdisjoint(folder.parents)]
    configs = {run.description.config.name for run in newest.values()}
    count, folders = Counter[str](), []
    for _, folder, config, devices in sorted(map(_described, [*fleets, *alone]), reverse=True):
        wanted = [one for one in devices if one in newest and count[one] <= _READ]
        if wanted and config in configs:
            folders.append(folder)
            count.update(wanted)
    return folders


def _described(folder: Path) -> tuple[str, Path, str, Sequence[str]]:
    """Start, folder and config of a fleet or a run, and its devices by identity; none if it cannot be read."""
    try:
        if (folder / FLEET).is_file():
            fleet = read_fleet_file(folder)
            planned = [Member(one.host, one.device, None, None, "", one.number) for one in fleet.devices]
            named = [one.uuid or member.identity for one, member in zip(fleet.devices, planned, strict=True)]
            return began_by_now(fleet.started_at_utc), folder, fleet.config.name, named
        run = read_description(folder)
        host = run.host.name if run.host else ""
        devices = [Member(host, info.name, info, None).identity for info in run.devices]
        return began_by_now(run.started_at_utc), folder, run.config.name, devices
    except UsageError:
        return "", folder, "", ()
