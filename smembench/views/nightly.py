"""A night's run on a page of 40 lines at most: what happened, slower cases by their cause first, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.text import Text

from smembench.model.groups import grouped
from smembench.model.text import number_of, visible
from smembench.studies.accept import patterns_of
from smembench.studies.compare import CaseComparison, Comparison, Verdict
from smembench.studies.compare.comparability import SM_CLOCK
from smembench.studies.nightly.against import is_named
from smembench.studies.nightly.finish import AGAIN, Finished
from smembench.views.columns import some
from smembench.views.compare import Namer, case_ratio, namer, shared_by_all, why
from smembench.views.console import plain, say
from smembench.views.markdown import code, escaped, line
from smembench.views.sections import device_names

_MOST = 29
"""Most facts on the page; eight steps at most come after them."""
_FEW = 3
_CAUSES = 4
"""Most causes that a comparison lists, and most differences in a line."""


@dataclass(frozen=True, slots=True)
class Step:
    """A next step: a command, if there is one, and its purpose."""

    command: str
    text: str

    def __str__(self) -> str:
        return f"next: {self.command}{self.text}"

    def markdown(self) -> str:
        """The same, with a command that is copied as it is."""
        return f"next: {code(self.command) if self.command else ''}{escaped(self.text)}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A headline, a line per fact, and what to do next: 38 lines at most, and two between."""

    headline: str
    lines: Sequence[str]
    steps: Sequence[Step]

    def markdown(self) -> str:
        """The page as it is stored."""
        parts = [f"# {line(self.headline)}", _listed(map(line, self.lines))]
        parts += [_listed(step.markdown() for step in self.steps)] if self.steps else []
        return visible("\n\n".join(parts), keep="\n") + "\n"


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {one}" for one in lines)


def summarise(finished: Finished, folder: Path) -> Summary:
    """A page about a night's run in a folder."""
    run, failed = finished.run, finished.run.failed
    measured = number_of(sum(row.ok for row in run.rows), "case")
    verdicts = [*([f"{len(failed)} failed"] if failed else []), f"{measured} measured"]
    verdicts += [_verdict(asked, comparison) for asked, comparison in finished.compared]
    alone = "; no earlier run to compare with" if finished.compare_to and not finished.compared else ""
    name = namer([row.case for row in run.rows])
    statuses = Counter(row.status for row in run.rows)
    reasons = grouped(failed, lambda row: (row.status, row.reason))
    lines = [
        f"{run.description.run_id} on {device_names(run)}: "
        + ", ".join(f"{count} {status}" for status, count in statuses.most_common()),
        *_first(
            [f"{some([name(row.case) for row in rows])}: {status}: {why}" for (status, why), rows in reasons.items()],
            _FEW,
        ),
    ]
    for asked, comparison in finished.compared:
        lines += _happened(asked, comparison, name)
    return Summary(
        headline=f"{run.description.config.name}: {', '.join(verdicts)}{alone}",
        lines=_first([*lines, *_first(finished.problems, _FEW), *finished.review.notes], _MOST),
        steps=next_steps(finished, folder),
    )


def _first(lines: Sequence[str], most: int) -> list[str]:
    """The first lines, and how many more there are."""
    return [*lines] if len(lines) <= most else [*lines[: most - 1], f"and {len(lines) - most + 1} more like these"]


