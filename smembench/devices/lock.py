"""One run at a time per GPU: a lock file per UUID, which the system releases however its holder ends."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from smembench.model.errors import DeviceUnavailable

_POLL_SECONDS = 1.0


@contextmanager
def device_lock(
    uuid: str, *, wait: bool = False, waiting: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Hold an exclusive lock on a device's UUID; ``waiting`` is called once with who holds it.

    Raises:
        DeviceUnavailable: if another process holds it and ``wait`` is False.
    """
    path = Path(tempfile.gettempdir()) / f"smembench-{uuid}.lock"
    try:
        file = path.open("ab+", buffering=0)
    except OSError as error:
        raise DeviceUnavailable(
            f"the lock {path} cannot be opened ({error.strerror}); remove it or add --no-lock"
        ) from None
    # The file is kept: if it were removed, two processes could lock two files of the same name.
    with file:
        told = False
        while not _try(file.fileno()):
            holder = os.pread(file.fileno(), 500, 0).decode(errors="replace").strip() or "another process"
            if not wait:
                raise DeviceUnavailable(
                    f"device {uuid} is in use by {holder}; two runs at once would disturb each other: "
                    "add --wait to wait for it, or --no-lock to run all the same"
                )
            if not told:
                waiting(holder)
                told = True
            time.sleep(_POLL_SECONDS)
        file.truncate(0)
        file.write(f"process {os.getpid()} ({' '.join(sys.argv[1:])})"[:500].encode())
        try:
            yield
        finally:
            file.truncate(0)


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
