"""What measuring commands share: from options to a run, its tables, its CSV and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import Running
from smembench.model.errors import FAILED, SmembenchError

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

    Args:
        config: what to measure.
        running: the user's options.
        output: the folder to make a new run's folder in; None to store nothing.
        anonymous: leave out everything that identifies the machine.
        resume: the folder of a run to continue.
        draw: makes sections of a finished run; the usual tables when None.
        after: takes the folder of a complete run and the console of its tables, and returns an exit code.

    Raises:
        SmembenchError: from ``studies.run.run``, for what ended the run, and for a CSV that cannot be written.
        typer.Exit: when a case failed, or ``after`` returned an exit code.
    """
    from smembench.store.files import Output
    from smembench.studies.run import run
    from smembench.views.console import stderr, stdout
    from smembench.views.sections import sections
    from smembench.views.table import draw as draw_tables

    to_stdout = str(running.csv) == "-"
    csv = Output(running.csv, force=running.force) if running.csv is not None and not to_stdout else None
    if running.dry_run:
        _show_plan(config)
        return
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
    unwritten = None
    if running.csv is not None:
        try:
            _write_csv(csv, outcome.run.rows)
        except SmembenchError as error:
            unwritten = error
    console = stderr if to_stdout else stdout
    draw_tables(console, (draw or sections)(outcome.run))
    stopped = outcome.error or unwritten
    code = after(outcome.run.path, console) if after and outcome.run.path and stopped is None else 0
    if unwritten is not None and not isinstance(outcome.error, SmembenchError):
        raise unwritten
    leave(outcome, code)


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
    return Watch(
        note=note,
        device=lambda info: note(device_line(info)),
        trial=lambda trial: note(trial_line(trial)),
        progress=progress,
    )


def leave(outcome: Outcome, code: int = 0) -> None:
    """Print where the results are, and exit with the run's exit code, or with ``code`` if the run succeeded.

    Raises:
        SmembenchError: for what ended the run.
        typer.Exit: when a case failed, or ``code`` is not 0.
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
        raise typer.Exit(FAILED if outcome.run.failed else code)


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
    from smembench.run.session import open_session

    with open_session(config, lock=False) as session:
        for note in session.notes:
            typer.echo(note, err=True)
        for planned in session.planned:
            typer.echo(f"{planned.case.id}" + (f"  skipped: {planned.skip}" if planned.skip else ""))
        devices = ", ".join(f"{info.name} ({info.model})" for info in session.infos.values())
        typer.echo(f"{len(session.planned)} cases on {devices}; nothing was measured", err=True)
