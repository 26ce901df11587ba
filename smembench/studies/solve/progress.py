"""A student's files in the working directory: written on demand, and which of them are solved.

The files are the progress. The cache only spares grading a file again that has not changed since it was solved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from smembench.model.errors import UsageError
from smembench.model.version import VERSION
from smembench.run.axes import unknown
from smembench.studies.solve.exercise import Exercise
from smembench.studies.solve.exercises import EXERCISES
from smembench.toolchains.kept_code import noted

State = Literal["", "written", "begun", "solved"]


def named(text: str) -> tuple[Exercise, Path]:
    """The exercise of a name, or of a file with that name, and its file.

    Raises:
        UsageError: if there is none.
    """
    path = Path(text if text.endswith(".py") else f"{text}.py")
    if path.stem not in EXERCISES:
        raise UsageError(f"{text}: {unknown(path.stem, list(EXERCISES), 'exercise')}")
    return EXERCISES[path.stem], path


def write(exercise: Exercise, path: Path) -> None:
    """Write the file to complete, never over another one.

    Raises:
        OSError: if there is a file already, and for a path that cannot be written.
    """
    with path.open("x", encoding="utf-8") as file:
        file.write(exercise.file.read_text(encoding="utf-8"))


def state(exercise: Exercise, path: Path) -> State:
    """State of a file: "" if there is none, as written, begun, or solved since it was last changed."""
    try:
        content = path.read_bytes()
    except OSError:
        return ""
    if content == exercise.file.read_bytes():
        return "written"
    return "solved" if noted(_solved(exercise, content)) else "begun"


def keep(exercise: Exercise, path: Path) -> None:
    """Note that a file, as it is now, is solved."""
    noted(_solved(exercise, path.read_bytes()), note=True)


def following(folder: Path) -> Exercise | None:
    """The first exercise that is not solved in a folder; None if all are."""
    every = ((exercise, folder / f"{exercise.name}.py") for exercise in EXERCISES.values())
    return next((exercise for exercise, path in every if state(exercise, path) != "solved"), None)


def _solved(exercise: Exercise, content: bytes) -> object:
    return "solved", VERSION, exercise.name, content
