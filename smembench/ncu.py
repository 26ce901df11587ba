"""Hardware counters through Nsight Compute: cases launched by a child under ``ncu``, its CSV read back."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from smembench.case import Case
from smembench.errors import UsageError

_SECONDS = 900


def profile(
    cases: Sequence[Case], metrics: Sequence[str], *, cache_control: str, launches: int, uncounted: int, asked_by: str
) -> list[dict[str, float]]:
    """The median of each metric over a case's launches, in ncu's base units, for every case.

    Clocks are left alone. ``cache_control`` is ncu's: ``all`` flushes and invalidates every cache before each launch,
    ``none`` does not. The first ``uncounted`` launches of a case are left out.

    Raises:
        UsageError: naming ``asked_by``, when ncu is not there or does not give a figure for every launch.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise UsageError(f"{asked_by}: ncu (Nsight Compute) is not on the PATH; it comes with the CUDA toolkit")
    options = ["--metrics", ",".join(metrics), "--clock-control", "none", "--cache-control", cache_control]
    output = ["--csv", "--print-units", "base", "--profile-from-start", "off"]
    work = json.dumps({"launches": launches, "cases": [case.to_dict() for case in cases]})
    run = subprocess.run(
        [ncu, *options, *output, sys.executable, "-m", "smembench.ncu", work],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    readings = parse(run.stdout)
    for metric in metrics:
        if len(readings.get(metric, ())) != launches * len(cases):
            said = " ".join((run.stderr or run.stdout).split())[-300:]
            count = f"{len(readings.get(metric, ()))} of {launches * len(cases)} figures"
            raise UsageError(f"{asked_by}: ncu gave {count} of {metric}: {said}")
    starts = range(0, launches * len(cases), launches)
    return [{m: median(readings[m][start + uncounted : start + launches]) for m in metrics} for start in starts]


def parse(output: str) -> dict[str, list[float]]:
    """Values by metric from ncu's CSV, in the order of the launches."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    found: dict[str, list[float]] = {}
    for record in csv.DictReader(lines):
        found.setdefault(record["Metric Name"], []).append(float(record["Metric Value"].replace(",", "")))
    return found


def _launch_all(work: str) -> None:
    """The child under ncu: every case, profiled only while its kernel is launched."""
    from smembench.cuda_api import cuda
    from smembench.devices.cuda import CudaDevice
    from smembench.kernels import registry
    from smembench.problems import PROBLEMS

    asked = json.loads(work)
    device = CudaDevice()
    for case in map(Case.from_dict, asked["cases"]):
        problem = PROBLEMS[case.problem]
        prepared = device.prepare(case, registry.kernel_of(case), problem, problem.inputs(case, seed=1))
        prepared.launch()
        cuda.profile_start()
        for _ in range(asked["launches"]):
            prepared.launch()
        cuda.profile_stop()
        prepared.close()


if __name__ == "__main__":
    _launch_all(sys.argv[1])
