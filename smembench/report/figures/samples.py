"""Every sample of a table's cases as a stroke, to show their spread and whether the rounds agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import ceil

from smembench.report.charts import ROW, Chart, Spec, layer, layered, names_axis, number_axis
from smembench.stats.summary import Summary
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import milliseconds, number
from smembench.views.sections import labels, table

_SHOWN = 0.98
"""Share of all samples within the axis."""
_MOST = 400
"""Most strokes per case; of more samples, every second or third and so on is drawn."""


def strips(rows: Sequence[Row], stored: Run, name: str, subject: str) -> Chart | None:
    """Samples relative to their case's median, a strip per case and a lane per round; None if none are stored."""
    boxes: list[Spec] = []
    lanes: list[tuple[str, int, list[float]]] = []
    summaries = []
    for case, row in zip(labels(rows), rows, strict=True):
        if row.ok and (rounds := stored.samples.get(row.case_id)):
            summary = Summary.of(list(chain.from_iterable(rounds.values())))
            every = ceil(summary.count / _MOST)
            for turn, values in rounds.items():
                lanes.append((case, turn, [round(100 * (value / summary.median - 1), 3) for value in values[::every]]))
            low, high = (100 * (value / summary.median - 1) for value in (summary.q1, summary.q3))
            says = (
                f"{case}: median {milliseconds(summary.median)} ms, quartiles {milliseconds(summary.q1)} to "
                f"{milliseconds(summary.q3)}, all {milliseconds(summary.min)} to {milliseconds(summary.max)}, "
                f"{summary.count} samples in {len(rounds)} rounds"
            )
            boxes.append({"case": case, "low": low, "high": high, "says": says})
            summaries.append((case, summary, len(rounds)))
    if not summaries:
        return None
    # The limit includes ``_SHOWN`` of the distances.
    ordered = sorted(abs(value) for *_, lane in lanes for value in lane)
    limit = max(1.05 * ordered[int(_SHOWN * (len(ordered) - 1))], 0.1)
    scale: Spec = {"domain": [-limit, limit], "nice": False}
    y = names_axis("case", [case for case, *_ in summaries])
    strokes = layer(
        "tick",
        [{"case": case, "round": turn, "away": lane} for case, turn, lane in lanes],
        {"thickness": 1, "clip": True, "bandSize": 4},
        x=number_axis("away", "% from the case's median", **scale),
        y=y,
        yOffset={"field": "round", "type": "ordinal"},
    )
    low_end = number_axis("low", "% from the case's median", **scale)
    quartiles = layer("bar", boxes, {"opacity": 0.3, "clip": True}, x=low_end, x2={"field": "high"}, y=y)
    return Chart(
        name=f"samples-{name}",
        title=f"{subject}: samples",
        caption=(
            "Every sample as a stroke, in % from its case's median, a lane per round with the first on top; the shaded "
            f"part is between the quartiles. Samples beyond ±{number(limit)} % are not drawn."
        ),
        spec=layered(1.2 * ROW * len(summaries), quartiles, strokes | {"transform": [{"flatten": ["away"]}]}),
        data=table(
            f"{subject}: samples",
            summaries,
            {
                "case": lambda item: item[0],
                "samples": lambda item: str(item[1].count),
                "rounds": lambda item: str(item[2]),
                "lowest ms": lambda item: milliseconds(item[1].min),
                "first quartile ms": lambda item: milliseconds(item[1].q1),
                "median ms": lambda item: milliseconds(item[1].median),
                "third quartile ms": lambda item: milliseconds(item[1].q3),
                "highest ms": lambda item: milliseconds(item[1].max),
            },
            words=("case",),
        ),
    )
