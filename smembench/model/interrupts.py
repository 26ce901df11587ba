"""Ctrl-C, taken where nothing is lost by it: not in an import, nor in a block that holds it back."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_AGAIN_S = 0.02
_IMPORT_S = 5.0
"""How long an import can put it off: one that never ends is a mistake in a file."""


class Held:
    """What a block that holds Ctrl-C back has had of it so far, and who takes it otherwise."""

    def __init__(self, before: Any) -> None:
        self.before = before
        self.caught = False

    def take(self) -> bool:
        """Whether it came; it is not raised any more then."""
        caught, self.caught = self.caught, False
        return caught

    def note(self, number: int, frame: FrameType | None) -> None:
        """Take the signal."""
        self.caught = True


_holding: list[Held] = []


@contextmanager
def held() -> Iterator[Held]:
    """Put Ctrl-C off until the end of the block, except in its ``interruptible`` parts."""
    before = signal.getsignal(signal.SIGINT)
    hold = Held(before)
    if not callable(before) or not _in_main_thread():  # ignored, or not this thread's
        yield hold
        return
    _holding.append(hold)
    signal.signal(signal.SIGINT, hold.note)
    try:
        yield hold
    finally:
        _holding.remove(hold)
        signal.signal(signal.SIGINT, before)
        if hold.take():
            before(signal.SIGINT, None)


@contextmanager
def interruptible() -> Iterator[None]:
    """Take Ctrl-C here, and what came before, though a block around holds it back."""
    if not _holding or not _in_main_thread():
        yield
        return
    now = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, _holding[0].before)
        if [hold for hold in _holding if hold.take()]:
            _holding[0].before(signal.SIGINT, None)
        yield
    finally:
        signal.signal(signal.SIGINT, now)


def install() -> None:
    """Have Ctrl-C wait for the end of an import: a module imported by half may be unusable. A process that ignores
    it goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _unraisable


def finish() -> None:
    """Ignore Ctrl-C while the process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_main_thread() -> bool:
    import threading  # not at the beginning of the process, which is to take Ctrl-C soon

    return threading.current_thread() is threading.main_thread()


_put_off = 0.0


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _put_off
    if _put_off < _IMPORT_S and _importing(frame):
        _put_off += _AGAIN_S
        _thread.start_new_thread(_again, ())
        return
    _put_off = 0.0
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _again() -> None:
    time.sleep(_AGAIN_S)
    os.kill(os.getpid(), signal.SIGINT)


def _unraisable(found: Any) -> None:
    """In a destructor or a callback it would be printed and forgotten."""
    if found.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_again, ())
    else:
        sys.__unraisablehook__(found)
