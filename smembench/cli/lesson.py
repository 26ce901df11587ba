"""``smembench lesson``: what the documents' listings do, their mistakes included."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import Outputs, changed
from smembench.cli.output import only_json, opened
from smembench.cli.signature import option, takes
from smembench.cli.solve import solve
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.text import number_of
from smembench.studies.lesson import LESSONS

if TYPE_CHECKING:
    from smembench.studies.lesson.experiment import Experiment


_HELP = """Run the documents' listings with their mistakes, or solve exercises.

Examples:

  smembench lesson barrier --runs 200

  smembench lesson bounds --device cpu

  smembench lesson solve padding
"""
app = typer.Typer(help=_HELP, invoke_without_command=True)


@app.callback()
@takes(outputs=Outputs)
def _list(context: typer.Context, *, outputs: Outputs) -> None:
    from smembench.views.list import lessons, lines

    if context.invoked_subcommand is None:
        target = opened(outputs, but=only_json("goes with a lesson's name"))
        exercises = "exercises, graded without a GPU: smembench lesson solve"
        target.show_lines([*lines("lessons", lessons()), exercises], lessons=lessons())
    elif given := changed(outputs):
        raise UsageError(f"{given[0]}: give it after {context.invoked_subcommand}")


@takes(outputs=Outputs)
def lesson(
    context: typer.Context,
    *,
    runs: int = option("N", "How often a GPU repeats what depends on timing.", min=1, default=100),
    device: str = option("NAME", "auto, cuda, cuda:1; cpu for Numba's simulator.", default="auto"),
    outputs: Outputs,
) -> None:
    """Run a textbook listing, bugs included, and check what it does.

    Each experiment compares what it does with what it should do.

    Without a GPU Numba's simulator runs the kernels, as far as it can show something, and rows that need a GPU say so.
    A kernel that may never end is killed, and its row says so. The exit code is 1 if a row shows something unexplained.
    """
    from smembench.studies.lesson.experiment import load
    from smembench.studies.lesson.run import results
    from smembench.studies.lesson.run import where as device_of
    from smembench.views.console import notes, say
    from smembench.views.export import Result
    from smembench.views.lesson import lesson_records, section

    name = str(context.info_name)
    loaded, where = load(name), device_of(device)
    target = opened(outputs)
    number = count(1)

    def begin(experiment: Experiment) -> None:
        say(notes, f"{next(number)} of {len(loaded.experiments)}: {experiment.what}")

    outcomes = list(results(name, where.name, runs, begin))
    rows = lesson_records(name, outcomes)
    data = {"device": asdict(where), "rows": rows, "why": loaded.why, "check": loaded.check}
    target.show(Result(sections=[section(name, where, outcomes)], data=lambda: data, rows=lambda: rows))
    if failed := sum(result.failed for result in outcomes):
        raise SmembenchError(f"{failed} of {number_of(len(outcomes), 'experiment')} did not show what they should")


for name in LESSONS:
    app.command(name, short_help=LESSONS[name])(lesson)
app.command()(solve)
