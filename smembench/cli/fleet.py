"""``smembench fleet``: the same config on many GPUs of one or many hosts, and which of them is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.cli.options import help_alone

app = typer.Typer(help="Measure many GPUs of one or many hosts, and see which is slow.", invoke_without_command=True)
app.callback()(help_alone)


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a fleet, or any folder of runs.")],
) -> None:
    """Show the GPUs of a fleet.

    Examples:

      smembench fleet show results/20260101T020000Z-fleet
    """
    from smembench.studies.fleet.read import read_fleet
    from smembench.views.console import say, stdout

    for member in read_fleet(folder).members:
        cases = f"{len(member.run.rows)} cases" if member.run else "nothing measured"
        say(stdout, "  ".join(filter(None, (member.label, member.model, cases, member.reason))))
