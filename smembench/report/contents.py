"""The contents of a report: the first screen, then chapters of topics, each with its tables and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

from smembench.model.case import BY_ROWS, UNIFORM
from smembench.model.groups import grouped
from smembench.model.text import number_of
from smembench.report.cases import cases
from smembench.report.charts import Chart, file_name
from smembench.report.environment import environment, overview, run_names
from smembench.report.figures.bars import climbed, latencies, rates
from smembench.report.figures.comparison import changes
from smembench.report.figures.documents import gains
from smembench.report.figures.history import over_runs
from smembench.report.figures.roofline import rooflines, without_roof
from smembench.report.figures.samples import strips
from smembench.report.figures.sizes import over_sizes
from smembench.report.figures.under_load import under_load
from smembench.report.headline import Headline, headline
from smembench.report.selection import by_time, whole
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.accept import accepted_beside
from smembench.studies.compare import compare_runs
from smembench.studies.compare.beside import beside
from smembench.studies.compare.verdicts import CHANGED
from smembench.studies.history.read import night_of
from smembench.studies.history.revisions import by_revision
from smembench.studies.history.series import series_of
from smembench.studies.ladder.climb import climb
from smembench.studies.probe.sheet import of_run
from smembench.views.break_even import where_it_pays
from smembench.views.compare import comparison_sections
from smembench.views.history import history_sections, runs_of, series_names
from smembench.views.history_notes import percent
from smembench.views.ladder import ladder, ladders
from smembench.views.limits import limits
from smembench.views.probe import sections as data_sheet
from smembench.views.reproduce import documented, figures, reproduction
from smembench.views.sections import Section, groups, sections, size_text, subject
from smembench.views.summary import gpus, usual
from smembench.views.sustained import sustained

_SERIES = 3
"""Fewest runs of a case that make a series."""
_STEPS = 3
"""Fewest lines of a ladder that is shown."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Tables and charts under one heading, with text above them; ``folded`` ones are open on demand."""

    heading: str
    text: Sequence[str] = ()
    sections: Sequence[Section] = ()
    charts: Sequence[Chart] = ()
    folded: Sequence[Topic] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.sections or self.charts or self.folded)


@dataclass(frozen=True, slots=True)
class Chapter:
    """Topics about one run, or about all of them."""

    heading: str
    topics: Sequence[Topic]

    @property
    def every(self) -> list[Topic]:
        """The topics, each before those that are folded in it."""
        return [part for topic in self.topics for part in (topic, *topic.folded)]


@dataclass(frozen=True, slots=True)
class Report:
    """A page."""

    headline: Headline
    chapters: Sequence[Chapter]

    @property
    def topics(self) -> list[Topic]:
        """Every topic, each before those that are folded in it."""
        return [topic for chapter in self.chapters for topic in chapter.every]

    @property
    def charts(self) -> list[Chart]:
        """Every chart once, in order."""
        first = [self.headline.chart] if self.headline.chart else []
        return [*first, *(chart for topic in self.topics for chart in topic.charts)]


def contents(runs: Sequence[Run]) -> Report:
    """The report of at least one run: what changed between runs, then each run that is not replaced by a newer one."""
    ordered = by_time(runs)
    shown = whole(ordered)
    name_of = run_names(ordered)
    moved = _history(ordered)
    moved += [_comparison(before, stored, name_of(before)) for stored, before in shown if before is not None]
    chapters = [Chapter("What changed", moved)] if moved else []
    chapters += [_of_run(stored, name_of(stored)) for stored, _ in reversed(shown)]
    text = "If several runs have the same configuration and devices, only the newest is shown in full."
    chapters.append(
        Chapter("Runs", [Topic("Runs", [text] if len(ordered) > len(shown) else [], [overview(ordered, name_of)])])
    )
    moves = [text for topic in moved for text in topic.text]
    top = headline(ordered, moves, Report(Headline("", "", (), None), chapters).charts)
    return _distinct(Report(top, chapters))


def _comparison(before: Run, stored: Run, name: str) -> Topic:
    comparison = compare_runs([before], [stored], beside=beside([before], [stored]))
    if not comparison.cases:
        return Topic(f"Against {name}", [f"It has no case in common with {name}."])
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items() if count)
    most = max(
        comparison.cases, key=lambda case: abs(log(case.ratio)) * (case.verdict in CHANGED) if case.ratio else 0.0
    )
    if most.ratio and most.verdict in CHANGED:
        counts += f"; the largest change is {percent(most.ratio)}, of {most.case.kernel} {size_text(most.case)}"
    text = f"Of {number_of(len(comparison.cases), 'case')} against {name}: {counts}."
    charts = _known(changes(comparison, f"Changes against {name}"))
    return Topic(f"Against {name}", [text], comparison_sections(comparison), charts)


def _history(ordered: Sequence[Run]) -> list[Topic]:
    meant = accepted_beside(stored.path for stored in ordered if stored.path)
    nights = [night_of(stored) for stored in ordered]
    every = series_of(nights, accepted=meant)
    series = [one for one in every if len(one.times) >= _SERIES]
    slower = [one for one in series if one.slowed]
    runs = len(runs_of(series))
    among = number_of(runs, "run") if runs == len(ordered) else f"{runs} of {len(ordered)} runs"
    count = number_of(len(slower), "unaccepted slowdown") if slower else "No unaccepted slowdowns"
    text = f"{count} in {number_of(len(series), 'case')} over {among}"
    if slower and (turn := slower[0].slowed):
        text += (
            f"; {series_names(series)[series.index(slower[0])]} {percent(slower[0].ratio)} since {turn.night.run_id}"
        )
    revisions, _ = by_revision(nights)
    by_commit = series_of(revisions, accepted=meant) if len(revisions) >= _SERIES else []
    charts = _known(over_runs(series), over_runs([one for one in by_commit if len(one.times) >= _SERIES]))
    return [Topic("History", [f"{text}."], history_sections(series), charts)] if charts else []


