"""The journal of a run: what the run is, then a JSON line for every trial, on disk before the next begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.measurement import Conditions, Resources, Status, Trial
from smembench.store.run_json import fault

_NEEDED = ("run_id", "seed", "config", "devices")
"""What a run that goes on, or is read back, cannot do without."""


def encode(trial: Trial) -> dict[str, Any]:
    """A trial as plain data."""
    return {
        "case": trial.case.to_dict(),
        "round": trial.round,
        "status": trial.status.value,
        "started_at_utc": trial.started_at_utc,
        "reason": trial.reason,
        "verified": trial.verified,
        "max_error": trial.max_error,
        "samples": list(trial.samples),
        "discarded": trial.discarded,
        "discarded_ms": list(trial.discarded_ms),
        "seconds": trial.seconds,
        "resources": asdict(trial.resources),
        "conditions": {key: value for key, value in asdict(trial.conditions).items() if value is not None},
    }


def decode(data: Mapping[str, Any]) -> Trial:
    """The trial that ``encode`` wrote."""
    return Trial(
        **{
            **data,
            "case": Case.from_dict(data["case"]),
            "status": Status(data["status"]),
            "samples": tuple(data["samples"]),
            "discarded_ms": tuple(data.get("discarded_ms", ())),  # older journals have their number alone
            "resources": Resources(**data.get("resources", {})),
            "conditions": Conditions(**data["conditions"]),
        }
    )


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal holds: the run, the trials, and the length of the part that is whole."""

    run: dict[str, Any]
    trials: list[Trial]
    whole_bytes: int


def read(path: Path) -> Contents:
    """Read a journal, leaving out a torn last line.

    Raises:
        UsageError: for a file that cannot be read or is damaged anywhere but at its end.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    # A line counts once its newline is on disk.
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.splitlines()
    if not lines:
        raise UsageError(f"{path}: the journal has no beginning; there is nothing to resume")
    decoded: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            decoded.append(entry["run"] if number == 1 else decode(entry["visit"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{path}, line {number}: damaged ({type(error).__name__}: {error})") from None
    if wrong := fault(decoded[0], _NEEDED):
        raise UsageError(f"{path}, line 1: damaged: {wrong}")
    return Contents(decoded[0], decoded[1:], len(whole))


class Journal:
    """An append-only file; ``append`` returns when the line is on disk."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._file = descriptor

    @classmethod
    def create(cls, path: Path, run: Mapping[str, Any]) -> Journal:
        """A new journal that begins with the run's description."""
        journal = cls(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666))
        journal._write({"run": dict(run)})
        return journal

    @classmethod
    def reopen(cls, path: Path, contents: Contents) -> Journal:
        """An existing journal, its torn end cut off, ready for more."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(descriptor, contents.whole_bytes)
        return cls(path, descriptor)

    def append(self, trial: Trial) -> None:
        """Write one trial.

        Raises:
            OSError: when the disk is full or the file is gone.
        """
        self._write({"visit": encode(trial)})

    def _write(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(2, "the file was removed", str(self.path))

    def close(self) -> None:
        """Close and keep."""
        os.close(self._file)

    def discard(self) -> None:
        """Close and remove: everything it held is in the run's files."""
        self.close()
        self.path.unlink(missing_ok=True)
