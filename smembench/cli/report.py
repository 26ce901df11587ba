"""``smembench report``: stored runs as one HTML file, and single figures for slides."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

from smembench.cli.options import QUIET
from smembench.cli.signature import argument, flag, option
from smembench.model.errors import UsageError

_DEFAULT = Path("report.html")


def report(
    paths: list[Path] = argument("DIR|cases.csv…", "Runs' folders, folders of runs, or CSVs of cases.", default=...),
    output: Path | None = option(
        "FILE", "The HTML file; - for stdout. (default: report.html)", "--export", "--output", "-o"
    ),
    png: Path | None = option("DIR", "Write figures as PNG into DIR, for slides."),
    svg: Path | None = option("DIR", "Write figures as SVG into DIR, for slides."),
    figure: str | None = option("NAME,…", "With --png or --svg: only these figures; * matches anything."),
    fleet: bool = flag("Treat the runs of a folder as a fleet: which GPU is slow? (default: if it is a fleet's)"),
    quiet: bool = QUIET,
    force: bool = flag("Replace an existing HTML file."),
) -> None:
    """Write stored runs as one self-contained HTML file.

    The page begins with the findings, then shows what changed between runs, then each run: ladders, sizes, rooflines
    and every case. All runs in a folder are read. Of several runs of one configuration, the newest is shown and
    compared with the one before. For a fleet's folder the page shows which GPU is slow, with strips and tables of all.
    --png and --svg write the charts as files, and HTML only if --export is given. Needs the report extra: pip install
    'smembench\\[report]'.

    Examples:

      smembench report results/last --export report.html
      smembench report results --export nightly.html --force
      smembench report results/20260101T020000Z-fleet --export fleet.html
      smembench report results/last --png slides --figure "ladder-*,roofline-*"
    """
    from smembench.model.text import number_of
    from smembench.report.contents import contents
    from smembench.report.files import check_extra, chosen, write_figures
    from smembench.report.page import page
    from smembench.store.files import Output, there
    from smembench.store.fleet_json import FLEET
    from smembench.studies.history.read import read_runs
    from smembench.views.console import notes, say, stderr
    from smembench.views.progress import steps

    target = output or (None if png or svg else _DEFAULT)
    if figure is not None and not (png or svg):
        raise UsageError(f"--figure {figure}: chooses what --png and --svg write; give one of them")
    page_file = Output(target, force=force, what="-o") if target is not None and str(target) != "-" else None
    check_extra("report", "jinja2", "vl_convert")
    if fleet and len(paths) > 1:
        raise UsageError(f"--fleet: is about one folder, not {len(paths)}")
    if fleet or (len(paths) == 1 and there(paths[0] / FLEET)):
        from smembench.cli.fleet_show import judged
        from smembench.report.fleet import fleet_contents

        report = fleet_contents(judged(paths[0]))
    else:
        with steps() as step:
            runs, skipped = read_runs(paths, step)
        for line in skipped:
            say(stderr, line)
        if not any(run.rows for run in runs):
            raise UsageError(f"{paths[0]}: holds no cases; give a run that measured something")
        report = contents(runs)
    figures = chosen(report.charts, figure)
    kinds: tuple[tuple[Literal["png", "svg"], Path | None], ...] = (("png", png), ("svg", svg))
    for kind, folder in kinds:
        if folder is not None:
            with steps() as step:
                write_figures(figures, kind, folder, step)
            say(notes, f"wrote {number_of(len(figures), 'chart')} to {folder}")
    if target is None:
        return
    text = page(report)
    if page_file is None:
        typer.echo(text, nl=False)
    else:
        page_file.write(text)
        say(notes, f"wrote {target}")
