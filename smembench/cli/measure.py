"""Common parts of measuring commands: from options to a run, its tables, its CSV and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import Running
from smembench.cli.output import opened, print_json
from smembench.cli.streams import reader_gone
from smembench.model.errors import FAILED, SmembenchError
from smembench.model.interrupts import exit_code
from smembench.model.text import number_of, visible

if TYPE_CHECKING:
    from rich.console import Console

    from smembench.run.config import Config
    from smembench.store.run import Run
    from smembench.store.run_folder import RunFolder
    from smembench.studies.run import Outcome
    from smembench.views.records import Record
    from smembench.views.sections import Section

    After = Callable[[Path, Console], int]
    Draw = Callable[[Run], list[Section]]


class Interrupted(SmembenchError):
    """Ctrl-C or SIGTERM with a message; Typer would drop that of a KeyboardInterrupt."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code()


def measure(
    config: Config,
    running: Running,
    *,
    output: Path | None = None,
    anonymous: bool = False,
    resume: RunFolder | None = None,
    draw: Draw | None = None,
    parts: Callable[[], Mapping[str, Sequence[Record]]] = dict,
    after: After | None = None,
) -> None:
    """Run a config, show its tables, and exit with its exit code.

    The arguments that are not described here are those of ``studies.run.Storage``.

    Args:
        running: the user's options on output, files and locks.
        draw: makes the tables of a finished run; by default all of them.
        parts: after ``draw``, the tables that JSON has beside the cases.
        after: called with the folder of a complete run and the console of its tables; returns an exit code.

    Raises:
        SmembenchError: from ``studies.run.run``, for what ended the run, and for a CSV that cannot be written.
        typer.Exit: when a case failed, or ``after`` returned an exit code.
    """
    target = opened(running, of_run=True)
    running.check_nvtx()
    if running.dry_run:  # before what it does not need is imported
        _show_plan(config, resume, force=running.force, json=target.printed == "json")
        return
    from smembench.model.interrupts import deferred
    from smembench.run.worker import Worker
    from smembench.studies.run import Storage, run
    from smembench.views.break_even import tables
    from smembench.views.console import stderr, stdout
    from smembench.views.export import of_run
    from smembench.views.run import watch
    from smembench.views.table import draw as draw_tables

    with deferred() as hold:  # what was measured is written and shown
        outcome = run(
            config,
            Storage(output, resume, running.force, anonymous, sys.argv[1:]),
            lock=not running.no_lock,
            wait=running.wait,
            watch=watch(verbose=running.verbose),
            hire=partial(Worker, nvtx=running.nvtx),
        )
        shown = (draw or tables)(outcome.run)
        result = of_run(outcome.run, shown, **parts())
        for file, form in target.files:
            try:
                file.write(result.text(form))
            except SmembenchError as error:
                if not isinstance(outcome.error, SmembenchError):
                    outcome = replace(outcome, error=error)
        if target.printed:
            sys.stdout.write(result.text(target.printed))
            sys.stdout.flush()
        console = stderr if target.printed else stdout
        if target.printed in ("", "csv"):  # CSV does not have what tables say below their rows
            draw_tables(console, shown)
        if isinstance(outcome.error, KeyboardInterrupt):
            hold.take()  # a second Ctrl-C is the same one
    leave(outcome, after(outcome.run.path, console) if after and outcome.run.path and outcome.error is None else 0)


def leave(outcome: Outcome, code: int = 0) -> None:
    """Print where the results are, and exit with ``code``, or if that is 0 with the run's exit code.

    Raises:
        SmembenchError: for what ended the run, or if every case was skipped.
        typer.Exit: when ``code`` is not 0, or a case failed.
    """
    from smembench.views.console import notes, say, stderr

    error = outcome.error
    if outcome.run.path is not None and not isinstance(error, SmembenchError):
        say(notes, f"wrote {outcome.run.path}")
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted(str(error))
    if error is not None:
        raise error
    if code:
        raise typer.Exit(code)
    if failed := outcome.run.failed:
        (first, *_), count = failed, number_of(len(outcome.run.rows), "case")
        say(stderr, f"failed: {len(failed)} of {count}, the first of them {first.case_id}: {first.reason}")
        raise typer.Exit(FAILED)
    if not any(row.ok for row in outcome.run.rows):
        raise SmembenchError("nothing was measured: every case was skipped, for the reasons above")


def _show_plan(config: Config, resume: RunFolder | None, *, force: bool, json: bool) -> None:
    from smembench.run.session import open_plan
    from smembench.views.console import notes, say

    with open_plan(config, listed=resume is None) as (planned, infos, remarks):
        if resume is not None:
            from smembench.studies.run import changed_since

            planned = list(planned)
            devices = {item.case.device for item in planned}
            infos = {name: info for name, info in infos.items() if name in devices}
            changed_since(resume, config, planned, infos.values(), force=force)
        used = dict.fromkeys(infos, 0)
        cases = []
        for item in planned:
            used[item.case.device] += 1
            if json:
                cases.append({"case_id": item.case.id, "skipped": item.skip})
            else:
                more = f"skipped: {visible(item.skip)}" if item.skip else ""
                more = f"{item.copies} copies of its arrays" if item.copies > 1 else more
                typer.echo("  ".join(filter(None, (item.case.id, more))))
                if reader_gone():
                    return
        if json:
            print_json(cases=cases)
        for note in remarks:
            say(notes, note)
        on = ", ".join(f"{name} ({info.model})" for name, info in infos.items() if used[name])
        count = sum(used.values())
        say(notes, f"{number_of(count, 'case')} on {on}; nothing was measured")
