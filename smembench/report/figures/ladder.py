"""The ladder of a table: the rate of each kernel as a bar, in the table's order."""

from __future__ import annotations

from smembench.report.canvas import INK, SERIES, Canvas, Plot, printable
from smembench.views.columns import number
from smembench.views.sections import Section


def ladder(section: Section, name: str, subject: str) -> Plot | None:
    """The section's bars; None if it has none."""
    bars = section.bars
    if not bars:
        return None
    unit = bars[0].unit

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.subplots()
        axes.grid(visible=False, axis="y")
        for place, (bar, shape) in enumerate(
            zip(
                bars, axes.barh(range(len(bars)), [bar.value for bar in bars], color=SERIES[0], height=0.7), strict=True
            )
        ):
            canvas.mark(shape, f"{bar.label}: {number(bar.value)} {bar.unit}")
            axes.annotate(
                number(bar.value),
                xy=(bar.value, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                color=INK,
                fontsize=8,
            )
        axes.set_yticks(range(len(bars)), [printable(bar.label) for bar in bars])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.set_xlim(0, 1.08 * max(bar.value for bar in bars) or 1)
        axes.set_xlabel(unit)

    return Plot(
        name=f"ladder-{name}",
        title=f"{subject}: {unit}",
        caption=f"{unit} of each kernel and block, in the order of the table; longer is faster.",
        size=(7.0, 0.8 + 0.24 * len(bars)),
        draw=draw,
    )
