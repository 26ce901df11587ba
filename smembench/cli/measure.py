"""What every measuring command does: plan, run with progress, show, store, exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from smembench.cli.options import Running
from smembench.model.errors import FAILED, DeviceUnavailable, RunInterrupted, SmembenchError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from smembench.model.measurement import Measurement, Trial
    from smembench.run.config import Config
    from smembench.run.session import Session
    from smembench.store.run_folder import RunFolder
    from smembench.store.schema import Row
    from smembench.views.sections import Section

    After = Callable[[Path, Console], int]
    Draw = Callable[[Sequence[Row], Sequence[Measurement], dict[str, Any]], list[Section]]


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
    """Run a config and leave through ``typer.Exit`` when a case failed or the user interrupted.

    Args:
        config: what to measure.
        running: the user's options.
        output: where a new run's folder is made; None for no folder.
        anonymous: leave out what identifies the machine.
        resume: a folder to go on in.
        draw: makes sections of a finished run; the usual tables when None.
        after: is given a complete run's folder, prints beside its tables, and returns an exit code.

    Raises:
        SmembenchError: for what can be refused before measuring, for a device that stays dead, and for results
            that cannot be written.
    """
    from smembench.run.environment import describe_run
    from smembench.run.session import open_session
    from smembench.store.csv_files import check_writable
    from smembench.store.run_folder import RunFolder, new_run_id
    from smembench.views.console import stderr, stdout

    def say(line: str) -> None:
        stderr.print(line, soft_wrap=True, markup=False)

    to_stdout = running.csv is not None and str(running.csv) == "-"
    if running.csv is not None and not to_stdout:
        check_writable(running.csv, force=running.force)
    session = open_session(
        config,
        lock=not (running.no_lock or running.dry_run),
        wait=running.wait,
        waiting=lambda holder: say(f"waiting for {holder}, which uses the GPU"),
        seed=resume.run["seed"] if resume else None,
    )
    with session:
        for note in session.notes:
            say(note)
        if running.dry_run:
            _show_plan(session)
            return
        infos = session.infos.values()
        run_id = new_run_id(config.name)
        run = describe_run(run_id, config, session.seed, infos, anonymous=anonymous, argv=sys.argv[1:])
        folder = resume
        if resume is not None:
            _check_same(resume, run, session, force=running.force)
            run = resume.run
        elif output is not None:
            folder = RunFolder.create(output, run)
        if running.verbose:
            for info in (info for info in infos if info.event_pair_us is not None):
                say(f"{info.name}: an empty event pair reads {info.event_pair_us:.3f} µs, taken off every sample")
        outcome = _Outcome(session, folder, say if running.verbose else None)
        outcome.run()
        rows = outcome.store(run["run_id"], running.csv)
        console = stderr if to_stdout else stdout
        _show(console, rows, outcome.measurements, run, draw)
        code = after(folder.path, console) if after and folder and outcome.complete else 0
        outcome.leave(say, code)


class _Outcome:
    """Trials as they come in, how the run ended, and what that means for the process."""

    def __init__(self, session: Session, folder: RunFolder | None, verbose: Callable[[str], None] | None) -> None:
        self._session = session
        self._folder = folder
        self._verbose = verbose
        self._trials: list[Trial] = list(folder.trials) if folder else []
        self._error: SmembenchError | None = None
        self._interrupted = False

    @property
    def measurements(self) -> list[Measurement]:
        """What the trials add up to."""
        from smembench.explain.prediction import predict

        return self._session.measurements(self._trials, predict)

    @property
    def complete(self) -> bool:
        """Whether every case was measured and everything written."""
        return not self._interrupted and self._error is None

    @property
    def _again(self) -> str:
        """How to go on with a run that was cut off, where there is something to go on with."""
        return f"; go on with: smembench run --resume {self._folder.path}" if self._folder else ""

    def run(self) -> None:
        """Run every trial, keeping each trial before the next begins."""
        from smembench.cli.progress import progress
        from smembench.run.runner import Interrupted

        try:
            with progress() as begin:
                for trial in self._session.run(list(self._trials), begin):
                    self._keep(trial)
        except Interrupted as stop:
            self._interrupted = True
            if stop.trial is not None:
                self._keep(stop.trial)
        except KeyboardInterrupt:
            self._interrupted = True
        except DeviceUnavailable as error:
            self._error = DeviceUnavailable(f"{error}{self._again}")
        except OSError as error:
            self._error = SmembenchError(self._cannot_write(error))

    def _keep(self, trial: Trial) -> None:
        self._trials.append(trial)
        if self._folder is not None:
            self._folder.append(trial)
        if self._verbose is not None:
            from smembench.views.run import trial_line

            self._verbose(trial_line(trial))

    def _cannot_write(self, error: OSError) -> str:
        where = self._folder.path if self._folder else "the results"
        return f"{where}: cannot be written ({error.strerror}); what is in its journal can be resumed"

    def store(self, run_id: str, csv: Path | None) -> list[Row]:
        """Predict what the columns want, write the run's files and the CSV."""
        from smembench.cli.progress import progress
        from smembench.explain.prediction import trace_together
        from smembench.store.run_folder import rows_of

        with progress() as done:
            trace_together((trial.case for trial in self._trials), done)
        rows = rows_of(run_id, self.measurements)
        if (self._folder is not None and self._error is None) or isinstance(self._error, DeviceUnavailable):
            try:
                rows = self._folder.finish(self.measurements, complete=self.complete) if self._folder else rows
            except OSError as error:
                self._error = SmembenchError(self._cannot_write(error))
        if csv is not None:
            try:
                _write_csv(csv, rows)
            except BrokenPipeError:
                raise
            except OSError as error:
                self._error = self._error or SmembenchError(f"--csv {csv}: cannot be written ({error.strerror})")
        return rows

    def leave(self, say: Callable[[str], None], code: int) -> None:
        """Say where the results are, and leave with the right exit code, ``code`` where nothing else is wrong."""
        if self._folder is not None and self._error is None:
            say(f"wrote {self._folder.path}")
        if self._error is not None:
            raise self._error
        if self._interrupted:
            raise RunInterrupted(f"interrupted: what was measured is kept{self._again}")
        if any(measurement.failed for measurement in self.measurements):
            raise typer.Exit(FAILED)
        if code:
            raise typer.Exit(code)


