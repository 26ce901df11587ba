"""``smembench show``: a stored run as tables, Markdown or LaTeX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.cli.options import Cases, Json, Markdown, one_of
from smembench.model.errors import UsageError


def show(
    path: Annotated[Path, typer.Argument(metavar="DIR|cases.csv", help="A run's folder, a CSV of cases, or last.")],
    documents: Annotated[
        bool, typer.Option("--documents", help="Beside the documents' figures, as reproduce shows them.")
    ] = False,
    ladder: Annotated[
        bool, typer.Option("--ladder", help="Only the steps of the ladders, as ladder shows them.")
    ] = False,
    limits: Annotated[
        bool, typer.Option("--limits", help="Only the best kernel of each size, beside the ceiling and libraries.")
    ] = False,
    compilers: Annotated[
        bool, typer.Option("--compilers", help="Only kernels and their ports, as compilers shows them.")
    ] = False,
    break_even: Annotated[
        bool, typer.Option("--break-even", help="Only the size from which a GPU's kernels are faster than the CPU.")
    ] = False,
    case: Cases = None,
    json: Json = False,
    markdown: Markdown = False,
    latex: Annotated[bool, typer.Option("--latex", help="As LaTeX, with booktabs.")] = False,
) -> None:
    """Show the tables of a stored run. A run that was killed is read from its journal.

    Examples:

      smembench show results/20260101T020000Z-nightly
      smembench show results/20260101T020000Z-limits --limits
      smembench show last --json
      smembench show last --case "transpose/*/4096x4096/*"
      smembench show cases.csv --markdown
      smembench show cases.csv --latex > tables.tex
    """
    from smembench.explain.prediction import predictor
    from smembench.store.load import load
    from smembench.studies.choose import chosen
    from smembench.studies.reproduce.devices import devices
    from smembench.views.break_even import tables, where_it_pays
    from smembench.views.compilers import of_run
    from smembench.views.console import say, stderr, stdout
    from smembench.views.export import exported
    from smembench.views.ladder import ladder as steps
    from smembench.views.limits import limits as best
    from smembench.views.reproduce import records, reproduction
    from smembench.views.table import draw

    form = one_of(json=json, markdown=markdown, latex=latex)
    view = one_of(documents=documents, ladder=ladder, limits=limits, compilers=compilers, break_even=break_even)
    views = {
        "documents": reproduction,
        "ladder": steps,
        "limits": best,
        "compilers": of_run,
        "break_even": where_it_pays,
    }
    run = load(path, predictor)
    if not run.complete:
        say(stderr, f"{path}: the run was cut off; this is what was measured until then")
    wanted = chosen([row.case_id for row in run.rows], case)
    if wanted is not None:
        run = run.only([row for row in run.rows if row.case_id in wanted])
    if not run.rows:
        raise UsageError(f"{path}: holds no cases; name a run that measured something")
    found = views.get(view, tables)(run)
    if view and not found:
        raise UsageError(f"{path}: has nothing that --{view.replace('_', '-')} shows")
    if form:
        parts = {"claims": records(devices(run))} if documents else {}
        typer.echo(exported(form, run, found, **parts), nl=False)
    else:
        draw(stdout, found)
