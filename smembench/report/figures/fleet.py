"""The devices of a fleet on one axis per metric: how far each is from the median, the slow ones by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.model.groups import grouped
from smembench.report.charts import ROW, Chart, file_name, layer, layered, names_axis, number_axis
from smembench.studies.fleet.verdict import Group, Verdict
from smembench.views.columns import milliseconds
from smembench.views.fleet import Point, many, model, points, share
from smembench.views.sections import Section, table

_BINS = 160
"""Places on an axis at which devices are drawn as one point."""
_MARGIN, _ROOM = 0.03, 0.7
"""Shares of the axis to the left of the fastest device, and to the right of the slowest, for its name."""


def deviations(group: Group, verdict: Verdict, names: Mapping[str, str]) -> Chart:
    """A strip plot of a model's devices; devices at the same place are one point, the larger the more there are.

    Args:
        group: the devices of a model, at least two.
        verdict: on the fleet.
        names: of the metrics.
    """
    of = {
        names[one.name]: [point for point in there if point]
        for one, there in zip(group.metrics, points(group, verdict), strict=True)
    }
    every = [point.deviation for there in of.values() for point in there]
    bounds = [(names[one.name], 100 * one.limit) for one in group.metrics if one.limit is not None]
    limits = [{"metric": name, "at": at, "says": f"{name}: slow from {at:.2f} %"} for name, at in bounds]
    low, high = min([*every, -0.01]), max([*every, 0.01, *(one.limit for one in group.metrics if one.limit)])
    width = high - low
    step = width / _BINS
    others, slow = [], []
    for name, there in of.items():
        ordinary = [point for point in there if not point.slow]
        for place, alike in grouped(ordinary, lambda point: round(point.deviation / step)).items():
            who = alike[0].member.label if len(alike) == 1 else many([point.member for point in alike])
            at = 100 * place * step
            others.append({"metric": name, "at": at, "count": len(alike), "says": f"{name}: {who} at {at:+.2f} %"})
        for point in sorted((point for point in there if point.slow), key=lambda point: -point.deviation):
            at, who = 100 * point.deviation, point.member.label
            slow.append({"metric": name, "at": at, "who": who, "says": f"{name}: {who} is slow, {at:+.2f} %"})
    domain = [100 * (low - _MARGIN * width), 100 * (high + _ROOM * width)]
    x = number_axis("at", "% slower than the median", domain=domain)
    y = names_axis("metric", list(of))
    size = {"field": "count", "type": "quantitative", "legend": None, "scale": {"range": [25, 250], "zero": True}}
    triangle = {"filled": True, "opacity": 1, "size": 80, "shape": "triangle-right", "color": "var(--bad)"}
    who_is = {"field": "who", "type": "nominal"}
    named = [marks[0] for marks in grouped(slow, lambda one: one["metric"]).values()]
    return Chart(
        name=f"fleet-{file_name(model(group))}",
        title=f"{model(group)}: {many(group.members)}",
        caption=(
            "How many per cent slower than the median each device is, a line per metric; a larger point is several "
            "devices. Triangles are slow; the slowest has its name."
            + (" Beyond the upright line a device differs from the others." if limits else "")
        ),
        spec=layered(
            1.4 * ROW * len(of),
            layer("tick", limits, {"color": "var(--muted)", "thickness": 2, "size": ROW}, x=x, y=y),
            layer("point", others, {"filled": True, "opacity": 0.6}, x=x, y=y, size=size),
            layer("point", slow, triangle, x=x, y=y),
            layer("text", named, {"align": "left", "dx": 8, "aria": False}, x=x, y=y, text=who_is),
        ),
        data=_table(group, of),
    )


def _table(group: Group, of: Mapping[str, Sequence[Point]]) -> Section:
    """A line per metric, with the devices at both ends."""
    lines = list(zip(group.metrics, of.items(), strict=True))

    def end(marks: Sequence[Point], sign: int) -> str:
        point = max(marks, key=lambda point: sign * point.deviation)
        return f"{point.member.label} {100 * point.deviation:+z.1f} %"

    return table(
        f"{model(group)}: metrics of {many(group.members)}",
        lines,
        {
            "metric": lambda line: line[1][0],
            "median ms": lambda line: milliseconds(line[0].median_ms),
            "spread of devices": lambda line: share(line[0].spread),
            "devices": lambda line: str(len(line[1][1])),
            "fastest": lambda line: end(line[1][1], -1),
            "slowest": lambda line: end(line[1][1], 1),
        },
        words=("metric", "fastest", "slowest"),
    )
