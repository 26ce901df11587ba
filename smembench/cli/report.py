"""``smembench report``: stored runs as one HTML file, and single figures for slides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from smembench.model.errors import SmembenchError, UsageError

if TYPE_CHECKING:
    from smembench.report.canvas import Plot

_DEFAULT = Path("report.html")


def report(
    paths: Annotated[list[Path], typer.Argument(metavar="DIR|cases.csv…", help="Runs' folders or CSVs of cases.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The HTML file; - for stdout. (default: report.html)"),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="DIR", help="Write figures as PNG into DIR, for slides.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="DIR", help="Write figures as SVG into DIR, for slides.")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option("--figure", metavar="NAME,…", help="Of --png and --svg only these; * stands for anything."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an HTML file that is there.")] = False,
) -> None:
    """Write stored runs as one HTML file, which needs no network.

    With --png or --svg figures become files, named as in the report, and HTML
    is written only where -o asks for it. Several runs of one configuration are
    compared, and the newest is shown whole. Needs the report extra (jinja2 and
    matplotlib).

    Examples:

      smembench report results/20260101T020000Z-nightly -o report.html

      smembench report results/*-nightly -o nightly.html --force

      smembench report results/20260101T020000Z-nightly --png slides --figure "ladder-*,roofline-*"
    """
    from smembench.model.version import VERSION
    from smembench.store.csv_files import check_writable
    from smembench.studies.load import load

    target = output or (None if png or svg else _DEFAULT)
    if figure is not None and not (png or svg):
        raise UsageError(f"--figure {figure}: chooses what --png and --svg write; give one of them")
    if target is not None and str(target) != "-":
        check_writable(target, force=force, what="-o")
    folders: dict[Literal["png", "svg"], Path] = {}
    if png is not None:
        folders["png"] = png
    if svg is not None:
        folders["svg"] = svg
    _check_extra()
    runs = [load(path) for path in {path.resolve(): path for path in paths}.values()]
    if not any(stored.rows for stored in runs):
        raise UsageError(f"{paths[0]}: holds no cases; give a run that measured something")
    from smembench.report.contents import contents, plots
    from smembench.report.page import page
    from smembench.report.selection import by_time

    chapters = contents(runs)
    chosen = _chosen(plots(chapters), figure)
    for kind, folder in folders.items():
        _write_figures(chosen, kind, folder)
    if target is not None:
        ids = [stored.id for stored in by_time(runs)]
        named = " and ".join(ids) if len(ids) < 3 else f"{len(ids)} runs, {ids[0]} to {ids[-1]}"
        _write_page(target, page(chapters, title=f"smembench report: {named}", version=VERSION))


def _check_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise UsageError(f'report needs {" and ".join(missing)}: pip install "smembench[report]"')


def _chosen(plots: Sequence[Plot], wanted: str | None) -> list[Plot]:
    from fnmatch import fnmatchcase

    from smembench.run.axes import split, unknown

    if wanted is None:
        return list(plots)
    names = [plot.name for plot in plots]
    found: dict[str, Plot] = {}
    for pattern in split(wanted):
        matching = {plot.name: plot for plot in plots if fnmatchcase(plot.name, pattern)}
        if not matching:
            raise UsageError(f"--figure {pattern!r}: {unknown(pattern, names, 'figure')}")
        found |= matching
    return list(found.values())


def _write_figures(plots: Sequence[Plot], kind: Literal["png", "svg"], folder: Path) -> None:
    from smembench.report.canvas import render
    from smembench.views.console import stderr

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for plot in plots:
            data, _ = render(plot, kind, titled=True)
            (folder / f"{plot.name}.{kind}").write_bytes(data)
    except OSError as error:
        raise SmembenchError(f"--{kind} {folder}: cannot be written ({error.strerror})") from None
    stderr.print(f"wrote {len(plots)} figures to {folder}", soft_wrap=True, markup=False)


def _write_page(target: Path, text: str) -> None:
    from smembench.store.csv_files import write_whole
    from smembench.views.console import stderr

    if str(target) == "-":
        typer.echo(text, nl=False)
        return
    try:
        write_whole(target, text)
    except OSError as error:
        raise SmembenchError(f"-o {target}: cannot be written ({error.strerror})") from None
    stderr.print(f"wrote {target}", soft_wrap=True, markup=False)
