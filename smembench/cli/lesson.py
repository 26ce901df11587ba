"""``smembench lesson``: what the documents' listings do, their mistakes included."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli.options import Outputs
from smembench.cli.output import only_json, opened
from smembench.cli.signature import takes
from smembench.model.errors import SmembenchError
from smembench.model.text import number_of
from smembench.studies.lesson import LESSONS

if TYPE_CHECKING:
    from smembench.studies.lesson.experiment import Experiment


def complete_lesson(incomplete: str) -> list[str]:
    """Names of lessons."""
    return [name for name in LESSONS if name.startswith(incomplete)]


@takes(outputs=Outputs)
def lesson(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="LESSON", help=f"{', '.join(LESSONS)}; listed if none is given.", autocompletion=complete_lesson
        ),
    ] = None,
    *,
    runs: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often a GPU repeats what depends on timing.")
    ] = 100,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="auto, cuda, cuda:1; cpu for Numba's simulator.")
    ] = "auto",
    outputs: Outputs,
) -> None:
    """Run a textbook listing, bugs included, and check what it does.

    Each experiment compares what it does with what it should do.

    Without a GPU Numba's simulator runs the kernels, as far as it can show something, and rows that need a GPU say so.
    A kernel that may never end is killed, and its row says so. The exit code is 1 if a row shows something unexplained.

    Examples:

      smembench lesson
      smembench lesson barrier --runs 200
      smembench lesson bounds --device cpu
      smembench lesson fence --json
    """
    from smembench.studies.lesson.experiment import load
    from smembench.studies.lesson.run import results
    from smembench.studies.lesson.run import where as device_of
    from smembench.views.console import notes, say
    from smembench.views.export import Result
    from smembench.views.lesson import lesson_records, section
    from smembench.views.list import lessons, lines

    if name is None:
        target = opened(outputs, but=only_json("goes with a lesson's name"))
        target.show_lines(lines("lessons", lessons()), lessons=lessons())
        return
    loaded, where = load(name), device_of(device)
    target = opened(outputs)
    number = count(1)

    def begin(experiment: Experiment) -> None:
        say(notes, f"{next(number)} of {len(loaded.experiments)}: {experiment.what}")

    found = list(results(name, where.name, runs, begin))
    rows = lesson_records(name, found)
    data = {"device": asdict(where), "rows": rows, "why": loaded.why, "check": loaded.check}
    target.show(Result(sections=[section(name, where, found)], data=lambda: data, rows=lambda: rows))
    if failed := sum(result.failed for result in found):
        raise SmembenchError(f"{failed} of {number_of(len(found), 'experiment')} did not show what they should")
