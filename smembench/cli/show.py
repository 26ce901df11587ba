"""``smembench show``: a stored run as tables, Markdown or LaTeX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.views.sections import Section


def show(
    path: Annotated[Path, typer.Argument(metavar="DIR|cases.csv", help="A run's folder or a CSV of cases.")],
    documents: Annotated[
        bool, typer.Option("--documents", help="Beside the documents' figures, as reproduce shows them.")
    ] = False,
    ladder: Annotated[
        bool, typer.Option("--ladder", help="Only the steps of the ladders, as ladder shows them.")
    ] = False,
    limits: Annotated[
        bool, typer.Option("--limits", help="Only the best kernel of each size, beside memcpy and libraries.")
    ] = False,
    compilers: Annotated[
        bool, typer.Option("--compilers", help="Only kernels and their ports, as compilers shows them.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="As LaTeX, with booktabs.")] = False,
) -> None:
    """Show the tables of a stored run. A run that was killed is read from its journal.

    Examples:

      smembench show results/20260101T020000Z-nightly

      smembench show results/20260101T020000Z-limits --limits

      smembench show cases.csv --markdown

      smembench show cases.csv --latex > tables.tex
    """
    from smembench.studies.load import load
    from smembench.views.console import stdout
    from smembench.views.latex import latex as as_latex
    from smembench.views.markdown import markdown as as_markdown
    from smembench.views.table import draw

    if markdown and latex:
        raise UsageError("--markdown --latex: give one of them")
    views = {"documents": documents, "ladder": ladder, "limits": limits, "compilers": compilers}
    chosen = [name for name, given in views.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"--{' --'.join(chosen)}: give one of them")
    found = _sections(load(path), chosen[0] if chosen else "")
    if chosen and not found:
        raise UsageError(f"{path}: has nothing that --{chosen[0]} shows")
    if markdown:
        typer.echo(as_markdown(found), nl=False)
    elif latex:
        typer.echo(as_latex(found), nl=False)
    else:
        draw(stdout, found)


def _sections(stored: Run, view: str) -> list[Section]:
    from smembench.views.compilers import of_run
    from smembench.views.ladder import ladder
    from smembench.views.limits import limits
    from smembench.views.reproduce import reproduction
    from smembench.views.sections import sections

    views = {"documents": reproduction, "ladder": ladder, "limits": limits, "compilers": of_run}
    return views.get(view, sections)(stored)
