"""Ctrl-C is taken once, and nowhere in a block that holds it back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from smembench.model.interrupts import deferred, interruptible

SLOW = "import os, signal, time\nos.kill(os.getpid(), signal.{})\ntime.sleep(0.1)\nwhole = 1"
PROGRAM = """
from smembench.model import interrupts
interrupts.install()
try:
    import slow
except KeyboardInterrupt:
    print("cut")
else:
    try:
        time = __import__("time").sleep(5)
    except KeyboardInterrupt:
        print(slow.whole, interrupts.exit_code())
"""


@pytest.fixture(autouse=True)
def _heed() -> Generator[None]:
    """Take Ctrl-C even where whoever started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_a_block_ends_before_it_is_raised_unless_it_is_taken() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred(), deferred():  # noqa: PT012
        ctrl_c()
        done.append(1)
    with deferred() as hold:
        ctrl_c()
        assert hold.take()
    assert done == [1]


def test_a_part_of_it_can_be_left() -> None:
    with deferred(), deferred() as hold:
        for early in (True, False):
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                if early:
                    ctrl_c()
                with interruptible():
                    ctrl_c()
        ctrl_c()
        assert hold.take()
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_who_ignores_it_goes_on_ignoring_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred() as hold, interruptible():
        ctrl_c()
        assert not hold.take()


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_import_is_whole_before_it_is_raised(tmp_path: Path, name: str, code: int) -> None:
    (tmp_path / "slow.py").write_text(SLOW.format(name))
    path = os.pathsep.join(map(str, (tmp_path, Path(__file__).parents[2])))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (ran.stdout, ran.stderr) == (f"1 {code}\n", "")
