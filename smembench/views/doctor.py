"""``smembench doctor``: its findings line by line, and the table of ``--timing``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.model.device import DeviceInfo
from smembench.studies.doctor.installation import Check
from smembench.studies.doctor.timing import ALLOWED_PERCENT, ALLOWED_US, METRIC, Agreement
from smembench.views.columns import Column
from smembench.views.sections import Section, libraries

COLUMNS = (
    "kernel",
    "size",
    "block",
    "cache",
    "smembench_us",
    "ncu_us",
    "difference_us",
    "difference_percent",
    "agrees",
)


def lines(found: Sequence[Check]) -> list[str]:
    """A line for each thing that was looked at, and one for the command that fixes it."""
    said = []
    for check in found:
        said.append(f"{check.mark:<4} {check.what}: {check.found}")
        if check.fix:
            said.append(f"       fix: {check.fix}")
    return said


def records(found: Sequence[Agreement]) -> list[list[str]]:
    """CSV records under ``COLUMNS``."""
    return [
        [
            f"{item.case.problem} {item.case.kernel}",
            item.case.size,
            str(item.case.block),
            item.case.cache,
            f"{item.ours_us:.4f}",
            f"{item.ncu_us:.4f}",
            f"{item.difference_us:.4f}",
            f"{item.percent:.3f}",
            str(item.agrees).lower(),
        ]
        for item in found
    ]


def section(found: Sequence[Agreement], device: DeviceInfo, versions: Mapping[str, str]) -> Section:
    """Both clocks side by side, and their difference."""
    headings = ("kernel", "n", "cache", "smembench\nµs", "ncu\nµs", "difference\nµs", "difference\n%")
    columns = [Column(name, numeric=name not in ("kernel", "cache")) for name in headings]
    cells = [
        [
            item.case.kernel,
            str(item.case.n),
            item.case.cache,
            f"{item.ours_us:.2f}",
            f"{item.ncu_us:.2f}",
            f"{item.difference_us:+.2f}",
            f"{item.percent:+.1f}",
        ]
        for item in found
    ]
    apart = [item for item in found if not item.agrees]
    allowed = f"within {ALLOWED_PERCENT:g} % or {ALLOWED_US:g} µs of {METRIC}"
    return Section(
        heading=f"{device.model} · driver {device.driver} · {libraries(versions)}",
        columns=[*columns, Column("agrees", numeric=False)],
        cells=[[*line, "yes" if item.agrees else "NO"] for line, item in zip(cells, found, strict=True)],
        sentence=f"{len(found) - len(apart)} of {len(found)} are {allowed}.",
    )
