"""The first screen of a report: what was measured on what and when, at most three sentences, and one chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smembench.model.text import capital
from smembench.report.charts import Chart
from smembench.report.figures.sizes import best_over_sizes
from smembench.store.run import Run
from smembench.views.summary import beside_libraries, facts, findings, title, trust


@dataclass(frozen=True, slots=True)
class Headline:
    """The first screen: a title, a line of facts, at most three sentences, and a chart if there is one."""

    title: str
    facts: str
    sentences: Sequence[str]
    chart: Chart | None


def headline(runs: Sequence[Run], moved: Sequence[str], charts: Sequence[Chart]) -> Headline:
    """The first screen of a report.

    Args:
        runs: oldest first; the sentences are about the newest.
        moved: sentences about what changed between runs, the first of which comes first.
        charts: all others of the report, the most important first; the first one is shown if no limit was measured.
    """
    newest = next(run for run in reversed(runs) if run.rows)
    limited = [] if moved else beside_libraries(newest)
    over_sizes = [chart for family in limited if (chart := best_over_sizes(family))]
    sentences = [*moved[:1], *(f"{heading}: {text}" for heading, text in findings(newest))][:2]
    return Headline(
        title(runs),
        facts(runs),
        [*sentences, f"In the newest run, {trust(newest)}" if len(runs) > 1 else capital(trust(newest))],
        next(iter([*over_sizes, *charts]), None),
    )
