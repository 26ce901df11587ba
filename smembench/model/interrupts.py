"""Ctrl-C, handled where nothing is lost by it: not during an import, nor in a block that holds it back.

SIGTERM, by which systemd, Slurm, timeout and docker stop end a process, is Ctrl-C too once ``install`` was called.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

_AGAIN_S = 0.02
_IMPORT_S = 5.0
"""Longest time that an import can defer it: one that never ends is a mistake in a file."""

EXIT_CODES = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes of an interrupted process."""
_signals: list[int] = [signal.SIGINT]
"""Signals treated as an interrupt. SIGTERM is left to a Python program that imports smembench."""
_last: int = signal.SIGINT


class Deferred:
    """The last signal that arrived in a block that holds Ctrl-C back, and the handlers that it replaces."""

    def __init__(self, before: Mapping[int, Any]) -> None:
        self.before = before
        self.caught = 0

    def take(self) -> bool:
        """True if a signal arrived; if so, the end of the block no longer raises it."""
        caught, self.caught = self.caught, 0
        return caught != 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler: remember the signal."""
        global _last
        self.caught = _last = number


_holding: list[Deferred] = []


@contextmanager
def deferred() -> Iterator[Deferred]:
    """Put Ctrl-C off until the end of the block, except in its ``interruptible`` parts."""
    before = {number: handler for number in _signals if callable(handler := signal.getsignal(number))}
    hold = Deferred(before)
    if not before or not _in_main_thread():  # ignored, or not this thread's
        yield hold
        return
    _holding.append(hold)
    try:
        _handle(dict.fromkeys(before, hold.note))
        yield hold
    finally:
        _holding.remove(hold)
        _handle(before)
        if hold.caught:
            before[hold.caught](hold.caught, None)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C through in this block, even one that arrived before, though a block around it holds it back."""
    if not _holding or not _in_main_thread():
        yield
        return
    before = _holding[0].before
    now = {number: signal.getsignal(number) for number in before}
    try:
        _handle(before)
        if caught := [hold.caught for hold in _holding if hold.caught]:
            for hold in _holding:
                hold.take()
            before[caught[-1]](caught[-1], None)
        yield
    finally:
        _handle(now)


def install(replaced: Callable[..., Any] = signal.default_int_handler) -> None:
    """Have SIGTERM do what Ctrl-C does, and both wait for the end of an import: a partially imported module may be
    unusable. A process that ignores one of them goes on ignoring it.

    Args:
        replaced: the handler that Ctrl-C has in a process that does not ignore it.
    """
    if signal.getsignal(signal.SIGINT) is replaced:
        signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
        _signals.append(signal.SIGTERM)
    sys.unraisablehook = _unraisable


def ignore() -> None:
    """Ignore Ctrl-C and SIGTERM from now on."""
    _handle(dict.fromkeys((signal.SIGINT, signal.SIGTERM), signal.SIG_IGN))


def exit_code() -> int:
    """The exit code of a process that the last signal ended: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + _last


def _handle(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _in_main_thread() -> bool:
    import threading  # not at the beginning of the process, which is to take Ctrl-C soon

    return threading.current_thread() is threading.main_thread()


_put_off = 0.0


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _put_off, _last
    _last = number
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
    os.kill(os.getpid(), _last)


def _unraisable(raised: Any) -> None:
    """In a destructor or a callback it would be printed and forgotten."""
    if raised.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_again, ())
    else:
        sys.__unraisablehook__(raised)
