"""Waiting for a process: only time in which the program runs counts."""

from __future__ import annotations

import pytest

from smembench.model import processes
from smembench.model.processes import awake


class Clock:
    """A clock on which each wait takes as long as it may, and some were stopped for a minute."""

    def __init__(self, stopped: int, ready_after: float = 1e9) -> None:
        self.now = 0.0
        self.waited = 0.0
        self.stopped = stopped
        self.ready_after = ready_after

    def poll(self, seconds: float) -> bool:
        self.waited += seconds
        self.now += seconds + (60 if self.stopped > 0 else 0.001)
        self.stopped -= 1
        return self.waited >= self.ready_after


@pytest.mark.parametrize(("timeout", "waited"), [(0, 0), (0.25, 0.25), (5.5, 5.5)])
def test_a_stop_counts_for_nothing(timeout: float, waited: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for stopped in (0, 1):
        clock = Clock(stopped)
        monkeypatch.setattr(processes, "monotonic", lambda clock=clock: clock.now)
        ready, seconds = awake(clock.poll, timeout)
        assert (ready, round(seconds)) == (False, 60 * stopped)
        assert clock.waited == pytest.approx(waited)


def test_an_answer_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(2, ready_after=3)
    monkeypatch.setattr(processes, "monotonic", lambda: clock.now)
    ready, seconds = awake(clock.poll, 100)
    assert (ready, round(seconds)) == (True, 120)
