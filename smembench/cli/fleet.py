"""``smembench fleet``: the same config on many GPUs of one or many hosts, and which of them is slow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli.fleet_run import run
from smembench.cli.options import help_alone
from smembench.model.errors import FAILED

if TYPE_CHECKING:
    from smembench.studies.fleet.run import Finished

app = typer.Typer(help="Measure many GPUs of one or many hosts, and see which is slow.", invoke_without_command=True)
app.callback()(help_alone)
app.command()(run)


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


def finish(finished: Finished) -> None:
    """Show a fleet that was measured, and exit with its exit code.

    Raises:
        SmembenchError: for what ended it before each GPU was complete or failed, and for Ctrl-C.
        typer.Exit: when a case or a GPU failed.
    """
    from smembench.cli.measure import Interrupted
    from smembench.model.errors import SmembenchError
    from smembench.studies.fleet.read import read_fleet
    from smembench.views.console import say, stderr

    show(finished.folder)
    say(stderr, f"wrote {finished.folder}")
    again = f"continue with: smembench fleet run --resume {finished.folder}"
    if isinstance(finished.error, KeyboardInterrupt):
        raise Interrupted(f"interrupted: what was measured is kept; {again}")
    if finished.error is not None:
        raise SmembenchError(f"{finished.error}; {again}")
    members = read_fleet(finished.folder).members
    if any(member.reason for member in members):
        say(stderr, again)
    if any(member.reason or (member.run and member.run.failed) for member in members):
        raise typer.Exit(FAILED)
