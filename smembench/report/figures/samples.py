"""Every sample of a table's cases as a strip, to show their spread and whether the rounds agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import ceil

from smembench.report.canvas import INK, SERIES, Canvas, Plot, printable
from smembench.stats.summary import Summary
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import Column, milliseconds
from smembench.views.sections import Section, labels

_SHOWN = 0.98
"""Share of all samples within the axis; the others are marked at its edge."""
_MOST = 400
"""Most strokes per strip; of more samples, every second or third and so on is drawn."""


def strips(rows: Sequence[Row], stored: Run, name: str, subject: str) -> Plot | None:
    """Samples relative to their case's median, a strip per case and a lane per round; None if none are stored."""
    found = [
        (case, stored.samples[row.case_id])
        for case, row in zip(labels(rows), rows, strict=True)
        if row.ok and stored.samples.get(row.case_id)
    ]
    if not found:
        return None
    summaries = [Summary.of(list(chain.from_iterable(rounds.values()))) for _, rounds in found]
    relative = [
        [[100 * (value / summary.median - 1) for value in values] for values in rounds.values()]
        for (_, rounds), summary in zip(found, summaries, strict=True)
    ]
    thinned = any(summary.count > _MOST for summary in summaries)
    limit = _limit([abs(value) for lanes in relative for value in chain.from_iterable(lanes)])

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.subplots()
        axes.grid(visible=False, axis="y")
        axes.axvline(0, color=INK, linewidth=0.8)
        for place, ((case, _), lanes, summary) in enumerate(zip(found, relative, summaries, strict=True)):
            low, high = (100 * (value / summary.median - 1) for value in (summary.q1, summary.q3))
            (box,) = axes.barh(place, high - low, left=low, height=0.8, color=SERIES[0], alpha=0.25)
            canvas.mark(
                box,
                f"{case}: median {milliseconds(summary.median)} ms, quartiles {milliseconds(summary.q1)} to "
                f"{milliseconds(summary.q3)}, all {milliseconds(summary.min)} to {milliseconds(summary.max)}, "
                f"{summary.count} samples in {len(lanes)} rounds",
            )
            height = 0.8 / len(lanes)
            xs: list[float] = []
            ys: list[float] = []
            for lane, values in enumerate(lanes):
                top = place - 0.4 + lane * height
                for value in _thinned(values, _MOST // len(lanes)):
                    if abs(value) <= limit:
                        xs += (value, value, float("nan"))
                        ys += (top + 0.1 * height, top + 0.9 * height, float("nan"))
            axes.plot(xs, ys, color=SERIES[0], linewidth=0.7)
            for side in (-1, 1):
                beyond = [value for value in chain.from_iterable(lanes) if value * side > limit]
                if beyond:
                    marker = ">" if side > 0 else "<"
                    (edge,) = axes.plot(side * limit, place, marker=marker, color=SERIES[1], clip_on=False)
                    canvas.mark(edge, f"{case}: {len(beyond)} beyond, {_percents(beyond)}")
        axes.set_yticks(range(len(found)), [printable(case) for case, _ in found])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xlim(-1.03 * limit, 1.03 * limit)
        axes.set_xlabel("% from the case's median")

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
        data=_table([case for case, _ in found], [len(rounds) for _, rounds in found], summaries, subject),
    )


def _limit(distances: list[float]) -> float:
    """The limit that includes ``_SHOWN`` of the distances, at least 0.1 %."""
    ordered = sorted(distances)
    return max(1.05 * ordered[int(_SHOWN * (len(ordered) - 1))], 0.1)


def _thinned(values: Sequence[float], most: int) -> Sequence[float]:
    return values[:: ceil(len(values) / max(most, 1))]


def _percents(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:+.1f} %" if len(values) == 1 else f"{low:+.1f} to {high:+.1f} %"


def _table(cases: Sequence[str], rounds: Sequence[int], summaries: Sequence[Summary], subject: str) -> Section:
    headings = ("case", "samples", "rounds", "lowest ms", "quartile ms", "median ms", "quartile ms", "highest ms")
    return Section(
        heading=f"{subject}: samples",
        columns=[Column(heading, numeric=heading != "case") for heading in headings],
        cells=[
            [
                case,
                str(summary.count),
                str(count),
                *map(milliseconds, (summary.min, summary.q1, summary.median, summary.q3, summary.max)),
            ]
            for case, count, summary in zip(cases, rounds, summaries, strict=True)
        ],
    )
