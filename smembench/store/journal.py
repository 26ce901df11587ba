"""The journal of a run: a JSON line with its description, then one per trial, on disk before the next trial begins."""

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
from smembench.store.files import read_whole
from smembench.store.run_json import Description, fault

_NEEDED = ("run_id", "seed", "config", "devices")
"""Fields that resuming or reading a run needs."""


@dataclass(frozen=True, slots=True)
class _FirstLine:
    run: Description


@dataclass(frozen=True, slots=True)
class _TrialLine:
    visit: Trial  # the stored name of a trial


_FIRST_LINE, _TRIAL_LINE = TypeAdapter(_FirstLine), TypeAdapter(_TrialLine)
Line = TypeVar("Line")


@dataclass(frozen=True, slots=True)
class Contents:
    """Content of a journal: the run, its trials, and the length of the intact part."""

    description: Description
    trials: list[Trial]
    whole_bytes: int


def read(path: Path) -> Contents:
    """Read a journal, ignoring an incomplete last line.

    Raises:
        UsageError: if the file cannot be read or is damaged other than at its end.
    """
    try:
        data = read_whole(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    # A line counts if its newline is on disk.
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.splitlines()
    if not lines:
        raise UsageError(f"{path}: the journal has no beginning; there is nothing to resume")
    description = _parsed(_FIRST_LINE, lines[0], f"{path}, line 1").run
    trials = [_parsed(_TRIAL_LINE, line, f"{path}, line {number}").visit for number, line in enumerate(lines[1:], 2)]
    if missing := [name for name in _NEEDED if name not in description.model_fields_set]:
        raise UsageError(f"{path}, line 1: damaged: it has no {missing[0]}")
    return Contents(description, trials, len(whole))


def _parsed(kind: TypeAdapter[Line], line: bytes, where: str) -> Line:
    try:
        return kind.validate_json(line)
    except ValidationError as error:
        raise UsageError(f"{where}: damaged: {fault(error)}") from None


class Journal:
    """An append-only file; ``append`` returns once the line is on disk."""

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
        """Open an existing journal to append to it, and cut off an incomplete last line."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(descriptor, contents.whole_bytes)
        return cls(path, descriptor)

    def append(self, trial: Trial) -> None:
        """Write one trial.

        Raises:
            OSError: if the disk is full or the file was removed.
        """
        # Older versions do not know parameters, and most cases have none.
        unknown = None if trial.case.parameters else {"visit": {"case": {"parameters"}}}
        self._write(_TRIAL_LINE.dump_python(_TrialLine(trial), mode="json", exclude_none=True, exclude=unknown))

    def _write(self, entry: Mapping[str, JsonValue]) -> None:
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(2, "the file was removed", str(self.path))

    def close(self) -> None:
        """Close and keep the file."""
        os.close(self._file)

    def discard(self) -> None:
        """Close and remove the file: the run's other files have all of it."""
        self.close()
        self.path.unlink(missing_ok=True)
