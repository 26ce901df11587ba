"""``smembench lesson solve``: exercises for students."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smembench.cli.options import Outputs
from smembench.cli.output import Opened, only_json, opened
from smembench.cli.signature import argument, flag, takes
from smembench.model.errors import SmembenchError, UsageError

if TYPE_CHECKING:
    from smembench.studies.solve.exercise import Exercise


def complete_exercise(incomplete: str) -> list[str]:
    """Names of exercises."""
    from smembench.studies.solve.exercises import EXERCISES

    return [name for name in EXERCISES if name.startswith(incomplete)]


@takes(outputs=Outputs)
def solve(
    exercise: str | None = argument(
        "EXERCISE|FILE", "Its name, or its file; all are listed if none is given.", autocompletion=complete_exercise
    ),
    *,
    hint: bool = flag("Print a hint."),
    solution: bool = flag("Print a solution."),
    outputs: Outputs,
) -> None:
    """Complete or repair a kernel; it is graded without a GPU.

    The first call writes the exercise's file into the working directory, later calls grade it: its results on random
    numbers, races, barriers, bounds, bank conflicts and coalescing. The file is never overwritten; delete it to start
    over. The exit code is 0 if it is solved, 1 if not. Grading needs NVIDIA's compiler libraries.

    Examples:

      smembench lesson solve
      smembench lesson solve padding
      smembench lesson solve padding --hint
      smembench lesson solve course/padding.py
    """
    from smembench.studies.solve import progress
    from smembench.views import solve as views

    target = opened(outputs, but=only_json("a grade has lines, not tables; give .json"))
    if exercise is None:
        if hint or solution:
            raise UsageError(f"--{'hint' if hint else 'solution'}: name an exercise; {views.COMMAND} lists them")
        records = views.exercise_records(Path())
        target.show_lines(views.exercise_lines(records), exercises=records)
        return
    chosen, path = progress.named(exercise)
    if hint or solution:
        code = chosen.solution.read_text(encoding="utf-8")
        lines = code.splitlines() if solution else views.hint_lines(chosen)
        target.show_lines(lines, exercise=chosen.name, **({"solution": code} if solution else {"hint": chosen.hint}))
    elif path.is_file():
        _grade(chosen, path, target)
    else:
        progress.write(chosen, path)
        lines = [
            f"{path}: written. Complete it, then run the same command to grade it.",
            "It is never overwritten; delete it to start over.",
        ]
        target.show_lines(lines, exercise=chosen.name, file=str(path), written=True)


def _grade(exercise: Exercise, path: Path, target: Opened) -> None:
    """Show the grade of a file.

    Raises:
        SmembenchError: if it is not solved.
    """
    from smembench.studies.solve import progress
    from smembench.studies.solve.grade import graded, graded_apart
    from smembench.views import solve as views

    grade = graded_apart(exercise, path)
    record = views.grade_record(exercise.name, path, grade)
    if not grade.solved:
        target.show_lines(views.fault_lines(path, grade), **record)
        raise SmembenchError(f"{path}: not solved; --hint prints a hint")
    progress.keep(exercise, path)
    before = graded(exercise, exercise.file).figures
    lines = [f"{path}: solved", *views.figure_lines(before, grade.figures)]
    following = progress.following(path.parent)
    if following is None:
        lines.append("all exercises are solved")
    else:
        name = path.with_stem(following.name) if path.parent.name else following.name
        lines.append(f"next: {views.COMMAND} {name}")
    target.show_lines(lines, **record, before=before)
