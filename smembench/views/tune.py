"""The table of ``smembench tune``: the finalists, and whether the winner is one."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.stats.summary import median_interval
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row
from smembench.studies.tune import Search, Tuned
from smembench.views.columns import FIGURES, Column, milliseconds, value
from smembench.views.sections import Bar, Section, label

Interval = tuple[float, float]


def finals(tuned: Tuned) -> Section:
    """Finalists by their median, with its 95 % interval."""
    done = [measurement for measurement in tuned.measurements if measurement.ok]
    intervals = {m.case: median_interval([sample.elapsed_ms for sample in m.samples]) for m in done}
    shown = [row for row in Run.of(Description(), tuned.measurements).rows if row.ok and row.case in tuned.finalists]
    rows = sorted(shown, key=lambda row: row.elapsed_ms or 0.0)
    figures = PROBLEMS[rows[0].problem].columns
    columns = [Column("finalist", numeric=False), Column("elapsed ms"), Column("95 % interval")]
    cells = [
        [
            label(row),
            milliseconds(row.elapsed_ms or 0.0),
            "–".join(map(milliseconds, intervals[row.case])),
            *(FIGURES[name].text(value(row, name)) for name in figures),
        ]
        for row in rows
    ]
    best = tuned.best
    return Section(
        f"{PROBLEMS[best.problem].title} {best.size} {best.dtype} on {best.device}: the finalists",
        [*columns, *(Column(FIGURES[name].heading) for name in figures)],
        cells,
        [Bar(label(row), value(row, figures[0]) or 0.0, FIGURES[figures[0]].unit) for row in rows],
        verdict(rows, [intervals[row.case] for row in rows]),
    )


def counts(found: Search) -> str:
    """How many candidates there are, and why others are none."""
    return (
        f"{len(found.cases)} candidates; {found.over_limits} were over a block's limits, "
        f"{found.predicted_slow} predicted to need {found.allowed:g} times the traffic"
    )


def verdict(rows: Sequence[Row], intervals: Sequence[Interval]) -> str:
    """Which finalists the fastest cannot be told apart from; rows and intervals fastest first."""
    level = [label(row) for row, (low, _) in zip(rows[1:], intervals[1:], strict=True) if low <= intervals[0][1]]
    if not level:
        return f"{label(rows[0])} is the fastest: no other finalist's interval reaches its own."
    return f"{label(rows[0])} has the smallest median, but within the intervals it is level with {', '.join(level)}."
