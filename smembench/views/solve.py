"""The lines and records of ``smembench lesson solve``: the exercises, and a file's grade."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from smembench.model.groups import grouped
from smembench.studies.solve.exercise import Exercise
from smembench.studies.solve.exercises import EXERCISES
from smembench.studies.solve.grade import Grade
from smembench.studies.solve.progress import state
from smembench.views.records import Record

_WIDTH = 79
COMMAND = "smembench lesson solve"


def exercise_records(folder: Path) -> list[Record]:
    """The exercises in order, each with the state of its file in a folder."""
    return [
        {"exercise": exercise.name, "state": state(exercise, folder / f"{exercise.name}.py"), "what": exercise.what}
        for exercise in EXERCISES.values()
    ]


def exercise_lines(records: Sequence[Record]) -> Iterator[str]:
    """A line per exercise, and the next command."""
    yield f"{COMMAND} NAME writes NAME.py here, and grades it from then on"
    for record in records:
        yield f"  {record['exercise']:<10} {record['state']:<7} {record['what']}"
    unsolved = (record["exercise"] for record in records if record["state"] != "solved")
    if name := next(unsolved, None):
        yield f"next: {COMMAND} {name}"


def fault_lines(path: Path, grade: Grade) -> Iterator[str]:
    """The faults, those of a line below it."""
    yield f"{path}: the results are right, but" if grade.right else f"{path}:"
    for (line, source), faults in grouped(grade.faults, lambda fault: (fault[0].line, fault[1])).items():
        indent = "    " if line else "  "
        if line:
            yield f"  line {line}: {source}"[:_WIDTH]
        for fault, _ in faults:
            yield from wrap(fault.text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")


def hint_lines(exercise: Exercise) -> list[str]:
    """The hint in lines that fit the screen."""
    return wrap(exercise.hint, _WIDTH)


def figure_lines(before: Mapping[str, float], now: Mapping[str, float]) -> Iterator[str]:
    """The figures of the file as it was written, and now, but for those that were and are 0."""
    shown = {name: figure for name, figure in now.items() if before[name] or figure}
    width = max(map(len, shown))
    yield f"  {'':<{width}}  before    now"
    for name, figure in shown.items():
        yield f"  {name:<{width}}  {_figure(before[name]):>6} {_figure(figure):>6}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.4g}"


def grade_record(name: str, path: Path, grade: Grade) -> dict[str, object]:
    """The grade for programs."""
    return {
        "exercise": name,
        "file": str(path),
        "solved": grade.solved,
        "right": grade.right,
        "figures": dict(grade.figures),
        "faults": [{"line": fault.line or None, "text": fault.text} for fault, _ in grade.faults],
    }
