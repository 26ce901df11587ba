"""Hardware counters from Nsight Compute: a child process launches cases under ``ncu``, whose CSV is read back.

Of a report that ncu stored they are read through NVIDIA's package ``ncu-report``.

Without ``ncu`` the same child samples the cases with our own timer, so that the two can be compared.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

from smembench.explain.ncu_child import WORK, Work
from smembench.model.child import child_command
from smembench.model.errors import UsageError
from smembench.model.install import extra

_SECONDS = 900
_SIZES = ("launch__grid_size", "launch__block_size")
REPORTS = (".ncu-rep", ".ncu-repz")
"""Suffixes of stored reports."""


class Profiled(NamedTuple):
    """Launches of a kernel in a report, alike in grid and block, with the median of each counter in base units."""

    kernel: str
    grid: int
    block: int
    launches: int
    counters: Mapping[str, float]


def profile(
    work: Work,
    metrics: Sequence[str],
    *,
    cache_control: str,
    uncounted: int,
    optional: Sequence[str] = (),
) -> list[dict[str, float]]:
    """The median of each metric over a case's launches, in ncu's base units, per case; clocks are not controlled.

    Args:
        work: with one sample the arrays have the addresses that they have in ``sampled``.
        cache_control: ncu's: ``all`` flushes and invalidates all caches before each launch, ``none`` does not.
        uncounted: the number of a case's first launches that are left out.
        optional: metrics that are left out where ncu does not know them.

    Raises:
        UsageError: as ``counted``.
    """
    count = work.launches * len(work.cases)
    values = counted(_child(work), metrics, cache_control=cache_control, launches=count, optional=optional)
    metrics = [*metrics, *(metric for metric in optional if len(values.get(metric, ())) == count)]
    starts = range(0, count, work.launches)
    return [{m: median(values[m][start + uncounted : start + work.launches]) for m in metrics} for start in starts]


def counted(
    child: Sequence[str],
    metrics: Sequence[str],
    *,
    cache_control: str,
    launches: int,
    optional: Sequence[str] = (),
) -> dict[str, list[float]]:
    """Each metric of each launch of a child process, a module with its arguments, in ncu's base units.

    An ``optional`` metric that ncu does not know keeps it from counting any: then it counts without those that it
    names, or without all of them.

    Raises:
        UsageError: if ncu is not installed or does not give a figure per launch.
    """
    ran = _run(command(child, [*metrics, *optional], cache_control=cache_control))
    while optional and not parse(ran.stdout):
        known = [metric for metric in optional if metric not in ran.stdout + ran.stderr]
        optional = known if len(known) < len(optional) else ()
        ran = _run(command(child, [*metrics, *optional], cache_control=cache_control))
    return complete(ran.stdout, metrics, launches=launches, messages=ran.stderr or ran.stdout)


def command(child: Sequence[str], metrics: Sequence[str], *, cache_control: str) -> list[str]:
    """The command that counts metrics of a child process.

    Raises:
        UsageError: if ncu is not installed.
    """
    options = ["--metrics", ",".join(metrics), "--clock-control", "none", "--cache-control", cache_control]
    output = ["--csv", "--print-units", "base", "--profile-from-start", "off"]
    return [installed(), *options, *output, *child_command(*child)]


def complete(output: str, metrics: Sequence[str], *, launches: int, messages: str) -> dict[str, list[float]]:
    """Each metric of each launch in ncu's output.

    Raises:
        UsageError: if there is not a figure per launch; it ends with what ncu last wrote.
    """
    values = parse(output)
    for metric in metrics:
        if (count := len(values.get(metric, ()))) != launches:
            last = " ".join(messages.split())[-300:]
            raise UsageError(f"ncu gave {count} of {launches} figures of {metric}: {last}")
    return values


def installed() -> str:
    """The path of ncu.

    Raises:
        UsageError: if it is not installed.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise UsageError("ncu (Nsight Compute) is not on the PATH; it comes with the CUDA toolkit")
    return ncu


def sampled(work: Work) -> list[float]:
    """The median of our own samples per case, in ms, from a child process that checks each case first.

    Raises:
        UsageError: for a wrong result or a child that fails.
    """
    run = _run(child_command(*_child(work)))
    results = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    for case, line in zip(work.cases, results, strict=False):
        if "wrong" in line:
            raise UsageError(f"{case.id}: {line['wrong']}")
    if len(results) != len(work.cases):
        message = " ".join(run.stderr.split())[-300:]
        raise UsageError(f"{len(results)} of {len(work.cases)} cases were timed: {message}")
    return [line["ms"] for line in results]


def _child(work: Work) -> list[str]:
    """``ncu_child`` with its arguments."""
    return ["smembench.explain.ncu_child", WORK.dump_json(work).decode()]


def _run(run: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(run, capture_output=True, text=True, timeout=_SECONDS, check=False)


def parse(output: str) -> dict[str, list[float]]:
    """Values by metric from ncu's CSV, in the order of the launches."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    values: dict[str, list[float]] = {}
    for record in csv.DictReader(lines):
        if (value := record["Metric Value"].replace(",", "")) != "n/a":
            values.setdefault(record["Metric Name"], []).append(float(value))
    return values


def read_report(path: Path, metrics: Sequence[str]) -> list[Profiled]:
    """The kernels of a report, each with those of the metrics that it has.

    Raises:
        UsageError: if ``ncu-report`` is not installed, or the file cannot be read or holds no kernel.
    """
    if not find_spec("ncu_report"):
        raise UsageError(f"{path}: needs NVIDIA's package ncu-report: {extra('ncu')}")
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; ncu --export writes one")
    import ncu_report

    launches: dict[tuple[str, int, int], list[dict[str, float]]] = {}
    try:
        for action in (action for part in ncu_report.load_report(str(path)) for action in part):
            counters = {
                name: float(action[name].value() or 0.0) for name in {*metrics, *_SIZES} & {*action.metric_names()}
            }
            grid, block = (int(counters.get(name, 0.0)) for name in _SIZES)
            launches.setdefault((action.name(), grid, block), []).append(counters)
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); is it a report of ncu?") from None
    if not launches:
        raise UsageError(f"{path}: holds no kernel; give a report that ncu --export wrote")
    return [
        Profiled(*key, len(all_), {name: median([launch.get(name, 0.0) for launch in all_]) for name in all_[0]})
        for key, all_ in launches.items()
    ]
