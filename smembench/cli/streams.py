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


class _Closed(io.FileIO):
    """A stdout that the caller had closed: writes do not fail, so that all else is done, but are remembered."""

    lost = False

    def write(self, data: Any) -> int:
        _Closed.lost = True
        return len(data)


def lost_output() -> bool:
    """Whether anything was written to a stdout that the caller had closed."""
    return _Closed.lost


def open_streams() -> None:
    """Reopen closed streams, so that no file of a run gets their descriptors; escape what an encoding lacks."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = sys.stdout or io.TextIOWrapper(io.BufferedWriter(_Closed(1, "w", closefd=False)))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    encoding = sys.stderr.encoding if sys.stderr else None
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(2, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
