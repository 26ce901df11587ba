"""A night's run on one page: failures, slower cases, and differences from the runs compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from smembench.model.text import visible
from smembench.store.run import Run
from smembench.studies.compare import Comparison, Verdict
from smembench.studies.nightly.monitoring import Compared
from smembench.views.columns import Column, milliseconds
from smembench.views.compare import namer
from smembench.views.console import plain, say
from smembench.views.history import percent
from smembench.views.markdown import markdown
from smembench.views.sections import Section, device_names
from smembench.views.table import draw

_MOST = 15
"""Most rows of a table on the page."""
_REASONS = 3
_COLUMNS = (
    Column("verdict", numeric=False),
    Column("case", numeric=False),
    Column("before ms"),
    Column("now ms"),
    Column("change"),
)
_SHOWN = (Verdict.SLOWER, Verdict.AMBIGUOUS, Verdict.FASTER)


@dataclass(frozen=True, slots=True)
class Summary:
    """A headline, a line per fact, and a table for each comparison that found a difference."""

    headline: str
    lines: Sequence[str]
    sections: Sequence[Section]

    def markdown(self) -> str:
        """The page as it is stored."""
        parts = [f"# {visible(self.headline)}", "\n".join(f"- {visible(line)}" for line in self.lines)]
        return "\n\n".join([*parts, *([markdown(self.sections).rstrip()] if self.sections else [])]) + "\n"


def summarise(run: Run, compared: Compared, notes: Sequence[str]) -> Summary:
    """One page about a run.

    Args:
        run: the night's.
        compared: the comparisons, each with the name of what it compares with.
        notes: further lines, such as the runs that were removed.
    """
    failed = run.failed
    verdicts = [f"{len(failed)} failed" if failed else "nothing failed"]
    verdicts += [_verdict(asked, comparison) for asked, comparison in compared]
    name = namer([row.case for row in run.rows])
    statuses = Counter(row.status for row in run.rows)
    lines = [
        f"{run.description.run_id} on {device_names(run)}: "
        + ", ".join(f"{count} {status}" for status, count in statuses.most_common()),
        *(f"{name(row.case)}: {row.status}: {row.reason}" for row in failed[:_MOST]),
    ]
    for asked, comparison in compared:
        lines += [_counts(asked, comparison), *_incomparable(comparison)]
        lines += [comparison.caution] if comparison.caution else []
        lines += [f"{found.what} was {found.base}, is {found.new}" for found in comparison.environment]
    sections = [_section(asked, comparison) for asked, comparison in compared]
    return Summary(
        headline=f"{run.description.config.name}: {', '.join(verdicts)}",
        lines=[*lines, *notes],
        sections=[section for section in sections if section.cells],
    )


def print_summary(console: Console, summary: Summary) -> None:
    """The page on a screen."""
    console.print()
    console.print(Text(plain(console, summary.headline), style="bold"))
    for line in summary.lines:
        say(console, line)
    draw(console, summary.sections)


def _verdict(asked: str, comparison: Comparison) -> str:
    """How many cases are slower, unless none could be compared."""
    if all(case.verdict is Verdict.NOT_COMPARABLE for case in comparison.cases):
        return f"nothing comparable with {asked}"
    return f"{len(comparison.regressions) or 'nothing'} slower than {asked}"


def _incomparable(comparison: Comparison) -> list[str]:
    """The most frequent reasons why cases could not be compared."""
    reasons = Counter(case.reason for case in comparison.cases if case.verdict is Verdict.NOT_COMPARABLE)
    return [f"{count} not comparable: {reason}" for reason, count in reasons.most_common(_REASONS)]


def _counts(asked: str, comparison: Comparison) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items() if count)
    return f"compared with {asked} ({', '.join(comparison.base)}): {counts or 'no case in common'}"


def _section(asked: str, comparison: Comparison) -> Section:
    name = namer([case.case for case in comparison.cases])
    shown = [case for case in comparison.cases if case.verdict in _SHOWN]
    cells = [
        [
            case.verdict.value,
            name(case.case),
            *("" if side.elapsed_ms is None else milliseconds(side.elapsed_ms) for side in (case.base, case.new)),
            "" if case.ratio is None else percent(case.ratio),
        ]
        for case in shown[:_MOST]
    ]
    more = [f"and {len(shown) - _MOST} more"] if len(shown) > _MOST else []
    return Section(f"Different from {asked}", _COLUMNS, cells, notes=more)
