"""The process's standard streams, whatever state the caller left them in."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class _Forgiving(io.FileIO):
    """A file whose writes never fail: losing a line on stderr must not end a run."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


class _Stdout(io.FileIO):
    """A stdout whose writes never fail, so that all else is done: a night is compared even if nobody can read it.

    Why output is lost is remembered, unless the reader of a pipe has gone: it has what it wants.

    Args:
        fault: why every write is lost.
    """

    lost = ""
    gone = False

    def __init__(self, fault: str = "") -> None:
        super().__init__(1, "w", closefd=False)
        self._fault = fault

    def write(self, data: Any) -> int:
        if not _Stdout.gone and not self._fault:
            try:
                return super().write(data)
            except BrokenPipeError:
                _Stdout.gone = True
            except OSError as error:
                self._fault = f"cannot be written ({error.strerror})"
        if not _Stdout.gone:
            _Stdout.lost = self._fault
        return len(data)


def lost_output() -> str:
    """The reason that output on stdout is lost; "" if it is not."""
    return _Stdout.lost


def reader_gone() -> bool:
    """True if the program that reads stdout has ended, so that a list need not go on."""
    return _Stdout.gone


def open_streams() -> None:
    """Reopen closed streams, so that no file of a run gets their descriptors; escape what an encoding lacks."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    encoding = sys.stdout.encoding if sys.stdout else None
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout("" if sys.stdout else "is closed")),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=os.isatty(1),
    )
    encoding = sys.stderr.encoding if sys.stderr else None
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(2, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
