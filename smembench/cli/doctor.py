"""``smembench doctor``: what is installed, what is missing, and whether the timers are right."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from smembench.cli.options import Json
from smembench.cli.output import print_json, show
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.text import number_of


def doctor(
    timing: Annotated[
        bool, typer.Option("--timing", help="Compare the timers with Nsight Compute; needs a GPU and ncu.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the times as CSV.")] = None,
    json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing CSV.")] = False,
) -> None:
    """Check what is installed, and print the command that fixes what is missing.

    Exit code 1 means that nothing can be measured, or that the timers disagree with ncu.

    Examples:

      smembench doctor
      smembench doctor --timing
    """
    if timing:
        _timing(csv, json=json, force=force)
        return
    if csv is not None:
        raise UsageError(f"--csv {csv}: goes with --timing")
    from smembench.studies.doctor.installation import examine
    from smembench.views.console import say, stdout
    from smembench.views.doctor import lines

    found = examine()
    if json:
        print_json(checks=[asdict(check) for check in found])
    else:
        for line in lines(found):
            say(stdout, line)
    if broken := [check for check in found if check.fatal]:
        raise SmembenchError(f"nothing can be measured: {broken[0].what}: {broken[0].found}")


def _timing(csv: Path | None, *, json: bool, force: bool) -> None:
    from smembench.devices.select import open_device
    from smembench.run.environment import versions
    from smembench.run.session import locked
    from smembench.store.files import Output
    from smembench.studies.doctor.timing import compare
    from smembench.views.doctor import section, timing_records
    from smembench.views.records import csv as as_csv

    output = Output(csv, force=force) if csv is not None else None
    with locked(["cuda:0"]):
        info = open_device("cuda:0").info
        found = list(compare())
    show([section(found, info, versions())], json=json, device=info.known, timings=timing_records(found))
    if output is not None:
        output.write(as_csv(timing_records(found)))
    if others := sum(not item.agrees for item in found):
        raise SmembenchError(f"{others} of {number_of(len(found), 'median')} differ from Nsight Compute's")
