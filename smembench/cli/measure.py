"""What measuring commands share: from options to a run, its tables, its CSV and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import Running
from smembench.model.errors import FAILED, SmembenchError
from smembench.model.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from smembench.run.config import Config
    from smembench.store.files import Output
    from smembench.store.run import Run
    from smembench.store.run_folder import RunFolder
    from smembench.store.schema import Row
    from smembench.studies.run import Outcome, Watch
    from smembench.views.sections import Section

    After = Callable[[Path, Console], int]
    Draw = Callable[[Run], list[Section]]


class Interrupted(SmembenchError):
    """Ctrl-C with a message; Typer would drop that of a KeyboardInterrupt."""

    exit_code = 130


def measure(
    config: Config,
    running: Running,
    *,
    output: Path | None = None,
    anonymous: bool = False,
    resume: RunFolder | None = None,
    draw: Draw | None = None,
    after: After | None = None,
) -> None:
    """Run a config, show its tables, and exit with its exit code.

    ``draw`` makes sections of a finished run; ``after`` takes the folder of a complete run and the console of its
    tables, and returns an exit code. The other arguments are those of ``studies.run.run``.

    Raises:
        SmembenchError: from ``studies.run.run``, for what ended the run, and for a CSV that cannot be written.
        typer.Exit: when a case failed, or ``after`` returned an exit code.
    """
    from smembench.store.files import Output

    to_stdout = str(running.csv) == "-"
    csv = Output(running.csv, force=running.force) if running.csv is not None and not to_stdout else None
    if running.dry_run:  # before what it does not need is imported
        _show_plan(config)
        return
    from smembench.model.interrupts import held
    from smembench.studies.run import run
    from smembench.views.console import stderr, stdout
    from smembench.views.sections import sections
    from smembench.views.table import draw as draw_tables

    with held():  # what was measured is written and shown
        outcome = run(
            config,
            output=output,
            anonymous=anonymous,
            resume=resume,
            force=running.force,
            lock=not running.no_lock,
            wait=running.wait,
            argv=sys.argv[1:],
            watch=watch(verbose=running.verbose),
        )
        if running.csv is not None:
            try:
                _write_csv(csv, outcome.run.rows)
            except SmembenchError as error:
                if not isinstance(outcome.error, SmembenchError):
                    outcome = replace(outcome, error=error)
        console = stderr if to_stdout else stdout
        draw_tables(console, (draw or sections)(outcome.run))
    leave(outcome, after(outcome.run.path, console) if after and outcome.run.path and outcome.error is None else 0)


def watch(*, verbose: bool = False) -> Watch:
    """A run's progress bar and its lines on stderr."""
    from smembench.studies.run import Watch
    from smembench.views.console import say, stderr
    from smembench.views.progress import progress
    from smembench.views.run import device_line, trial_line

    def note(line: str) -> None:
        if line:
            say(stderr, line)

    if not verbose:
        return Watch(note=note, progress=progress)
    return Watch(note, lambda info: note(device_line(info)), lambda trial: note(trial_line(trial)), progress)


def leave(outcome: Outcome, code: int = 0) -> None:
    """Print where the results are, and exit with ``code``, or if that is 0 with the run's exit code.

    Raises:
        SmembenchError: for what ended the run.
        typer.Exit: when ``code`` is not 0, or a case failed.
    """
    from smembench.views.console import say, stderr

    error = outcome.error
    if outcome.run.path is not None and not isinstance(error, SmembenchError):
        say(stderr, f"wrote {outcome.run.path}")
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted(str(error))
    if error is not None:
        raise error
    if outcome.run.failed or code:
        raise typer.Exit(code or FAILED)


def _write_csv(csv: Output | None, rows: Sequence[Row]) -> None:
    """Write the cases to a file, or to stdout for None."""
    from smembench.store import schema
    from smembench.store.csv_files import table_text

    text = table_text(schema.COLUMNS, map(schema.to_fields, rows))
    if csv is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        csv.write(text)


def _show_plan(config: Config) -> None:
    from smembench.run.session import open_plan
    from smembench.views.console import say, stderr

    with open_plan(config) as (planned, infos, notes):
        used = dict.fromkeys(infos, 0)
        for item in planned:
            used[item.case.device] += 1
            typer.echo(item.case.id + (f"  skipped: {visible(item.skip)}" if item.skip else ""))
        for note in notes:
            say(stderr, note)
        devices = ", ".join(f"{name} ({info.model})" for name, info in infos.items() if used[name])
        say(stderr, f"{sum(used.values())} cases on {devices}; nothing was measured")
