"""The table of ``smembench doctor --timing``."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.studies.doctor.timing import ALLOWED_PERCENT, ALLOWED_US, METRIC, Agreement
from smembench.views.columns import Column
from smembench.views.sections import Section

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


def section(found: Sequence[Agreement], heading: str) -> Section:
    """Both clocks side by side, and how far they are apart."""
    headings = ("kernel", "n", "cache", "smembench\nµs", "ncu\nµs", "apart\nµs", "apart\n%")
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
        heading=heading,
        columns=[*columns, Column("agrees", numeric=False)],
        cells=[[*line, "yes" if item.agrees else "NO"] for line, item in zip(cells, found, strict=True)],
        sentence=f"{len(found) - len(apart)} of {len(found)} are {allowed}.",
    )
