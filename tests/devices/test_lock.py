"""One run at a time on a device, whoever's it is."""

from __future__ import annotations

import os
import pwd
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from fake_driver.process import FEW, FakeDriver, ended
from smembench.devices.lock import device_lock
from smembench.model.errors import DeviceUnavailable


@pytest.fixture
def uuid() -> str:
    return f"GPU-{uuid4()}"


def test_the_second_is_refused_with_the_holder_named_until_the_first_is_done(uuid: str) -> None:
    with device_lock(uuid):
        with pytest.raises(DeviceUnavailable, match=r"in use by process \d+ of .*--wait.*--no-lock"), device_lock(uuid):
            pass
        with device_lock(f"{uuid[:-1]}x"):
            pass
    with device_lock(uuid):
        pass


def test_waiting_says_for_whom_and_gets_it_in_the_end(uuid: str) -> None:
    holders: list[str] = []
    with ExitStack() as first:
        first.enter_context(device_lock(uuid))
        threading.Timer(0.3, first.close).start()
        with device_lock(uuid, wait=True, waiting=holders.append):
            assert [holder.startswith(f"process {os.getpid()} ") for holder in holders] == [True]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_all_users_of_a_host_share_it_and_a_killed_holder_loses_it(uuid: str) -> None:
    ready, signalled = os.pipe()
    holder = os.fork()
    if holder == 0:
        os.setuid(pwd.getpwnam("nobody").pw_uid)
        with device_lock(uuid):
            os.write(signalled, b"held")
            signal.pause()
    try:
        assert os.read(ready, 4) == b"held"
        with pytest.raises(DeviceUnavailable, match=f"in use by process {holder} of nobody"), device_lock(uuid):
            pass
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    with device_lock(uuid):
        refused = os.fork()
        if refused == 0:
            os.setuid(pwd.getpwnam("nobody").pw_uid)
            try:
                with device_lock(uuid):
                    os._exit(1)
            except DeviceUnavailable as error:
                os._exit(0 if f"process {os.getppid()} of root" in str(error) else 2)
        assert os.waitpid(refused, 0)[1] == 0


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can have a network of its own")
def test_in_a_container_wait_says_that_other_containers_are_not_waited_for(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    new_network = "import ctypes\nassert ctypes.CDLL(None).unshare(0x40000000) == 0\n"
    (tmp_path / "sitecustomize.py").write_text(new_network)
    note = "runs outside of this container are neither seen nor waited for"
    command = ["smembench", "transpose", "--device", "cuda", "--n", "16", "--kernel", "memcpy", *FEW]
    for options, lines in ((["--wait"], 1), ([], 0)):
        _, err = ended(fake_driver(*command, *options, site=tmp_path))
        assert err.count(note) == lines
