"""Processes that work for this one: waiting for them, and their end with their parent."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

_PART_S = 1.0
_LATE_S = 0.5
"""A part of a wait that takes this much longer than it should was one in which the program was stopped."""
_PR_SET_PDEATHSIG = 1


def awake(poll: Callable[[float], object], timeout: float) -> tuple[bool, float]:
    """True if ``poll``, which takes the seconds to wait, succeeded within ``timeout``; and the seconds stopped.

    Time in which this program was stopped, by a signal or with its container or machine, does not count.
    """
    stopped, left = 0.0, timeout
    while True:
        part = max(min(left, _PART_S), 0.0)
        begun = monotonic()
        ready = bool(poll(part))
        late = monotonic() - begun - part
        stopped += late if late > _LATE_S else 0.0
        left -= part
        if ready or left <= 0:
            return ready, stopped


def die_with_parent(parent: int | None = None) -> None:
    """Have the operating system kill this process when its parent ends, even one that has already, by its number.

    Linux only; a no-op elsewhere.
    """
    import ctypes  # slow, and needed only by child processes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)
