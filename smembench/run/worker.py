"""The worker process, which opens the devices and runs trials, and the parent's handle on it.

A kernel can hang, crash or break the CUDA context of its process. So trials run in a process that can be killed and
replaced, and the run goes on with the next case.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from typing import Any

from smembench.devices.base import Device
from smembench.model.child import child_command
from smembench.model.device import DeviceInfo, Limits
from smembench.model.errors import DeviceUnavailable, UsageError, WorkerUnusable
from smembench.model.interrupts import ignore, interruptible
from smembench.model.measurement import Trial
from smembench.model.processes import awake, die_with_parent
from smembench.model.text import ended, one_line, place
from smembench.run.trial import Request, TrialRunner
from smembench.store.files import check_working_directory
from smembench.toolchains.settings import check_optimised

_OPEN_SECONDS = 120.0
_CLOSE_SECONDS = 5.0


class WorkerFailed(Exception):
    """The worker raised, died or was killed, and cannot be used again. ``str(error)`` is the trial's reason."""


class WorkerTimeout(WorkerFailed):
    """The worker did not answer in time and was killed."""


_RAISED = {"unavailable": DeviceUnavailable, "refused": UsageError, "failed": WorkerFailed}
"""Errors by the kind of answer. After a CUDA error, which may be sticky, a worker's context cannot be used again."""


class Worker:
    """A child process with open devices; with ``nvtx`` each trial is an NVTX range of the domain smembench.

    Raises:
        DeviceUnavailable: if a device does not exist.
        WorkerUnusable: if the child does not start.
        UsageError: for settings with which kernels are not compiled or not optimised.
    """

    def __init__(self, names: Sequence[str], *, nvtx: bool = False) -> None:
        with _no_standard_stream_free():
            self._connection, theirs = Pipe()
            # A second pipe, so that a stop is seen while the child is busy with a request.
            listener, self._stop = Pipe(duplex=False)
            fds = (theirs.fileno(), listener.fileno())
            self._process = subprocess.Popen(
                child_command("smembench.run.worker", *fds, *["nvtx"] * nvtx),
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=2,
                start_new_session=True,  # Ctrl-C is the parent's to handle
            )
            theirs.close()
            listener.close()
        try:
            self.infos: dict[str, DeviceInfo]
            self.limits: dict[str, Limits]
            self.infos, self.limits = self._ask(tuple(names), _OPEN_SECONDS)
        except WorkerFailed as error:
            raise WorkerUnusable(f"{', '.join(names)}: {error}") from None
        except BaseException:
            self.kill()
            raise

    def run(self, request: Request, timeout: float) -> Trial:
        """Run a trial in the child. Time in which the program was stopped is none that it took.

        Raises:
            WorkerTimeout: after ``timeout`` seconds.
            WorkerFailed: if the kernel or the device failed, or the child died.
        """
        answer = self._ask(request, timeout)
        assert isinstance(answer, Trial)
        return replace(answer, seconds=max(answer.seconds - self._stopped, 0.0))

    def stop(self) -> None:
        """Ask the current trial to end after the sample in progress."""
        with suppress(OSError):
            self._stop.send(None)

    def wait_stopped(self, timeout: float) -> Trial | None:
        """The current trial as it ended after ``stop``; None if it does not end in time."""
        with suppress(Exception):
            answer = self._answer(timeout)
            return answer if isinstance(answer, Trial) else None
        return None

    def _ask(self, question: object, timeout: float) -> Any:
        try:
            self._connection.send(question)
        except OSError:
            raise WorkerFailed(self._epitaph()) from None
        return self._answer(timeout)

    def _answer(self, timeout: float) -> Any:
        with interruptible():
            ready, self._stopped = awake(self._connection.poll, timeout)
        if not ready:
            self.kill()
            raise WorkerTimeout(f"no answer within {timeout:g} s; the worker process was killed")
        try:
            kind, answer = self._connection.recv()
        except (EOFError, ConnectionError):
            raise WorkerFailed(self._epitaph()) from None
        except Exception as error:
            self.kill()
            raise WorkerFailed(f"the worker's answer cannot be read: {one_line(error)}") from None
        if kind in _RAISED:
            self.kill()
            raise _RAISED[kind](answer)
        return answer

    def _epitaph(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f"the worker process {ended(self._process.wait(_CLOSE_SECONDS))}"
        self.kill()
        return "the worker process closed its connection"

    def kill(self) -> None:
        """Kill the child."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._stop.close()

    def close(self) -> None:
        """End the child after it released its devices."""
        with suppress(OSError):
            self._connection.send(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_SECONDS)
        self.kill()


@contextmanager
def _no_standard_stream_free() -> Iterator[None]:
    """Hold those of 0, 1 and 2 that the program closed: the start of the child overwrites a pipe that has one."""
    held = [os.open(os.devnull, os.O_RDWR)]  # takes the lowest number that is free
    while held[-1] <= 2:
        os.set_inheritable(held[-1], True)
        held.append(os.open(os.devnull, os.O_RDWR))
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def _ranges(names: Sequence[str]) -> Callable[[Request], AbstractContextManager[object]]:
    """Context of a trial: an NVTX range with its case and round if ``names`` has nvtx, else none."""
    if not names:
        return lambda request: nullcontext()
    from nvtx import annotate

    return lambda request: annotate(f"{request.case.id} round {request.round}", domain="smembench")


def _serve(connection: Connection, listener: Connection, marked: Sequence[str]) -> None:
    """Open the devices named in the first message, then answer requests until None or the end of the pipe."""
    from smembench.devices.select import open_device

    devices: dict[str, Device] = {}
    infos: dict[str, DeviceInfo] = {}
    limits: dict[str, Limits] = {}
    names = connection.recv()
    try:
        check_optimised()
    except UsageError as error:
        connection.send(("refused", str(error)))
        return
    for name in names:
        try:
            device = devices[name] = open_device(name)
            infos[name], limits[name] = device.info, device.limits()
        except DeviceUnavailable as error:
            connection.send(("unavailable", str(error)))
            return
        except Exception as error:
            connection.send(("failed", f"the device cannot be opened: {one_line(error)} ({place(error)})"))
            return
    connection.send(("opened", (infos, limits)))
    runner, within = TrialRunner(devices, stopped=listener.poll), _ranges(marked)
    while (request := connection.recv()) is not None:
        try:
            with within(request):
                trial = runner.run(request)
            connection.send(("trial", trial))
        except BaseException as error:  # a benchmark must outlive any kernel
            connection.send(("failed", _reason(error)))
    for device in devices.values():
        device.close()


def _reason(error: BaseException) -> str:
    try:
        check_working_directory()
    except UsageError as removed:  # without which an error of Numba's names no file
        return str(removed)
    return one_line(error)


def main() -> None:
    """The child's entry point; its arguments are two inherited file descriptors."""
    die_with_parent()
    ignore()  # the parent's to handle; systemd and Slurm send SIGTERM to every process of a service or job
    connection, listener = (Connection(int(fd)) for fd in sys.argv[1:3])
    with suppress(EOFError, ConnectionError):
        _serve(connection, listener, sys.argv[3:])
    # Devices are released, or the parent is gone. Skip the clean-up, in which a broken CUDA context can hang.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
