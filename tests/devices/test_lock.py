"""One run at a time on a device."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from smembench.devices.lock import device_lock
from smembench.model.errors import DeviceUnavailable


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_second_is_refused_with_the_holder_named_until_the_first_is_done() -> None:
    with device_lock("GPU-1"):
        with pytest.raises(DeviceUnavailable, match=r"in use by process \d+.*--wait.*--no-lock"), device_lock("GPU-1"):
            pass
        with device_lock("GPU-2"):
            pass
    with device_lock("GPU-1"):
        pass


def test_waiting_says_for_whom_and_gets_it_in_the_end() -> None:
    holders: list[str] = []
    first = ExitStack()
    first.enter_context(device_lock("GPU-1"))
    threading.Timer(0.3, first.close).start()
    with device_lock("GPU-1", wait=True, waiting=holders.append):
        assert len(holders) == 1
        assert holders[0].startswith("process ")


def test_a_lock_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "smembench-GPU-1.lock").mkdir()
    with pytest.raises(DeviceUnavailable, match="cannot be opened"), device_lock("GPU-1"):
        pass
