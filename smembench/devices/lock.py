"""One run at a time per GPU: a lock file per UUID, which the system releases however its holder ends."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from smembench.model.errors import DeviceUnavailable

_POLL_SECONDS = 1.0


class DeviceLock:
    """An exclusive lock on a device's UUID; a context manager.

    Raises:
        DeviceUnavailable: if another process holds it and ``wait`` is False.
    """

    def __init__(self, uuid: str, *, wait: bool = False, waiting: Callable[[str], None] = lambda holder: None) -> None:
        self.path = Path(tempfile.gettempdir()) / f"smembench-{uuid}.lock"
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise DeviceUnavailable(
                f"the lock {self.path} cannot be opened ({error.strerror}); remove it or add --no-lock"
            ) from None
        told = False
        while not self._try():
            holder = os.pread(self._file, 500, 0).decode(errors="replace").strip() or "another process"
            if not wait:
                os.close(self._file)
                raise DeviceUnavailable(
                    f"device {uuid} is in use by {holder}; two runs at once would disturb each other: "
                    "add --wait to wait for it, or --no-lock to run all the same"
                )
            if not told:
                waiting(holder)
                told = True
            time.sleep(_POLL_SECONDS)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} ({' '.join(sys.argv[1:])})"[:500].encode(), 0)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __enter__(self) -> DeviceLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The file is kept: if it were removed, two processes could lock two files of the same name.
        os.ftruncate(self._file, 0)
        os.close(self._file)