def _happened(asked: str, comparison: Comparison, name: Namer) -> list[str]:
    """A comparison in ten lines at most, its slower cases first, those of one cause in a line."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items() if count)
    faster = [case for case in comparison.cases if case.verdict is Verdict.FASTER]
    missed = [case for case in comparison.cases if case.verdict is Verdict.NOT_COMPARABLE or case.hidden]
    doubts = filter(None, [comparison.caution, *shared_by_all(comparison)])
    differs = _first(list(map(str, comparison.environment)), _CAUSES)
    return [
        *_first([_entry(group, name) for group in by_cause(comparison.regressions)], _CAUSES),
        *([_entry(faster, name)] if faster else []),
        *_first(why(((case, case.reason) for case in missed), name), 2),
        f"{asked if asked == AGAIN else f'compared with {asked}'} ({_ids(comparison.base)}): "
        f"{counts or 'no case in common'}",
        *([f"what differs: {'; '.join(differs)}"] if differs else []),
        *filter(None, ["; ".join(doubts)]),
    ]


def by_cause(cases: Iterable[CaseComparison]) -> list[list[CaseComparison]]:
    """Cases that changed by what may be why, in their order; SM clocks that differ by case are one cause."""

    def cause(case: CaseComparison) -> list[str]:
        return [one.what if one.what == SM_CLOCK else str(one) for one in case.causes]

    return list(grouped(cases, lambda case: tuple(cause(case))).values())


def _entry(cases: Sequence[CaseComparison], name: Namer) -> str:
    first, last = cases[0], cases[-1]
    by = case_ratio(first) if len(cases) == 1 else f"{case_ratio(first)} to {case_ratio(last)}"
    causes = _first(first.cause.split("; "), _CAUSES)
    cause = f"; possible cause: {'; '.join(causes)}" if first.verdict is Verdict.SLOWER else ""
    return f"{first.verdict}, {by}: {some([name(case.case) for case in cases])}{cause}"


def next_steps(finished: Finished, folder: Path) -> list[Step]:
    """Next steps for slower and ambiguous cases, and for faster ones that last."""
    steps = []
    where = quote(str(folder))
    every = {row.case_id for row in finished.run.rows}

    def accepting(pattern: str) -> str:
        return f"smembench accept {where} --case {quote(pattern)} --reason TEXT"

    slower = list(dict.fromkeys(case.case for _, comparison in finished.compared for case in comparison.regressions))
    if slower:
        first, *others = patterns_of([case.id for case in slower], every)
        history = f"smembench history {quote(str(folder.parent))} --case {quote(slower[0].kernel)}"
        steps += [
            Step("", "measure again, to rule out one bad night"),
            Step(history, " shows since when"),
            Step(accepting(first), ", if the change is intended; until then it is reported every night"),
            *(Step(accepting(one), "") for one in others[:1]),
        ]
        steps += [Step("", f"the same for {some(others[1:])}")] if len(others) > 1 else []
    compared = [case for asked, comparison in finished.compared if is_named(asked) for case in comparison.cases]
    faster = [case.case.id for case in compared if case.open and case.verdict is Verdict.FASTER]
    if faster:
        first, *others = patterns_of(list(dict.fromkeys(faster)), every)
        more = f", and the same for {some(others)}" if others else ""
        why = ", if it is to stay faster: only then is losing that reported"
        steps.append(Step(accepting(first), more + why))
    for asked, comparison in finished.compared[:1]:
        unsure = comparison.counts[Verdict.AMBIGUOUS]
        if is_named(asked) and (unsure or comparison.regressions):
            ambiguous = f", {number_of(unsure, 'ambiguous one')} among them" if unsure else ""
            steps.append(Step(f"smembench compare {asked} {where} --all", f" lists every case{ambiguous}"))
            steps += [Step(f"smembench run --decide {where}", " measures the ambiguous ones again")] if unsure else []
    return steps


def print_summary(console: Console, summary: Summary) -> None:
    """The page on a screen."""
    console.print()
    console.print(Text(plain(console, summary.headline), style="bold"))
    for text in summary.lines:
        say(console, text)
    for step in summary.steps:
        say(console, str(step))


def _verdict(asked: str, comparison: Comparison) -> str:
    """The numbers of slower, ambiguous and, if not all, comparable cases."""
    cases = len(comparison.cases) + len(comparison.only_base)
    judged = comparison.judged
    if not judged:
        return f"none comparable with {_runs(asked, comparison)}"
    among = f", {judged} of {cases} cases compared" if judged < cases else ""
    if missed := sum(case.open for case in comparison.cases if case.verdict is Verdict.NOT_COMPARABLE):
        among += f", without {missed} that changed before"
    unsure, hidden = comparison.counts[Verdict.AMBIGUOUS], sum(case.hidden for case in comparison.cases)
    stand_out = f", {hidden} of them no larger than slowdowns that recovered before" if hidden else ""
    ambiguous = f" ({unsure} ambiguous{stand_out})" if unsure else ""
    than = f"when {AGAIN}" if asked == AGAIN else f"than {_runs(asked, comparison)}"
    return f"{len(comparison.regressions) or 'none'} slower {than}{ambiguous}{among}"


def _runs(asked: str, comparison: Comparison) -> str:
    """``the last 7 runs`` for last:7, or as many as there are."""
    last, _, count = asked.partition(":")
    if last != "last":
        return asked
    there = min(int(count or 1), len(comparison.base))
    return f"the last {number_of(there, 'run')}" if there > 1 else "the last run"


def _ids(runs: Sequence[str]) -> str:
    return ", ".join(runs) if len(runs) <= _FEW else f"{len(runs)} runs, {runs[0]} to {runs[-1]}"
