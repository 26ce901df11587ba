"""``smembench fleet``: the same config on many GPUs of one or many hosts, and which of them is slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from smembench.cli.fleet_run import run
from smembench.cli.fleet_show import judged, show, tell
from smembench.cli.options import help_alone

if TYPE_CHECKING:
    from smembench.studies.fleet.run import Finished

_HELP = """Measure many GPUs of one or many hosts, and see which is slow.

Examples:

  smembench fleet run fleet

  smembench fleet show results/20260101T020000Z-fleet
"""
app = typer.Typer(help=_HELP, invoke_without_command=True)
app.callback()(help_alone)
app.command()(run)
app.command()(show)


def finish(finished: Finished) -> None:
    """Show a fleet that was measured, and exit with its exit code.

    Raises:
        SmembenchError: for what ended it before each GPU was complete or failed, and for Ctrl-C.
        typer.Exit: when a GPU is slow, or a case or a GPU failed.
    """
    from smembench.cli.measure import Interrupted
    from smembench.model.errors import SmembenchError
    from smembench.views.console import say, stderr

    verdict = judged(finished.folder)
    tell(verdict)
    say(stderr, f"wrote {finished.folder}")
    again = f"continue with: smembench fleet run --resume {finished.folder}"
    if isinstance(finished.error, KeyboardInterrupt):
        raise Interrupted(f"interrupted: what was measured is kept; {again}")
    if finished.error is not None:
        raise SmembenchError(f"{finished.error}; {again}")
    if any(member.reason for member in verdict.fleet.members):
        say(stderr, again)
    if verdict.exit_code:
        raise typer.Exit(verdict.exit_code)
