"""``smembench history``: the time of each case over many stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.model.errors import REGRESSION, UsageError


def history(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Every complete run below it is read.")] = Path(
        "results"
    ),
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DATE", help="Only runs from this day on (UTC), such as 2026-01-31."),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option("--case", metavar="TEXT", help="Only cases whose id contains this, or matches it if it has a *."),
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="PERCENT", help="Smallest change of level to report.")
    ] = 1.0,
    json: Annotated[bool, typer.Option("--json", help="As JSON on stdout.")] = False,
    fail_on_change: Annotated[
        bool, typer.Option("--fail-on-change", help="Exit with code 3 if a case's newest stretch is slower.")
    ] = False,
) -> None:
    """Show every case over all runs in a folder: sparkline, changes of level, and what changed with them.

    A level has to hold for three runs, so one bad night is not a change. A slow drift is one once it adds up to the
    threshold. The newest stretch of each series is compared with the one before, and slower ones are listed first.
    Each GPU has its own series. To accept a change, give its day with --since.

    Examples:

      smembench history results

      smembench history results --case transposeSmemPad --since 2026-01-31

      smembench history results --case "matmul/*/4096x4096x4096/*" --json

      smembench history results --fail-on-change
    """
    from smembench.studies.history.choose import chosen, day
    from smembench.studies.history.read import read_nights
    from smembench.studies.history.series import Newest, series_of
    from smembench.views.console import can_show, say, stderr, stdout
    from smembench.views.history import LEVELS, history_data, history_sections
    from smembench.views.table import draw

    if not 0 < threshold < 1000:
        raise UsageError(f"--threshold {threshold:g}: give a percentage above 0, such as 1")
    nights, skipped = read_nights(folder, day(since))
    for one in skipped:
        say(stderr, f"skipped {one.path}: {one.reason}")
    if not nights:
        raise UsageError(f"{folder}: holds no complete run" + (f" since {since}" if since else ""))
    series = series_of(nights, chosen(nights, case), threshold / 100)
    if json:
        from smembench.store.run_folder import to_json

        typer.echo(to_json(history_data(nights, skipped, series)), nl=False)
    else:
        draw(stdout, history_sections(series, fine=can_show(stdout, LEVELS)))
    if fail_on_change and any(one.newest is Newest.SLOWER for one in series):
        raise typer.Exit(REGRESSION)
