"""``smembench report``: stored runs as one HTML file, and single figures for slides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.model.errors import UsageError

_DEFAULT = Path("report.html")


def report(
    paths: Annotated[list[Path], typer.Argument(metavar="DIR|cases.csv…", help="Runs' folders or CSVs of cases.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The HTML file; - for stdout. (default: report.html)"),
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="DIR", help="Write figures as PNG into DIR, for slides.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="DIR", help="Write figures as SVG into DIR, for slides.")] = None,
    figure: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="With --png or --svg: only these figures; * matches anything.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing HTML file.")] = False,
) -> None:
    """Write stored runs as one self-contained HTML file.

    With --png or --svg figures are written as files, named as in the report, and HTML only if -o is given. Several
    runs of one configuration are compared, and the newest is shown in full. Needs the report extra (jinja2 and
    matplotlib).

    Examples:

      smembench report results/20260101T020000Z-nightly -o report.html
      smembench report results/*-nightly -o nightly.html --force
      smembench report results/20260101T020000Z-nightly --png slides --figure "ladder-*,roofline-*"
    """
    from smembench.model.version import VERSION
    from smembench.report.contents import contents, plots
    from smembench.report.files import check_extra, chosen, write_figures
    from smembench.report.page import page
    from smembench.report.selection import title
    from smembench.store.files import Output, resolved
    from smembench.studies.load import load
    from smembench.views.console import say, stderr

    target = output or (None if png or svg else _DEFAULT)
    if figure is not None and not (png or svg):
        raise UsageError(f"--figure {figure}: chooses what --png and --svg write; give one of them")
    page_file = Output(target, force=force, what="-o") if target is not None and str(target) != "-" else None
    check_extra()
    runs = [load(path) for path in {resolved(path): path for path in paths}.values()]
    if not any(run.rows for run in runs):
        raise UsageError(f"{paths[0]}: holds no cases; give a run that measured something")
    chapters = contents(runs)
    figures = chosen(plots(chapters), figure)
    for kind, folder in (("png", png), ("svg", svg)):
        if folder is not None:
            write_figures(figures, kind, folder)
            say(stderr, f"wrote {len(figures)} figures to {folder}")
    if target is None:
        return
    text = page(chapters, title=title(runs), version=VERSION)
    if page_file is None:
        typer.echo(text, nl=False)
    else:
        page_file.write(text)
        say(stderr, f"wrote {target}")
