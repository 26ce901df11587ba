"""The timers held against Nsight Compute's gpu__time_duration.sum, the hardware's own clock.

Both run the same cases on the same device, one after the other: smembench as it always measures, and a child
under ``ncu`` that launches each kernel a few times. ``--cache-control none`` stands beside warm samples, ``all``
(every cache flushed and invalidated before each launch) beside cold ones; clocks are left alone.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from smembench.axes import Block
from smembench.case import Case
from smembench.errors import UsageError
from smembench.measurement import Status
from smembench.timing.sampling import StopRule
from smembench.visit import Request
from smembench.worker import Worker

METRIC = "gpu__time_duration.sum"
ALLOWED_PERCENT, ALLOWED_US = 3.0, 0.7
"""What counts as agreement: either is enough, since a few tenths of a microsecond are events, not kernels."""
_CACHE_CONTROL = {"warm": "none", "cold": "all"}
_LAUNCHES, _UNCOUNTED = 14, 4
_NCU_SECONDS = 600
_VISIT_SECONDS = 300.0


def _transpose(kernel: str, n: int, block: int) -> Case:
    pad = {"transposeSmem": 0, "transposeSmemPad": 1}.get(kernel)
    return Case("transpose", kernel, "cuda:0", "float32", n, n, None, Block(block, block), pad)


def _matmul(kernel: str, n: int, block: int) -> Case:
    return Case("matmul", kernel, "cuda:0", "float32", n, n, n, Block(block, block))


CASES: tuple[Case, ...] = (
    _transpose("copyGmem", 256, 32),
    _transpose("copyGmem", 512, 32),
    _transpose("copyGmem", 1024, 32),
    _transpose("transposeSmemPad", 1024, 16),
    _transpose("copyGmem", 2048, 32),
    _matmul("tiled", 256, 32),
    _transpose("naiveGmem", 1024, 32),
    _transpose("transposeSmem", 2048, 32),
    _matmul("tiled", 512, 32),
    _transpose("copyGmem", 4096, 32),
    _transpose("naiveGmem", 4096, 32),
    _matmul("tiled", 1024, 32),
    _transpose("copyGmem", 8192, 16),
    _transpose("transposeSmemPad", 16384, 32),
    _matmul("tiled", 4096, 32),
    _matmul("naive", 6528, 32),
)
"""From about 2 µs to about 100 ms on an H200."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One case in one cache mode, by both clocks, in µs."""

    case: Case
    ours_us: float
    ncu_us: float

    @property
    def difference_us(self) -> float:
        """Ours less ncu's."""
        return self.ours_us - self.ncu_us

    @property
    def percent(self) -> float:
        """The difference in percent of ncu's."""
        return 100 * self.difference_us / self.ncu_us

    @property
    def agrees(self) -> bool:
        """Whether the difference is within either bound."""
        return abs(self.percent) <= ALLOWED_PERCENT or abs(self.difference_us) <= ALLOWED_US


def compare() -> Iterator[Agreement]:
    """Measure every case both ways, warm and cold.

    Raises:
        UsageError: when ncu is not there or gives no figures.
        DeviceUnavailable: without a GPU.
        WorkerFailed: when a kernel fails.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise UsageError("doctor --timing: ncu (Nsight Compute) is not on the PATH; it comes with the CUDA toolkit")
    for cache in _CACHE_CONTROL:
        cases = [replace(case, cache=cache) for case in CASES]
        ours = _ours(cases)
        theirs = _theirs(ncu, _CACHE_CONTROL[cache])
        for case, ours_us, ncu_us in zip(cases, ours, theirs, strict=True):
            yield Agreement(case, ours_us, ncu_us)


def _ours(cases: Sequence[Case]) -> list[float]:
    rule = StopRule()
    worker = Worker(["cuda:0"])
    found = []
    try:
        for case in cases:
            request = Request(case, 0, rule.samples, 5.0, rule.max_seconds, rule.warmup, seed=1)
            visit = worker.visit(request, _VISIT_SECONDS)
            if visit.status is not Status.OK:
                raise UsageError(f"doctor --timing: {case.id}: {visit.status}: {visit.reason}")
            found.append(1000 * median(visit.samples))
    finally:
        worker.close()
    return found


def _theirs(ncu: str, cache_control: str) -> list[float]:
    options = ["--metrics", METRIC, "--clock-control", "none", "--cache-control", cache_control]
    output = ["--csv", "--print-units", "base", "--profile-from-start", "off"]
    run = subprocess.run(
        [ncu, *options, *output, sys.executable, "-m", "smembench.timing_check"],
        capture_output=True,
        text=True,
        timeout=_NCU_SECONDS,
        check=False,
    )
    durations = parse(run.stdout)
    if len(durations) != _LAUNCHES * len(CASES):
        said = " ".join((run.stderr or run.stdout).split())[-300:]
        raise UsageError(f"doctor --timing: ncu gave {len(durations)} figures of {_LAUNCHES * len(CASES)}: {said}")
    groups = (durations[start : start + _LAUNCHES] for start in range(0, len(durations), _LAUNCHES))
    return [median(group[_UNCOUNTED:]) for group in groups]


def parse(output: str) -> list[float]:
    """Durations in µs from ncu's CSV, in the order of the launches; ncu gives nanoseconds in base units."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    return [
        float(record["Metric Value"].replace(",", "")) / 1000
        for record in csv.DictReader(lines)
        if record["Metric Name"] == METRIC
    ]


def _launch_all() -> None:
    """The child under ncu: every case, profiled only while its kernel is launched."""
    from smembench.cuda_api import cuda
    from smembench.devices.cuda import CudaDevice
    from smembench.kernels import registry
    from smembench.problems import PROBLEMS

    device = CudaDevice()
    for case in CASES:
        problem = PROBLEMS[case.problem]
        prepared = device.prepare(case, registry.kernel_of(case), problem, problem.inputs(case, seed=1))
        prepared.launch()
        cuda.profile_start()
        for _ in range(_LAUNCHES):
            prepared.launch()
        cuda.profile_stop()
        prepared.close()


if __name__ == "__main__":
    _launch_all()
