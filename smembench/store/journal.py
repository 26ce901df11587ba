"""The journal of a run: its description, then a JSON line for every trial, on disk before the next begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from smembench.model.errors import UsageError
from smembench.model.measurement import Trial
from smembench.store.run_json import Description, fault

_NEEDED = ("run_id", "seed", "config", "devices")
"""What a run that goes on, or is read back, cannot do without."""


@dataclass(frozen=True, slots=True)
class _First:
    run: Description


@dataclass(frozen=True, slots=True)
class _Other:
    visit: Trial


_FIRST, _OTHER = TypeAdapter(_First), TypeAdapter(_Other)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal holds: the run, the trials, and the length of the part that is whole."""

    description: Description
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
    description = _parsed(_FIRST, lines[0], f"{path}, line 1").run
    trials = [_parsed(_OTHER, line, f"{path}, line {number}").visit for number, line in enumerate(lines[1:], 2)]
    if missing := [name for name in _NEEDED if name not in description.model_fields_set]:
        raise UsageError(f"{path}, line 1: damaged: it has no {missing[0]}")
    return Contents(description, trials, len(whole))


def _parsed(kind: TypeAdapter[Entry], line: bytes, where: str) -> Entry:
    try:
        return kind.validate_json(line)
    except ValidationError as error:
        raise UsageError(f"{where}: damaged: {fault(error)}") from None


class Journal:
    """An append-only file; ``append`` returns when the line is on disk."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._file = descriptor

    @classmethod
    def create(cls, path: Path, description: Description) -> Journal:
        """A new journal that begins with the run's description."""
        journal = cls(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666))
        journal._write({"run": description.data})
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
        # Older versions know no parameters of a case, which most have none of.
        unknown = None if trial.case.parameters else {"visit": {"case": {"parameters"}}}
        self._write(_OTHER.dump_python(_Other(trial), mode="json", exclude_none=True, exclude=unknown))

    def _write(self, entry: Mapping[str, JsonValue]) -> None:
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
