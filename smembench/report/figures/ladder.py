"""The ladder of a table: the rate of each kernel as a bar, in the table's order."""

from __future__ import annotations

from smembench.report.canvas import SERIES, Canvas, Plot
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
        texts = [number(bar.value) for bar in bars]
        says = [f"{bar.label}: {text} {unit}" for bar, text in zip(bars, texts, strict=True)]
        canvas.bars(axes, dict(enumerate(bar.value for bar in bars)), texts, says, SERIES[0])
        canvas.rows(axes, [bar.label for bar in bars])
        axes.set_xlim(0, 1.08 * max(bar.value for bar in bars) or 1)
        axes.set_xlabel(unit)

    return Plot(
        name=f"ladder-{name}",
        title=f"{subject}: {unit}",
        caption=f"{unit} of each kernel and block, in the order of the table; longer is faster.",
        size=(7.0, 0.8 + 0.24 * len(bars)),
        draw=draw,
    )
