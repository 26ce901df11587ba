"""The journal of a run: a JSON line with its description, then one per trial, on disk before the next trial begins.

A line begins with ``crc32``, the checksum of its other bytes that continues the checksum of the line before, so a line
that was changed, lost or repeated is noticed. Lines of older versions have none. Whoever writes a journal holds its
lock.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from warnings import warn
from zlib import crc32

from pydantic import JsonValue, TypeAdapter, ValidationError

from smembench.model.case import BY_ROWS, UNIFORM, Case
from smembench.model.errors import Dropped, UsageError
from smembench.model.measurement import Trial
from smembench.model.text import json_text
from smembench.store.files import read_whole, refused, sync_folder
from smembench.store.run_json import OF_THE_END, RUN, Description, fault

_NEEDED = ("run_id", "seed", "config", "devices")
"""Fields that resuming or reading a run needs."""
_CHECKSUM = b'{"crc32": "'
_OLDER = (b'{"run":', b'{"visit":')
"""Starts of lines of older versions."""
_UNKNOWN_ONCE = {"parameters": (), "inputs": UNIFORM, "b_layout": BY_ROWS, "launch": None}
"""Fields of a case that older versions do not know, with the value of most cases."""
_LENGTH = len(_CHECKSUM) + 8 + len(b'", ')


@dataclass(frozen=True, slots=True)
class _FirstLine:
    run: Description


@dataclass(frozen=True, slots=True)
class _LaterLine:
    visit: Trial | None = None  # the stored name of a trial
    resumed: list[str] | None = None


@cache
def _later_line() -> TypeAdapter[_LaterLine]:
    """Built when a journal is written or read, because reading complete runs needs none."""
    return TypeAdapter(_LaterLine)


Line = TypeVar("Line")


@dataclass(frozen=True, slots=True)
class Contents:
    """Content of a journal: the run, its trials, one per case and round, and where its last intact line ends.

    ``description`` has what differed whenever the run was resumed by force. ``checksum`` is that of the last line.
    """

    description: Description
    trials: list[Trial]
    whole_bytes: int
    checksum: int | None


def read(path: Path) -> Contents:
    """Read a journal without its damaged lines. A ``Dropped`` warning names the first of them, and their number.

    A line after a damaged one counts if its checksum continues that of an intact line, or either checksum of the
    damaged one: what is stored there, or that of its content. A damaged line that may not have been a trial is in
    ``resumed_with_differences``.

    Raises:
        UsageError: if the file cannot be read, or its first line is damaged.
    """
    with refused(f"{path}: cannot be read"):
        *lines, torn = read_whole(path).split(b"\n")  # a line counts if its newline is on disk
    if not lines:
        raise UsageError(f"{path}: the journal has no beginning; there is nothing to resume")
    run, checksum, whole = _begun(path, lines)
    if missing := [name for name in _NEEDED if name not in run.model_fields_set]:
        raise UsageError(f"{path}, line 1: damaged: it has no {missing[0]}")
    trials: dict[tuple[Case, int], Trial] = {}
    forced = list(run.resumed_with_differences)
    again, dropped, before = 0, list[str](), [checksum]
    for number, line in enumerate(lines[whole:], whole + 1):
        try:
            later, checksum = _parsed(_later_line(), line, *before)
        except ValueError as error:
            dropped.append(f"line {number}: damaged: {error}")
            before = [checksum, *_checksums(line, checksum)]
            a_trial = b'"visit"' in line and b'"resumed"' not in line
            forced += [] if a_trial else [[f"unknown: line {number} of {path.name} was damaged"]]
            continue
        whole, before = number, [checksum]
        forced += [] if later.resumed is None else [later.resumed]
        if later.visit is not None:
            again += (later.visit.case, later.visit.round) in trials
            trials.setdefault((later.visit.case, later.visit.round), later.visit)
    if torn:
        dropped.append(f"line {len(lines) + 1}: cut off")
    if dropped:
        warn(f"{path}, {dropped[0]}; lines dropped: {len(dropped)}, trials used: {len(trials)}", Dropped, stacklevel=2)
    if again:
        warn(f"{path}: trials that are in it twice, and count once: {again}", Dropped, stacklevel=2)
    run = run.model_copy(update={"resumed_with_differences": forced}) if forced else run
    return Contents(run, list(trials.values()), sum(len(line) + 1 for line in lines[:whole]), checksum)


def _begun(path: Path, lines: list[bytes]) -> tuple[Description, int | None, int]:
    """The run that a journal's first line describes, the line's checksum, and the number of lines before the trials.

    When the run began, run.json beside it had the same content, which is used if the line is damaged.

    Raises:
        UsageError: for a damaged line, if there is no such file or it is another run's.
    """
    try:
        first, checksum = _parsed(TypeAdapter(_FirstLine), lines[0], None)
    except ValueError as error:
        damaged = f"{path}, line 1: damaged: {error}"
    else:
        return first.run, checksum, 1
    try:
        described = Description.model_validate_json(read_whole(path.with_name(RUN)))
    except (OSError, ValidationError):
        raise UsageError(damaged) from None
    begun = {name: value for name, value in described.data.items() if name not in OF_THE_END}
    checksum = crc32(json_text({"run": begun}).encode())
    # A line can be damaged so that it is two.
    after = [number for number in (1, 2) if lines[number:] and lines[number].startswith(_next(lines[number], checksum))]
    if not after and not lines[0].startswith(_head(checksum)):
        raise UsageError(damaged)
    warn(f"{damaged}; {RUN} has the same and is used", Dropped, stacklevel=3)
    return Description.model_validate(begun), checksum, after[0] if after else 1


def _parsed(kind: TypeAdapter[Line], line: bytes, *before: int | None) -> tuple[Line, int | None]:
    """A line and its checksum, None in a line of an older version; ``before`` are those that it may continue.

    Raises:
        ValueError: for a damaged line, with what is wrong.
    """
    checksum = None
    if line.startswith(_CHECKSUM):
        content = b"{" + line[_LENGTH:]
        continued = [one or 0 for one in before if line.startswith(_next(line, one or 0))]
        if not continued:
            raise ValueError("its checksum differs")
        line, checksum = content, crc32(content, continued[0])
    elif before[0] is not None or not line.startswith(_OLDER):
        raise ValueError("it has no checksum")
    try:
        return kind.validate_json(line, strict=True), checksum
    except ValidationError as error:
        raise ValueError(fault(error)) from None


def _checksums(line: bytes, before: int | None) -> list[int]:
    """The checksums that the line after a damaged one may continue: that of its content, and the stored one."""
    stored = line[len(_CHECKSUM) : len(_CHECKSUM) + 8]
    of_content = crc32(b"{" + line[_LENGTH:], before or 0)
    return [of_content, int(stored, 16)] if re.fullmatch(rb"[0-9a-f]{8}", stored) else [of_content]


def _head(checksum: int) -> bytes:
    return b'%s%08x", ' % (_CHECKSUM, checksum)


def _next(line: bytes, before: int) -> bytes:
    """The start of a line with this content that follows a line with that checksum."""
    return _head(crc32(b"{" + line[_LENGTH:], before))


class Journal:
    """An append-only file, locked while it is open; ``append`` returns once the line is on disk."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._file = descriptor
        self._checksum = 0
        self._length = 0

    @classmethod
    def create(cls, path: Path, description: Description) -> Journal:
        """A new journal that begins with the run's description.

        Raises:
            OSError: if it cannot be written. It is removed then, and on Ctrl-C.
        """
        journal = cls(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666))
        try:
            _lock(journal._file, wait=True)
            journal._write({"run": description.data})
            sync_folder(path.parent)
        except BaseException:
            journal.discard()
            raise
        return journal

    @classmethod
    def reopen(cls, path: Path) -> tuple[Journal, Contents]:
        """Open an existing journal to append to it after its last intact line.

        Raises:
            UsageError: if another process writes it, or it cannot be read.
        """
        with refused(f"{path}: cannot be written"):
            journal = cls(path, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))
        try:
            if not _lock(journal._file):
                raise UsageError(f"{path}: another process is writing this run; wait until it ends")
            if not os.fstat(journal._file).st_nlink:
                raise UsageError(f"{path}: another process has just completed this run")
            contents = read(path)
        except BaseException:
            journal.close()
            raise
        journal._checksum, journal._length = contents.checksum or 0, contents.whole_bytes
        return journal, contents

    def append(self, trial: Trial) -> None:
        """Write one trial.

        Raises:
            OSError: if the disk is full or the file was removed.
        """
        # Older versions do not know these fields, which most cases do not need.
        usual = {name for name, value in _UNKNOWN_ONCE.items() if getattr(trial.case, name) == value}
        unknown: dict[str, Any] = {"visit": {"case": usual, **({} if trial.moments else {"moments": True})}}
        self._write(_later_line().dump_python(_LaterLine(trial), mode="json", exclude_none=True, exclude=unknown))

    def forced(self, differences: Sequence[str]) -> None:
        """Write that the run is resumed although this differs.

        Raises:
            OSError: as from ``append``.
        """
        self._write({"resumed": list(differences)})

    def _write(self, entry: Mapping[str, JsonValue]) -> None:
        content = json_text(entry).encode()
        checksum = crc32(content, self._checksum)
        line = memoryview(_head(checksum) + content[1:] + b"\n")
        os.ftruncate(self._file, self._length)  # a line that was cut off, and damaged ones at the end
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(2, "the file was removed", str(self.path))
        self._checksum, self._length = checksum, self._length + len(line)

    def close(self) -> None:
        """Close and keep the file; again, it does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def discard(self) -> None:
        """Remove the file, because the run's other files have all of it, and close it."""
        self.path.unlink(missing_ok=True)
        self.close()


@contextmanager
def unwritten(path: Path) -> Iterator[bool]:
    """True if no process writes this journal, or there is none; no process can begin to write in this block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        yield True
        return
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool = False) -> bool:
    """Take the lock of an open journal; False if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
