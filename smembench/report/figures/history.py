"""Cases over many runs: the series that changed, or the first ones if none did."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from smembench.report.canvas import LINE, MUTED, SERIES, Canvas, Plot, label_ends
from smembench.studies.history.series import Series
from smembench.views.columns import Column, milliseconds
from smembench.views.history import percent, short
from smembench.views.sections import Section

_MOST = 12


def over_runs(series: Sequence[Series]) -> Plot | None:
    """A panel per case, the most important first as in ``series``; None without series."""
    changed = [one for one in series if one.turns]
    shown = (changed or list(series))[:_MOST]
    if not shown:
        return None

    def draw(canvas: Canvas) -> None:
        for axes, one in zip(canvas.panels(len(shown)), shown, strict=True):
            axes.set_title(short(one.case_id), fontsize=8)
            started: list[Any] = [night.started for night in one.nights]  # matplotlib takes datetimes
            axes.plot(started, one.times, color=LINE, linewidth=1)
            for place, night, elapsed_ms in zip(started, one.nights, one.times, strict=True):
                (point,) = axes.plot(place, elapsed_ms, marker="o", markersize=3, color=SERIES[0])
                canvas.mark(point, f"{short(one.case_id)}, {night.run_id}: {milliseconds(elapsed_ms)} ms")
            for turn in one.turns:
                moment: Any = turn.night.started
                line = axes.axvline(moment, color=SERIES[1], linewidth=1)
                meant = f", accepted: {turn.accepted}" if turn.accepted else ""
                canvas.mark(line, f"{percent(turn.change.ratio)} from {turn.night.run_id} on{meant}")
            low, high = min(one.times), max(one.times)
            room = max(0.1 * (high - low), 0.01 * high)
            axes.set_ylim(low - room, high + room)
            label_ends(axes, [(one.times[-1], f"{milliseconds(one.times[-1])} ms", MUTED)])
        canvas.figure.autofmt_xdate(rotation=30)
        canvas.figure.supylabel("ms", fontsize=9)

    which = "cases that changed" if changed else "cases, none of which changed"
    left_out = f"; the first {len(shown)} of {len(changed or series)}" if len(changed or series) > len(shown) else ""
    return Plot(
        name="history",
        title="Time over runs",
        caption=(
            f"Median time in ms of the {which}{left_out}, a point per run, each panel with its own scale, which "
            "does not begin at 0. A line marks the first run after a change; the table above names every case."
        ),
        size=(7.0, 0.7 + 1.5 * ceil(len(shown) / 2)),
        draw=draw,
        data=_table(shown),
    )


def _table(series: Sequence[Series]) -> Section:
    """A line per run and a column per case, in ms."""
    nights = sorted({night.run_id: night for one in series for night in one.nights}.values(), key=lambda n: n.started)
    times = [dict(zip([night.run_id for night in one.nights], one.times, strict=True)) for one in series]
    return Section(
        heading="Time over runs, ms",
        columns=[Column("run", numeric=False), *(Column(short(one.case_id)) for one in series)],
        cells=[
            [night.run_id, *(milliseconds(of[night.run_id]) if night.run_id in of else "" for of in times)]
            for night in nights
        ],
    )
