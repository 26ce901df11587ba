"""The contents of a report: chapters of topics, each with its tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smembench.report.canvas import Plot, file_name
from smembench.report.environment import environment, overview
from smembench.report.figures.comparison import changes
from smembench.report.figures.documents import gains
from smembench.report.figures.history import over_runs
from smembench.report.figures.ladder import ladder
from smembench.report.figures.roofline import rooflines, without_roof
from smembench.report.figures.samples import strips
from smembench.report.figures.sizes import over_sizes
from smembench.report.selection import by_time, whole
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.accept import accepted_beside
from smembench.studies.compare import compare_runs
from smembench.studies.history.read import night_of
from smembench.studies.history.series import series_of
from smembench.views.compare import comparison_sections
from smembench.views.history import history_sections
from smembench.views.ladder import ladder as steps
from smembench.views.reproduce import documented, reproduction
from smembench.views.sections import Section, device_names, groups, sections, subject

_SERIES = 3
"""Fewest runs of a case that make a series."""
_STEPS = 5
"""Fewest lines of a ladder with a topic of its own: more than the documents' kernels and the ceiling."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Tables and figures under one heading, with text above them."""

    heading: str
    text: Sequence[str] = ()
    sections: Sequence[Section] = ()
    plots: Sequence[Plot] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    """Topics about one run, or about all of them."""

    heading: str
    topics: Sequence[Topic]


def contents(runs: Sequence[Run]) -> list[Chapter]:
    """The chapters of a report of at least one run: what changed between runs, then each run that is shown in full."""
    ordered = by_time(runs)
    shown = whole(ordered)
    text = "If several runs have the same configuration and devices, only the newest is shown in full."
    topics = [Topic("Runs", [text] if len(ordered) > len(shown) else [], [overview(ordered)])]
    topics += [_comparison(before, stored) for stored, before in shown if before is not None]
    topics += _history(ordered)
    return _distinct([Chapter("Overview", topics), *(_of_run(stored) for stored, _ in shown)])


def _comparison(before: Run, stored: Run) -> Topic:
    found = compare_runs([before], [stored])
    heading = f"{stored.id} against {before.id}"
    return Topic(heading, (), comparison_sections(found), _known(changes(found, file_name(stored.id))))


def _history(ordered: Sequence[Run]) -> list[Topic]:
    meant = accepted_beside(stored.path for stored in ordered if stored.path)
    found = series_of([night_of(stored) for stored in ordered], accepted=meant)
    series = [one for one in found if len(one.times) >= _SERIES]
    plots = _known(over_runs(series))
    return [Topic("History", (), history_sections(series, fine=True), plots)] if plots else []


def _known(*plots: Plot | None) -> list[Plot]:
    """The figures that have anything to show."""
    return [plot for plot in plots if plot is not None]


def _of_run(stored: Run) -> Chapter:
    topics = [
        _documents(stored),
        Topic("Over sizes", plots=over_sizes(stored.rows)),
        Topic("Roofline", without_roof(stored), plots=rooflines(stored)),
        _ladders(stored),
        *_tables(stored),
        Topic("Environment", sections=environment(stored.description)),
    ]
    return Chapter(stored.id, [topic for topic in topics if topic.sections or topic.plots or topic.text])


def _documents(stored: Run) -> Topic:
    plots = [gains(rows, _here(stored.only(rows))) for rows in documented(stored.rows)]
    return Topic("The documents' figures", (), reproduction(stored), _known(*plots))


def _here(run: Run) -> str:
    """The devices of a run, without the CPU if it has others."""
    return device_names(run.only([row for row in run.rows if row.device != "cpu"] or run.rows))


def _ladders(stored: Run) -> Topic:
    """The ladders, with what each step changes and gains."""
    found = [
        (section, ladder(section, f"steps-{_name(rows[0])}", f"the ladder of {subject(rows[0])}"))
        for rows in groups(stored.rows)
        for section in steps(stored.only(rows))
        if len(section.cells) >= _STEPS
    ]
    return Topic("Ladders", (), [section for section, _ in found], _known(*(plot for _, plot in found)))


def _tables(stored: Run) -> list[Topic]:
    topics = []
    for rows, section in zip(groups(stored.rows), sections(stored), strict=True):
        heading, name = subject(rows[0]), _name(rows[0])
        plots = _known(ladder(section, name, heading), strips(rows, stored, name, heading))
        topics.append(Topic(heading, (), [section], plots))
    return topics


def _name(row: Row) -> str:
    """The file name of the figures of a row's table."""
    stride = f"s{row.stride}" if row.stride else ""
    size = "-".join([row.case.size, *(f"{name}{number}" for name, number in row.case.parameters)])
    return file_name(f"{row.problem}-{size}-{stride}-{row.dtype}-{row.cache}")


def _distinct(chapters: Sequence[Chapter]) -> list[Chapter]:
    """The same chapters, with a number added to repeated names of figures."""
    names: Counter[str] = Counter()

    def renamed(plot: Plot) -> Plot:
        names[plot.name] += 1
        return plot if names[plot.name] == 1 else replace(plot, name=f"{plot.name}-{names[plot.name]}")

    def of(topic: Topic) -> Topic:
        return replace(topic, plots=[renamed(plot) for plot in topic.plots])

    return [replace(chapter, topics=[of(topic) for topic in chapter.topics]) for chapter in chapters]


def plots(chapters: Sequence[Chapter]) -> list[Plot]:
    """Every figure, in order."""
    return [plot for chapter in chapters for topic in chapter.topics for plot in topic.plots]
