"""A trial on a device: what it says of samples that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smembench.cli import options
from smembench.cli.options import Running
from smembench.devices.cpu import CpuDevice
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.measurement import Status
from smembench.run import trial
from smembench.run.sampling import Batch
from smembench.run.trial import Request, TrialRunner
from smembench.run.worker import Worker


def test_a_time_below_what_the_clock_can_tell_fails_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event pair's own cost is subtracted, so a launch that does nothing can take less than no time."""
    monkeypatch.setattr(trial, "collect", lambda *_, **__: Batch((0.5, -1e-4), (), (), 0.1))
    case = Case("transpose", "memcpy", "cpu", "float32", 8, 8)
    result = TrialRunner({"cpu": CpuDevice()}).run(Request(case, 1, 2, 1.0, 1.0, 0.0, 1, (4096, 4096)))
    assert (result.status, result.samples) == (Status.FAILED, ())
    assert "-0.0001 ms" in result.reason


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_kernel_for_zeros_is_first_right_on_other_numbers(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    case = Case("matmul", "cpu", "cpu", dtype, 8, 8, 8, inputs="zeros")
    request = Request(case, 0, 3, 1.0, 10.0, 0.0, 1, (4096, 4096))
    result = TrialRunner({"cpu": CpuDevice()}).run(request)
    assert (result.status, result.max_error, len(result.samples)) == (Status.OK, 0.0, 3)
    assert result.case == case

    def nothing_but_zeros(c: Any, *others: Any) -> None:
        c[:] = 0

    lazy = Kernel("matmul", "cpu", "cpu", build=lambda _: HostFunction(nothing_but_zeros))
    monkeypatch.setattr(registry, "kernel_of", lambda _: lazy)
    result = TrialRunner({"cpu": CpuDevice()}).run(request)
    assert (result.status, result.case, result.samples) == (Status.WRONG_RESULT, case, ())
    assert result.reason.startswith("inputs normal: ")


def test_a_trial_is_an_nvtx_range_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    (tmp_path / "nvtx.py").write_text(
        f"import contextlib, pathlib\n"
        f"log = pathlib.Path({str(log)!r}).open('a', buffering=1)\n"
        f"@contextlib.contextmanager\n"
        f"def annotate(message, domain):\n"
        f"    print('begin', domain, message, file=log)\n"
        f"    yield\n"
        f"    print('end', file=log)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    case = Case("transpose", "memcpy", "cpu", "float32", 8, 8)
    for nvtx, lines in ((False, 0), (True, 2)):
        worker = Worker(["cpu"], nvtx=nvtx)
        try:
            trial = worker.run(Request(case, 2, 3, 1.0, 1.0, 0.0, 1, (4096, 4096)), 60.0)
        finally:
            worker.close()
        assert trial.status is Status.OK
        assert len(log.read_text().splitlines() if log.exists() else ()) == lines
    assert log.read_text().splitlines() == [f"begin smembench {case.id} round 2", "end"]


def test_nvtx_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"--nvtx: needs the package nvtx: pip install 'smembench\[nvtx\]'"):
        Running(nvtx=True).check_nvtx()
