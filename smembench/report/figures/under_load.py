"""Loads of seconds as lines: time per launch over the seconds, relative to that of the first second."""

from __future__ import annotations

from smembench.report.charts import Chart, layer, layered, names_axis, number_axis
from smembench.store.run import Run
from smembench.views.sections import labels
from smembench.views.sustained import sustained

_MOST = 6
"""Most lines of a chart, as many as there are colours."""


def under_load(stored: Run) -> Chart | None:
    """A line per case, of those that become slower the most; None without loads."""
    rows = [row for row in stored.rows if row.burst_ms and row.steady_ms and row.case_id in stored.moments]
    if not rows:
        return None
    named = dict(zip(rows, labels(rows), strict=True))
    shown = sorted(rows, key=lambda row: (row.steady_ms or 0.0) / (row.burst_ms or 1.0), reverse=True)[:_MOST]
    points = [
        {"case": named[row], "seconds": moment.seconds, "times": moment.elapsed_ms / (row.burst_ms or 1.0)}
        for row in shown
        for moment in stored.moments[row.case_id]
    ]
    few = f" The {_MOST} that slow down the most, of {len(rows)}; the table has all." if len(rows) > _MOST else ""
    lines = layer(
        "line",
        points,
        {"strokeWidth": 1.5},
        x=number_axis("seconds", "s", {"grid": False}),
        y=number_axis("times", "times the first second", zero=False),
        color=names_axis("case", [named[row] for row in shown]),
    )
    (table,) = sustained(stored)
    return Chart(
        name="under-load",
        title="Under load",
        caption=f"Time per launch of launches back to back, relative to the first second; higher is slower.{few}",
        spec=layered(240, lines),
        data=table,
    )
