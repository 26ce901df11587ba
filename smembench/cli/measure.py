"""What every measuring command does: plan, run with progress, show, store, exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from smembench.errors import SmembenchError

if TYPE_CHECKING:
    from smembench.config import Config
    from smembench.measurement import Measurement
    from smembench.session import Session
    from smembench.store.run_folder import RunFolder
    from smembench.store.schema import Row
    from smembench.views.sections import Section

    Draw = Callable[[Sequence[Row], Sequence[Measurement], dict[str, Any]], list[Section]]

INTERRUPTED = 130
FAILED = 1


def measure(
    config: Config,
    *,
    csv: Path | None = None,
    force: bool = False,
    dry_run: bool = False,
    output: Path | None = None,
    anonymous: bool = False,
    draw: Draw | None = None,
) -> None:
    """Run a config and leave through ``typer.Exit`` when a case failed or the user interrupted.

    Raises:
        SmembenchError: for what can be refused before measuring.
    """
    from smembench.environment import describe_run
    from smembench.session import open_session
    from smembench.store.csv_files import check_writable
    from smembench.store.run_folder import RunFolder, new_run_id
    from smembench.views.console import stderr, stdout

    if csv is not None and str(csv) != "-":
        check_writable(csv, force=force)
    with open_session(config) as session:
        if session.note:
            stderr.print(session.note, soft_wrap=True, markup=False)
        if dry_run:
            _show_plan(session)
            return
        run_id = new_run_id(config.name)
        run = describe_run(run_id, config, session.seed, session.infos, anonymous=anonymous, argv=sys.argv[1:])
        folder = RunFolder(output, run_id, run) if output is not None else None
        done, interrupted = _run_cases(session, folder)
        rows = _store(run_id, done, folder, csv, complete=not interrupted)
        console = stderr if csv is not None and str(csv) == "-" else stdout
        _show(console, rows, done, run, draw)
        if folder is not None:
            stderr.print(f"wrote {folder.path}", soft_wrap=True, markup=False)
        if interrupted:
            stderr.print(f"interrupted: {len(done)} of {len(session.planned)} cases are kept", markup=False)
            raise typer.Exit(INTERRUPTED)
        if any(measurement.failed for measurement in done):
            raise typer.Exit(FAILED)


def _run_cases(session: Session, folder: RunFolder | None) -> tuple[list[Measurement], bool]:
    from smembench.cli.progress import progress

    done: list[Measurement] = []
    try:
        with progress(len(session.planned)) as (begin, advance):
            for measurement in session.run(begin):
                done.append(measurement)
                if folder is not None:
                    folder.append(measurement)
                advance()
    except KeyboardInterrupt:
        return done, True
    return done, False


def _store(
    run_id: str, done: list[Measurement], folder: RunFolder | None, csv: Path | None, *, complete: bool
) -> list[Row]:
    import io

    from smembench.store.csv_files import write_rows, write_whole
    from smembench.store.run_folder import rows_of

    rows = folder.finish(complete=complete) if folder is not None else rows_of(run_id, done)
    if csv is not None:
        text = io.StringIO()
        write_rows(text, rows)
        if str(csv) == "-":
            sys.stdout.write(text.getvalue())
            sys.stdout.flush()
        else:
            try:
                write_whole(csv, text.getvalue())
            except OSError as error:
                raise SmembenchError(f"--csv {csv}: cannot be written ({error.strerror})") from None
    return rows


def _show(console: Any, rows: list[Row], done: list[Measurement], run: dict[str, Any], draw: Draw | None) -> None:
    from smembench.views.sections import sections
    from smembench.views.table import draw as draw_tables

    draw_tables(console, draw(rows, done, run) if draw else sections(rows, run))


def _show_plan(session: Session) -> None:
    for planned in session.planned:
        typer.echo(f"{planned.case.id}" + (f"  skipped: {planned.skip}" if planned.skip else ""))
    devices = ", ".join(f"{info.name} ({info.model})" for info in session.infos)
    typer.echo(f"{len(session.planned)} cases on {devices}; nothing was measured", err=True)
