"""Cases over many runs or revisions on one axis: those that changed, or the first ones if none did."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.report.charts import SERIES, Chart, Spec, layer, layered, names_axis, number_axis
from smembench.studies.history.series import Series
from smembench.views.columns import Column, milliseconds
from smembench.views.history import runs_of, series_names
from smembench.views.history_notes import percent
from smembench.views.sections import Section

_MOST = 6


def over_runs(series: Sequence[Series]) -> Chart | None:
    """A line per case, in % of its oldest level, the most important first as in ``series``; None without series.

    Its axis has the moments of the runs, or the revisions that they stand for, as they were first measured.
    """
    changed = [one for one in series if one.turns]
    shown = (changed or list(series))[:_MOST]
    if not shown:
        return None
    names = series_names(shown)
    points, turns = [], []
    for name, one in zip(names, shown, strict=True):
        first = one.turns[0].change.before if one.turns else one.level
        for night, elapsed_ms in zip(one.nights, one.times, strict=True):
            says = f"{name}, {night.run_id}: {milliseconds(elapsed_ms)} ms, {percent(elapsed_ms / first)}"
            at = night.revision or night.started.isoformat()
            points.append({"case": name, "at": at, "of_first": 100 * (elapsed_ms / first - 1), "says": says})
        for turn in one.turns:
            meant = f", accepted: {turn.accepted}" if turn.accepted else ""
            says = f"{name}: {percent(turn.change.ratio)} from {turn.night.run_id} on{meant}"
            at = turn.night.revision or turn.night.started.isoformat()
            turns.append({"case": name, "at": at, "says": says})
    revisions = [night.revision for night in runs_of(shown) if night.revision]
    x = names_axis("at", revisions) if revisions else _moments()
    y = number_axis("of_first", "% from the oldest level", zero=False, padding=12)
    legend = {"columns": 1, "labelLimit": 320, "labelExpr": "split(datum.label, ' on ')"}
    colour = names_axis("case", names, scale={"domain": names, "range": SERIES}, legend=legend)
    which = "cases that changed" if changed else "cases, none of which changed"
    left_out = f"; the first {len(shown)} of {len(changed or series)}" if len(changed or series) > len(shown) else ""
    lines = layer("line", points, {"strokeWidth": 1, "opacity": 0.6, "clip": True}, x=x, y=y, color=colour)
    dot: Spec = {"filled": True, "opacity": 1, "size": 50, "clip": True}
    shape = colour | {"scale": {"domain": names}}
    dots = layer("point", points, dot, x=x, y=y, color=colour, shape=shape)
    if not revisions:
        wheel = {"type": "interval", "zoom": "wheel![event.ctrlKey]"}  # which alone scrolls the page
        dots["params"] = [{"name": "zoom", "select": wheel, "bind": "scales"}]
    marked = [layer("rule", turns, {"strokeDash": [4, 3], "clip": True}, x=x, color=colour)] if turns else []
    point = "revision" if revisions else "run"
    move = "" if revisions else " Drag to move, Ctrl and wheel or a pinch to zoom, double-click for the whole."
    return Chart(
        name="history-by-revision" if revisions else "history",
        title=f"Time over {point}s",
        caption=(
            f"Time of the {which} relative to their first level{left_out}; one point per {point}. A dashed line marks "
            f"the first one after a change.{move}"
        ),
        spec=layered(300, *marked, lines, dots),
        data=_table(shown, point),
    )


def _moments() -> Spec:
    """An axis of the moments at which runs began."""
    # The longest part of a moment that changes between two ticks, in 24 hours.
    form = {"seconds": "%H:%M:%S", "date": "%d %b", "month": "%b %Y"}
    form |= {"minutes": "%H:%M", "hours": "%H:%M", "week": form["date"]}
    scale = {"type": "utc", "padding": 12}
    return {"field": "at", "type": "temporal", "title": None, "axis": {"format": form}, "scale": scale}


def _table(series: Sequence[Series], point: str) -> Section:
    """A line per run or revision and a column per case, in ms."""
    times = [dict(zip(map(id, one.nights), one.times, strict=True)) for one in series]
    return Section(
        heading=f"Time over {point}s, ms",
        columns=[Column(point, numeric=False), *map(Column, series_names(series))],
        cells=[
            [night.run_id, *(milliseconds(of[id(night)]) if id(night) in of else "" for of in times)]
            for night in runs_of(series)
        ],
    )
