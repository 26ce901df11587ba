"""``smembench lesson``: what the documents' listings do, their mistakes included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli.options import one_of
from smembench.studies.lesson import LESSONS

if TYPE_CHECKING:
    from smembench.studies.lesson.experiment import Experiment


def complete_lesson(incomplete: str) -> list[str]:
    """Names of lessons."""
    return [name for name in LESSONS if name.startswith(incomplete)]


def lesson(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="LESSON", help=f"{', '.join(LESSONS)}; lists them without it.", autocompletion=complete_lesson
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often a GPU repeats what depends on timing.")] = 100,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="auto, cuda, cuda:1; cpu for Numba's simulator.")
    ] = "auto",
    csv: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the rows as CSV.")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
) -> None:
    """Run a listing of the documents, its mistakes included, and say what it should show and what it showed.

    Without a GPU Numba's simulator runs the kernels, as far as it can show something, and rows that need a GPU say so.
    What may never end is killed, which is a row too. The exit code is 1 if a row shows what nothing explains.

    Examples:

      smembench lesson
      smembench lesson barrier --runs 200
      smembench lesson bounds --device cpu
      smembench lesson fence --json
    """
    from smembench.model.text import json_text
    from smembench.store.files import Output
    from smembench.studies.lesson.experiment import load
    from smembench.studies.lesson.run import results
    from smembench.studies.lesson.run import where as device_of
    from smembench.views.console import say, stderr, stdout
    from smembench.views.csv import csv as as_csv
    from smembench.views.lesson import data, section
    from smembench.views.list import lessons
    from smembench.views.markdown import markdown as as_markdown
    from smembench.views.table import draw

    one_of(json=json, markdown=markdown)
    if name is None:
        for line in lessons():
            say(stdout, line)
        return
    output = Output(csv) if csv is not None else None
    experiments, where = load(name).experiments, device_of(device)

    def begin(experiment: Experiment) -> None:
        say(stderr, f"{experiments.index(experiment) + 1} of {len(experiments)}: {experiment.what}")

    found = list(results(name, where.name, runs, begin))
    shown = section(name, where, found)
    if output is not None:
        output.write(as_csv(shown))
    if json:
        typer.echo(json_text(data(name, where, found), indent=2))
    elif markdown:
        typer.echo(as_markdown([shown]), nl=False)
    else:
        draw(stdout, [shown])
    if any(result.failed for result in found):
        raise typer.Exit(1)
