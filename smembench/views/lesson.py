"""The table of ``smembench lesson``: what each experiment should show, and what it showed."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.studies.lesson import LESSONS
from smembench.studies.lesson.experiment import load
from smembench.studies.lesson.run import Result, Where
from smembench.views.records import Record
from smembench.views.sections import Section, libraries, table

_MARKS = {True: "yes", False: "no", None: ""}


def section(name: str, where: Where, results: Sequence[Result]) -> Section:
    """A line per experiment, why below them, and for each that came out otherwise the reason."""
    lesson = load(name)
    return table(
        " · ".join(filter(None, (where.model, LESSONS[name], lesson.document, libraries(where.versions)))),
        results,
        {
            "experiment": lambda result: result.experiment.what,
            "on": lambda result: result.on,
            "expected": lambda result: result.experiment.expected,
            "found": lambda result: result.observation.text,
            "as\nexpected": lambda result: "NO" if result.failed else _MARKS[result.observation.as_expected],
        },
        words=("experiment", "on", "expected", "found", "as\nexpected"),
    ).below(
        sentence=f"{lesson.why} How it is found: {lesson.check}.",
        notes=[
            f"{result.experiment.what}: {result.experiment.unless or 'failed: nothing explains it'}"
            for result in results
            if result.observation.as_expected is False
        ],
    )


def lesson_records(name: str, results: Sequence[Result]) -> list[Record]:
    """The same for programs; ``as_expected`` is None where a row could not be run here."""
    return [
        {
            "lesson": name,
            "experiment": result.experiment.what,
            "on": result.on,
            "expected": result.experiment.expected,
            "found": result.observation.text,
            "as_expected": result.observation.as_expected,
            "unless": result.experiment.unless,
        }
        for result in results
    ]
