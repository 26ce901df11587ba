"""What ``smembench run`` does after a night's measurement: compare, summarise, tell, and remove what is too old."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.model.errors import FAILED, REGRESSION, UsageError

if TYPE_CHECKING:
    from rich.console import Console

NIGHTS = "Night after night"


@dataclass(frozen=True, kw_only=True)
class Nightly:
    """What is done with a run beside storing it."""

    compare_to: Annotated[
        str | None,
        typer.Option(
            "--compare-to",
            metavar="last[:N]|baseline|DIR",
            help="Compare with the run before or the N before (and the baseline, if one is pinned), the baseline, or "
            "a run; exit 3 when a case is slower. From last:3 on it is known how much runs differ anyway.",
            rich_help_panel=NIGHTS,
        ),
    ] = None
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            help="Remove complete runs of this config on these devices beyond the newest N; never the baseline.",
            rich_help_panel=NIGHTS,
        ),
    ] = None
    json_lines: Annotated[
        Path | None,
        typer.Option(
            "--json-lines", metavar="PATH", help="Append the run as one line of JSON.", rich_help_panel=NIGHTS
        ),
    ] = None
    openmetrics: Annotated[
        Path | None,
        typer.Option(
            "--openmetrics",
            metavar="PATH.prom",
            help="Write metrics for node_exporter's textfile collector.",
            rich_help_panel=NIGHTS,
        ),
    ] = None

    @property
    def asked(self) -> bool:
        """Whether there is anything to do."""
        return any(value is not None for value in (self.compare_to, self.keep, self.json_lines, self.openmetrics))


def after(options: Nightly, root: Path, config: str) -> Callable[[Path, Console], int] | None:
    """What to do with the folder of a complete run, given where to print; None when nothing was asked for.

    It returns an exit code: 1 when a case failed or something asked for could not be done, 3 when a case is slower,
    else 0.

    Args:
        options: what the user asked for.
        root: the folder runs are in.
        config: the name of the run's config.

    Raises:
        UsageError: for what cannot be done, before anything is measured.
    """
    from smembench.studies.nightly.against import check

    if not options.asked:
        return None
    if options.keep is not None and options.keep < 1:
        raise UsageError(f"--keep {options.keep}: keep at least 1 run, the new one")
    if options.compare_to is not None:
        check(options.compare_to, root, config)
    if options.openmetrics is not None and options.openmetrics.suffix != ".prom":
        raise UsageError(f"--openmetrics {options.openmetrics}: the textfile collector only reads names in .prom")
    _check_file(options.json_lines, "--json-lines")
    _check_file(options.openmetrics, "--openmetrics")
    return lambda folder, console: _finish(options, root, folder, console)


def _check_file(path: Path | None, flag: str) -> None:
    from smembench.store.csv_files import check_writable

    if path is None:
        return
    check_writable(path, force=True, what=flag)
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{flag} {path}: cannot be written")


def _finish(options: Nightly, root: Path, folder: Path, console: Console) -> int:
    from smembench.store.csv_files import write_whole
    from smembench.studies.baseline import baselines
    from smembench.studies.load import load
    from smembench.studies.nightly.against import compare
    from smembench.studies.nightly.monitoring import json_line, open_metrics
    from smembench.studies.nightly.runs import SUMMARY, prune
    from smembench.views.console import stderr
    from smembench.views.nightly import print_summary, summarise

    run = load(folder)
    compared, notes, problems = compare(options.compare_to, root, run) if options.compare_to else ([], [], [])
    if options.keep is not None:
        said, failed = prune(root, run.description, options.keep, baselines(root).values())
        notes, problems = [*notes, *said], [*problems, *failed]
    slower = any(comparison.regressions for _, comparison in compared)
    code = FAILED if problems or run.failed else REGRESSION if slower else 0
    summary = summarise(run, compared, [*notes, *problems])
    print_summary(console, summary)
    writes: list[tuple[Path | None, Callable[[Path], None]]] = [
        (folder / SUMMARY, lambda path: write_whole(path, summary.markdown())),
        (options.json_lines, lambda path: _append(path, json_line(run, compared, code))),
        (options.openmetrics, lambda path: write_whole(path, open_metrics(run, compared, code))),
    ]
    for path, write in writes:
        try:
            if path is not None:
                write(path)
        except OSError as error:
            problems.append(f"{path}: cannot be written ({error.strerror})")
    for problem in problems:
        stderr.print(problem, soft_wrap=True, markup=False)
    return FAILED if problems else code


def _append(path: Path, line: str) -> None:
    """Put a line at a file's end in one write, so that two runs do not mix theirs."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
