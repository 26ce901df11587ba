"""``smembench doctor``: its findings line by line, and the table of ``--timing``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.launches.dimensions import as_text
from smembench.model.case import Case
from smembench.model.device import DeviceInfo
from smembench.studies.doctor.installation import Check
from smembench.studies.doctor.timing import ALLOWED_PERCENT, ALLOWED_US, METRIC, Agreement
from smembench.views.records import Record
from smembench.views.sections import Section, libraries, table


def lines(found: Sequence[Check]) -> list[str]:
    """A line for each thing that was looked at, and one for the command that fixes it."""
    said = []
    for check in found:
        said.append(f"{check.mark:<4} {check.what}: {check.found}")
        if not check.ok:
            said.append(f"       fix: {check.fix}")
    return said


def size_of(case: Case) -> str:
    """The size, of a launch of the user's the grid."""
    return as_text(case.launch.grid) if case.launch else case.size


def timing_records(found: Sequence[Agreement]) -> list[Record]:
    """Both clocks and their difference, for programs."""
    return [
        {
            "kernel": item.case.kernel if item.case.launch else f"{item.case.problem} {item.case.kernel}",
            "size": size_of(item.case),
            "block": str(item.case.block or ""),
            "cache": item.case.cache,
            "smembench_us": round(item.ours_us, 4),
            "ncu_us": round(item.ncu_us, 4),
            "difference_us": round(item.difference_us, 4),
            "difference_percent": round(item.percent, 3),
            "agrees": item.agrees,
        }
        for item in found
    ]


def section(found: Sequence[Agreement], device: DeviceInfo, versions: Mapping[str, str]) -> Section:
    """Both clocks side by side, and their difference."""
    allowed = f"within {ALLOWED_PERCENT:g} % or {ALLOWED_US:g} µs of {METRIC}"
    return table(
        f"{device.model} · driver {device.driver} · {libraries(versions)}",
        found,
        {
            "kernel": lambda item: item.case.kernel,
            "size": lambda item: size_of(item.case),
            "cache": lambda item: item.case.cache,
            "smembench\nµs": lambda item: f"{item.ours_us:.2f}",
            "ncu\nµs": lambda item: f"{item.ncu_us:.2f}",
            "difference\nµs": lambda item: f"{item.difference_us:+.2f}",
            "difference\n%": lambda item: f"{item.percent:+.1f}",
            "agrees": lambda item: "yes" if item.agrees else "NO",
        },
        words=("kernel", "cache", "agrees"),
    ).below(sentence=f"{sum(item.agrees for item in found)} of {len(found)} are {allowed}.")