def _check_same(resume: RunFolder, run: dict[str, Any], session: Session, *, force: bool) -> None:
    from smembench.run.environment import differences

    planned = {item.case for item in session.planned}
    if stray := [trial.case.id for trial in resume.trials if trial.case not in planned]:
        raise UsageError(f"--resume {resume.path}: holds {stray[0]}, which this configuration does not plan")
    found = differences(resume.run, run)
    if not found:
        return
    if not force:
        raise UsageError(
            f"--resume {resume.path}: {'; '.join(found)}; figures from both would not belong together: "
            "start a new run, or add --force to go on and have it recorded"
        )
    resume.run.setdefault("resumed_with_differences", []).append(found)


def _write_csv(csv: Path, rows: Sequence[Row]) -> None:
    from smembench.store import schema
    from smembench.store.csv_files import table_text, write_whole

    text = table_text(schema.COLUMNS, map(schema.to_fields, rows))
    if str(csv) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_whole(csv, text)


def _show(
    console: Any, rows: Sequence[Row], done: Sequence[Measurement], run: dict[str, Any], draw: Draw | None
) -> None:
    from smembench.views.sections import sections
    from smembench.views.table import draw as draw_tables

    draw_tables(console, draw(rows, done, run) if draw else sections(rows, run))


def _show_plan(session: Session) -> None:
    for planned in session.planned:
        typer.echo(f"{planned.case.id}" + (f"  skipped: {planned.skip}" if planned.skip else ""))
    devices = ", ".join(f"{info.name} ({info.model})" for info in session.infos.values())
    typer.echo(f"{len(session.planned)} cases on {devices}; nothing was measured", err=True)
