"""A device against its own earlier runs, by the rules of nightly runs; and where those runs are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from smembench.model.errors import UsageError
from smembench.store.fleet_json import FLEET, read_fleet_file
from smembench.store.run import Run
from smembench.store.run_folder import RUN, read_description
from smembench.studies.compare import Rules as CaseRules
from smembench.studies.compare.comparability import alike
from smembench.studies.fleet.members import Fleet, Member, metric
from smembench.studies.fleet.read import read_fleet
from smembench.studies.fleet.verdict import Distance, Rules
from smembench.studies.nightly.last import compare_with_last

_LEVEL = 7
"""Runs that make a device's level."""
_READ = 15
"""Newest earlier fleets that are read."""


@dataclass(frozen=True, slots=True)
class History:
    """What a device's earlier runs tell.

    Attributes:
        distances: by metric, to the level of its earlier runs; ``p`` is of this question alone.
        left_out: why there are none though there are runs; "" otherwise.
    """

    distances: Mapping[str, Distance] = field(default_factory=dict)
    left_out: str = ""

    def __bool__(self) -> bool:
        return bool(self.distances)


def history(member: Member, before: Sequence[Member], rules: Rules) -> History:
    """Hold a device against what it was in earlier runs, oldest first."""
    new = _only(member, member.device)
    runs = [run for one in before if (run := _only(one, member.device))]
    if new is None or not runs:
        return History()
    same = [run for run in runs if alike(run, new)]
    if not same:
        return History(left_out="its earlier runs are of another driver or other clocks")
    # A device that throttles is slow, whatever a comparison of kernels would make of it.
    awake = new.only([replace(row, throttle_reasons=None) for row in new.rows])
    names = {row.case_id: metric(row) for row in new.rows}
    found = {}
    for case in compare_with_last(same, awake, _LEVEL, CaseRules(rules.threshold)).cases:
        if case.ratio and case.low and case.high and case.p is not None:
            # The q-value of what has come and gone before is 1, whatever its p-value.
            p = case.p if case.ratio > 1 and case.q != 1 else 1.0
            found[names[case.case.id]] = Distance(case.ratio - 1, case.low - 1, case.high - 1, p)
    return History(found, "" if found else "none of its cases is comparable with its earlier runs")


def _only(member: Member, name: str) -> Run | None:
    """A member's run with nothing of other devices, as if the device had always had that name."""
    if member.run is None:
        return None
    there = f"/{member.device}/", f"/{name}/"
    rows = [replace(row, device=name, case_id=row.case_id.replace(*there, 1)) for row in member.run.rows]
    samples = {
        row.case_id.replace(*there, 1): found
        for row in member.run.rows
        if (found := member.run.samples.get(row.case_id)) is not None
    }
    devices = [member.info.model_copy(update={"name": name})] if member.info else []
    description = member.run.description.model_copy(update={"devices": devices})
    return replace(member.run, rows=rows, samples=samples, description=description)


def earlier(fleet: Fleet) -> Mapping[str, Sequence[Member]]:
    """By identity what the fleet's devices were in complete earlier runs of the same config, oldest first.

    They are looked for in the fleet's folder and in those beside it. What cannot be read is left out.
    """
    newest = {member.identity: member.run for member in fleet.members if member.run}
    configs = {run.description.config.name for run in newest.values()}
    last = max((_began(run) for run in newest.values()), default="")
    path = fleet.path.resolve()
    folders = chain(
        _folders(path), (one for other in path.parent.iterdir() if other != path for one in _folders(other))
    )
    begun = sorted((began, folder) for began, config, folder in map(_described, folders) if config in configs and began)
    found: dict[str, list[Member]] = {}
    for _, folder in [one for one in begun if one[0] < last][-_READ:]:
        try:
            members = read_fleet(folder).members
        except UsageError:
            continue
        for member in members:
            now = newest.get(member.identity)
            if now and member.run and member.run.complete and _began(member.run) < _began(now):
                found.setdefault(member.identity, []).append(member)
    return found


def _began(run: Run) -> str:
    return run.description.started_at_utc


def _folders(folder: Path) -> Iterator[Path]:
    """A fleet's or a run's folder, or those directly in a folder."""
    for path in (folder, *sorted(folder.iterdir())) if folder.is_dir() else ():
        if (path / FLEET).is_file() or (path / RUN).is_file():
            yield path


def _described(folder: Path) -> tuple[str, str, Path]:
    """When a fleet or a run began, and the name of its config; empty if that cannot be read."""
    try:
        if (folder / FLEET).is_file():
            fleet = read_fleet_file(folder)
            return fleet.started_at_utc, fleet.config.name, folder
        run = read_description(folder)
        return run.started_at_utc, run.config.name, folder
    except UsageError:
        return "", "", folder
