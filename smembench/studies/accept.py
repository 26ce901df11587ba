"""Changes that are meant: from a run on, the cases named are compared with their new level.

``accepted.json`` beside the runs holds them, as ``baseline.json`` holds the pinned runs. A change belongs to its run's
devices: what is accepted on one GPU stays in the news on another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from smembench.model.errors import UsageError
from smembench.model.measurement import moment
from smembench.store.csv_files import CASES
from smembench.store.files import locked, refused, there, write_whole
from smembench.store.load import load, named, newest
from smembench.store.run import Run
from smembench.store.run_folder import RUN, resume_command
from smembench.store.run_json import ahead, read_json
from smembench.studies.compare.comparability import fault

ACCEPTED = "accepted.json"
_Text = Annotated[str, Field(min_length=1)]


class Acceptance(BaseModel):
    """A change that is intended.

    Attributes:
        case: a case's id, or a glob of ids.
        run: the id of the run whose level is accepted.
        started_at_utc: when it began.
        devices: what identifies its devices (see ``Description.identity``).
        reason: the user's.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    case: _Text
    run: Annotated[str, Field(pattern=r"^[^/\\]+$")]
    started_at_utc: AwareDatetime
    devices: frozenset[str]
    reason: _Text
    accepted_at_utc: AwareDatetime

    def holds_for(self, case_id: str, device: str) -> bool:
        """True if it accepts a change of this case on this device."""
        return device in self.devices and matches(case_id, self.case)


class _File(BaseModel):
    schema_version: int = 1
    accepted: list[Acceptance]


def matches(case_id: str, pattern: str) -> bool:
    """True if a case has this id, or matches it as a glob."""
    return case_id == pattern or fnmatchcase(case_id, pattern)


def patterns_of(cases: Sequence[str], every: Collection[str]) -> list[str]:
    """Patterns that match exactly these cases of a run: ids, and globs for kernels with no other cases.

    ``every``: the ids of all cases of the run. What was not judged may have changed, too, and is not accepted unseen.
    """
    patterns = []
    for case_id in cases:
        kernel = "/".join([*case_id.split("/")[:2], "*"])
        of_kernel = {one for one in every if matches(one, kernel)}
        patterns.append(kernel if len(of_kernel) > 1 and of_kernel <= set(cases) else case_id)
    return list(dict.fromkeys(patterns))


def accept(path: Path, pattern: str, reason: str) -> tuple[str, list[str]]:
    """Accept the level of a run's cases; returns the ids of the run and of the cases.

    The run is that of a folder, or the newest in a folder of runs. The pattern is a case's id, or a glob of ids. Cases
    that failed in the run, or were throttled, are left out.

    Raises:
        UsageError: for a folder without a complete run, a run that claims to begin after now, a pattern that no case
            matches, an empty reason, and files that cannot be read or written.
    """
    if not (text := " ".join(reason.split())):
        raise UsageError("--reason '': say why the change is intended")
    folder = named(_newest(path)).resolve()
    run = load(folder)
    if not there(folder / RUN):
        raise UsageError(f"{folder} is not a run of smembench; name a folder with {CASES} and {RUN} in it")
    run_id = run.description.run_id or folder.name
    if not run.description.complete:
        raise UsageError(f"{folder}: the run is not complete; continue it with: {resume_command(folder)}")
    if why := ahead(run.description.started_at_utc):
        raise UsageError(f"{folder}: {why}: no other run would begin after it")
    if not run.rows:
        raise UsageError(f"{folder}: holds no cases; name a run that measured something")
    matching = [row for row in run.rows if matches(row.case_id, pattern)]
    if not matching:
        first = min(row.case_id for row in run.rows)
        raise UsageError(f"--case {pattern!r}: none of the {len(run.rows)} cases of {run_id}, such as {first}")
    cases = [row.case_id for row in matching if not fault(row)]
    if not cases:
        raise UsageError(f"--case {pattern!r}: {matching[0].case_id} has no level in {run_id}: {fault(matching[0])}")
    identities = (run.description.identity(device.name) for device in run.description.devices)
    devices = frozenset(filter(None, identities))
    if not devices:
        raise UsageError(
            f"{run_id}: does not say on which devices it was measured, so no later run is compared with it"
        )
    now = datetime.now(UTC).replace(microsecond=0)
    # A case that this run could not time keeps its level.
    every = [row.case_id for row in run.rows]
    patterns = [pattern] if len(cases) == len(matching) else patterns_of(cases, every)
    stored = [
        Acceptance(case=one, run=run_id, started_at_utc=began(run), devices=devices, reason=text, accepted_at_utc=now)
        for one in patterns
    ]
    # An earlier run's stays, because the verdicts on the runs between them go by it.
    same = {(one, devices, run_id) for one in patterns}
    with locked(folder.parent):
        known = [one for one in accepted(folder.parent) if (one.case, one.devices, one.run) not in same]
        _write(folder.parent, [*known, *stored])
    return run_id, cases


def accepted(root: Path) -> list[Acceptance]:
    """Acceptances in a folder of runs, oldest first.

    Raises:
        UsageError: for a file that cannot be read.
    """
    stored = read_json(root / ACCEPTED, _File, "mend it, or remove it and accept again")
    return stored.accepted if stored else []


def accepted_beside(runs: Iterable[Path]) -> list[Acceptance]:
    """Acceptances in the folders of these runs.

    Raises:
        UsageError: for a file that cannot be read.
    """
    return [one for root in sorted({run.resolve().parent for run in runs}) for one in accepted(root)]


def withdraw(root: Path, pattern: str | None = None) -> list[Acceptance]:
    """Withdraw what was accepted with this pattern, or everything; returns it.

    Raises:
        UsageError: for a file that cannot be read or written.
    """
    with locked(root):
        known = accepted(root)
        gone = [one for one in known if pattern in (None, one.case)]
        if gone:
            _write(root, [one for one in known if one not in gone])
    return gone


def newest_for(acceptances: Iterable[Acceptance], case_id: str, device: str) -> Acceptance | None:
    """The acceptance of the newest run that holds for a case on a device, if any."""
    holding = (one for one in acceptances if one.holds_for(case_id, device))
    return max(holding, key=lambda one: one.started_at_utc, default=None)


def for_run(acceptances: Collection[Acceptance], run: Run) -> dict[str, Acceptance]:
    """By id, the cases of a run for which its level, or that of an earlier run, was accepted."""
    if not acceptances:
        return {}
    known = [one for one in acceptances if one.started_at_utc <= began(run)]
    by_case = {row.case_id: newest_for(known, row.case_id, run.description.identity(row.device)) for row in run.rows}
    return {case_id: one for case_id, one in by_case.items() if one is not None}


def began(run: Run) -> datetime:
    """Start of a run, in UTC if it names no zone.

    Raises:
        UsageError: if run.json does not say.
    """
    try:
        return moment(run.description.started_at_utc)
    except ValueError:
        raise UsageError(f"{run.path}: does not say when it began") from None


def _newest(path: Path) -> Path:
    """A run's folder, or the newest complete run directly in a folder."""
    if not path.is_dir() or (path / CASES).exists():
        return path
    if (folder := newest(path, complete=True)) is None:
        raise UsageError(f"{path}: holds no complete run; name a run's folder")
    return folder


def _write(root: Path, acceptances: Sequence[Acceptance]) -> None:
    with refused(f"{root / ACCEPTED}: cannot be written"):
        write_whole(root / ACCEPTED, _File(accepted=list(acceptances)).model_dump_json(indent=2) + "\n")
