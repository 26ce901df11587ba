"""A lock for a single run per GPU at a time: a name with the GPU's UUID, which only one process of a host can take.

The name is that of a Unix socket in Linux's abstract namespace. It is no file, so all users share it and nobody can
plant a link. The system releases it however the process ends, and shows others which process has it.

The name is one of a network namespace. A container has its own unless it was started in the host's, and nothing else
that all engines share with the host: a file lies in the container, as do device nodes where the engine makes them anew.
"""

from __future__ import annotations

import errno
import pwd
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from smembench.model.errors import DeviceUnavailable

_POLL_SECONDS = 1.0
_SETTINGS = Path("/proc/sys/net/core")
"""Settings of the network; ``netdev_max_backlog`` is the machine's, and only the host's namespace has it."""
_ASKING = 4096
"""The most processes that can ask at once for the owner; the system may lower it."""


@contextmanager
def device_lock(
    uuid: str, *, wait: bool = False, waiting: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Take an exclusive lock on a device's UUID; ``waiting`` is called once with the owner's name.

    Raises:
        DeviceUnavailable: if another process has it and ``wait`` is False.
    """
    address = f"\0smembench-{uuid}"
    with socket.socket(socket.AF_UNIX) as lock:
        announced = False
        while not _take(lock, address):
            if not wait:
                raise DeviceUnavailable(
                    f"device {uuid} is in use by {_holder(address)}; two runs at once would disturb each other: "
                    "add --wait to wait for it, or --no-lock to run all the same"
                )
            if not announced:
                waiting(_holder(address))
                announced = True
            time.sleep(_POLL_SECONDS)
        yield


def unseen_runs() -> str | None:
    """A note on runs whose locks this process cannot see; None if it is in the host's network namespace."""
    if not _SETTINGS.is_dir() or (_SETTINGS / "netdev_max_backlog").exists():
        return None
    return (
        "runs outside of this container are neither seen nor waited for, because it has its own network; "
        "start the containers that share a GPU with --network host"
    )


def _take(lock: socket.socket, address: str) -> bool:
    try:
        lock.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise DeviceUnavailable(f"the lock {address[1:]} cannot be taken ({error}); add --no-lock") from None
    lock.listen(_ASKING)
    return True


def _holder(address: str) -> str:
    """The process that listens on an address, its user and its arguments."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        try:
            asking.connect(address)
            pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it is about to begin or to end, or is hidden
            return "another process"
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    own = next((place for place, word in enumerate(words, 1) if Path(word).name == "smembench"), 0)
    return f"process {pid} of {user} ({' '.join(words[own:]).strip()[:500]})"
