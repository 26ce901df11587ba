"""The task of a Dask worker: start the process that measures a device, watch it, and say how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from select import select
from time import monotonic
from typing import IO

from smembench.model.child import child_command
from smembench.model.text import duration, ended, visible
from smembench.studies.fleet.hosts import VISIBLE

_LOOK_SECONDS = 0.5
_TELL_SECONDS = 1.0
"""Seconds between reports of a device's progress."""
_DIE_SECONDS = 10.0
_LAST_BYTES = 4096

INTERRUPTED = "interrupted"
"""The reason of a device that was stopped by Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Task:
    """A device to be measured.

    Attributes:
        fleet: the fleet's id, also the topic of its events.
        folder: the device's, which names it in events.
        job: a ``child.Job`` as JSON, for the child.
        visible: CUDA_VISIBLE_DEVICES of the child, as where the devices were listed.
        stalled: seconds without a sign of progress after which the child is killed.
    """

    fleet: str
    folder: str
    job: str
    visible: str | None
    stalled: float


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a device's process: the reason why its run is not complete, and the text of the error behind it.

    The text may name the machine, so an anonymous fleet does not store it.
    """

    reason: str = ""
    text: str = ""


_lock = threading.Lock()
_stopped: set[str] = set()
_running: dict[str, list[subprocess.Popen[bytes]]] = {}
"""The processes of this Dask worker's tasks by fleet, so that Ctrl-C reaches them."""


def _start(task: Task, errors: IO[bytes]) -> subprocess.Popen[bytes] | None:
    """Start a child; None if its fleet was stopped."""
    env = {name: value for name, value in os.environ.items() if name != VISIBLE}
    if task.visible is not None:
        env[VISIBLE] = task.visible
    with _lock:
        if task.fleet in _stopped:
            return None
        child = subprocess.Popen(
            child_command("smembench.studies.fleet.child", task.folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=env,
            start_new_session=True,  # Ctrl-C is the fleet's to handle
        )
        _running.setdefault(task.fleet, []).append(child)
        return child


def stop(fleet: str) -> None:
    """Have the devices of a fleet end after the sample in progress, and begin no other. Runs on each Dask worker."""
    with _lock:
        _stopped.add(fleet)
        for child in _running.pop(fleet, []):
            child.send_signal(signal.SIGINT)


def measure(task: Task) -> Ended:
    """Measure a device in a process of its own, and report its progress as events of Dask.

    Whatever happens to that process is in what it returns: nothing is raised.
    """
    from distributed import get_worker

    worker = get_worker()
    with tempfile.TemporaryFile() as errors:
        child = _start(task, errors)
        if child is None:
            return Ended(INTERRUPTED)
        try:
            assert child.stdin
            with suppress(BrokenPipeError):
                child.stdin.write(task.job.encode())
                child.stdin.close()
            last: Mapping[str, object] = {}
            reported = 0.0
            for line in _lines(child, task.stalled):
                if line is None:
                    return Ended(_killed(child, f"no progress for {duration(task.stalled)}"))
                last = line
                if "done" in line and monotonic() - reported >= _TELL_SECONDS:  # the scheduler hears of all devices
                    reported = monotonic()
                    worker.log_event(task.fleet, {"folder": task.folder, **line})
            if not _ended(child):
                return Ended(_killed(child, "its output ended before it did"))
            if "error" in last:
                error = str(last["error"])
                return Ended(error) if error in ("", INTERRUPTED) else Ended("its run ended with an error", error)
            return Ended(f"its process {ended(child.returncode)}", _last_line(errors))
        finally:
            with _lock, suppress(KeyError, ValueError):
                _running[task.fleet].remove(child)
            child.kill()
            assert child.stdout
            child.stdout.close()


def _lines(child: subprocess.Popen[bytes], stalled: float) -> Iterator[Mapping[str, object] | None]:
    """The child's messages until its output ends; None once it has been silent for too long."""
    assert child.stdout
    pending, heard = b"", monotonic()
    while True:
        ready, _, _ = select([child.stdout], [], [], _LOOK_SECONDS)
        if ready:
            data = os.read(child.stdout.fileno(), 2**16)
            if not data:
                return
            heard = monotonic()
            *whole, pending = (pending + data).split(b"\n")
            yield from map(json.loads, whole)
        elif monotonic() - heard > stalled:
            yield None
            return
        elif child.poll() is not None:  # killed, while a process of it has the pipe still
            return


def _ended(child: subprocess.Popen[bytes]) -> bool:
    with suppress(subprocess.TimeoutExpired):
        child.wait(_DIE_SECONDS)
    return child.returncode is not None


def _killed(child: subprocess.Popen[bytes], why: str) -> str:
    """Kill the child and say why. A process that waits in the GPU's driver may not die."""
    child.kill()
    return f"{why}; its process was killed" + ("" if _ended(child) else ", and does not end: it waits in the driver")


def _last_line(errors: IO[bytes]) -> str:
    """The last line on a child's stderr."""
    length = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, length - _LAST_BYTES))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return visible(lines[-1].strip()) if lines else ""
