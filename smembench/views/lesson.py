"""The table of ``smembench lesson``: what each experiment should show, and what it showed."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.studies.lesson import LESSONS
from smembench.studies.lesson.experiment import load
from smembench.studies.lesson.run import Result, Where
from smembench.views.sections import Section, libraries, table

_MARKS = {True: "yes", False: "no", None: ""}


def section(name: str, where: Where, found: Sequence[Result]) -> Section:
    """A line per experiment, why below them, and for each that came out otherwise the reason."""
    lesson = load(name)
    return table(
        " · ".join(filter(None, (where.model, LESSONS[name], lesson.document, libraries(where.versions)))),
        found,
        {
            "experiment": lambda result: result.experiment.what,
            "on": lambda result: result.on,
            "expected": lambda result: result.experiment.expected,
            "found": lambda result: result.found.text,
            "as\nexpected": lambda result: "NO" if result.failed else _MARKS[result.found.as_expected],
        },
        words=("experiment", "on", "expected", "found", "as\nexpected"),
        sentence=lesson.why,
        notes=[_note(result) for result in found if result.found.as_expected is False],
    )


def _note(result: Result) -> str:
    return f"{result.experiment.what}: {result.experiment.unless or 'failed: nothing explains it'}"


def data(name: str, where: Where, found: Sequence[Result]) -> dict[str, object]:
    """The same for programs; ``as_expected`` is null where a row could not be run here."""
    lesson = load(name)
    rows = [
        {
            "experiment": result.experiment.what,
            "on": result.on,
            "expected": result.experiment.expected,
            "found": result.found.text,
            "as_expected": result.found.as_expected,
            "failed": result.failed,
        }
        for result in found
    ]
    return {
        "lesson": name,
        "document": lesson.document,
        "device": where.model or where.name,
        "versions": dict(where.versions),
        "rows": rows,
        "why": lesson.why,
    }
