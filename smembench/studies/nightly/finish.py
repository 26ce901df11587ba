"""What is done with a complete run of a night: compare it, remove old ones, and tell a monitoring system."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smembench.model.errors import FAILED, REGRESSION, UsageError
from smembench.store.csv_files import check_writable, write_whole
from smembench.store.run import Run
from smembench.studies.baseline import baselines
from smembench.studies.load import load
from smembench.studies.nightly import against
from smembench.studies.nightly.monitoring import Compared, json_line, open_metrics
from smembench.studies.nightly.runs import prune


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for beside storing a run: ``last``, ``last:N``, ``baseline`` or a folder to compare with; how many
    runs to keep; files for a monitoring system.
    """

    compare_to: str | None = None
    keep: int | None = None
    json_lines: Path | None = None
    openmetrics: Path | None = None

    def check(self, root: Path, config: str) -> None:
        """Make sure before a run that it can be done; ``root`` is the folder runs are in, ``config`` the config's name.

        Raises:
            UsageError: for what cannot be done.
        """
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep {self.keep}: keep at least 1 run, the new one")
        if self.compare_to is not None:
            against.check(self.compare_to, root, config)
        if self.openmetrics is not None and self.openmetrics.suffix != ".prom":
            raise UsageError(f"--openmetrics {self.openmetrics}: the textfile collector only reads names in .prom")
        _check_file(self.json_lines, "--json-lines")
        _check_file(self.openmetrics, "--openmetrics")


def _check_file(path: Path | None, flag: str) -> None:
    if path is None:
        return
    check_writable(path, force=True, what=flag)
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{flag} {path}: cannot be written")


@dataclass(frozen=True, slots=True)
class Finished:
    """A night's run, what it was compared with, what else is to be said, and what could not be done."""

    run: Run
    compared: Compared
    notes: Sequence[str]
    problems: Sequence[str]

    @property
    def exit_code(self) -> int:
        """1 when a case failed or something asked for could not be done, 3 when a case is slower, else 0."""
        if self.problems or self.run.failed:
            return FAILED
        return REGRESSION if any(comparison.regressions for _, comparison in self.compared) else 0


def finish(plan: Plan, root: Path, folder: Path) -> Finished:
    """Compare a complete run, and remove those beyond the ones that are kept."""
    run = load(folder)
    compared, notes, problems = against.compare(plan.compare_to, root, run) if plan.compare_to else ([], [], [])
    if plan.keep is not None:
        said, failed = prune(root, run.description, plan.keep, baselines(root).values())
        notes, problems = [*notes, *said], [*problems, *failed]
    return Finished(run, compared, notes, problems)


def tell(plan: Plan, finished: Finished, page: Path, summary: str) -> list[str]:
    """Write the summary to its page and what monitoring was promised; returns what could not be written."""
    told = (finished.run, finished.compared, finished.exit_code)
    writes: list[tuple[Path | None, Callable[[Path], None]]] = [
        (page, lambda path: write_whole(path, summary)),
        (plan.json_lines, lambda path: _append(path, json_line(*told))),
        (plan.openmetrics, lambda path: write_whole(path, open_metrics(*told))),
    ]
    failed = []
    for path, write in writes:
        try:
            if path is not None:
                write(path)
        except OSError as error:
            failed.append(f"{path}: cannot be written ({error.strerror})")
    return failed


def _append(path: Path, line: str) -> None:
    """Put a line at a file's end in one write, so that two runs do not mix theirs."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
