"""``smembench fleet``: the same config on many GPUs of one or many hosts, and which of them is slow."""

from __future__ import annotations

import typer

from smembench.cli.fleet_run import run
from smembench.cli.fleet_show import show
from smembench.cli.options import help_alone

_HELP = """Benchmark every GPU of one or more hosts and find the slow ones.

Examples:

  smembench fleet run fleet

  smembench fleet show results/20260101T020000Z-fleet
"""
app = typer.Typer(help=_HELP, invoke_without_command=True)
app.callback()(help_alone)
app.command()(run)
app.command()(show)
