"""A trial on a device: what it says of samples that cannot be."""

from __future__ import annotations

import pytest

from smembench.devices.cpu import CpuDevice
from smembench.model.case import Case
from smembench.model.measurement import Status
from smembench.run import trial
from smembench.run.sampling import Batch
from smembench.run.trial import Request, TrialRunner


def test_a_time_below_what_the_clock_can_tell_fails_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event pair's own cost is subtracted, so a launch that does nothing can take less than no time."""
    monkeypatch.setattr(trial, "collect", lambda *_, **__: Batch((0.5, -1e-4), (), (), 0.1))
    case = Case("transpose", "memcpy", "cpu", "float32", 8, 8)
    found = TrialRunner({"cpu": CpuDevice()}).run(Request(case, 1, 2, 1.0, 1.0, 0.0, 1, (4096, 4096)))
    assert (found.status, found.samples) == (Status.FAILED, ())
    assert "-0.0001 ms" in found.reason