def _known(*charts: Chart | None) -> list[Chart]:
    """The charts that have anything to show."""
    return [chart for chart in charts if chart is not None]


def _of_run(stored: Run, name: str) -> Chapter:
    topics = [
        _ladders(stored),
        Topic("Over sizes", (), [*limits(stored), *where_it_pays(stored)], over_sizes(stored)),
        Topic("Under load", (), sustained(stored), _known(under_load(stored))),
        Topic("Rooflines", without_roof(stored), charts=rooflines(stored)),
        _documents(stored),
        _data_sheet(stored),
        _cases(stored),
        Topic("Environment", folded=[Topic(part.heading, (), [part]) for part in environment(stored.description)]),
    ]
    return Chapter(name, [*filter(None, topics)])


def _documents(stored: Run) -> Topic:
    tables = figures(stored)
    charts = [
        gains(rows, gpus(stored.only(rows)), section)
        for rows, section in zip(documented(stored.rows), tables, strict=True)
    ]
    return Topic("The documents' figures", (), reproduction(stored, why=True), _known(*charts))


def _data_sheet(stored: Run) -> Topic:
    """Of the GPU, if the run's folder has one: the latencies, and the other families folded."""
    sheet = of_run(stored)
    if sheet is None:
        return Topic("")
    device, first, *others = data_sheet(sheet)
    folded = [Topic(section.heading, (), [section]) for section in others]
    return Topic("The data sheet", [device.heading], [first], _known(latencies(sheet, first)), folded)


def _ladders(stored: Run) -> Topic:
    """The ladder of most steps of each problem, and the others folded."""
    steep = [part for part in ladders(stored) if len(climb(part)) >= _STEPS]
    first, rest = [], []
    for of_problem in grouped(steep, lambda part: part.rows[0].problem).values():
        longest, *others = sorted(of_problem, key=lambda part: usual(part.rows))
        first.append(_ladder(longest))
        rest += [_ladder(part) for part in others]
    charts = [chart for topic in first for chart in topic.charts]
    return Topic("Ladders", (), [section for topic in first for section in topic.sections], charts, rest)


def _ladder(part: Run) -> Topic:
    row = part.rows[0]
    several = len(part.description.devices) > 1 + (part.description.device("cpu") is not None)
    name = f"{subject(row)}, {row.device}" if several else subject(row)
    section, *lost = ladder(part)
    whole_table = replace(section, cells=[line for one in (section, *lost) for line in one.cells])
    return Topic(name, (), [section, *lost], [climbed(part, climb(part), whole_table, _name(row), name)])


def _cases(stored: Run) -> Topic:
    """A table of all cases of each problem, and of each size, dtype and so on the rates and samples, folded."""
    every = [cases(stored.only(rows)) for rows in grouped(stored.rows, lambda row: row.problem).values()]
    parts = []
    for rows, section in zip(groups(stored.rows), sections(stored), strict=True):
        heading, name = subject(rows[0]), _name(rows[0])
        charts = _known(rates(section, name, heading), strips(rows, stored, name, heading))
        parts.append(Topic(heading, (), [section], charts))
    return Topic("Every case", (), every, folded=parts)


def _name(row: Row) -> str:
    """The file name of the charts of a row's table."""
    stride = f"s{row.stride}" if row.stride else ""
    size = "-".join([row.case.size, *(f"{name}{number}" for name, number in row.case.parameters)])
    inputs = "" if row.inputs == UNIFORM else row.inputs
    layout = "" if row.b_layout == BY_ROWS else f"b-{row.b_layout}"
    return file_name(f"{row.problem}-{size}-{stride}-{row.dtype}-{inputs}-{layout}-{row.cache}")


def _distinct(report: Report) -> Report:
    """The same, with charts of one title or name told apart; the first screen's chart is shown there only.

    Of several with one title each has its chapter in its caption; later ones of a name have a number.
    """
    top, names = report.headline.chart, Counter[str]()
    every = [(chart, part.heading) for part in report.chapters for topic in part.every for chart in topic.charts]
    often = Counter(chart.title for chart, _ in every)
    chapters = {id(chart): heading for chart, heading in every if often[chart.title] > 1}

    def renamed(chart: Chart) -> Chart:
        names[chart.name] += 1
        name = chart.name if names[chart.name] == 1 else f"{chart.name}-{names[chart.name]}"
        caption = f"{chart.caption} {chapters[id(chart)]}." if id(chart) in chapters else chart.caption
        return replace(chart, name=name, caption=caption)

    def of(topic: Topic) -> Topic:
        charts = [renamed(chart) for chart in topic.charts if chart is not top]
        return replace(topic, charts=charts, folded=[of(part) for part in topic.folded])

    first = replace(report.headline, chart=renamed(top)) if top else report.headline
    return Report(first, [replace(part, topics=[*filter(None, map(of, part.topics))]) for part in report.chapters])
