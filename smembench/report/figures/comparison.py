"""A comparison of two runs: the change of each case with its interval, by verdict."""

from __future__ import annotations

from smembench.report.canvas import INK, MUTED, SERIES, Canvas, Plot
from smembench.studies.compare import CaseComparison, Comparison, Verdict
from smembench.views.compare import comparison_sections, namer

_MOST = 40
_LOOK = {
    Verdict.SLOWER: (SERIES[1], ">"),
    Verdict.AMBIGUOUS: (SERIES[4], "D"),
    Verdict.FASTER: (SERIES[0], "<"),
    Verdict.SAME: (MUTED, "o"),
}


def changes(comparison: Comparison, name: str) -> Plot | None:
    """The most important cases, as many as fit; None if no case has a ratio."""
    judged = [case for case in comparison.cases if case.ratio is not None and case.verdict in _LOOK]
    shown = judged[:_MOST]
    if not shown:
        return None
    name_of = namer([case.case for case in comparison.cases])
    threshold = 100 * comparison.threshold

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.subplots()
        axes.axvline(0, color=INK, linewidth=0.8)
        for side in (-threshold, threshold):
            axes.axvline(side, color=MUTED, linewidth=0.8, linestyle=":")
        for place, case in enumerate(shown):
            colour, marker = _LOOK[case.verdict]
            if case.low is not None and case.high is not None:
                axes.plot([_percent(case.low), _percent(case.high)], [place, place], color=colour)
            (point,) = axes.plot(_percent(case.ratio), place, marker=marker, color=colour)
            canvas.mark(point, f"{name_of(case.case)}: {case.verdict}, {_said(case)}")
        canvas.rows(axes, [name_of(case.case) for case in shown], fontsize=7)
        axes.set_xlabel("% more time than before")

    left_out = f" The first {len(shown)} of {len(judged)} cases." if len(judged) > len(shown) else ""
    return Plot(
        name=f"comparison-{name}",
        title="What changed",
        caption=(
            f"Change of each case's time in %, with its {100 * comparison.confidence:g} % interval; to the right is "
            f"slower. Dotted: the threshold of ±{threshold:g} %. Arrows are cases found slower or faster, diamonds "
            f"ambiguous, circles the same.{left_out}"
        ),
        size=(7.0, 0.9 + 0.22 * len(shown)),
        draw=draw,
        data=comparison_sections(comparison, every=True)[-1],
    )


def _percent(ratio: float | None) -> float:
    return 0.0 if ratio is None else 100 * (ratio - 1)


def _said(case: CaseComparison) -> str:
    if case.low is None or case.high is None:
        return f"{_percent(case.ratio):+.1f} %"
    return f"{_percent(case.ratio):+.1f} %, {_percent(case.low):+.1f} to {_percent(case.high):+.1f} %"
