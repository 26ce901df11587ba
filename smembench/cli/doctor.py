"""``smembench doctor``: what is installed, what is missing, and whether the timers are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.cli.options import Json


def doctor(
    timing: Annotated[
        bool, typer.Option("--timing", help="Compare the timers with Nsight Compute; needs a GPU and ncu.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the timing table as CSV.")] = None,
    json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing CSV.")] = False,
) -> None:
    """Check what is installed, and print the command that fixes what is missing.

    Exit code 1 means that nothing can be measured, or that the timers and ncu disagree.
    """
    if timing:
        _timing(csv, json=json, force=force)
        return
    from smembench.studies.doctor.installation import examine
    from smembench.views.console import say, stdout
    from smembench.views.doctor import check_records, lines
    from smembench.views.records import json as as_json

    found = examine()
    if json:
        typer.echo(as_json(checks=check_records(found)), nl=False)
    else:
        for line in lines(found):
            say(stdout, line)
    if any(check.fatal for check in found):
        raise typer.Exit(1)


def _timing(csv: Path | None, *, json: bool, force: bool) -> None:
    from smembench.devices.select import open_device
    from smembench.run.environment import versions
    from smembench.run.session import locked
    from smembench.store.files import Output
    from smembench.studies.doctor.timing import compare
    from smembench.views.console import stdout
    from smembench.views.doctor import section, timing_records
    from smembench.views.records import csv as as_csv
    from smembench.views.records import json as as_json
    from smembench.views.table import draw

    output = Output(csv, force=force) if csv is not None else None
    with locked(["cuda:0"]):
        info = open_device("cuda:0").info
        found = list(compare())
    if json:
        typer.echo(as_json(device=info.known, timings=timing_records(found)), nl=False)
    else:
        draw(stdout, [section(found, info, versions())])
    if output is not None:
        output.write(as_csv(timing_records(found)))
    if not all(item.agrees for item in found):
        raise typer.Exit(1)
