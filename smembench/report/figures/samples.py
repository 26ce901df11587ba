"""Every sample of a table's cases as a strip, to show their spread and whether the rounds agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil, nan
from typing import TYPE_CHECKING

from smembench.report.canvas import INK, SERIES, Canvas, Plot
from smembench.stats.summary import Summary
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import milliseconds
from smembench.views.sections import labels, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 0.98
"""Share of all samples within the axis; the others are marked at its edge."""
_MOST = 400
"""Most strokes per strip; of more samples, every second or third and so on is drawn."""


@dataclass(frozen=True, slots=True)
class _Strip:
    """A case, the summary of its samples, and each round's samples in % from the median."""

    case: str
    summary: Summary
    lanes: Sequence[Sequence[float]]


def strips(rows: Sequence[Row], stored: Run, name: str, subject: str) -> Plot | None:
    """Samples relative to their case's median, a strip per case and a lane per round; None if none are stored."""
    found = []
    for case, row in zip(labels(rows), rows, strict=True):
        if row.ok and (rounds := stored.samples.get(row.case_id)):
            summary = Summary.of(list(chain.from_iterable(rounds.values())))
            lanes = [[100 * (value / summary.median - 1) for value in values] for values in rounds.values()]
            found.append(_Strip(case, summary, lanes))
    if not found:
        return None
    # The limit includes ``_SHOWN`` of the distances.
    ordered = sorted(abs(value) for strip in found for value in chain.from_iterable(strip.lanes))
    limit = max(1.05 * ordered[int(_SHOWN * (len(ordered) - 1))], 0.1)

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.subplots()
        axes.axvline(0, color=INK, linewidth=0.8)
        for place, strip in enumerate(found):
            _draw(canvas, axes, place, strip, limit)
        canvas.rows(axes, [strip.case for strip in found])
        axes.set_xlim(-1.03 * limit, 1.03 * limit)
        axes.set_xlabel("% from the case's median")

    thinned = any(strip.summary.count > _MOST for strip in found)
    return Plot(
        name=f"samples-{name}",
        title=f"{subject}: samples",
        caption=(
            "Every sample as a stroke, in % from its case's median, a lane per round with the first on top; the "
            f"shaded part is between the quartiles. Samples beyond ±{limit:.2g} % are arrows at the edge."
            + (f" About {_MOST} samples per case are drawn." if thinned else "")
        ),
        size=(7.0, 0.8 + 0.26 * len(found)),
        draw=draw,
        data=table(
            f"{subject}: samples",
            found,
            {
                "case": lambda strip: strip.case,
                "samples": lambda strip: str(strip.summary.count),
                "rounds": lambda strip: str(len(strip.lanes)),
                "lowest ms": lambda strip: milliseconds(strip.summary.min),
                "first quartile ms": lambda strip: milliseconds(strip.summary.q1),
                "median ms": lambda strip: milliseconds(strip.summary.median),
                "third quartile ms": lambda strip: milliseconds(strip.summary.q3),
                "highest ms": lambda strip: milliseconds(strip.summary.max),
            },
            words=("case",),
        ),
    )


def _draw(canvas: Canvas, axes: Axes, place: int, strip: _Strip, limit: float) -> None:
    summary = strip.summary
    low, high = (100 * (value / summary.median - 1) for value in (summary.q1, summary.q3))
    (box,) = axes.barh(place, high - low, left=low, height=0.8, color=SERIES[0], alpha=0.25)
    canvas.mark(
        box,
        f"{strip.case}: median {milliseconds(summary.median)} ms, quartiles {milliseconds(summary.q1)} to "
        f"{milliseconds(summary.q3)}, all {milliseconds(summary.min)} to {milliseconds(summary.max)}, "
        f"{summary.count} samples in {len(strip.lanes)} rounds",
    )
    height = 0.8 / len(strip.lanes)
    strokes: list[tuple[float, float]] = []
    for lane, values in enumerate(strip.lanes):
        top = place - 0.4 + lane * height
        for value in values[:: ceil(len(values) * len(strip.lanes) / _MOST)]:
            if abs(value) <= limit:
                strokes += [(value, top + 0.1 * height), (value, top + 0.9 * height), (nan, nan)]
    axes.plot(*zip(*strokes, strict=True), color=SERIES[0], linewidth=0.7)
    for marker, side in ((">", 1), ("<", -1)):
        if beyond := [value for value in chain.from_iterable(strip.lanes) if value * side > limit]:
            (edge,) = axes.plot(side * limit, place, marker=marker, color=SERIES[1], clip_on=False)
            ends = dict.fromkeys((f"{min(beyond):+.1f}", f"{max(beyond):+.1f}"))
            canvas.mark(edge, f"{strip.case}: {len(beyond)} beyond, {' to '.join(ends)} %")
