"""A comparison of two runs: the change of each case with its interval, by verdict."""

from __future__ import annotations

from smembench.report.charts import ROW, SERIES, Chart, file_name, layer, layered, names_axis, number_axis
from smembench.studies.compare import CaseComparison, Comparison, Verdict
from smembench.views.compare import namer, verdict_section
from smembench.views.history_notes import percent

_MOST = 40
_LOOK = {
    Verdict.SLOWER: ("var(--bad)", "triangle-right"),
    Verdict.FASTER: ("var(--good)", "triangle-left"),
    Verdict.AMBIGUOUS: (SERIES[4], "diamond"),
    Verdict.SAME: ("var(--muted)", "circle"),
}


def changes(comparison: Comparison, title: str) -> Chart | None:
    """The most important cases, as many as fit: changed ones first; None if no case has a ratio."""
    judged = [case for case in comparison.cases if case.ratio is not None and case.verdict in _LOOK]
    shown = sorted(judged, key=lambda case: list(_LOOK).index(case.verdict))[:_MOST]
    if not shown:
        return None
    name_of = namer([case.case for case in comparison.cases])
    values = [
        {
            "case": name_of(case.case),
            "change": _percent(case.ratio),
            "low": _percent(case.low or case.ratio),
            "high": _percent(case.high or case.ratio),
            "verdict": case.verdict.value,
            "says": f"{name_of(case.case)}: {case.verdict}, {_interval(case)}",
        }
        for case in shown
    ]
    threshold = 100 * comparison.threshold
    sides, at = [{"at": side} for side in (-threshold, threshold)], {"field": "at", "type": "quantitative"}
    names = [str(value["case"]) for value in values]
    domain = [verdict.value for verdict in _LOOK]
    colour, shape = (
        names_axis("verdict", domain, scale={"domain": domain, "range": looks})
        for looks in zip(*_LOOK.values(), strict=True)
    )
    x, y = number_axis("change", "% more time than before"), names_axis("case", names)
    left_out = f" The first {len(shown)} of {len(judged)} cases." if len(judged) > len(shown) else ""
    return Chart(
        name=f"comparison-{file_name(' '.join(comparison.new))}",
        title=title,
        caption=(
            f"Change of each case's time in %, with its {100 * comparison.confidence:g} % interval; to the right is "
            f"slower. Dotted: the threshold of ±{threshold:g} %.{left_out}"
        ),
        spec=layered(
            ROW * len(shown),
            layer("rule", sides, {"color": "var(--muted)", "strokeDash": [2, 3]}, x=at),
            layer("rule", values, x=x | {"field": "low"}, x2={"field": "high"}, y=y, color=colour),
            layer("point", values, {"filled": True, "size": 80, "opacity": 1}, x=x, y=y, color=colour, shape=shape),
        ),
        data=verdict_section(comparison, title, every=True),
    )


def _percent(ratio: float | None) -> float:
    return 0.0 if ratio is None else 100 * (ratio - 1)


def _interval(case: CaseComparison) -> str:
    ends = [percent(ratio) for ratio in (case.ratio, case.low, case.high) if ratio is not None]
    return f"{ends[0]}, {ends[1]} to {ends[2]}" if len(ends) == 3 else ends[0]
